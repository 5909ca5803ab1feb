// SPDX-License-Identifier: Apache-2.0
#include "explain/op_graph_roles.h"

#include <algorithm>
#include <array>
#include <set>

namespace explain {
namespace {

bool is_fill(std::string_view name) {
  return name == "aten::fill_" || name == "aten::zero_";
}

// Copies and fills: an op that calls nothing else uses them to prepare its own result.
bool is_helper(const ExecutionNode& node) {
  const bool is_factory = node.inputs.empty() && !node.outputs.empty();
  return is_factory || reads_only_shapes(node.name) || is_fill(node.name) || is_copy(node.name);
}

bool is_allocation(std::string_view name) {
  return name.starts_with("aten::empty") || name.starts_with("aten::new_empty") ||
         name.starts_with("aten::resize_");
}

// Places of the arguments that a schema marks: "add_.Tensor(Tensor(a!) self, Tensor other, *,
// ...)".
std::vector<std::size_t> marked_arguments(std::string_view schema) {
  std::vector<std::size_t> marked;
  std::size_t argument = 0, depth = 0, begin = schema.find('(');
  if (begin == std::string_view::npos) return marked;
  for (std::size_t i = begin++; i < schema.size(); ++i) {
    const char c = schema[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    const bool ends = depth == 0 || (depth == 1 && c == ',');
    if (!ends) continue;
    std::string_view text = schema.substr(begin, i - begin);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.substr(0, text.find(' ')).find('!') != std::string_view::npos) {
      marked.push_back(argument);
    }
    if (text != "*") ++argument;  // what follows it is given by name, which changes no place
    begin = i + 1;
    if (depth == 0) break;
  }
  return marked;
}

// Where the schema is unknown, or leaves it out as those of collectives do, PyTorch's names say it:
// add_ writes into its first argument, __and__ does not.
std::vector<std::size_t> mutated_arguments(const ExecutionNode& node) {
  std::vector<std::size_t> marked = marked_arguments(node.schema);
  const bool is_named_so = node.name.ends_with('_') && !node.name.ends_with("__");
  if (marked.empty() && is_named_so && !node.inputs.empty()) marked.push_back(0);
  return marked;
}

bool returns_only_inputs(const ExecutionNode& node) {
  std::set<MemoryKey> given;
  for (const TensorUse& use : node.inputs) given.insert(memory_of(use));
  return !node.outputs.empty() &&
         std::all_of(node.outputs.begin(), node.outputs.end(),
                     [&](const TensorUse& use) { return given.contains(memory_of(use)); });
}

std::size_t index_of_parent(std::span<const ExecutionNode> nodes, const ExecutionNode& node) {
  if (node.parent >= node.id) return kNoNode;  // the root, and whatever would be a cycle
  const auto found = std::lower_bound(nodes.begin(), nodes.end(), node.parent,
                                      [](const auto& a, std::int64_t id) { return a.id < id; });
  if (found == nodes.end() || found->id != node.parent) return kNoNode;
  return static_cast<std::size_t>(found - nodes.begin());
}

OpRole role_of(std::span<const ExecutionNode> nodes, std::size_t index) {
  const ExecutionNode& node = nodes[index];
  OpRole role{.parent = index_of_parent(nodes, node), .last = index};
  if (node.is_annotation || (node.inputs.empty() && node.outputs.empty())) return role;
  role.mutated = mutated_arguments(node);
  role.is_allocation = is_allocation(node.name);
  role.is_view = role.mutated.empty() && returns_only_inputs(node);
  // RECORD_FUNCTION alone, as around each backward node, tells no results: not an op.
  const bool does_something = node.returns_anything || !role.mutated.empty();
  role.is_work = does_something && !role.is_allocation && !role.is_view;
  return role;
}

// Names of the copies below a leaf, the outermost ones. A fill is how an op begins its own result.
void add_helper(OpRole& leaf, const std::string& name) {
  constexpr std::size_t kMostLength = 60;
  if (is_fill(name)) return;
  if (leaf.with.find(name) != std::string::npos || leaf.with.size() > kMostLength) return;
  leaf.with += (leaf.with.empty() ? "" : ", ") + name;
}

}  // namespace

bool is_copy(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames = {"aten::copy_",      "aten::clone",
                                                      "aten::_to_copy",   "aten::to",
                                                      "aten::contiguous", "aten::reshape"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool reads_only_shapes(std::string_view name) {
  return name.ends_with("_like") || name.starts_with("aten::new_");
}

MemoryKey memory_of(const TensorUse& use) {
  return use.storage != 0 ? MemoryKey{use.storage, 0} : MemoryKey{0, use.tensor};
}

std::vector<OpRole> op_roles(std::span<const ExecutionNode> nodes) {
  std::vector<OpRole> roles(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) roles[i] = role_of(nodes, i);
  // Parents have smaller indices: backwards every node is complete before it is added to its own.
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (roles[i].parent == kNoNode) continue;
    OpRole& parent = roles[roles[i].parent];
    parent.last = std::max(parent.last, roles[i].last);
    parent.has_work_below |= roles[i].has_work_below || (roles[i].is_work && !is_helper(nodes[i]));
  }
  std::vector<std::size_t> owner(nodes.size(), kNoNode);  // the leaf whose helper a node may be
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    OpRole& role = roles[i];
    if (role.parent != kNoNode) {
      const OpRole& parent = roles[role.parent];
      role.is_below_leaf = parent.is_leaf || parent.is_below_leaf;
      owner[i] = parent.is_leaf ? role.parent : parent.is_work ? kNoNode : owner[role.parent];
    }
    role.is_leaf = role.is_work && !role.has_work_below && !role.is_below_leaf;
    if (role.is_work && owner[i] != kNoNode) add_helper(roles[owner[i]], nodes[i].name);
  }
  for (std::size_t i = nodes.size(); i-- > 0;) {
    roles[i].ops += roles[i].is_leaf ? 1 : 0;
    if (roles[i].parent != kNoNode) roles[roles[i].parent].ops += roles[i].ops;
  }
  return roles;
}

}  // namespace explain
