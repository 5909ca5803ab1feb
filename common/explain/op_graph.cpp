// SPDX-License-Identifier: Apache-2.0
#include "explain/op_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "explain/figure_text.h"
#include "explain/op_graph_roles.h"
#include "explain/text.h"
#include "trace/printable.h"

namespace explain {
namespace {

constexpr std::size_t kMostLabels = 5;
constexpr std::size_t kMostLabelLength = 60;

std::string tensor_text(const TensorUse& use) {
  const std::string dtype = use.dtype.empty() ? "" : use.dtype + " ";
  return fmt::format("[{}] {}{}", fmt::join(use.shape, ", "), dtype, size_text(use.bytes()));
}

// A backward node is called within a span of the same name.
std::string_view without_engine(std::string_view name) {
  constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";
  if (name.starts_with(kEngine)) name.remove_prefix(kEngine.size());
  return name;
}

// "[pytorch|profiler|execution_trace|thread]": what the observer puts around everything.
bool is_label(const ExecutionNode& node) {
  return node.is_annotation && !node.name.starts_with("[pytorch|");
}

class Builder {
 public:
  Builder(const ExecutionTrace& trace, const OpGraphOptions& options)
      : nodes_(trace.nodes), roles_(op_roles(nodes_)) {
    choose_top(options.label);
    for (const std::size_t index : in_order_of_ends()) visit(index);
    number_ops();
    add_outputs();
    number(OpGraph::Kind::input);
    number(OpGraph::Kind::output);
  }

  [[nodiscard]] OpGraph result() { return std::move(graph_); }

 private:
  // What a memory holds from one write to the next.
  struct Version {
    std::size_t node = kNoNode;    // of the graph; none: uninitialised, or a given one not yet read
    std::size_t writer = kNoNode;  // of the trace; none for what the step was given
    TensorUse shown;               // as it was seen last
    bool is_uninitialised = false;
    bool is_read = false;
  };

  [[nodiscard]] std::size_t all_ops() const {
    std::size_t sum = 0;
    for (const OpRole& role : roles_) sum += role.parent == kNoNode ? role.ops : 0;
    return sum;
  }

  // The first node of that name that holds ops; else the innermost annotation around all ops.
  void choose_top(const std::string& label) {
    const std::size_t ops = all_ops();
    if (ops == 0) throw RangeError("no graph: the file has no op that takes or returns a tensor");
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (label.empty() ? is_label(nodes_[i]) && roles_[i].ops == ops
                        : top_ == kNoNode && nodes_[i].name == label && roles_[i].ops > 0) {
        top_ = i;
      }
    }
    find_labels();
    if (top_ == kNoNode && !label.empty()) refuse_label(label);
    first_ = top_ == kNoNode ? 0 : top_;
    last_ = top_ == kNoNode ? nodes_.size() - 1 : roles_[top_].last;
    if (top_ != kNoNode) graph_.title = nodes_[top_].name;
  }

  void find_labels() {
    std::vector<std::string>& labels = graph_.labels;
    for (std::size_t i = 0; i < nodes_.size() && labels.size() < kMostLabels; ++i) {
      if (!is_label(nodes_[i]) || roles_[i].ops == 0 || i == top_) continue;
      std::string name = clipped(trace::printable(nodes_[i].name), kMostLabelLength);
      if (std::find(labels.begin(), labels.end(), name) == labels.end()) {
        labels.push_back(std::move(name));
      }
    }
  }

  [[noreturn]] void refuse_label(const std::string& label) const {
    throw RangeError(fmt::format("no op below '{}' in this file: --label takes {}",
                                 clipped(trace::printable(label), kMostLabelLength),
                                 graph_.labels.empty()
                                     ? "the name of an op that calls others"
                                     : fmt::format("{}", fmt::join(graph_.labels, ", "))));
  }

  [[nodiscard]] bool is_below_top(std::size_t index) const {
    return index >= first_ && index <= last_ && is_below_[index];
  }

