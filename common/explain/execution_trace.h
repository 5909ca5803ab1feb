// SPDX-License-Identifier: Apache-2.0
//
// Reads an Execution Trace: what torch's ExecutionTraceObserver writes, every op of a run with the
// tensors that it took and returned. Plain or gzip, from a file, standard input ("-") or memory;
// the "chakra" schemas (1.0.2 and newer) and the older flat ones of PyTorch 2.0.
//
//   explain::ExecutionTrace trace = explain::read_execution_trace("8_16_1024_64_naive.graph.json");
//   for (const explain::ExecutionNode& node : trace.nodes)
//     std::cout << node.name << ' ' << node.outputs.size() << '\n';
//
// The file is parsed whole, so it must be whole, below 4 GB and nested less than 1024 levels deep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace explain {

// A tensor as one op saw it. Both ids are addresses that the observer numbered, and are reused when
// an object dies: they say which tensor it is only at that moment.
struct TensorUse {
  std::int64_t tensor = 0;
  std::int64_t storage = 0;  // 0 = it has none, or the file does not say
  std::int64_t item_size = 0;
  std::string dtype{};                  // "fp32"; LibTorch's word where there is no short one
  std::vector<std::int64_t> shape{};    // [] is a scalar
  std::vector<std::int64_t> strides{};  // elements; none where the file does not say
  std::size_t argument = 0;             // its place among the op's arguments, or results

  // Of its elements, where those that a broadcast repeats count once. Absurd sizes wrap.
  [[nodiscard]] std::int64_t bytes() const;
};

// An op, an annotation or a thread.
struct ExecutionNode {
  std::int64_t id = 0;
  std::int64_t parent = 0;  // an id; where it is not less than `id`, there is no parent
  std::string name;
  std::string schema;             // "aten::add_.Tensor(Tensor(a!) self, ...", "" where unknown
  bool is_annotation = false;     // record_function and what the observer adds itself
  bool returns_anything = false;  // tensors or numbers; false where results are not recorded
  std::vector<TensorUse> inputs, outputs;  // also those in lists
};

struct ExecutionTrace {
  std::vector<ExecutionNode> nodes;  // by id, which is the order of the calls
  std::size_t dropped = 0;           // nodes without id or name, or whose id an earlier one has
};

// Throw trace::ReadError with a sentence that says what the file is instead.
[[nodiscard]] ExecutionTrace read_execution_trace(const std::filesystem::path& path);
[[nodiscard]] ExecutionTrace parse_execution_trace(std::string_view text);

}  // namespace explain
