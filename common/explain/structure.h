// SPDX-License-Identifier: Apache-2.0
//
// Whether two recordings did the same per step: which ops inside which, which kernels, copies of
// which sizes, what was allocated. No times, so the answer holds on any day and any machine of a
// kind: the baseline of a regression test.
//
//   const auto basis = explain::diff_basis(a, b, std::nullopt, "");
//   const explain::StructureDiff diff = explain::structure_diff(a, b, basis);
//   if (!diff.differences.empty()) std::cout << to_text(diff, {.limit = -1});
//
// The order of the file, thread ids, addresses, the numbers of the steps and how many there are do
// not matter. Steps of one file may differ: then the least and the most of a step are compared.
#pragma once

#include <string>
#include <vector>

#include "explain/diff.h"

namespace explain {

struct StructureDifference {
  std::string what;  // "op aten::clone < aten::masked_fill < attn_fwd"; safe to print
  Unit unit = Unit::count;
  Amount a, b;            // per step
  std::size_t below = 0;  // further ops that differ because they are inside this one
};

struct StructureDiff {
  Basis basis = Basis::step;
  std::size_t periods_a = 0, periods_b = 0;
  bool memory_in_one = false;  // only one file has it recorded, so it is not compared
  // Ops, GPU operations, memory.
  std::vector<StructureDifference> differences;
};

[[nodiscard]] StructureDiff structure_diff(const trace::OpTree& a, const trace::OpTree& b,
                                           const DiffBasis& basis);

// What was compared, then one line for each difference; at most `options.limit` of them.
[[nodiscard]] std::string to_text(const StructureDiff& diff, const DiffTextOptions& options);

}  // namespace explain
