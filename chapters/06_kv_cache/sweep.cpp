// SPDX-License-Identifier: Apache-2.0
#include "sweep.h"

#include <fmt/format.h>

#include "explain/decode.h"
#include "explain/text.h"
#include "measure.h"
#include "profiler/profiler.h"
#include "trace/tree.h"

namespace kv {
namespace {

using explain::time_text;

constexpr const char* kColumns = "{:<13}{:>6}{:>11}{:>10}{:>8}{:>8}{:>12}{:>12}{:>9}{:>8}{:>12}\n";

std::string ratio(double part, double whole) {
  return whole > 0 ? fmt::format("{:.2f}", part / whole) : std::string("-");
}

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
  return {*explain::decode_facts(tree), measured.error};
}

void print(Kind kind, const Line& line) {
  const explain::DecodeFacts& f = line.facts;
  const explain::TokenBytes bytes = f.bytes.value_or(explain::TokenBytes{});
  const double written = bytes.written * static_cast<double>(f.tokens);
  fmt::print(fmt::runtime(kColumns), name_of(kind), f.tokens,
             f.cache_allocations ? fmt::format("{:.2f}", *f.cache_allocations) : "-",
             ratio(written, f.final_bytes), ratio(bytes.read, bytes.least),
             ratio(f.peak_bytes, f.final_bytes), time_text(f.first_us), time_text(f.last_us),
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
  for (const Kind kind : asked.kinds) {
    for (const std::int64_t tokens : asked.lengths)
      print(kind, recorded(options, kv::asked(options, tokens), kind, generate));
  }
  fmt::print(
      "{}allocs: for the cache, per token; written: into it by all tokens / the cache at the end;\n"
      "read: of it / the least that attention reads; peak / the cache at the end; first, last: a\n"
      "token's time in these quarters of the generation; idle: the GPU while decoding\n",
      asked.missing);
}

}  // namespace kv
