// SPDX-License-Identifier: Apache-2.0
//
// A generation against float64 attention without a cache, on the very inputs that it was fed: a
// token's error then is its own, not what earlier errors have grown to.
//
//   const chapter::Error error = kv::error_of(options, generation, generate);
//   if (!error.acceptable()) throw chapter::WrongResult("...");
#pragma once

#include "chapter/inputs.h"
#include "generate.h"

namespace kv {

// Runs a generation. All tokens of all sequences count.
[[nodiscard]] chapter::Error error_of(const chapter::Options& options, Generation& generation,
                                      const Generate& generate);

}  // namespace kv
