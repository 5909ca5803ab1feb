// SPDX-License-Identifier: Apache-2.0
//
// One step as an indented tree: ops, the runtime calls that they made, and below each call the GPU
// operations that it launched.
//
//   trace::OpTree tree(trace);
//   std::cout << explain::op_tree_text(tree, {.step = 2});
//   std::cout << explain::op_tree_text(tree, {.step = 2, .depth = 3});  // three levels of it
//
// Siblings that follow each other and hold the same calls all the way down are one line, "x 12",
// with the sums of their times. Lines are at most 100 columns wide and hold no control characters.
// The tree, self times and totals are those of the table (trace/tree.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "explain/steps.h"
#include "trace/tree.h"

namespace explain {

inline constexpr int kMostLevels = 50;

struct TreeTextOptions {
  // ProfilerStep#N; by default the first one, or the whole recording where it has no steps.
  std::optional<std::int64_t> step = std::nullopt;
  int depth = kMostLevels;  // levels, 1 is the step alone
};

// Throws RangeError where the trace has no such step or nothing to print.
[[nodiscard]] std::string op_tree_text(const trace::OpTree& tree, const TreeTextOptions& options);

}  // namespace explain
