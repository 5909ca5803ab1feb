// SPDX-License-Identifier: Apache-2.0
//
// Findings told by the clock: who waits for whom, and for how long.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "explain/finding_view.h"
#include "explain/steps.h"
#include "explain/text.h"

namespace explain {
namespace {

using trace::Category;
using trace::kNoEvent;

constexpr double kNsPerUs = 1000;

double overlap_us(const trace::Event& event, const Gap& gap) {
  const std::int64_t start = std::max(event.start_ns, gap.start_ns);
  const std::int64_t stop = std::min(end_ns(event), gap.end_ns);
  return static_cast<double>(std::max<std::int64_t>(0, stop - start)) / kNsPerUs;
}

// What the thread that launched the next operation did in the gap, by own time, longest first.
std::string cpu_text(const View& view, const Gap& gap) {
  constexpr std::size_t kNames = 3;
  const std::uint32_t call = view.forwards.call_of(gap.next);
  std::map<std::string_view, double> own;
  double inside = 0;
  for (const std::uint32_t index : view.tree.order()) {
    const trace::Event& event = view.event(index);
    if (event.start_ns >= gap.end_ns) break;
    if (trace::is_device(event.category) || event.thread != view.event(call).thread) continue;
    double us = overlap_us(event, gap);
    if (us == 0) continue;
    if (view.tree.parent(index) == kNoEvent) inside += us;
    for (const std::uint32_t child : view.tree.children(index)) {
      us -= overlap_us(view.event(child), gap);
    }
    own[view.tree.name(index)] += us;
  }
  std::vector<std::pair<double, std::string_view>> parts;
  for (const auto& [name, us] : own) parts.emplace_back(us, name);
  parts.emplace_back(gap.us() - inside, "the program between events");
  std::sort(parts.rbegin(), parts.rend());
  if (parts.size() > kNames) parts.resize(kNames);
  std::vector<std::string> texts;
  for (const auto& [us, name] : parts) texts.push_back(fmt::format("{} {}", name, time_text(us)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string gap_text(const View& view, const Gap& gap) {
  std::string text = fmt::format("{} before {}", time_text(gap.us()), gpu_name(view, gap.next));
  if (view.forwards.call_of(gap.next) == kNoEvent) return text;
  const std::vector<std::uint32_t> ops = view.forwards.ops_around(gap.next);
  if (!ops.empty()) text += fmt::format(" of {}", view.tree.name(ops.front()));
  return text + "; the CPU then: " + cpu_text(view, gap);
}

// How many of the gaps end with an operation whose launch came too late for it.
std::size_t launched_late(const View& view, std::span<const Gap> gaps) {
  return static_cast<std::size_t>(std::count_if(gaps.begin(), gaps.end(), [&](const Gap& gap) {
    const std::uint32_t call = view.forwards.call_of(gap.next);
    return call != kNoEvent && end_ns(view.event(call)) > gap.start_ns;
  }));
}

// Own time in a forward by name, ops and runtime calls alike.
std::map<std::string_view, double> own_times(const View& view, const Forward& forward) {
  std::map<std::string_view, double> times;
  std::vector<std::uint32_t> open = {forward.annotation};
  while (!open.empty()) {
    const std::uint32_t event = open.back();
    open.pop_back();
    times[view.tree.name(event)] += view.own_time(event);
    const auto children = view.tree.children(event);
    open.insert(open.end(), children.begin(), children.end());
  }
  return times;
}

// "mostly in A, 20.1us more than later on average, and B, 4.0us more"
std::string longer_in_the_first(const View& view) {
  constexpr std::size_t kNames = 3;
  const std::span<const Forward> forwards = view.forwards.all();
  std::map<std::string_view, double> more = own_times(view, forwards.front());
  for (const Forward& forward : forwards.subspan(1)) {
    for (const auto& [name, us] : own_times(view, forward)) {
      more[name] -= us / static_cast<double>(forwards.size() - 1);
    }
  }
  std::vector<std::pair<double, std::string_view>> parts;
  for (const auto& [name, us] : more) parts.emplace_back(us, name);
  std::sort(parts.rbegin(), parts.rend());
  if (parts.size() > kNames) parts.resize(kNames);
  std::vector<std::string> texts;
  for (const auto& [us, name] : parts) {
    texts.push_back(fmt::format("{} {} more", name, time_text(us)));
  }
  return fmt::format("own time against the others' average: {}", fmt::join(texts, ", "));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

// A GPU that is fed in time has the next kernel waiting when one ends. Where it has not, time goes
// by between kernels, and a faster kernel would change little.
std::vector<Finding> gpu_waits(const View& view) {
  // Two kernels in a row are 1 to 2 us apart even where both are queued: a tenth is more than that.
  constexpr double kIdle = 0.1;
  constexpr std::size_t kGapsShown = 3;
  Busy time = busy(view.tree.trace(), view.forwards.active());
  if (time.whole_us <= 0 || time.whole_us - time.busy_us < kIdle * time.whole_us) return {};
  std::vector<Gap>& gaps = time.gaps;
  const std::size_t late = launched_late(view, gaps);
  Finding finding{
      .title = "the GPU waits between its operations",
      .evidence = {fmt::format("busy {} of {} from the first start to the last end, {} gaps; {} of "
                               "them end with an operation that was launched too late to follow at "
                               "once",
                               time_text(time.busy_us), time_text(time.whole_us), gaps.size(),
                               late)},
      .share = {1 - time.busy_us / time.whole_us, "the time from first start to last end"}};
  std::stable_sort(gaps.begin(), gaps.end(),
                   [](const Gap& a, const Gap& b) { return a.us() > b.us(); });
  for (std::size_t i = 0; i < std::min(kGapsShown, gaps.size()); ++i) {
    finding.evidence.push_back(gap_text(view, gaps[i]));
  }
  return {std::move(finding)};
}

// An annotation's span on the device runs from the first start to the last end of its operations,
// so the table's CUDA time of the annotation holds the gaps, too.
std::vector<Finding> annotation_wider_than_kernels(const View& view) {
  constexpr double kWider = 0.05;  // below that it is the 1 to 2 us between queued kernels
  double span_us = 0, busy_us = 0;
  std::size_t count = 0;
  for (const std::uint32_t index : view.tree.order()) {
    if (view.event(index).category != Category::gpu_user_annotation) continue;
    if (view.tree.name(index) != view.facts.label) continue;
    ++count;
    span_us += view.tree.elapsed(index);
  }
  // Each stream has spans of its own, which hold the forwards' operations there and no others.
  std::map<std::uint32_t, std::vector<std::uint32_t>> operations;
  for (const Forward& forward : view.forwards.all()) {
    for (const std::uint32_t operation : forward.gpu_operations) {
      operations[view.event(operation).thread].push_back(operation);
    }
  }
  for (auto& [stream, on_stream] : operations) {
    std::stable_sort(on_stream.begin(), on_stream.end(), [&](auto a, auto b) {
      return view.event(a).start_ns < view.event(b).start_ns;
    });
    busy_us += busy(view.tree.trace(), on_stream).busy_us;
  }
  if (count == 0 || busy_us <= 0 || span_us < (1 + kWider) * busy_us) return {};
  const auto n = static_cast<double>(count);
  return {{.title = "the annotation on the GPU is wider than its operations",
           .evidence = {fmt::format("{} on the device, {} spans: {} on average, of which {} busy; "
                                    "the rest is gaps, no work",
                                    view.facts.label, count, time_text(span_us / n),
                                    time_text(busy_us / n))},
           .share = {1 - busy_us / span_us, "the span"}}};
}

// Own time of an op that launches: what no event below it explains. A library that chooses an
// algorithm or builds a plan does that there, out of the profiler's sight.
std::vector<Finding> library_plans(const View& view) {
  // A call that allocates, sets up and launches keeps under a seventh of a forward's CPU time.
  constexpr double kFat = 0.2;
  if (!view.facts.on_gpu) return {};  // on the CPU own time is the computing itself
  struct Bar {
    double own_us = 0, longest_us = 0;
    std::size_t count = 0;

    [[nodiscard]] double a_call_us() const { return own_us / static_cast<double>(count); }
  };
  std::map<std::string_view, Bar> bars;
  for (const Forward& forward : view.forwards.all()) {
    for (const std::uint32_t op : forward.ops) {
      Bar& bar = bars[view.tree.name(op)];
      const double own = view.own_time(op);
      bar.own_us += own;
      bar.longest_us = std::max(bar.longest_us, own);
      ++bar.count;
    }
  }
  const auto fattest = std::max_element(bars.begin(), bars.end(), [](const auto& a, const auto& b) {
    return a.second.a_call_us() < b.second.a_call_us();
  });
  if (fattest == bars.end()) return {};
  const auto& [name, bar] = *fattest;
  if (bar.a_call_us() < kFat * view.facts.cpu_time_us) return {};
  return {{.title = "CPU time that no event explains",
           .evidence = {fmt::format(
               "{} keeps {} a call to itself ({} calls, the longest {}): no op "
               "and no runtime call is below that part of its bar; a library "
               "that plans its kernel looks like this",
               name, time_text(bar.a_call_us()), bar.count, time_text(bar.longest_us))},
           .share = view.cpu_share(bar.own_us)}};
}

// The first forward pays for what the others find ready.
std::vector<Finding> cold_first_forward(const View& view) {
  constexpr double kColder = 1.25;  // equal forwards differ by up to a fifth on a quiet machine
  constexpr std::size_t kTimesShown = 8;
  std::vector<double> times;
  for (const Forward& forward : view.forwards.all()) {
    times.push_back(view.tree.elapsed(forward.annotation));
  }
  if (times.size() < 3) return {};  // two cannot tell which of them is unusual
  const double later = median({times.begin() + 1, times.end()});
  if (later <= 0 || times.front() < kColder * later) return {};
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(kTimesShown, times.size()); ++i) {
    texts.push_back(time_text(times[i]));
  }
  return {
      {.title = "the first forward is colder than the rest",
       .evidence = {fmt::format("CPU time of the forwards: {}{}; the first takes {:.1f} times "
                                "the median of the others",
                                fmt::join(texts, ", "), times.size() > kTimesShown ? ", ..." : "",
                                times.front() / later),
                    longer_in_the_first(view)},
       .share = {}}};
}

}  // namespace explain
