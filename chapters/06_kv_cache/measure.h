// SPDX-License-Identifier: Apache-2.0
//
// Generations, recorded: what a trace cannot say goes into its metadata.
//
//   const kv::Measured measured = kv::measure(options, generation, generate);
//   prof::Profiler profiler(kv::profiler_options(options, generation, measured));
//   std::cout << measured.usage.slots << " slots\n";
#pragma once

#include "chapter/inputs.h"
#include "generate.h"
#include "profiler/profiler.h"

namespace kv {

struct Measured {
  chapter::Error error;         // of all tokens, against float64
  std::int64_t token_peak = 0;  // bytes, of one token beyond what is there before it
  Usage usage;                  // at the end of a generation
};

// Compares a generation with float64, and warms up with it.
[[nodiscard]] Measured measure(const chapter::Options& options, Generation& generation,
                               const Generate& generate);

// A chapter's with shapes and memory, and with what explain/decode.h wants to know.
[[nodiscard]] prof::ProfilerOptions profiler_options(const chapter::Options& options,
                                                     const Generation& generation,
                                                     const Measured& measured);

}  // namespace kv
