// SPDX-License-Identifier: Apache-2.0
#include "trace/merge_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "trace/framing.h"
#include "trace/numbers.h"
#include "trace/wrapping.h"

namespace trace {
namespace {

using simdjson::ondemand::field;
using simdjson::ondemand::object;
using simdjson::ondemand::value;

struct IdKey {
  std::string_view name;
  bool zero_is_none;
};
// Ids that join events of one process. What joins ranks (sequence numbers and names of collectives)
// is none of them.
constexpr IdKey kIdKeys[] = {
    {"External id", true},
    {"external id", true},
    {"correlation", true},
    {"Record function id", true},
    {"wait_on_cuda_event_record_corr_id", true},
    {"Ev Idx", false},
    {"Profiler Event Index", false},
    {"Sequence number", false},
    {"Python id", false},
    {"Python parent id", false},
    {"Python module id", false},
    {"wait_on_cuda_event_id", false},
};

constexpr std::int64_t kMostSort = 1'000'000'000;

// A scalar's token reaches up to the next one.
std::string_view token_of(value& item) {
  std::string_view token = item.raw_json_token();
  while (!token.empty() && is_json_space(token.back())) token.remove_suffix(1);
  return token;
}

// `key` points into padded text, so reading past its end is safe.
bool is_key(const char* key, std::string_view name) {
  return std::memcmp(key, name.data(), name.size()) == 0 && key[name.size()] == '"';
}

bool is_string(std::string_view token) {
  return token.size() >= 2 && token.front() == '"' && token.back() == '"';
}

bool is_scalar(std::string_view token) {
  return !token.empty() && token.front() != '{' && token.front() != '[';
}

}  // namespace

bool EventWalker::read(value& event) {
  places_.open = token_of(event).data();
  places_.has_parts = false;
  places_.phase = places_.name = places_.pid = places_.time = {};
  places_.args_name = places_.sort_index = {};
  places_.ids.clear();
  object parts;
  if (event.get_object().get(parts)) return false;
  for (auto part : parts) {
    field current;
    if (std::move(part).get(current)) return false;
    places_.has_parts = true;
    const char* key = current.key().raw();
    value& item = current.value();
    if (is_key(key, "args")) {
      if (!read_args(item)) return false;
    } else if (is_key(key, "ph")) {
      places_.phase = token_of(item);
    } else if (is_key(key, "name")) {
      places_.name = token_of(item);
    } else if (is_key(key, "pid")) {
      places_.pid = token_of(item);
    } else if (is_key(key, "ts")) {
      places_.time = token_of(item);
    } else if (is_key(key, "id") || is_key(key, "bind_id")) {
      places_.ids.push_back({token_of(item), false, true});
    }
  }
  return true;
}

bool EventWalker::read_args(value& args) {
  object parts;
  if (args.get_object().get(parts)) return true;  // null, a list: nothing to change
  for (auto part : parts) {
    field current;
    if (std::move(part).get(current)) return false;
    const char* key = current.key().raw();
    value& item = current.value();
    if (is_key(key, "name")) places_.args_name = token_of(item);
    if (is_key(key, "sort_index")) places_.sort_index = token_of(item);
    for (const IdKey& known : kIdKeys) {
      if (*key != known.name.front() || !is_key(key, known.name)) continue;
      places_.ids.push_back({token_of(item), known.zero_is_none, false});
    }
  }
  return true;
}

bool parse_id(std::string_view token, std::int64_t& id) {
  if (is_string(token)) token = token.substr(1, token.size() - 2);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), number);
  if (error != std::errc() || end != token.data() + token.size() || number < 0) return false;
  id = number;
  return true;
}

std::string ranked(std::string_view token, std::int64_t rank) {
  if (is_string(token)) token = token.substr(1, token.size() - 2);
  return fmt::format("\"rank {}: {}\"", rank, token);
}

bool EventRewriter::append(std::string_view array, std::size_t capacity, std::string& out) {
  edits_.clear();
  const bool is_good =
      walker_.walk(array, capacity, [this](const EventPlaces& event) { change(event); });
  if (!is_good) return false;
  const char* from = array.data() + 1;
  const char* const end = array.data() + array.size() - 1;
  for (const Edit& edit : edits_) {
    out.append(from, edit.begin);
    out += edit.text;
    from = edit.begin + edit.size;
  }
  out.append(from, end);
  return true;
}

void EventRewriter::replace(std::string_view token, std::string text) {
  edits_.push_back({token.data(), token.size(), std::move(text)});
}

void EventRewriter::change(const EventPlaces& event) {
  const auto first = static_cast<std::ptrdiff_t>(edits_.size());
  if (is_scalar(event.pid)) {
    replace(event.pid, ranked(event.pid, change_.rank));
  } else if (event.pid.empty() && event.has_parts) {
    replace({event.open + 1, 0}, fmt::format("\"pid\": \"rank {}\", ", change_.rank));
  }
  std::int64_t ns = 0;
  if (change_.time_ns != 0 && parse_nanoseconds(event.time, ns)) {
    replace(event.time, microseconds_text(wrapping_add(ns, change_.time_ns)));
  }
  for (const IdPlace& id : event.ids) change_id(id);
  if (event.is_metadata("\"process_name\"") && is_string(event.args_name)) {
    replace(event.args_name, ranked(event.args_name, change_.rank));
  }
  std::int64_t place = 0;
  if (event.is_metadata("\"process_sort_index\"") && parse_integer(event.sort_index, place)) {
    place = std::clamp<std::int64_t>(place, 0, kMostSort - 1);
    replace(event.sort_index, fmt::format("{}", place + change_.sort_offset));
  }
  std::sort(edits_.begin() + first, edits_.end(),
            [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
}

void EventRewriter::change_id(const IdPlace& id) {
  std::int64_t number = 0;
  if (!parse_id(id.token, number)) {
    // An id that is a text: "0x7f". Two of them join events, too.
    if (id.is_flow && is_string(id.token)) replace(id.token, ranked(id.token, change_.rank));
    return;
  }
  if (change_.id_offset == 0 || (number == 0 && id.zero_is_none)) return;
  const std::string_view quote = is_string(id.token) ? "\"" : "";
  replace(id.token, fmt::format("{}{}{}", quote, number + change_.id_offset, quote));
}

}  // namespace trace
