// SPDX-License-Identifier: Apache-2.0
//
// An op graph in Graphviz's language.
//
//   std::string dot = explain::op_graph_dot(graph);
//   trace::write_file("graph.dot", dot);  // dot -Tpdf graph.dot > graph.pdf
//
// Names are quoted, so whatever the file held is text there, and control characters are spelled
// out.
#pragma once

#include <string>

#include "explain/op_graph.h"

namespace explain {

[[nodiscard]] std::string op_graph_dot(const OpGraph& graph);

// What stands in a node besides its name: "in aten::masked_fill" (the op right around it), "with
// aten::copy_", "in place".
[[nodiscard]] std::vector<std::string> node_notes(const OpGraph::Node& node);

// The name with all that is around it: "aten::softmax > aten::_softmax".
[[nodiscard]] std::string full_name(const OpGraph::Node& node);

}  // namespace explain
