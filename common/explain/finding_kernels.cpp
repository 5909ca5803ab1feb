// SPDX-License-Identifier: Apache-2.0
//
// Findings told by the kernels: what their names and launches say.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "explain/about.h"
#include "explain/finding_view.h"
#include "explain/occupancy.h"
#include "explain/text.h"

namespace explain {
namespace {

using trace::Category;

constexpr double kAlmostAll = 0.9;  // of a forward's CUDA time: the rest is a memset, a counter

// Calls of one kernel in all forwards.
struct Calls {
  std::uint32_t first = trace::kNoEvent;
  std::size_t count = 0;
  double us = 0;
};

// By name, what takes most time first.
std::vector<Calls> calls_of(const View& view, std::span<const std::uint32_t> operations) {
  std::map<std::uint32_t, Calls> by_name;
  for (const std::uint32_t operation : operations) {
    Calls& calls = by_name[view.tree.name_id(operation)];
    if (calls.count++ == 0) calls.first = operation;
    calls.us += view.tree.elapsed(operation);
  }
  std::vector<Calls> result;
  for (const auto& [name, calls] : by_name) result.push_back(calls);
  std::stable_sort(result.begin(), result.end(),
                   [](const Calls& a, const Calls& b) { return a.us > b.us; });
  return result;
}

std::vector<std::uint32_t> kernels_of(const View& view) {
  std::vector<std::uint32_t> kernels;
  for (const Forward& forward : view.forwards.all()) {
    for (const std::uint32_t operation : forward.gpu_operations) {
      if (view.event(operation).category == Category::kernel) kernels.push_back(operation);
    }
  }
  return kernels;
}

bool multiplies(const KernelName& kernel) {
  return kernel.family == KernelFamily::matmul || kernel.family == KernelFamily::attention;
}

// Template arguments go on for lines; the first ones are enough to find the row in the table.
std::string row_name(std::string_view name) {
  constexpr std::size_t kLongest = 120;
  return name.size() <= kLongest ? std::string(name)
                                 : fmt::format("{}...", name.substr(0, kLongest - 3));
}

// "NAME: 3 calls, 534.3us each, launched by aten::bmm < aten::matmul"
std::string calls_text(const View& view, const Calls& calls) {
  return fmt::format("{}: {} calls, {} each, launched by {}", row_name(view.tree.name(calls.first)),
                     calls.count, time_text(calls.us / static_cast<double>(calls.count)),
                     view.forwards.chain(calls.first));
}

// Volta, 7.0, was the first with tensor cores.
bool has_tensor_cores(const View& view) {
  const auto& devices = view.tree.trace().devices;
  return std::any_of(devices.begin(), devices.end(),
                     [](const auto& device) { return device.compute_major >= 7; });
}

// A backend that wants another layout says so by transposes: views, unless they launch something.
std::string transposes_text(const View& view) {
  std::vector<std::uint32_t> transposes;
  for (const Forward& forward : view.forwards.all()) {
    for (const std::uint32_t op : forward.ops) {
      if (view.tree.name(op) == "aten::transpose") transposes.push_back(op);
    }
  }
  if (transposes.empty()) return "without any aten::transpose: it takes the layout as it is";
  const std::size_t launched = view.launched_in(transposes).size();
  return fmt::format("after aten::transpose, {}, {}", view.per_forward(transposes.size()),
                     launched == 0 ? "views that launch nothing"
                                   : fmt::format("which launch {}", view.per_forward(launched)));
}

std::uint64_t threads_per_block(const trace::Launch& launch) {
  return std::uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
}

}  // namespace

std::string gpu_name(const View& view, std::uint32_t gpu_operation) {
  return view.kernel(gpu_operation).short_name;
}

std::string list_text(const View& view, std::span<const std::uint32_t> operations) {
  std::vector<std::string> texts;
  for (const Calls& calls : calls_of(view, operations)) {
    texts.push_back(fmt::format("{} ({}, {} each)", gpu_name(view, calls.first),
                                view.per_forward(calls.count),
                                time_text(calls.us / static_cast<double>(calls.count))));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// fp32 runs on CUDA cores unless TF32 is allowed, at a small part of the tensor cores' rate.
std::vector<Finding> matmuls_on_cuda_cores(const View& view) {
  std::vector<std::uint32_t> slow;
  bool others_use_tensor_cores = false;
  for (const std::uint32_t operation : kernels_of(view)) {
    const KernelName& kernel = view.kernel(operation);
    if (!multiplies(kernel)) continue;
    if (kernel.tensor_cores == TensorCores::no) slow.push_back(operation);
    others_use_tensor_cores |= kernel.tensor_cores == TensorCores::yes;
  }
  if (slow.empty() || !has_tensor_cores(view)) return {};
  Finding finding{.title = fmt::format("matrix products on CUDA cores while {}",
                                       others_use_tensor_cores ? "others use the tensor cores"
                                                               : "the tensor cores stand idle"),
                  .evidence = {fmt::format("{} on {}", view.per_forward(slow.size()),
                                           view.tree.trace().devices.front().name)},
                  .share = view.share(view.elapsed(slow))};
  for (const Calls& calls : calls_of(view, slow)) {
    finding.evidence.push_back(calls_text(view, calls));
    finding.evidence.push_back(view.kernel(calls.first).sentence);
  }
  return {std::move(finding)};
}

// Scores, mask, softmax and both products in one kernel, which need not write the scores to memory.
std::vector<Finding> one_fused_kernel(const View& view) {
  const std::vector<std::uint32_t> kernels = kernels_of(view);
  if (view.facts.kernels.least != 1 || view.facts.kernels.most != 1) return {};
  const std::vector<Calls> calls = calls_of(view, kernels);
  const KernelName& kernel = view.kernel(calls.front().first);
  const Share share = view.share(calls.front().us);
  if (calls.size() != 1 || kernel.family != KernelFamily::attention || share.value < kAlmostAll) {
    return {};
  }
  const std::uint32_t call = view.forwards.call_of(calls.front().first);
  Finding finding{
      .title = "one fused kernel does the forward",
      .evidence = {calls_text(view, calls.front()), kernel.sentence,
                   fmt::format("launched by {}, {}", view.tree.name(call), transposes_text(view))},
      .share = share};
  const auto shape = sizes(view.tree.trace());
  if (shape && holds_scores(view.facts, *shape) == false) {
    finding.evidence.push_back(
        fmt::format("peak memory of a forward {}; one tensor of scores [B, H, S, S] would be {}",
                    size_text(*view.facts.peak_memory), size_text(shape->score_bytes())));
  }
  return {std::move(finding)};
}

// Many warps hide the wait for memory. A kernel that keeps its tiles in registers and shared memory
// and feeds tensor cores from them needs few: it spends the room on data instead of on warps.
std::vector<Finding> low_occupancy_on_purpose(const View& view) {
  constexpr double kLow = 0.25;          // a quarter of the warps that fit
  constexpr double kWorthSaying = 0.05;  // of the CUDA time: below, nobody looks for its reasons
  Finding finding{.title = "low occupancy on purpose", .evidence = {}, .share = {}};
  double us = 0;
  for (const Calls& calls : calls_of(view, kernels_of(view))) {
    const KernelName& kernel = view.kernel(calls.first);
    const bool uses_tensor_cores = multiplies(kernel) && kernel.tensor_cores == TensorCores::yes;
    const trace::Launch& launch = view.tree.trace().launch_of(view.event(calls.first));
    const trace::DeviceProperties device = device_of(view.tree.trace(), launch);
    const std::optional<Occupancy> room = occupancy(launch, device);
    if (!uses_tensor_cores || !room || room->theoretical > kLow ||
        !(room->by_registers || room->by_shared_memory) ||
        view.share(calls.us).value < kWorthSaying) {
      continue;
    }
    us += calls.us;
    finding.evidence.push_back(fmt::format(
        "{}: {} of {} warps on a multiprocessor ({}), limited by {}: {} threads a block "
        "with {} registers each and {} of shared memory, for the tensor cores ({})",
        row_name(view.tree.name(calls.first)), room->warps_per_multiprocessor, room->most_warps,
        share_text(room->theoretical), limit_text(*room), threads_per_block(launch),
        launch.registers_per_thread, size_text(launch.shared_memory), kernel.instruction));
    const std::string kineto = kineto_difference(launch, device);
    if (!kineto.empty()) finding.evidence.push_back(kineto);
  }
  if (finding.evidence.empty()) return {};
  finding.share = view.share(us);
  return {std::move(finding)};
}

}  // namespace explain
