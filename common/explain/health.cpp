// SPDX-License-Identifier: Apache-2.0
#include "explain/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "explain/figure_text.h"
#include "explain/health_view.h"
#include "explain/text.h"
#include "trace/printable.h"

namespace explain {
namespace {

constexpr std::size_t kColumns = 120;
constexpr std::size_t kIndent = 7;  // "fault  "
constexpr std::size_t kNameColumns = 60;
constexpr double kNsPerUs = 1000;

using Check = std::vector<HealthFinding> (*)(const HealthView&);

// What the file lacks, what its times are worth, what belongs to whom, how the steps went.
constexpr Check kChecks[] = {
    damage,
    nothing_on_the_gpu,
    impossible_times,
    clock_unit,
    overlaps_on_a_stream,
    one_long_operation,
    longer_than_the_span,
    before_their_launch,
    launches_without_work,
    several_processes,
    shared_ids,
    unattributed,
    warm_up_in_steps,
    lost_steps,
    steps_of_devices,
    overlapping_steps,
    uneven_first_step,
    negative_self_times,
    overlaps_on_a_thread,
    memory_records,
};

bool starts_with_any(std::string_view text, std::span<const std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

std::string count_text(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string indented(std::string_view text, std::string_view first) {
  std::string result;
  std::string_view begin = first;
  for (const std::string& line : wrapped(text, kColumns - kIndent)) {
    result += fmt::format("{:<{}}{}\n", begin, kIndent, clipped(line, kColumns - kIndent));
    begin = "";
  }
  return result;
}

std::string text_of(const HealthFinding& finding) {
  std::string line = finding.title;
  if (finding.count >= 0) line += fmt::format(": {}", finding.count);
  if (!finding.share.empty()) line += fmt::format(", {}", finding.share);
  std::string text =
      indented(trace::printable(line), finding.severity == Severity::fault ? "fault" : "note");
  for (const std::string& example : finding.examples)
    text += indented("e.g. " + trace::printable(example), "");
  return text + indented(trace::printable(finding.meaning), "");
}

}  // namespace

double Odd::sum() const {
  double sum = 0;
  for (const auto& [event, weight] : events_) sum += weight;
  return sum;
}

double Odd::largest() const {
  double largest = 0;
  for (const auto& [event, weight] : events_) largest = std::max(largest, weight);
  return largest;
}

std::vector<Odd::Item> Odd::heaviest(std::size_t most) const {
  std::vector<std::size_t> order(events_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(std::min(most, order.size()));
  std::partial_sort(order.begin(), middle, order.end(), [this](std::size_t a, std::size_t b) {
    return events_[a].second != events_[b].second ? events_[a].second > events_[b].second : a < b;
  });
  std::vector<Item> result;
  for (auto place = order.begin(); place != middle; ++place) result.push_back(events_[*place]);
  return result;
}

HealthView::HealthView(const trace::Trace& of, std::size_t examples)
    : trace(of), tree(of), launches(of), examples_(examples) {
  for (const std::uint32_t index : tree.order()) {
    const trace::Event& e = event(index);
    has_ops |= e.category == trace::Category::cpu_op;
    if (trace::is_gpu_operation(e.category)) {
      operations.push_back(index);
      gpu_us += static_cast<double>(e.duration_ns) / kNsPerUs;
      if (e.correlation != 0) correlations_.push_back(e.correlation);
    } else if (!trace::is_device(e.category) && !tree.is_async(index) &&
               tree.parent(index) == trace::kNoEvent) {
      cpu_us += static_cast<double>(e.duration_ns) / kNsPerUs;
    }
  }
  std::sort(correlations_.begin(), correlations_.end());
  for (const Step& step : explain::steps(trace))
    if (!trace::is_device(event(step.event).category)) steps.push_back(step);
  count_processes();
}

void HealthView::count_processes() {
  std::vector<bool> is_seen(trace.texts.size(), false);
  int processes = 0;
  for (const std::uint32_t index : tree.order()) {
    const trace::Category category = event(index).category;
    if (category != trace::Category::cpu_op && !is_call(category)) continue;
    const trace::TextId pid = trace.threads[event(index).thread].pid;
    if (!is_seen[pid]) ++processes;
    is_seen[pid] = true;
  }
  is_merged = processes > 1;
}

const Step* HealthView::step_at(std::int64_t time_ns) const {
  const auto next = std::partition_point(steps.begin(), steps.end(), [&](const Step& step) {
    return event(step.event).start_ns <= time_ns;
  });
  if (next == steps.begin() || time_ns >= end_ns(event((next - 1)->event))) return nullptr;
  return &*(next - 1);
}

bool HealthView::has_operation(std::int64_t correlation) const {
  return std::binary_search(correlations_.begin(), correlations_.end(), correlation);
}

std::string HealthView::place(std::uint32_t index) const {
  const trace::Event& e = event(index);
  std::string text = clipped(short_name(e.category, tree.name(index)), kNameColumns);
  if (!e.is_timed) return text + " without a time";
  text += fmt::format(" at {}", time_text(tree.start(index)));
  // A GPU operation belongs to the step that launched it, wherever the device ran it.
  const std::uint32_t call = trace::is_gpu_operation(e.category) ? launches.call_of(index) : index;
  const Step* step = call == trace::kNoEvent ? nullptr : step_at(event(call).start_ns);
  return step == nullptr ? text : text + fmt::format(", step {}", step->number);
}

double part(double of, double whole) {
  return whole > 0 ? of / whole : 0;
}

std::string gpu_share_text(const HealthView& view, double us) {
  return fmt::format("{}, {} of the GPU time", time_text(us), share_text(part(us, view.gpu_us)));
}

std::string cpu_share_text(const HealthView& view, double us) {
  return fmt::format("{}, {} of the CPU time", time_text(us), share_text(part(us, view.cpu_us)));
}

Severity severity(double share) {
  return share >= kMatters ? Severity::fault : Severity::note;
}

bool is_graph_launch(std::string_view call) {
  constexpr std::array<std::string_view, 3> kGraphs = {"cudaGraphLaunch", "cuGraphLaunch",
                                                       "hipGraphLaunch"};
  return starts_with_any(call, kGraphs);
}

bool is_kernel_launch(std::string_view call) {
  constexpr std::array<std::string_view, 9> kLaunches = {
      "cudaLaunchKernel",        "cudaLaunchCooperativeKernel",
      "cuLaunchKernel",          "cuLaunchCooperativeKernel",
      "hipLaunchKernel",         "hipLaunchCooperativeKernel",
      "hipExtLaunchKernel",      "hipModuleLaunchKernel",
      "hipExtModuleLaunchKernel"};
  return starts_with_any(call, kLaunches) || is_graph_launch(call);
}

bool is_copy_call(std::string_view call) {
  constexpr std::array<std::string_view, 6> kCopies = {"cudaMemcpy", "cudaMemset", "cuMemcpy",
                                                       "cuMemset",   "hipMemcpy",  "hipMemset"};
  return starts_with_any(call, kCopies) && call.find("Async") != std::string_view::npos;
}

bool Health::has_fault() const {
  return std::any_of(findings.begin(), findings.end(), [](const HealthFinding& finding) {
    return finding.severity == Severity::fault;
  });
}

Health health(const trace::Trace& trace, std::size_t examples) {
  const HealthView view(trace, examples);
  Health health{.findings = {},
                .events = static_cast<std::int64_t>(trace.events.size()),
                .gpu_operations = static_cast<std::int64_t>(view.operations.size()),
                .steps = static_cast<std::int64_t>(view.steps.size())};
  for (const Check check : kChecks) {
    std::vector<HealthFinding> found = check(view);
    std::move(found.begin(), found.end(), std::back_inserter(health.findings));
  }
  std::stable_sort(
      health.findings.begin(), health.findings.end(),
      [](const HealthFinding& a, const HealthFinding& b) { return a.severity < b.severity; });
  return health;
}

std::string to_text(const Health& health) {
  const auto faults = std::count_if(
      health.findings.begin(), health.findings.end(),
      [](const HealthFinding& finding) { return finding.severity == Severity::fault; });
  const auto notes = static_cast<std::int64_t>(health.findings.size()) - faults;
  std::string text = fmt::format(
      "{}: {}, {}, {}; ", faults > 0 ? "unhealthy" : "healthy", count_text(health.events, "event"),
      count_text(health.gpu_operations, "GPU operation"), count_text(health.steps, "step"));
  if (faults > 0) text += count_text(faults, "fault");
  if (notes > 0) text += (faults > 0 ? ", " : "") + count_text(notes, "note");
  text += health.findings.empty() ? "nothing odd\n" : "\n";
  for (const HealthFinding& finding : health.findings) text += text_of(finding);
  return text;
}

}  // namespace explain
