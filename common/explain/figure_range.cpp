// SPDX-License-Identifier: Apache-2.0
#include "explain/figure_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "explain/steps.h"
#include "explain/text.h"
#include "trace/tree.h"
#include "trace/wrapping.h"

namespace explain {
namespace {

using trace::kNoEvent;

constexpr double kNsPerUs = 1000;

}  // namespace

// Python frames would be 40 rows deep, and the recording's own span says nothing. What has no time
// has no place.
bool is_drawn(const trace::Event& event) {
  return event.category != trace::Category::python_function &&
         event.category != trace::Category::profiler_span && event.is_timed;
}

double span_ns(std::int64_t from_ns, std::int64_t to_ns) {
  return static_cast<double>(static_cast<std::uint64_t>(to_ns) -
                             static_cast<std::uint64_t>(from_ns));
}

FigureRange step_range(const trace::Trace& trace, std::uint32_t step, const Launches& launches) {
  const trace::Event& span = trace.events[step];
  FigureRange range{.from_ns = span.start_ns,
                    .to_ns = std::max(end_ns(span), trace::wrapping_add(span.start_ns, 1)),
                    .zero_ns = span.start_ns,
                    .is_step = true,
                    .subject_from_ns = span.start_ns,
                    .subject_to_ns = end_ns(span),
                    .title = ""};
  bool is_longer = false;
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    if (!trace::is_gpu_operation(trace.events[i].category)) continue;
    const std::uint32_t call = launches.call_of(i);
    if (call == kNoEvent) continue;
    const std::int64_t start = trace.events[call].start_ns;
    if (start < range.subject_from_ns || start >= range.subject_to_ns) continue;
    is_longer |= end_ns(trace.events[i]) > range.to_ns;
    range.to_ns = std::max(range.to_ns, end_ns(trace.events[i]));
  }
  range.title = fmt::format("{}: {} on the CPU", trace.name(span),
                            time_text(static_cast<double>(span.duration_ns) / kNsPerUs));
  if (is_longer)
    range.title += fmt::format(", {} until its last GPU operation ended",
                               time_text(span_ns(range.from_ns, range.to_ns) / kNsPerUs));
  return range;
}

FigureRange time_range(const trace::Trace& trace, double from_us, double to_us) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const trace::Event& event : trace.events) {
    if (!is_drawn(event)) continue;
    first = std::min(first, event.start_ns);
    last = std::max({last, end_ns(event), trace::wrapping_add(event.start_ns, 1)});
  }
  if (first > last) throw RangeError("nothing to draw: the trace has no ops, calls or kernels");
  const auto since_start = [&](std::int64_t ns) {
    return static_cast<double>(trace::wrapping_subtract(ns, trace.start_ns)) / kNsPerUs;
  };
  const double from = std::max(from_us, since_start(first));
  const double to = std::min(to_us, since_start(last));
  const auto ns = [&](double us) {
    return trace::wrapping_add(trace.start_ns, std::llround(us * kNsPerUs));
  };
  FigureRange range;
  if (from < to) {  // not so for NaN
    range.from_ns = from_us > since_start(first) ? ns(from) : first;
    range.to_ns = to_us < since_start(last) ? ns(to) : last;
  }
  if (range.from_ns >= range.to_ns)
    throw RangeError(fmt::format("nothing in that range: the events reach from {:.3f} to {:.3f} us",
                                 since_start(first), since_start(last)));
  range.zero_ns = trace.start_ns;
  range.title = fmt::format("{} of the recording, from {}",
                            time_text(span_ns(range.from_ns, range.to_ns) / kNsPerUs),
                            time_text(since_start(range.from_ns)));
  return range;
}

}  // namespace explain