  // A node ends with the last one that it calls, and after it. The file is in this order, too, as
  // long as nobody sorts it.
  [[nodiscard]] std::vector<std::size_t> in_order_of_ends() {
    is_below_.assign(nodes_.size(), top_ == kNoNode);
    std::vector<std::size_t> order;
    for (std::size_t i = first_; i <= last_; ++i) {
      const std::size_t parent = roles_[i].parent;
      is_below_[i] = is_below_[i] || i == top_ || (parent != kNoNode && is_below_[parent]);
      if (is_below_[i] && !roles_[i].is_below_leaf) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return roles_[a].last != roles_[b].last ? roles_[a].last < roles_[b].last : a > b;
    });
    return order;
  }

  void visit(std::size_t index) {
    const ExecutionNode& node = nodes_[index];
    const OpRole& role = roles_[index];
    if (role.is_allocation) {
      for (const TensorUse& use : node.outputs) allocate(index, use);
    } else if (role.is_view) {
      for (const TensorUse& use : node.inputs) (void)version_of(use);
      for (const TensorUse& use : node.outputs) version_of(use).shown = use;
    } else if (role.is_leaf || (role.is_work && has_result_of_its_own(index))) {
      add_op(index);
    }
  }

  // resize_ of something that was written keeps it.
  void allocate(std::size_t index, const TensorUse& use) {
    const auto found = version_by_memory_.find(memory_of(use));
    const bool is_resize = !nodes_[index].inputs.empty() && roles_[index].mutated.size() > 0;
    if (is_resize && found != version_by_memory_.end()) {
      versions_[found->second].shown = use;
    } else {
      add_version(use, kNoNode, index).is_uninitialised = true;
    }
  }

  // An op that calls others may compute, too. It did if none of those wrote what it returns.
  [[nodiscard]] bool has_result_of_its_own(std::size_t index) const {
    std::set<MemoryKey> given;
    for (const TensorUse& use : nodes_[index].inputs) given.insert(memory_of(use));
    for (const TensorUse& use : nodes_[index].outputs) {
      if (given.contains(memory_of(use))) continue;
      const auto found = version_by_memory_.find(memory_of(use));
      if (found == version_by_memory_.end()) return true;
      const Version& version = versions_[found->second];
      if (version.is_uninitialised || version.writer == kNoNode || version.writer < index) {
        return true;
      }
    }
    return false;
  }

  Version& add_version(const TensorUse& use, std::size_t node, std::size_t writer) {
    version_by_memory_[memory_of(use)] = versions_.size();
    return versions_.emplace_back(Version{.node = node, .writer = writer, .shown = use});
  }

  // What nobody in the step wrote was given to it.
  Version& version_of(const TensorUse& use) {
    const auto found = version_by_memory_.find(memory_of(use));
    return found != version_by_memory_.end() ? versions_[found->second]
                                             : add_version(use, kNoNode, kNoNode);
  }

  std::size_t add_node(OpGraph::Kind kind, std::size_t index) {
    OpGraph::Node& node = graph_.nodes.emplace_back(OpGraph::Node{.kind = kind});
    if (index != kNoNode) {
      node.name = nodes_[index].name;
      node.is_copy = is_copy(node.name);
      node.path = path_of(index);
      node.with = roles_[index].with;
    }
    trace_index_.push_back(index);
    return graph_.nodes.size() - 1;
  }

  // The names around an op, outermost first, without those around everything.
  [[nodiscard]] std::string path_of(std::size_t index) const {
    constexpr std::size_t kMostNames = 8;
    constexpr int kMostLevels = 64;
    std::vector<std::string_view> names;
    std::size_t up = roles_[index].parent;
    for (int level = 0; level < kMostLevels && up != kNoNode && up != top_; ++level) {
      const ExecutionNode& node = nodes_[std::exchange(up, roles_[up].parent)];
      if (node.is_annotation && !is_label(node)) break;  // a thread, and its process
      const std::string_view name = without_engine(node.name);
      if (name == (names.empty() ? nodes_[index].name : names.back())) continue;
      names.push_back(names.size() < kMostNames ? name : "...");
      if (names.size() > kMostNames) break;
    }
    return fmt::format("{}", fmt::join(names.rbegin(), names.rend(), " > "));
  }

