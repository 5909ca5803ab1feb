// SPDX-License-Identifier: Apache-2.0
//
// Caches and numbers of tokens compared: a line each, from a recording that is not kept.
//
//   kv::sweep(options, kv::asked(options), generate);
#pragma once

#include "choose.h"
#include "generate.h"

namespace kv {

// Prints as it goes, and writes the figures and their plot at the end. Each generation is checked
// first: throws chapter::WrongResult.
void sweep(const chapter::Options& options, const Asked& asked, const Generate& generate);

}  // namespace kv
