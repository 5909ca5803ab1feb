// SPDX-License-Identifier: Apache-2.0
#include "trace/stream_overlaps.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "trace/wrapping.h"

namespace trace {
namespace {

bool is_same_stream(const Trace& trace, const Event& a, const Event& b) {
  const Launch& x = trace.launch_of(a);
  const Launch& y = trace.launch_of(b);
  return a.thread == b.thread && x.device == y.device && x.stream == y.stream;
}

// Of a stream the earlier first, of two that start together the one that ends first.
std::vector<std::uint32_t> by_stream(const Trace& trace) {
  // PyTorch without Kineto: the times of ops, which nest.
  constexpr std::string_view kNoStreams = "CUDA functions";
  std::vector<std::uint32_t> operations;
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (is_gpu_operation(event.category) && event.is_timed &&
        trace.text(trace.threads[event.thread].pid) != kNoStreams)
      operations.push_back(i);
  }
  const auto key = [&](std::uint32_t index) {
    const Event& event = trace.events[index];
    const Launch& launch = trace.launch_of(event);
    return std::tuple(event.thread, launch.device, launch.stream, event.start_ns, event.duration_ns,
                      index);
  };
  std::sort(operations.begin(), operations.end(),
            [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  return operations;
}

}  // namespace

std::vector<Overlap> stream_overlaps(const Trace& trace) {
  std::vector<Overlap> overlaps;
  const std::vector<std::uint32_t> operations = by_stream(trace);
  for (std::size_t i = 1; i < operations.size(); ++i) {
    const Event& event = trace.events[operations[i - 1]];
    const Event& next = trace.events[operations[i]];
    if (!is_same_stream(trace, event, next)) continue;
    // Never below 0, but of absurd times it may need all 64 bits.
    const auto distance =
        static_cast<std::uint64_t>(wrapping_subtract(next.start_ns, event.start_ns));
    if (distance >= static_cast<std::uint64_t>(event.duration_ns)) continue;
    overlaps.push_back({operations[i - 1], operations[i],
                        event.duration_ns - static_cast<std::int64_t>(distance)});
  }
  return overlaps;
}

std::int64_t clip_overlaps(Trace& trace) {
  std::int64_t taken_ns = 0;
  for (const Overlap& overlap : stream_overlaps(trace)) {
    trace.events[overlap.event].duration_ns -= overlap.excess_ns;
    taken_ns = wrapping_add(taken_ns, overlap.excess_ns);
  }
  return taken_ns;
}

}  // namespace trace
