// SPDX-License-Identifier: Apache-2.0
//
// Times that do not fit together: on one stream, on one thread, in one op.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "explain/health_view.h"
#include "explain/text.h"
#include "trace/stream_overlaps.h"
#include "trace/wrapping.h"

namespace explain {
namespace {

constexpr double kNsPerUs = 1000;

double us(std::int64_t ns) {
  return static_cast<double>(ns) / kNsPerUs;
}

}  // namespace

// With programmatic dependent launch a kernel starts before the one in front of it ends, as soon as
// all of that one's blocks have begun, but it does not end before that one. In decoding, where
// kernels are short and many launch the next one early, that can be a seventh of a stream's time.
std::vector<HealthFinding> overlaps_on_a_stream(const HealthView& view) {
  constexpr double kRounding = 1, kFloor = 10, kLargeFloor = 100;  // us
  constexpr double kShare = 0.001, kLargeShare = 0.3;              // of the stream's time
  struct Stream {
    double busy = 0, excess = 0, outlasted = 0;
  };
  std::vector<Stream> streams(view.trace.threads.size());
  for (const std::uint32_t index : view.operations)
    streams[view.event(index).thread].busy += us(view.event(index).duration_ns);
  Odd odd;
  std::unordered_map<std::uint32_t, std::uint32_t> next_of;
  for (const trace::Overlap& overlap : trace::stream_overlaps(view.trace)) {
    if (us(overlap.excess_ns) <= kRounding) continue;
    Stream& stream = streams[view.event(overlap.event).thread];
    stream.excess += us(overlap.excess_ns);
    if (overlap.excess_ns > view.event(overlap.next).duration_ns)
      stream.outlasted += us(overlap.excess_ns);
    odd.add(overlap.event, us(overlap.excess_ns));
    next_of.emplace(overlap.event, overlap.next);
  }
  if (odd.empty()) return {};
  const bool is_fault = std::any_of(streams.begin(), streams.end(), [&](const Stream& stream) {
    return stream.outlasted >= std::max(kFloor, kShare * stream.busy) ||
           stream.excess >= std::max(kLargeFloor, kLargeShare * stream.busy);
  });
  const auto detail = [&](std::uint32_t index, double excess) {
    return fmt::format(", {} of its {} after {} began", time_text(excess),
                       time_text(us(view.event(index).duration_ns)), view.place(next_of.at(index)));
  };
  return {{.severity = is_fault ? Severity::fault : Severity::note,
           .title = "GPU operations that reach over the next one on their stream",
           .count = odd.count(),
           .share = gpu_share_text(view, odd.sum()),
           .examples = view.examples(odd, detail),
           .meaning = is_fault ? "A stream runs one after the other: these durations are too long, "
                                 "and so are their rows and the total."
                               : "Kernels made for it start before the last one ends (programmatic "
                                 "dependent launch)."}};
}

// Kineto writes how long it recorded as an event of its own (`Trace`).
std::vector<HealthFinding> longer_than_the_span(const HealthView& view) {
  std::int64_t span = 0;
  for (const trace::Event& event : view.trace.events)
    if (event.category == trace::Category::profiler_span) span = std::max(span, event.duration_ns);
  Odd odd;
  for (const std::uint32_t index : view.tree.order())
    if (span > 0 && view.event(index).duration_ns > span)
      odd.add(index, us(view.event(index).duration_ns));
  if (odd.empty()) return {};
  const auto detail = [&](std::uint32_t, double duration) {
    return fmt::format(", {} in a recording of {}", time_text(duration), time_text(us(span)));
  };
  return {{.title = "events longer than the recording",
           .count = odd.count(),
           .examples = view.examples(odd, detail),
           .meaning = "They began before it or their ends are wrong: shares of the total mean "
                      "little."}};
}

std::vector<HealthFinding> one_long_operation(const HealthView& view) {
  constexpr double kLong = 0.2;       // of the GPU time
  constexpr double kMedians = 10;     // of its name
  constexpr std::size_t kEnough = 3;  // calls that can tell what is usual
  Odd odd;
  for (const std::uint32_t index : view.operations) {
    const double duration = us(view.event(index).duration_ns);
    if (duration > kLong * view.gpu_us) odd.add(index, duration);
  }
  std::vector<HealthFinding> found;
  for (const auto& [index, duration] : odd.heaviest(1)) {
    std::vector<std::int64_t> all;
    for (const std::uint32_t other : view.operations)
      if (view.event(other).is_timed && view.tree.name_id(other) == view.tree.name_id(index))
        all.push_back(view.event(other).duration_ns);
    if (all.size() < kEnough) continue;
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    if (duration <= kMedians * us(*middle)) continue;
    found.push_back(
        {.title = "one call that takes much of the GPU time",
         .count = -1,
         .share = gpu_share_text(view, duration),
         .examples = {view.place(index) + fmt::format("; the median of its {} calls is {}",
                                                      all.size(), time_text(us(*middle)))},
         .meaning = "A wait (a collective's for other ranks), or a wrong time: look "
                    "at it before you trust its row."});
  }
  return found;
}

// Children that end after their parents, or overlap: what is left for the parent is below 0.
std::vector<HealthFinding> negative_self_times(const HealthView& view) {
  constexpr double kRounding = 0.0005;  // us, of sums of doubles
  Odd odd;
  for (const std::uint32_t index : view.tree.order()) {
    if (trace::is_device(view.event(index).category) || view.tree.is_async(index)) continue;
    double self = view.tree.elapsed(index);
    for (const std::uint32_t child : view.tree.children(index)) self -= view.tree.elapsed(child);
    if (self < -kRounding) odd.add(index, -self);
  }
  if (odd.empty()) return {};
  return {{.severity = severity(part(odd.sum(), view.cpu_us)),
           .title = "ops and calls with a self CPU time below 0",
           .count = odd.count(),
           .share = cpu_share_text(view, odd.sum()),
           .examples = view.examples(
               odd, [](std::uint32_t, double self) { return ", self " + time_text(-self); }),
           .meaning = "What they called overlaps or ends after them; the table prints it as it is, "
                      "like PyTorch."}};
}

std::vector<HealthFinding> overlaps_on_a_thread(const HealthView& view) {
  constexpr double kRounding = 1;  // us
  using trace::Category;
  std::vector<std::vector<std::uint32_t>> open(view.trace.threads.size());
  Odd odd;
  for (const std::uint32_t index : view.tree.order()) {
    const trace::Event& event = view.event(index);
    const bool is_nested = event.category == Category::cpu_op ||
                           event.category == Category::user_annotation || is_call(event.category);
    if (!is_nested || view.tree.is_async(index)) continue;
    std::vector<std::uint32_t>& stack = open[event.thread];
    while (!stack.empty() && view.tree.end(stack.back()) <= view.tree.start(index))
      stack.pop_back();
    if (!stack.empty() && view.tree.end(stack.back()) < view.tree.end(index)) {
      const double overlap = view.tree.end(stack.back()) - view.tree.start(index);
      if (overlap > kRounding) odd.add(index, overlap);
      stack.pop_back();  // what starts from here on is in this one
    }
    stack.push_back(index);
  }
  if (odd.empty()) return {};
  return {
      {.severity = severity(part(odd.sum(), view.cpu_us)),
       .title = "events that overlap the one before them on their thread in part",
       .count = odd.count(),
       .share = cpu_share_text(view, odd.sum()),
       .examples = view.examples(
           odd, [](std::uint32_t, double overlap) { return ", by " + time_text(overlap); }),
       .meaning = "Neither is inside the other, so their parent's self time lacks the overlap."}};
}

}  // namespace explain
