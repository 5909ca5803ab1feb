// SPDX-License-Identifier: Apache-2.0
//
// What trace::read does, with the size of its batches as a parameter: tests read the same text in
// batches of a few bytes and must get the same trace.
#pragma once

#include <cstddef>

#include "trace/input.h"
#include "trace/trace.h"

namespace trace {

constexpr std::size_t kBatchSize = 1 << 18;

[[nodiscard]] Trace read_in_batches(Input input, std::size_t batch_size);

}  // namespace trace
