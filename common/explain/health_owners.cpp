// SPDX-License-Identifier: Apache-2.0
//
// Which op a GPU operation belongs to, and where the ids that tell it lead astray.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <unordered_map>

#include "explain/health_view.h"
#include "explain/text.h"

namespace explain {
namespace {

using trace::Category;
using trace::kNoEvent;

constexpr double kNsPerUs = 1000;

struct Reason {
  std::string_view title;
  std::string_view meaning;
  bool is_expected;  // a note whatever its share is
};
enum Why : std::size_t {
  kUnknownOp,
  kUnfinishedOp,
  kTooEarly,
  kNoCall,
  kGraph,
  kNoId,
  kOutside,
  kWhys
};
constexpr std::array<Reason, kWhys> kReasons = {{
    {"whose External id no op of the file has",
     "They count for no op: the CUDA columns of ops lack them.", false},
    {"of an op that had not ended when the profiler stopped",
     "They count for no op: the CUDA columns of ops lack them.", true},
    {"launched before the recording",
     "What was still running when it began, mostly warm-up: rows of kernels and the total hold it, "
     "ops do not.",
     false},
    {"without a launch call in the file", "Nothing tells which op and which step they belong to.",
     false},
    {"launched by a CUDA graph",
     "They count for no op, as in PyTorch: the graph's launch stands for all of them.", true},
    {"launched in an op, but without its External id",
     "They count for no op: the CUDA columns of ops lack them, as in some files of before 2024.",
     false},
    {"launched outside every op",
     "By a library or a compiled kernel without an op of PyTorch: they count for no op.", true},
}};

// Ids of what can own a GPU operation.
std::vector<std::int64_t> ids_of_ops(const HealthView& view) {
  std::vector<std::int64_t> ids;
  for (const trace::Event& event : view.trace.events)
    if (!trace::is_device(event.category) && !is_call(event.category) && event.external_id != 0)
      ids.push_back(event.external_id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::int64_t first_correlation(const HealthView& view) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const trace::Event& event : view.trace.events)
    if (is_call(event.category) && event.correlation > 0)
      first = std::min(first, event.correlation);
  return first;
}

bool is_in_an_op(const HealthView& view, std::uint32_t call) {
  for (std::uint32_t up = view.tree.parent(call); up != kNoEvent; up = view.tree.parent(up))
    if (view.event(up).category == Category::cpu_op) return true;
  return false;
}

Why why(const HealthView& view, std::uint32_t index, const std::vector<std::int64_t>& ids,
        std::int64_t first) {
  const trace::Event& event = view.event(index);
  if (event.external_id != 0 && event.external_id != event.correlation)
    return std::binary_search(ids.begin(), ids.end(), event.external_id) ? kUnfinishedOp
                                                                         : kUnknownOp;
  const std::uint32_t call = view.launches.call_of(index);
  if (call == kNoEvent)
    return view.launches.has_calls() && event.correlation != 0 && event.correlation < first
               ? kTooEarly
               : kNoCall;
  if (is_graph_launch(view.tree.name(call))) return kGraph;
  return is_in_an_op(view, call) ? kNoId : kOutside;
}

}  // namespace

std::vector<HealthFinding> unattributed(const HealthView& view) {
  if (view.operations.empty() || view.is_merged) return {};
  if (!view.has_ops && !view.launches.has_calls()) {
    return {{.title = "unattributed, for the file has no ops of the CPU: GPU operations",
             .count = static_cast<std::int64_t>(view.operations.size()),
             .share = gpu_share_text(view, view.gpu_us),
             .meaning = "A recording of the GPU alone: nothing tells which op launched what."}};
  }
  const std::vector<std::int64_t> ids = ids_of_ops(view);
  const std::int64_t first = first_correlation(view);
  std::array<Odd, kWhys> odd;
  for (const std::uint32_t index : view.operations) {
    if (view.tree.launcher(index) != kNoEvent) continue;
    odd[why(view, index, ids, first)].add(
        index, static_cast<double>(view.event(index).duration_ns) / kNsPerUs);
  }
  std::vector<HealthFinding> found;
  for (std::size_t i = 0; i < kWhys; ++i) {
    if (odd[i].empty()) continue;
    const double share = part(odd[i].sum(), view.gpu_us);
    found.push_back({.severity = kReasons[i].is_expected ? Severity::note : severity(share),
                     .title = fmt::format("unattributed GPU operations {}", kReasons[i].title),
                     .count = odd[i].count(),
                     .share = gpu_share_text(view, odd[i].sum()),
                     .examples = view.examples(
                         odd[i], [](std::uint32_t, double us) { return ", " + time_text(us); }),
                     .meaning = std::string(kReasons[i].meaning)});
  }
  return found;
}

// Processes number their ops and calls alike, so a file merged of several mixes what has one
// number.
std::vector<HealthFinding> several_processes(const HealthView& view) {
  if (!view.is_merged) return {};
  std::unordered_map<std::int64_t, trace::TextId> process_of_id, process_of_correlation;
  std::vector<bool> is_seen(view.trace.texts.size(), false);
  std::int64_t processes = 0;
  Odd ids, correlations;
  for (const std::uint32_t index : view.tree.order()) {
    const trace::Event& event = view.event(index);
    const bool is_op = event.category == Category::cpu_op;
    if (!is_op && !is_call(event.category)) continue;
    const trace::TextId pid = view.trace.threads[event.thread].pid;
    if (!is_seen[pid]) ++processes;
    is_seen[pid] = true;
    const std::int64_t id = is_op ? event.external_id : event.correlation;
    if (id == 0) continue;
    auto& process_of = is_op ? process_of_id : process_of_correlation;
    if (process_of.try_emplace(id, pid).first->second != pid)
      (is_op ? ids : correlations).add(index);
  }
  std::vector<HealthFinding> found = {
      {.title = "processes with ops or calls in one file",
       .count = processes,
       .meaning = "A merged file: the table mixes its ranks, and nothing was checked that goes by "
                  "ids or steps. Read the file of each rank, or let readtrace merge join those."}};
  const auto add = [&](const Odd& odd, std::string title, std::string meaning) {
    if (odd.empty()) return;
    found.push_back({.severity = Severity::fault,
                     .title = std::move(title),
                     .count = odd.count(),
                     .share = gpu_share_text(view, view.gpu_us) + " is in doubt",
                     .examples = view.examples(odd),
                     .meaning = std::move(meaning)});
  };
  add(ids, "ops with the External id of another process's op",
      "Nothing tells whose a kernel is: the CUDA columns of ops are wrong.");
  add(correlations, "calls with the correlation of another process's call",
      "Nothing tells which of them launched a kernel.");
  return found;
}

// Ids that make a GPU operation count twice.
std::vector<HealthFinding> shared_ids(const HealthView& view) {
  if (view.is_merged) return {};
  std::vector<double> us(view.tree.kernel_group_count(), 0);
  for (std::size_t group = 0; group < us.size(); ++group)
    for (const std::uint32_t index : view.tree.kernels_of_group(group))
      us[group] += static_cast<double>(view.event(index).duration_ns) / kNsPerUs;
  Odd ops, calls;
  std::vector<bool> has_op(us.size(), false);
  for (const std::uint32_t index : view.tree.order()) {
    const std::uint32_t group = view.tree.kernel_group(index);
    const trace::Event& event = view.event(index);
    if (group == 0 || view.tree.kernels_of_group(group).empty()) continue;
    if (event.category == Category::cpu_op) {
      if (has_op[group]) ops.add(index, us[group]);
      has_op[group] = true;
    }
    if (is_call(event.category)) calls.add(index, us[group]);
  }
  std::vector<HealthFinding> found;
  const auto add = [&](const Odd& odd, std::string title, std::string meaning) {
    if (odd.empty()) return;
    found.push_back({.severity = severity(part(odd.sum(), view.gpu_us)),
                     .title = std::move(title),
                     .count = odd.count(),
                     .share = gpu_share_text(view, odd.sum()),
                     .examples = view.examples(odd),
                     .meaning = std::move(meaning)});
  };
  add(ops, "ops with the External id of an earlier op",
      "GPU operations of that id count for each of these ops.");
  add(calls, "calls of no op whose correlation is the External id of an op",
      "The CUDA time of that op counts for these calls, too: PyTorch's table has this error.");
  return found;
}

}  // namespace explain
