// SPDX-License-Identifier: Apache-2.0
//
// Which nodes of an Execution Trace are ops of the graph: its leaves, as far as they compute. Which
// op does the work and which only calls others is not in the file; what each did to memory is.
//
//   const std::vector<explain::OpRole> roles = explain::op_roles(trace.nodes);
//   if (roles[i].is_leaf) add_op(trace.nodes[i]);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explain/execution_trace.h"

namespace explain {

inline constexpr std::size_t kNoNode = SIZE_MAX;

struct OpRole {
  std::size_t parent = kNoNode;  // an index, less than the node's own
  std::size_t last = 0;          // the last node below it, or itself
  bool is_view = false;          // returns memory that it was given, and writes nothing
  bool is_allocation = false;    // returns memory with nothing in it
  bool is_work = false;          // writes tensors, or makes a number of one
  bool has_work_below = false;   // more than copies and fills, which an op makes for itself
  bool is_leaf = false;
  bool is_below_leaf = false;
  std::size_t ops = 0;                 // leaves below it, and itself
  std::vector<std::size_t> mutated{};  // arguments that it writes into, ascending
  std::string with{};                  // of a leaf: OpGraph::Node::with
};

// Linear in the number of nodes, but for the look-up of parents.
[[nodiscard]] std::vector<OpRole> op_roles(std::span<const ExecutionNode> nodes);

// Copies or converts a tensor, where it does anything at all.
[[nodiscard]] bool is_copy(std::string_view name);

// True where the op takes a tensor for its shape alone: ones_like, new_zeros.
[[nodiscard]] bool reads_only_shapes(std::string_view name);

// Whose memory it is: the storage, or the tensor where no storage is known.
struct MemoryKey {
  std::int64_t storage = 0, tensor = 0;
  auto operator<=>(const MemoryKey&) const = default;
};
[[nodiscard]] MemoryKey memory_of(const TensorUse& use);

}  // namespace explain
