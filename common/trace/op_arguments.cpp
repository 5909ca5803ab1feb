// SPDX-License-Identifier: Apache-2.0
#include "trace/op_arguments.h"

#include <simdjson.h>

#include <cstddef>
#include <functional>
#include <numeric>

namespace trace {
namespace {

namespace dom = simdjson::dom;

// The elements of a JSON list (an element, or what a parser returned); none where it is something
// else. They live as long as the parser.
template <typename Json>
std::vector<dom::element> elements(Json json) {
  dom::array array;
  if (json.get(array) != simdjson::SUCCESS) return {};
  return {array.begin(), array.end()};
}

template <typename Json>
std::vector<std::int64_t> integers(Json json) {
  std::vector<std::int64_t> result;
  for (const dom::element element : elements(json)) {
    std::int64_t number = 0;
    if (element.get(number) != simdjson::SUCCESS) return {};
    result.push_back(number);
  }
  return result;
}

std::vector<std::string> strings(std::string_view json) {
  dom::parser parser;
  std::vector<std::string> result;
  for (const dom::element element : elements(parser.parse(simdjson::padded_string(json)))) {
    std::string_view text;
    if (element.get(text) != simdjson::SUCCESS) text = {};
    result.emplace_back(text);
  }
  return result;
}

// torch multiplies in 64 bits and lets them wrap.
std::uint64_t product(const std::vector<std::int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{1}, std::multiplies<>());
}

std::uint64_t matrix_flops(const std::vector<std::int64_t>& left,
                           const std::vector<std::int64_t>& right, bool is_batched) {
  if (left.empty()) return 0;
  const std::int64_t batch = is_batched ? left.front() : 1;
  if (left.back() == 0 || batch == 0) return 0;
  const std::uint64_t rows = product(left) / std::uint64_t(left.back()) / std::uint64_t(batch);
  return 2 * rows * product(right);
}

// How often a kernel fits along one dimension. Signed division, which cuts toward zero, as in
// torch; the rest in unsigned, since a file may hold absurd numbers.
std::uint64_t fits(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                   std::int64_t padding, std::int64_t dilation) {
  const std::uint64_t reach = std::uint64_t(dilation) * (std::uint64_t(kernel) - 1) + 1;
  const std::uint64_t room = std::uint64_t(size) + 2 * std::uint64_t(padding) - reach;
  return std::uint64_t(std::int64_t(room) / stride) + 1;
}

// aten::conv2d(input, weight, bias, stride, padding, dilation, groups). Anything else than two
// numbers for stride, padding and dilation (padding = "same", a 3-D input) counts nothing.
std::uint64_t conv2d_flops(const Shapes& dims, const std::vector<std::string>& concrete) {
  if (concrete.size() < 7) return 0;
  dom::parser parser;
  const auto numbers = [&](std::size_t argument) {
    return integers(parser.parse(simdjson::padded_string(concrete[argument])));
  };
  const std::vector<std::int64_t> stride = numbers(3);
  const std::vector<std::int64_t> padding = numbers(4);
  const std::vector<std::int64_t> dilation = numbers(5);
  std::int64_t groups = 0;
  if (parser.parse(simdjson::padded_string(concrete[6])).get(groups) != simdjson::SUCCESS) return 0;
  const std::vector<std::int64_t>& input = dims[0];
  const std::vector<std::int64_t>& weight = dims[1];
  if (input.size() != 4 || weight.size() != 4 || groups == 0) return 0;
  if (stride.size() != 2 || padding.size() != 2 || dilation.size() != 2) return 0;
  if (stride[0] <= 0 || stride[1] <= 0) return 0;
  std::uint64_t result = 2 * std::uint64_t(input[0]);
  for (std::size_t i = 0; i < 2; ++i)
    result *= fits(input[i + 2], weight[i + 2], stride[i], padding[i], dilation[i]);
  result *= std::uint64_t(weight[2]) * std::uint64_t(weight[3]);
  result *= std::uint64_t(input[1]) * std::uint64_t(weight[0]);
  return result / std::uint64_t(groups);
}

}  // namespace

Shapes table_shapes(std::string_view input_dims) {
  Shapes result;
  dom::parser parser;
  for (const dom::element dims : elements(parser.parse(simdjson::padded_string(input_dims))))
    result.push_back(integers(dims));
  return result;
}

Shapes list_shapes(std::string_view input_dims, std::size_t argument) {
  Shapes result;
  dom::parser parser;
  const auto arguments = elements(parser.parse(simdjson::padded_string(input_dims)));
  if (argument >= arguments.size()) return result;
  for (const dom::element dims : elements(arguments[argument])) result.push_back(integers(dims));
  return result;
}

std::string shapes_text(const Shapes& shapes) {
  std::string result = "[";
  for (const std::vector<std::int64_t>& shape : shapes) {
    result += result.size() == 1 ? "[" : ", [";
    for (std::size_t i = 0; i < shape.size(); ++i)
      result += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    result += ']';
  }
  return result + ']';
}

std::int64_t flops(std::string_view name, const Trace& trace, const Arguments& arguments) {
  const bool is_convolution = name == "aten::conv2d";
  const bool is_elementwise = name == "aten::mul" || name == "aten::add";
  const bool adds_product = name == "aten::addmm" || name == "aten::baddbmm";
  const bool is_batched = name == "aten::bmm" || name == "aten::baddbmm";
  if (!is_convolution && !is_elementwise && !adds_product && !is_batched && name != "aten::mm")
    return 0;

  const Shapes dims = table_shapes(trace.text(arguments.input_dims));
  const std::vector<std::string> types = strings(trace.text(arguments.input_types));
  const std::size_t tensors = is_elementwise ? 1 : adds_product ? 3 : 2;
  for (std::size_t i = 0; i < tensors; ++i) {
    const bool is_tensor = i < types.size() && i < dims.size() && !types[i].empty() &&
                           types[i] != "Scalar" && types[i] != "ScalarList" &&
                           types[i] != "TensorList";
    if (!is_tensor) return 0;
  }
  std::uint64_t result = 0;
  if (is_convolution) {
    result = conv2d_flops(dims, strings(trace.text(arguments.concrete_inputs)));
  } else if (is_elementwise) {
    result = product(dims[0]);
  } else {
    result = matrix_flops(dims[tensors - 2], dims[tensors - 1], is_batched);
  }
  return static_cast<std::int64_t>(result);
}

}  // namespace trace
