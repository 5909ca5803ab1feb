// SPDX-License-Identifier: Apache-2.0
#include "explain/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <tuple>

namespace explain {
namespace {

// "2, 3 and 4"; of many the first ones and how many there are.
std::string list(const std::vector<Step>& steps) {
  constexpr std::size_t kMost = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(steps.size(), kMost); ++i) {
    const bool is_last = i + 1 == steps.size();
    text += fmt::format("{}{}", i == 0 ? "" : is_last ? " and " : ", ", steps[i].number);
  }
  if (steps.size() > kMost) text += fmt::format(", ... ({} steps in all)", steps.size());
  return text;
}

}  // namespace

std::optional<std::int64_t> step_number(std::string_view name) {
  constexpr std::string_view kPrefix = "ProfilerStep#";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

std::vector<Step> steps(const trace::Trace& trace) {
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    if (const auto number = step_number(trace.name(trace.events[i]))) steps.push_back({*number, i});
  }
  const auto event = [&](const Step& step) -> const trace::Event& {
    return trace.events[step.event];
  };
  // A step has a span on the CPU and one on each stream that it used: the CPU's counts.
  std::stable_sort(steps.begin(), steps.end(), [&](const Step& a, const Step& b) {
    return std::tuple(a.number, trace::is_device(event(a).category), event(a).start_ns) <
           std::tuple(b.number, trace::is_device(event(b).category), event(b).start_ns);
  });
  const auto is_same = [](const Step& a, const Step& b) { return a.number == b.number; };
  steps.erase(std::unique(steps.begin(), steps.end(), is_same), steps.end());
  std::stable_sort(steps.begin(), steps.end(), [&](const Step& a, const Step& b) {
    return event(a).start_ns < event(b).start_ns;
  });
  return steps;
}

std::optional<std::uint32_t> step_event(const trace::Trace& trace,
                                        std::optional<std::int64_t> number) {
  const std::vector<Step> all = steps(trace);
  if (!number) return all.empty() ? std::nullopt : std::optional(all.front().event);
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Step& step) { return step.number == *number; });
  if (found != all.end()) return found->event;
  throw RangeError(
      all.empty() ? "the trace has no steps (ProfilerStep#N): leave the step out"
                  : fmt::format("the trace has no step {}: choose one of {}", *number, list(all)));
}

std::int64_t end_ns(const trace::Event& event) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const bool fits = event.start_ns <= 0 || event.duration_ns <= kMost - event.start_ns;
  return fits ? event.start_ns + event.duration_ns : kMost;
}

}  // namespace explain
