// SPDX-License-Identifier: Apache-2.0
#include "sweep.h"

#include <fmt/format.h>

#include "chapter/report.h"
#include "explain/decode.h"
#include "explain/sweep_file.h"
#include "explain/text.h"
#include "measure.h"
#include "profiler/profiler.h"
#include "trace/tree.h"

namespace kv {
namespace {

using explain::time_text;

constexpr const char* kColumns = "{:<13}{:>6}{:>11}{:>10}{:>8}{:>8}{:>12}{:>12}{:>9}{:>8}{:>12}\n";

struct Line {
  explain::DecodeFacts facts;
  chapter::Error error;
};

// One generation after a warm one, as the profiler sees it.
Line recorded(const chapter::Options& options, const Asked& asked, Kind kind,
              const Generate& generate) {
  Generation generation(options, asked, kind);
  const Measured measured = measure(options, generation, generate);
  if (!measured.error.acceptable()) chapter::check(options, measured.error);  // throws
  prof::ProfilerOptions profiler_options = kv::profiler_options(options, generation, measured);
  profiler_options.schedule = prof::Schedule{.wait = 0, .warmup = 1, .active = 1, .repeat = 1};
  prof::Profiler profiler(profiler_options);
  for (int step = 0; step < 2; ++step) {
    generate(generation, [](const at::Tensor&) {});
    profiler.step();
  }
  const trace::OpTree tree(profiler.stop());
  return {explain::decode_facts(tree).value(), measured.error};
}

std::optional<double> quotient(double part, double whole) {
  return whole > 0 ? std::optional(part / whole) : std::nullopt;
}

// A line of the table as figures, in the order of the quantities below.
std::vector<std::optional<double>> values_of(const explain::DecodeFacts& f) {
  const explain::TokenBytes bytes = f.bytes.value_or(explain::TokenBytes{});
  const double written = bytes.written * static_cast<double>(f.tokens);
  return {f.last_us, f.first_us, f.bytes ? quotient(written, f.final_bytes) : std::nullopt,
          quotient(bytes.read, bytes.least), quotient(f.peak_bytes, f.final_bytes)};
}

// Of what is missing there, if anything is.
std::string reason_of(const explain::DecodeFacts& f) {
  if (f.cache_slots == 0) return "there is no cache";
  return f.bytes ? "" : "a graph's replays have no ops to tell bytes from";
}

explain::Sweep new_record(const chapter::Options& options) {
  explain::Sweep record = chapter::new_sweep(options, "one generation of T tokens", "T");
  record.quantities = {{"last", "time of a token in the last quarter", "us"},
                       {"first", "time of a token in the first quarter", "us"},
                       {"written", "written into the cache / the cache at the end", "ratio"},
                       {"read", "read of the cache / the least", "ratio"},
                       {"peak", "peak of the cache / the cache at the end", "ratio"}};
  return record;
}

void print(Kind kind, const Line& line, const std::vector<std::optional<double>>& values) {
  const explain::DecodeFacts& f = line.facts;
  const auto ratio = [&](std::size_t i) {
    return values[i] ? fmt::format("{:.2f}", *values[i]) : std::string("-");
  };
  fmt::print(fmt::runtime(kColumns), name_of(kind), f.tokens,
             f.cache_slots > 0 ? fmt::format("{:.2f}", f.cache_allocations.value_or(0)) : "-",
             ratio(2), ratio(3), ratio(4), time_text(f.first_us), time_text(f.last_us),
             fmt::format("{:.2f}x", f.growth()),
             f.on_gpu ? explain::share_text(f.idle_share) : std::string("-"),
             fmt::format("{:.1e}", line.error.relative_l2));
}

}  // namespace

void sweep(const chapter::Options& options, const Asked& asked, const Generate& generate) {
  fmt::print("\nOne generation each, {} layers; a token is one of each of the {} sequences:\n",
             kLayers, options.shape.batch);
  fmt::print(fmt::runtime(kColumns), "", "T", "allocs", "written", "read", "peak", "first", "last",
             "growth", "idle", "rel. error");
  explain::Sweep record = new_record(options);
  for (const Kind kind : asked.kinds) {
    for (const std::int64_t tokens : asked.lengths) {
      const Line line = recorded(options, kv::asked(options, tokens), kind, generate);
      const std::vector<std::optional<double>> values = values_of(line.facts);
      print(kind, line, values);
      record.rows.push_back(
          {name_of(kind), static_cast<double>(tokens), values, reason_of(line.facts)});
    }
  }
  fmt::print(
      "{}allocs: for the cache, per token; written: into it by all tokens / the cache at the end;\n"
      "read: of it / the least that attention reads; peak / the cache at the end; first, last: a\n"
      "token's time in these quarters of the generation; idle: the GPU while decoding\n",
      asked.missing);
  chapter::show(named_after(asked, options), record);
}

}  // namespace kv
