// SPDX-License-Identifier: Apache-2.0
//
// Copies of tensors: made by an op that must not write into its input, by a change of dtype, or by
// a layout that the next op cannot read.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "explain/finding.h"
#include "explain/kernel_name.h"
#include "explain/text.h"

namespace explain {
namespace {

// Below a hundredth of a forward a copy is a scalar on its way to a kernel, not a finding.
constexpr double kWorthSaying = 0.01;

Finding finding(const Facts& facts, const Copy& copy, double share) {
  const auto& chain = copy.chain;
  // aten::_to_copy is what aten::to calls where dtype or device change.
  const bool converts = std::find(chain.begin(), chain.end(), "aten::_to_copy") != chain.end();
  // A copy into another dtype or layout is a kernel, whose own name is long and says little.
  const bool is_kernel = facts.on_gpu && !copy.name.starts_with("Memcpy");
  std::string evidence =
      fmt::format("{}{}, {}, {} {}", is_kernel ? decode(copy.name).short_name : copy.name,
                  copy.bytes > 0 ? ", " + size_text(copy.bytes) : "", time_text(copy.time_us),
                  facts.on_gpu ? "launched by" : "called by",
                  chain.empty() ? "no op" : fmt::format("{}", fmt::join(chain, " < ")));
  return {.title = fmt::format("{}, {} times in {} forwards",
                               converts ? "a conversion to another dtype" : "a copy", copy.count,
                               facts.forwards),
          .evidence = {std::move(evidence)},
          .share = {share, facts.on_gpu ? kCudaTime : kCpuTime}};
}

}  // namespace

std::vector<Finding> copies(const Facts& facts) {
  if (facts.forwards == 0) {
    return {{.title = fmt::format("none, the trace has no forward ({})", facts.label),
             .evidence = {},
             .share = {}}};
  }
  const double forward_us = facts.on_gpu ? facts.cuda_time_us : facts.cpu_time_us;
  const double all_us = forward_us * static_cast<double>(facts.forwards);
  std::vector<Finding> result;
  std::int64_t small = 0;
  for (const Copy& copy : facts.copies) {
    const double us = copy.time_us * static_cast<double>(copy.count);
    if (us < kWorthSaying * all_us) {
      small += copy.count;
    } else {
      result.push_back(finding(facts, copy, us / all_us));
    }
  }
  if (!result.empty()) return result;
  const char* what = facts.on_gpu ? "memcpy" : "aten::copy_";
  return {{.title = "no copy of a tensor",
           .evidence = {fmt::format(
               "{} in {} forwards{}",
               small == 0 ? fmt::format("not one {}", what) : fmt::format("{} copies", small),
               facts.forwards, small == 0 ? "" : ", each less than 1 % of a forward")},
           .share = {}}};
}

}  // namespace explain
