// SPDX-License-Identifier: Apache-2.0
//
// What --cache, --tokens, --lengths, --capacity, --attention, --cuda-graph and --sweep mean.
//
//   const kv::Asked asked = kv::asked(options);
//   for (const kv::Kind kind : asked.kinds) run(kind, asked);
//   if (asked.is_sweep) compare(asked.lengths);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache.h"
#include "chapter/options.h"

namespace kv {

[[nodiscard]] std::vector<chapter::ExtraOption> extra_options();

// Why these options cannot be run, "" where they can: what chapter::Info wants.
[[nodiscard]] std::string why_impossible(const chapter::Options& options);

struct Asked {
  std::vector<Kind> kinds;            // one, or all that can run here
  std::int64_t tokens = 0;            // T, of each sequence
  std::vector<std::int64_t> prompts;  // tokens of each sequence before
  std::int64_t capacity = 0;          // tokens that a sequence has room for
  bool cuda_graph = false;
  bool is_sweep = false;              // a line per cache and T instead of a recording
  std::vector<std::int64_t> lengths;  // T of the sweep, in order
  std::string missing;                // why caches of `all` are not in it, a line each with its end
};
// Of options that are not impossible.
[[nodiscard]] Asked asked(const chapter::Options& options);
// The same for another T; a capacity that nobody asked for grows with it.
[[nodiscard]] Asked asked(const chapter::Options& options, std::int64_t tokens);

// Whether attention over this cache is the decode kernel of 04, else it is SDPA.
[[nodiscard]] bool by_kernel(Kind kind, const chapter::Options& options);

// The same options with files named after cache, attention and graph.
[[nodiscard]] chapter::Options named_after(const Asked& asked, chapter::Options options);

}  // namespace kv
