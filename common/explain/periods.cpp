// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "explain/per_step.h"
#include "explain/steps.h"

namespace explain {

std::string_view to_string(Basis basis) {
  if (basis == Basis::step) return "step";
  return basis == Basis::forward ? "forward" : "recording";
}

Periods::Periods(const trace::OpTree& tree, Basis basis, std::string_view label)
    : tree_(tree), launches_(tree.trace()), basis_(basis), label_(label) {
  std::vector<std::uint32_t> events;
  if (basis == Basis::step) {
    for (const Step& step : steps(tree.trace())) events.push_back(step.event);
  } else if (basis == Basis::forward) {
    for (const std::uint32_t event : tree.order()) {
      if (is_forward(event)) events.push_back(event);
    }
  }
  take(std::move(events));
}

// In order of start. One that begins inside another is a part of it.
void Periods::take(std::vector<std::uint32_t> events) {
  for (const std::uint32_t index : events) {
    const trace::Event& event = tree_.trace().events[index];
    const bool is_inside = !stretches_.empty() && event.start_ns < stretches_.back().end_ns;
    if (is_inside) continue;
    on_device_ |= trace::is_device(event.category);
    stretches_.push_back({event.start_ns, end_ns(event)});
  }
}

std::optional<std::size_t> Periods::at(std::int64_t time_ns) const {
  if (is_whole()) return 0;
  const auto next =
      std::partition_point(stretches_.begin(), stretches_.end(),
                           [&](const Stretch& one) { return one.start_ns <= time_ns; });
  if (next == stretches_.begin() || time_ns >= (next - 1)->end_ns) return std::nullopt;
  return static_cast<std::size_t>(next - stretches_.begin()) - 1;
}

std::optional<std::size_t> Periods::of(std::uint32_t event) const {
  if (is_whole()) return 0;
  const trace::Event& e = tree_.trace().events[event];
  const bool on_gpu = trace::is_gpu_operation(e.category);
  if (on_device_ && !on_gpu) return std::nullopt;
  if (!on_gpu || on_device_ || !launches_.has_calls()) return at(e.start_ns);
  const std::uint32_t call = launches_.call_of(event);
  return call == trace::kNoEvent ? std::nullopt : at(tree_.trace().events[call].start_ns);
}

bool Periods::is_forward(std::uint32_t event) const {
  return basis_ == Basis::forward && tree_.name(event) == label_ &&
         tree_.trace().events[event].category == trace::Category::user_annotation;
}

bool Periods::is_boundary(std::uint32_t event) const {
  // In files of 2021 a step is an op, so its name counts alone.
  return tree_.name(event) == "ProfilerStep*" || is_forward(event);
}

std::vector<double> Periods::durations_us() const {
  std::vector<double> durations;
  if (on_device_) return durations;
  for (const Stretch& one : stretches_) {
    durations.push_back((static_cast<double>(one.end_ns) - static_cast<double>(one.start_ns)) /
                        1000);
  }
  return durations;
}

}  // namespace explain
