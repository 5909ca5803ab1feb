// SPDX-License-Identifier: Apache-2.0
#include "trace/reader.h"

#include <fmt/format.h>
#include <simdjson.h>
#include <zlib.h>

#include <array>
#include <string>
#include <utility>

#include "trace/event_builder.h"

namespace trace {
namespace {

using simdjson::ondemand::field;
using simdjson::ondemand::object;
using simdjson::ondemand::value;

void read_events(simdjson::ondemand::array events, EventBuilder& builder) {
  for (auto element : events) {
    value event;
    if (std::move(element).get(event) || !builder.add(event)) throw ReadError("not a whole event");
  }
}

}  // namespace

Trace read_text(std::string_view text) {
  Trace trace;
  EventBuilder builder(trace);
  const simdjson::padded_string padded(text);
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  if (parser.iterate(padded).get(document)) throw ReadError("not a trace");
  trace.report.bytes = static_cast<std::int64_t>(text.size());
  simdjson::ondemand::array events;
  if (!document.get_array().get(events)) {
    read_events(events, builder);
  } else {
    object parts;
    if (document.get_object().get(parts)) throw ReadError("not a trace");
    for (auto part : parts) {
      field current;
      std::string_view key;
      if (std::move(part).get(current) || current.unescaped_key().get(key)) {
        throw ReadError("not a trace");
      }
      value item = current.value();
      if (key == "traceEvents" && !item.get_array().get(events)) {
        read_events(events, builder);
        continue;
      }
      std::string_view json;
      if (!simdjson::to_json_string(item).get(json)) builder.add_top_level(key, json);
    }
  }
  builder.finish();
  return trace;
}

Trace read(const std::filesystem::path& path) {
  const gzFile file = path == "-" ? gzdopen(0, "rb") : gzopen(path.c_str(), "rb");
  if (file == nullptr) throw ReadError(fmt::format("cannot open {}", path.string()));
  std::string text;
  std::array<char, 1 << 16> piece;
  int got = 0;
  while ((got = gzread(file, piece.data(), piece.size())) > 0) {
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  gzclose(file);
  return read_text(text);
}

}  // namespace trace
