// SPDX-License-Identifier: Apache-2.0
#include "explain/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "explain/finding_view.h"
#include "explain/text.h"
#include "trace/printable.h"

namespace explain {
namespace {

std::vector<Finding> copies_of(const View& view) {
  return copies(view.facts);
}

using Find = std::vector<Finding> (*)(const View&);

// What the GPU did, what the CPU did, what the two did together.
constexpr Find kFindings[] = {
    one_fused_kernel,
    one_fused_op,
    low_occupancy_on_purpose,
    copies_of,
    matmuls_on_cuda_cores,
    mask_built_in_the_forward,
    safe_softmax,
    gpu_waits,
    annotation_wider_than_kernels,
    library_plans,
    cold_first_forward,
};

}  // namespace

std::vector<Finding> findings(const trace::OpTree& tree, const Facts& facts) {
  if (facts.forwards == 0) return copies(facts);  // says so
  const View view(tree, facts);
  std::vector<Finding> result;
  for (const Find find : kFindings) {
    std::vector<Finding> found = find(view);
    std::move(found.begin(), found.end(), std::back_inserter(result));
  }
  return result;
}

std::string to_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("Finding: {}", trace::printable(finding.title));
    const char* before = ": ";
    for (const std::string& line : finding.evidence) {
      text += before + trace::printable(line);
      before = "\n  ";
    }
    if (!finding.share.whole.empty()) {
      text += fmt::format("\n  {} of {}", share_text(finding.share.value), finding.share.whole);
    }
    text += '\n';
  }
  return text;
}

const KernelName& View::kernel(std::uint32_t gpu_operation) const {
  const auto [place, is_new] = kernels_.try_emplace(tree.name_id(gpu_operation));
  if (is_new) place->second = decode(tree.name(gpu_operation));
  return place->second;
}

std::optional<bool> holds_scores(const Facts& facts, const Sizes& sizes) {
  if (!facts.peak_memory) return std::nullopt;
  return *facts.peak_memory >= sizes.score_bytes() + sizes.output_bytes();
}

double View::elapsed(std::span<const std::uint32_t> events) const {
  double sum = 0;
  for (const std::uint32_t event : events) sum += tree.elapsed(event);
  return sum;
}

double View::own_time(std::uint32_t event) const {
  return tree.elapsed(event) - elapsed(tree.children(event));
}

Share View::share(double us) const {
  if (!facts.on_gpu) return cpu_share(us);
  const double all = facts.cuda_time_us * static_cast<double>(facts.forwards);
  return {all > 0 ? us / all : 0, kCudaTime};
}

Share View::cpu_share(double us) const {
  const double all = facts.cpu_time_us * static_cast<double>(facts.forwards);
  return {all > 0 ? us / all : 0, kCpuTime};
}

std::string View::per_forward(std::size_t count) const {
  const auto n = static_cast<std::size_t>(facts.forwards);
  if (count % n == 0) return fmt::format("{} per forward", count / n);
  return fmt::format("{} in {} forwards", count, n);
}

std::vector<std::uint32_t> View::launched_in(std::span<const std::uint32_t> ops) const {
  const std::unordered_set<std::uint32_t> wanted(ops.begin(), ops.end());
  const auto is_wanted = [&](std::uint32_t op) { return wanted.contains(op); };
  std::vector<std::uint32_t> result;
  for (const Forward& forward : forwards.all()) {
    for (const std::uint32_t operation : forward.gpu_operations) {
      const std::vector<std::uint32_t> around = forwards.ops_around(operation);
      if (std::any_of(around.begin(), around.end(), is_wanted)) result.push_back(operation);
    }
  }
  return result;
}

}  // namespace explain
