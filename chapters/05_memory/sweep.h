// SPDX-License-Identifier: Apache-2.0
//
// Peak memory over variants and lengths: a line each, how it grows, and where it ends.
//
//   memory::sweep(options, memory::asked(options), step);
#pragma once

#include "choose.h"
#include "measure.h"

namespace memory {

// Prints as it goes, and writes the figures and their plot at the end. What runs out of memory is a
// sentence, and the sweep goes on; on a CPU nothing is tried that would not fit into what is free,
// since that would swap.
void sweep(const chapter::Options& options, const Asked& asked, const Step& step);

}  // namespace memory