  void add_op(std::size_t index) {
    const std::size_t node = add_node(OpGraph::Kind::op, index);
    const std::vector<std::size_t>& mutated = roles_[index].mutated;
    const auto is_mutated = [&](const TensorUse& use) {
      return std::binary_search(mutated.begin(), mutated.end(), use.argument);
    };
    std::set<MemoryKey> given, written;
    std::set<std::pair<std::size_t, std::string>> edges;  // sources, as the op sees them
    for (const TensorUse& use : nodes_[index].inputs) {
      given.insert(memory_of(use));
      if (is_mutated(use)) written.insert(memory_of(use));
      if (reads_only_shapes(nodes_[index].name)) continue;
      if (is_mutated(use) && version_of(use).is_uninitialised) continue;
      if (is_mutated(use)) graph_.nodes[node].in_place = true;
      edges.emplace(source_of(use), tensor_text(use));
    }
    for (const auto& [from, text] : edges) graph_.edges.push_back({from, node, text});
    for (const TensorUse& use : nodes_[index].inputs) {
      if (is_mutated(use) && written.erase(memory_of(use)) > 0) add_version(use, node, index);
    }
    for (const TensorUse& use : nodes_[index].outputs) {
      if (!given.contains(memory_of(use)) && written.insert(memory_of(use)).second) {
        add_version(use, node, index);
      } else {
        version_of(use).shown = use;
      }
    }
  }

  // The node that an edge to a reader of this tensor comes from.
  std::size_t source_of(const TensorUse& use) {
    Version& version = version_of(use);
    if (version.node == kNoNode) {
      version.node = add_node(version.writer == kNoNode ? OpGraph::Kind::input : OpGraph::Kind::op,
                              version.writer);
    }
    version.is_read = true;
    return version.node;
  }

  // Ops in order of their calls; what came before them, at its place among them.
  void number_ops() {
    std::vector<std::size_t> order(graph_.nodes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto key = [&](std::size_t node) {
      const bool is_op = graph_.nodes[node].kind == OpGraph::Kind::op;
      return std::pair(is_op, is_op ? trace_index_[node] : node);
    };
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    std::vector<std::size_t> place(order.size());
    std::vector<OpGraph::Node> sorted;
    std::size_t call = 0;
    for (const std::size_t node : order) {
      place[node] = sorted.size();
      sorted.push_back(std::move(graph_.nodes[node]));
      if (sorted.back().kind == OpGraph::Kind::op) sorted.back().call = ++call;
    }
    graph_.nodes = std::move(sorted);
    for (OpGraph::Edge& edge : graph_.edges) edge = {place[edge.from], place[edge.to], edge.tensor};
    for (Version& version : versions_)
      if (version.node != kNoNode) version.node = place[version.node];
  }

  void add_outputs() {
    for (const Version& version : versions_) {
      if (version.is_read || version.node == kNoNode) continue;
      graph_.edges.push_back({version.node, graph_.nodes.size(), tensor_text(version.shown)});
      graph_.nodes.push_back({.kind = OpGraph::Kind::output});
    }
  }

  void number(OpGraph::Kind kind) {
    const std::string word = kind == OpGraph::Kind::input ? "input" : "output";
    const auto is_kind = [&](const OpGraph::Node& node) { return node.kind == kind; };
    const bool is_one = std::count_if(graph_.nodes.begin(), graph_.nodes.end(), is_kind) == 1;
    std::size_t count = 0;
    for (OpGraph::Node& node : graph_.nodes)
      if (is_kind(node)) node.name = is_one ? word : fmt::format("{} {}", word, ++count);
  }

  const std::vector<ExecutionNode>& nodes_;
  std::vector<OpRole> roles_;
  std::size_t top_ = kNoNode, first_ = 0, last_ = 0;  // what is below `top_` lies in between
  std::vector<char> is_below_;
  std::vector<Version> versions_;
  std::map<MemoryKey, std::size_t> version_by_memory_;
  std::vector<std::size_t> trace_index_;  // of the graph's nodes until they are sorted
  OpGraph graph_;
};

}  // namespace

OpGraph op_graph(const ExecutionTrace& trace, const OpGraphOptions& options) {
  return Builder(trace, options).result();
}

}  // namespace explain
