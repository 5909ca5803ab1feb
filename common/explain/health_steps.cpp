// SPDX-License-Identifier: Apache-2.0
//
// The health of the profiler's steps: numbers that are missing, on the CPU or on a device, and GPU
// operations that ran in a step and are none of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <map>
#include <set>

#include "explain/health_view.h"
#include "explain/text.h"

namespace explain {
namespace {

using trace::Category;
using trace::kNoEvent;

constexpr double kNsPerUs = 1000;
constexpr std::size_t kNumbersShown = 8;

std::vector<std::int64_t> numbers_of(const HealthView& view) {
  std::vector<std::int64_t> numbers;
  for (const Step& step : view.steps) numbers.push_back(step.number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string list_text(const std::vector<std::int64_t>& numbers, std::size_t all) {
  return fmt::format("{}{}", fmt::join(numbers, ", "), all > numbers.size() ? ", ..." : "");
}

// The step in which a GPU operation was launched, nullptr where the file does not tell.
const Step* step_of_launch(const HealthView& view, std::uint32_t operation) {
  const std::uint32_t call = view.launches.call_of(operation);
  return call == kNoEvent ? nullptr : view.step_at(view.event(call).start_ns);
}

}  // namespace

std::vector<HealthFinding> lost_steps(const HealthView& view) {
  if (view.is_merged || view.trace.events.empty()) return {};
  if (view.steps.empty()) {
    return {{.title = "no steps (ProfilerStep#N)",
             .count = -1,
             .meaning = "Nothing is told per step: profiler.step() writes them."}};
  }
  constexpr std::uint64_t kMostLost = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> numbers = numbers_of(view);
  std::uint64_t lost = 0;
  std::vector<std::int64_t> shown;
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    const std::uint64_t between =
        static_cast<std::uint64_t>(numbers[i]) - static_cast<std::uint64_t>(numbers[i - 1]) - 1;
    lost += between;
    for (std::uint64_t n = 1; n <= between && shown.size() < kNumbersShown; ++n)
      shown.push_back(numbers[i - 1] + static_cast<std::int64_t>(n));
  }
  if (lost == 0) return {};
  return {{.severity = Severity::fault,
           .title = fmt::format("steps missing between {} and {}", numbers.front(), numbers.back()),
           .count = static_cast<std::int64_t>(std::min(lost, kMostLost)),
           .examples = {fmt::format("step {}", list_text(shown, lost))},
           .meaning = "What ran in them is in no figure, or in no step: divide by the steps that "
                      "are there."}};
}

// A device has a span of each step that launched anything on it.
std::vector<HealthFinding> steps_of_devices(const HealthView& view) {
  if (view.is_merged || view.steps.empty()) return {};
  struct Device {
    std::set<std::int64_t> spans, expected;
  };
  std::map<std::string_view, Device> devices;  // by pid
  const auto device_of = [&](std::uint32_t index) -> Device& {
    return devices[view.trace.text(view.trace.threads[view.event(index).thread].pid)];
  };
  for (const std::uint32_t index : view.tree.order()) {
    if (view.event(index).category != Category::gpu_user_annotation) continue;
    if (const auto number = step_number(view.trace.name(view.event(index))))
      device_of(index).spans.insert(*number);
  }
  if (devices.empty()) return {};  // files before 2023, and of other devices, have no spans there
  for (const std::uint32_t index : view.operations)
    if (const Step* step = step_of_launch(view, index))
      device_of(index).expected.insert(step->number);
  const std::vector<std::int64_t> on_cpu = numbers_of(view);
  std::vector<HealthFinding> found;
  for (const auto& item : devices) {
    const auto& pid = item.first;
    const auto& device = item.second;
    std::vector<std::int64_t> missing, alone;
    std::set_difference(device.expected.begin(), device.expected.end(), device.spans.begin(),
                        device.spans.end(), std::back_inserter(missing));
    std::set_difference(device.spans.begin(), device.spans.end(), on_cpu.begin(), on_cpu.end(),
                        std::back_inserter(alone));
    const auto add = [&](std::vector<std::int64_t> numbers, std::string title, std::string text) {
      if (numbers.empty()) return;
      const std::size_t all = numbers.size();
      numbers.resize(std::min(all, kNumbersShown));
      found.push_back({.title = std::move(title),
                       .count = static_cast<std::int64_t>(all),
                       .examples = {fmt::format("step {}; the CPU has {} steps, GPU {} has {}",
                                                list_text(numbers, all), on_cpu.size(), pid,
                                                device.spans.size())},
                       .meaning = std::move(text)});
    };
    add(missing, fmt::format("steps that launched work on GPU {} and have no span there", pid),
        "The row of ProfilerStep* on the device has fewer calls than that on the CPU.");
    add(alone, fmt::format("steps that only GPU {} shows", pid),
        "Launched before the recording began: no step of the CPU stands for them.");
  }
  return found;
}

std::vector<HealthFinding> overlapping_steps(const HealthView& view) {
  constexpr double kRounding = 1;  // us
  if (view.is_merged) return {};
  Odd odd;
  for (std::size_t i = 1; i < view.steps.size(); ++i) {
    const double overlap =
        view.tree.end(view.steps[i - 1].event) - view.tree.start(view.steps[i].event);
    if (overlap > kRounding) odd.add(view.steps[i].event, overlap);
  }
  if (odd.empty()) return {};
  return {{.title = "steps that start before the one before them ends",
           .count = odd.count(),
           .examples = view.examples(
               odd, [](std::uint32_t, double overlap) { return ", by " + time_text(overlap); }),
           .meaning = "What is told per step takes the later one."}};
}

// Launched while the profiler recorded, but before its first step. (What was launched before the
// recording has no call in the file: unattributed() tells of it.)
std::vector<HealthFinding> warm_up_in_steps(const HealthView& view) {
  if (view.is_merged || view.steps.empty()) return {};
  const std::int64_t first = view.event(view.steps.front().event).start_ns;
  Odd odd;
  for (const std::uint32_t index : view.operations) {
    const std::uint32_t call = view.launches.call_of(index);
    if (call == kNoEvent || view.event(call).start_ns >= first) continue;
    if (end_ns(view.event(index)) <= first) continue;
    odd.add(index, static_cast<double>(view.event(index).duration_ns) / kNsPerUs);
  }
  if (odd.empty()) return {};
  return {{.severity = severity(part(odd.sum(), view.gpu_us)),
           .title = "GPU operations launched before the first step that ran in it",
           .count = odd.count(),
           .share = gpu_share_text(view, odd.sum()),
           .examples =
               view.examples(odd, [](std::uint32_t, double us) { return ", " + time_text(us); }),
           .meaning = "Work of the warm-up: the table holds it, though no step launched it."}};
}

std::vector<HealthFinding> uneven_first_step(const HealthView& view) {
  constexpr std::size_t kEnough = 3;  // two cannot tell which of them is unusual
  if (view.is_merged || view.steps.size() < kEnough) return {};
  std::vector<std::int64_t> counts(view.steps.size(), 0);
  for (const std::uint32_t index : view.operations)
    if (const Step* step = step_of_launch(view, index))
      ++counts[static_cast<std::size_t>(step - view.steps.data())];
  const bool are_later_alike =
      std::all_of(counts.begin() + 2, counts.end(), [&](auto count) { return count == counts[1]; });
  if (!are_later_alike || counts[0] == counts[1]) return {};
  return {{.title = "the first step launched another number of GPU operations than each later one",
           .count = -1,
           .examples = {fmt::format("step {} launched {}, each later one {}",
                                    view.steps.front().number, counts[0], counts[1])},
           .meaning = "It still sets something up: averages over all steps hold that, too."}};
}

}  // namespace explain
