// SPDX-License-Identifier: Apache-2.0
//
// An op graph as one SVG file, from the step's inputs at the top to its outputs.
//
//   std::string svg = explain::op_graph_svg(explain::op_graph(recorded, {.label = "attn_fwd"}));
//   trace::write_file("graph.svg", svg);
//
// Needs nothing but itself and follows the reader's dark or light theme, as the timeline does
// (figure.h). Names too long for a box are cut; all of a node stands in its <title>.
#pragma once

#include <cstddef>
#include <string>

#include "explain/op_graph.h"

namespace explain {

inline constexpr std::size_t kMostGraphNodes = 400;

// Throws RangeError, which says how to narrow it, where the graph is too large to be looked at.
[[nodiscard]] std::string op_graph_svg(const OpGraph& graph);

}  // namespace explain
