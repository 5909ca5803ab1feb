// SPDX-License-Identifier: Apache-2.0
//
// GPU operations that reach beyond the start of the next one on their stream. A stream runs one
// after the other, so such a duration is too long, except for what kernels made for it allow: with
// programmatic dependent launch the next one starts some us early.
//
//   for (const trace::Overlap& overlap : trace::stream_overlaps(trace))
//     total_ns += overlap.excess_ns;
//   std::int64_t taken_ns = trace::clip_overlaps(trace);  // from then on there are none
//   assert(trace::stream_overlaps(trace).empty());
//
// A stream is told by the event's thread (pid and tid) and by the device and stream of its args:
// two operations are on one stream where both agree. Operations without a time are passed over, and
// so are those of PyTorch without Kineto, which have no stream. The cost is one sort.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace trace {

struct Overlap {
  std::uint32_t event = 0;     // index into Trace::events
  std::uint32_t next = 0;      // what starts next on the same stream
  std::int64_t excess_ns = 0;  // from the start of `next` to the end of `event`, above 0
};

// Stream after stream, in order of start.
[[nodiscard]] std::vector<Overlap> stream_overlaps(const Trace& trace);

// Ends each such operation where the next one on its stream begins. Returns the ns taken away.
std::int64_t clip_overlaps(Trace& trace);

}  // namespace trace
