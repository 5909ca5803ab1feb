// SPDX-License-Identifier: Apache-2.0
//
// What is worth noticing in a trace, each claim with its evidence from this very file.
//
//   const trace::OpTree tree(trace);
//   const explain::Facts facts = explain::facts(tree, "sdpa_fwd");
//   std::cout << explain::to_text(explain::findings(tree, facts));
//
// One small function per finding, all in the table at the end of finding.cpp: a new one is a
// function and a line there. Each looks at the forwards of `facts.label` and returns what it found,
// or nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "explain/facts.h"
#include "trace/tree.h"

namespace explain {

// A part of a whole, as in "11.8% of the CUDA time". No whole: the finding has no such figure.
struct Share {
  double value = 0;
  std::string_view whole;
};

struct Finding {
  std::string title;                  // "a copy, 3 times in 3 forwards"
  std::vector<std::string> evidence;  // names, counts, times, op chains: one line each
  Share share;
};

// Times of a forward that shares are of.
inline constexpr std::string_view kCudaTime = "the CUDA time";
inline constexpr std::string_view kCpuTime = "the CPU time";

// What takes most time is not first: the order is that of the table, which reads as a story.
[[nodiscard]] std::vector<Finding> findings(const trace::OpTree& tree, const Facts& facts);

// "Finding: TITLE: first line of evidence", further lines of evidence indented below it, the share
// last. Control characters in the file's names are escaped.
[[nodiscard]] std::string to_text(const std::vector<Finding>& findings);

// The finding of the first two chapters alone, which facts suffice for: the copies of tensors and
// the ops that make them, or that there is none.
[[nodiscard]] std::vector<Finding> copies(const Facts& facts);

}  // namespace explain
