// SPDX-License-Identifier: Apache-2.0
//
// The ops of one step and the tensors that go from one to the next, from an Execution Trace.
//
//   auto recorded = explain::read_execution_trace("8_16_1024_64_naive.graph.json");
//   explain::OpGraph graph = explain::op_graph(recorded, {.label = "attn_fwd"});
//   for (const explain::OpGraph::Edge& edge : graph.edges)
//     std::cout << graph.nodes[edge.from].name << " -> " << edge.tensor << '\n';
//
// Whose memory a tensor shares decides what it is. Ops that only look at memory in another way
// (view, transpose, expand) are left out: the edge has the shape that its reader saw. Ops that only
// fetch memory (empty) are left out, too, unless somebody reads what they never wrote. An op that
// writes into a tensor it was given (add_, out=) makes a new version of it.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "explain/execution_trace.h"
#include "explain/steps.h"

namespace explain {

struct OpGraphOptions {
  std::string label;  // only what is below the first node of this name; "" = everything
};

struct OpGraph {
  enum class Kind { input, op, output };

  struct Node {
    Kind kind = Kind::op;
    std::string name{};     // "aten::bmm", "input 1", "output"
    std::size_t call = 0;   // of ops: 1 for the first one called
    bool is_copy = false;   // copies or converts a tensor, and does nothing else
    bool in_place = false;  // writes into a tensor that held something already
    std::string path{};     // the ops and annotations around it: "aten::masked_fill > aten::clone"
    std::string with{};     // ops it called to copy, which are no nodes: "aten::copy_"
  };
  struct Edge {
    std::size_t from = 0, to = 0;  // indices into `nodes`
    std::string tensor;            // as the reader sees it: "[8, 16, 64] bf16 16.00 KiB"
  };

  std::string title;                // the annotation around all of it, "" where there is none
  std::vector<Node> nodes;          // ops in order of their calls
  std::vector<Edge> edges;          // each once for a reader, however often it reads the tensor
  std::vector<std::string> labels;  // annotations below the title, to narrow by: a few
};

// Throws RangeError where there is no such label, or no op that takes or returns a tensor.
[[nodiscard]] OpGraph op_graph(const ExecutionTrace& trace, const OpGraphOptions& options);

}  // namespace explain
