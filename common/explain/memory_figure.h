// SPDX-License-Identifier: Apache-2.0
//
// The memory of a step as one SVG file: allocated bytes over time, stacked by category, with the
// peak, the op that made it, and the phases of the step.
//
//   const trace::OpTree tree(trace);
//   const auto memory = explain::memory_timeline(tree, std::nullopt);
//   trace::write_file("memory.svg", explain::memory_figure(tree, memory, {.width = 960}));
//
// As every figure it needs nothing but itself and follows the reader's theme (figure.h). Its size
// depends on the width alone: of the changes within a pixel the highest is drawn.
#pragma once

#include <string>

#include "explain/memory.h"

namespace explain {

struct MemoryFigureOptions {
  int width = 960;  // px
};

[[nodiscard]] std::string memory_figure(const trace::OpTree& tree, const MemoryTimeline& memory,
                                        const MemoryFigureOptions& options);

}  // namespace explain
