// SPDX-License-Identifier: Apache-2.0
//
// The health of what the CPU launched and the GPU ran: either may lack its other half, and the two
// clocks may disagree.
#include <fmt/format.h>

#include "explain/health_view.h"
#include "explain/text.h"
#include "trace/wrapping.h"

namespace explain {
namespace {

using trace::Category;
using trace::kNoEvent;

constexpr double kNsPerUs = 1000;

std::int64_t count_calls(const HealthView& view, bool (*is_kind)(std::string_view)) {
  return std::count_if(view.tree.order().begin(), view.tree.order().end(), [&](auto index) {
    return is_call(view.event(index).category) && is_kind(view.tree.name(index));
  });
}

// Which launches were made while their thread captured a stream into a graph: those run later, as
// part of the graph.
class Capture {
 public:
  explicit Capture(const HealthView& view) : view_(view), is_open_(view.trace.threads.size()) {}

  // For each call in order of start.
  bool is_open(std::uint32_t call) {
    const std::string_view name = view_.tree.name(call);
    auto open = is_open_[view_.event(call).thread];
    if (name.find("StreamBeginCapture") != std::string_view::npos) open = true;
    if (name.find("StreamEndCapture") != std::string_view::npos) open = false;
    return open;
  }

 private:
  const HealthView& view_;
  std::vector<bool> is_open_;  // by thread
};

// Calls that should have an operation on the GPU, and have none.
struct Workless {
  Odd lost, at_the_end, captured, copies;
  std::int64_t launches = 0;
};

Workless workless(const HealthView& view) {
  Workless result;
  std::vector<std::uint32_t> since_last;  // launches since the last one that has an operation
  Capture capture(view);
  for (const std::uint32_t index : view.tree.order()) {
    const trace::Event& event = view.event(index);
    if (!is_call(event.category)) continue;
    const bool is_captured = capture.is_open(index);
    const std::uint32_t parent = view.tree.parent(index);
    // A runtime call makes a driver call: one of them has the operation's correlation.
    if (parent != kNoEvent && is_call(view.event(parent).category)) continue;
    const std::string_view name = view.tree.name(index);
    const bool is_launch = is_kernel_launch(name);
    if ((!is_launch && !is_copy_call(name)) || event.correlation == 0) continue;
    result.launches += is_launch ? 1 : 0;
    if (view.has_operation(event.correlation)) {
      if (!is_launch) continue;
      for (const std::uint32_t call : since_last) result.lost.add(call);
      since_last.clear();
    } else if (is_captured) {
      result.captured.add(index);
    } else if (is_launch) {
      since_last.push_back(index);
    } else {
      result.copies.add(index);
    }
  }
  for (const std::uint32_t call : since_last) result.at_the_end.add(call);
  return result;
}

}  // namespace

std::vector<HealthFinding> nothing_on_the_gpu(const HealthView& view) {
  if (!view.operations.empty() || view.trace.events.empty()) return {};
  std::int64_t annotations = 0, calls = 0;
  for (const std::uint32_t index : view.tree.order()) {
    const Category category = view.event(index).category;
    annotations += category == Category::gpu_user_annotation ? 1 : 0;
    calls += is_call(category) ? 1 : 0;
  }
  const std::int64_t launches = count_calls(view, is_kernel_launch);
  if (launches > 0) {
    return {{.severity = Severity::fault,
             .title = "launches, but not one GPU operation",
             .count = launches,
             .meaning = "CUPTI (on AMD roctracer) recorded nothing. Check that no other profiler "
                        "or DCGM is attached, that users may profile (NVreg_RestrictProfilingTo"
                        "AdminUsers=0), and that the driver is not older than CUPTI."}};
  }
  if (annotations > 0) {
    return {{.severity = Severity::fault,
             .title = "annotations on the GPU, but not one GPU operation",
             .count = annotations,
             .meaning = "All GPU time of the table is that of annotations, which is no work."}};
  }
  if (calls == 0 && view.trace.devices.empty()) return {};  // where no GPU is nothing is missing
  return {{.title = "no GPU operation and no launch, though there is a GPU",
           .count = -1,
           .meaning = "Nothing ran on it, or only CPU activity was recorded, or PyTorch was built "
                      "without CUPTI (KINETO_GPU_FALLBACK)."}};
}

std::vector<HealthFinding> before_their_launch(const HealthView& view) {
  constexpr double kRounding = 1;     // us: both times may be cut to whole us
  constexpr double kClockDrift = 10;  // us
  if (view.is_merged) return {};
  Odd odd;
  double us = 0;
  for (const std::uint32_t index : view.operations) {
    const std::uint32_t call = view.launches.call_of(index);
    if (call == kNoEvent || !view.event(index).is_timed) continue;
    const double lead = view.tree.start(call) - view.tree.start(index);
    if (lead <= kRounding) continue;
    odd.add(index, lead);
    us += static_cast<double>(view.event(index).duration_ns) / kNsPerUs;
  }
  if (odd.empty()) return {};
  const auto detail = [&](std::uint32_t index, double lead) {
    return fmt::format(", {} before its {}", time_text(lead),
                       view.tree.name(view.launches.call_of(index)));
  };
  return {{.severity = odd.largest() > kClockDrift ? Severity::fault : Severity::note,
           .title = "GPU operations that start before their launch",
           .count = odd.count(),
           .share = gpu_share_text(view, us),
           .examples = view.examples(odd, detail),
           .meaning = "The clocks of CPU and GPU disagree: durations hold, but not what is told by "
                      "both clocks, such as launch delays and which step a kernel ran in."}};
}

std::vector<HealthFinding> launches_without_work(const HealthView& view) {
  if (view.operations.empty() || view.is_merged) return {};
  const Workless calls = workless(view);
  std::vector<HealthFinding> found;
  const auto add = [&](const Odd& odd, Severity severity, std::string title, std::string meaning) {
    if (odd.empty()) return;
    found.push_back({.severity = severity,
                     .title = std::move(title),
                     .count = odd.count(),
                     .share = fmt::format("of {} launches", calls.launches),
                     .examples = view.examples(odd),
                     .meaning = std::move(meaning)});
  };
  add(calls.lost, Severity::fault, "launches without a GPU operation",
      "The profiler lost what they ran (a full buffer, perhaps): GPU time is missing.");
  add(calls.at_the_end, Severity::fault, "launches at the end without a GPU operation",
      "The recording stopped before the GPU ran them: synchronize before the last step ends.");
  add(calls.captured, Severity::note, "launches and copies into a graph (stream capture)",
      "They run as part of the graph, so they have no GPU operation of their own.");
  add(calls.copies, Severity::note, "copies and memsets without a GPU operation",
      "One of 0 bytes has none.");
  if (!found.empty() && found.back().title.starts_with("copies")) found.back().share.clear();
  return found;
}

}  // namespace explain
