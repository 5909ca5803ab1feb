// SPDX-License-Identifier: Apache-2.0
#include "explain/op_graph_text.h"

#include <fmt/format.h>

#include <string_view>

#include "explain/figure_text.h"
#include "trace/printable.h"

namespace explain {
namespace {

constexpr std::size_t kMostLength = 200;
constexpr std::string_view kInside = " > ";  // as OpGraph::Node::path has it

// Between quotes; `printable` has left no line break in it.
std::string dot_text(std::string_view text) {
  std::string result;
  for (const char c : trace::printable(clipped(text, kMostLength))) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string node_text(const OpGraph::Node& node) {
  std::string label = dot_text(node.name);
  if (node.kind != OpGraph::Kind::op) return fmt::format("label=\"{}\", shape=ellipse", label);
  label += fmt::format(" #{}", node.call);
  for (const std::string& note : node_notes(node)) label += "\\n" + dot_text(note);
  return fmt::format("label=\"{}\", tooltip=\"{}\"", label, dot_text(full_name(node)));
}

}  // namespace

std::vector<std::string> node_notes(const OpGraph::Node& node) {
  std::vector<std::string> notes;
  if (!node.path.empty()) {
    const std::size_t outer = node.path.rfind(kInside);
    notes.push_back("in " +
                    node.path.substr(outer == std::string::npos ? 0 : outer + kInside.size()));
  }
  if (!node.with.empty()) notes.push_back("with " + node.with);
  if (node.in_place) notes.emplace_back("in place");
  return notes;
}

std::string full_name(const OpGraph::Node& node) {
  return node.path.empty() ? node.name : fmt::format("{}{}{}", node.path, kInside, node.name);
}

std::string op_graph_dot(const OpGraph& graph) {
  std::string text = fmt::format("digraph \"{}\" {{\n  node [shape=box]\n", dot_text(graph.title));
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    text += fmt::format("  n{} [{}]\n", i, node_text(graph.nodes[i]));
  for (const OpGraph::Edge& edge : graph.edges)
    text += fmt::format("  n{} -> n{} [label=\"{}\"]\n", edge.from, edge.to, dot_text(edge.tensor));
  return text + "}\n";
}

}  // namespace explain
