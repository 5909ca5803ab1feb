// SPDX-License-Identifier: Apache-2.0
#include "explain/kernel_name_matmul.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "explain/kernel_name_parts.h"

namespace explain::names {
namespace {

// "16816" is 16x8x16: instructions have sides of 8, 16, 32 or 64 and a depth that is a power of
// two.
std::string shape_of(std::string_view digits) {
  for (const std::string_view m : {"8", "16", "32", "64"}) {
    for (const std::string_view n : {"8", "16", "32", "64"}) {
      const std::size_t used = m.size() + n.size();
      if (digits.size() <= used || !digits.starts_with(m) ||
          !digits.substr(m.size()).starts_with(n)) {
        continue;
      }
      for (const std::string_view k : {"4", "8", "16", "32", "64", "96", "128", "256"}) {
        if (digits.substr(used) == k)
          return product(integers(std::string(m) + ' ' + std::string(n) + ' ' + std::string(k)));
      }
    }
  }
  return "";
}

bool is_layout(std::string_view token) {
  return (token.size() == 2 || token.size() == 3) &&
         std::all_of(token.begin(), token.end(), [](char c) {
           return contains("ntch", {&c, 1});
         });
}

}  // namespace

std::optional<Instruction> read_instruction(std::string_view token) {
  Instruction instruction;
  for (const std::string_view purpose :
       {"spgemm", "gemm", "cudnn", "fprop", "dgrad", "wgrad", "implicit"}) {
    if (!token.ends_with(purpose)) continue;
    instruction.purpose = purpose;
    token.remove_suffix(purpose.size());
    break;
  }
  if (instruction.purpose.empty() || token.empty()) return std::nullopt;
  if (token.starts_with('g') && token.size() > 1) token.remove_prefix(1);  // Gauss' complex trick
  instruction.accumulator = token.front();
  if (!contains("shdicz", token.substr(0, 1))) return std::nullopt;
  token.remove_prefix(1);
  const auto is_shape = [](char c) { return (c >= '0' && c <= '9') || c == 'x'; };
  const std::size_t digits = static_cast<std::size_t>(
      std::find_if_not(token.begin(), token.end(), is_shape) - token.begin());
  const std::string_view shape = token.substr(0, digits);
  instruction.shape = is_product(shape, 3) ? std::string(shape) : shape_of(shape);
  if (!shape.empty() && instruction.shape.empty()) return std::nullopt;
  token.remove_prefix(digits);
  instruction.math = dtype_of(token);
  if (!token.empty() && instruction.math.empty()) return std::nullopt;
  return instruction;
}

Tokens::const_iterator find_instruction(const Tokens& tokens) {
  return std::find_if(tokens.begin(), tokens.end(),
                      [](std::string_view token) { return read_instruction(token).has_value(); });
}

std::string_view type_of_letter(char letter) {
  switch (letter) {
    case 's':
      return "fp32";
    case 'h':
      return "fp16";
    case 'd':
      return "fp64";
    case 'i':
      return "int32";
    case 'c':
      return "complex64";
    case 'z':
      return "complex128";
    default:
      return "";
  }
}

void set_purpose(std::string_view purpose, KernelName& name) {
  const bool is_convolution = purpose == "cudnn" || contains(purpose, "prop") ||
                              contains(purpose, "grad") || contains(purpose, "conv") ||
                              purpose == "implicit";
  name.family = is_convolution ? KernelFamily::convolution : KernelFamily::matmul;
  name.operation = is_convolution ? "convolution" : "matrix multiplication";
  if (contains(purpose, "fprop")) name.operation = "convolution, forward";
  if (contains(purpose, "dgrad")) name.operation = "convolution, gradient of its input";
  if (contains(purpose, "wgrad")) name.operation = "convolution, gradient of its weights";
  if (contains(purpose, "spgemm") || contains(purpose, "sparse_gemm"))
    name.operation = "matrix multiplication, 2:4 sparse";
  for (const std::string_view triangle :
       {"syrk", "syr2k", "herk", "her2k", "trmm", "symm", "hemm"}) {
    if (contains(purpose, triangle)) name.operation += concat(" (", triangle, ")");
  }
}

void set_types(const Instruction& instruction, const std::string& output, const std::string& input,
               KernelName& name) {
  const std::string accumulator(type_of_letter(instruction.accumulator));
  name.dtype = !input.empty() ? input : !output.empty() ? output : accumulator;
  name.tensor_cores = instruction.shape.empty() ? TensorCores::no : TensorCores::yes;
  std::string math = instruction.math;
  // Tensor cores take no fp32: what has 8 of depth is TF32's instruction.
  if (math.empty() && name.dtype == "fp32" && instruction.shape == "16x8x8") math = "tf32";
  if (!instruction.shape.empty()) {
    name.instruction = "mma " + instruction.shape + (math.empty() ? "" : " " + math);
  }
  if (accumulator != name.dtype && !accumulator.empty()) {
    name.details.push_back("sums in " + accumulator);
  }
}

void set_architecture(std::string_view token, KernelName& name) {
  if (token.starts_with("sm")) token.remove_prefix(2);
  if (!token.empty()) name.architecture = concat("sm_", token);
}

void set_depth(std::string_view token, KernelName& name) {
  const std::vector<int> numbers = integers(token);
  if (!name.tile.empty()) append(name.tile, "x", std::to_string(numbers[0]));
  name.stages = numbers[1];
}

void read_common(std::string_view token, KernelName& name) {
  if (name.tile.empty() && (is_product(token, 2) || is_product(token, 3))) {
    name.tile = token;
  } else if (token.starts_with("sliced") && is_product(token.substr(6), 2)) {
    name.details.push_back(concat("K sliced over ", token.substr(8), " warps"));
  } else if (token == "relu" || token == "gelu" || token == "bias") {
    name.details.push_back(concat("epilogue ", token));
  } else if (token == "splitK" || token == "split") {
    name.details.push_back("K split over blocks");
  } else if (token == "winograd") {
    name.details.push_back("Winograd");
  } else if (const auto alignment = number_after(token, "align")) {
    name.details.push_back(concat("aligned to ", std::to_string(*alignment), " elements"));
  } else if (is_layout(token)) {
    name.details.push_back(concat("layout ", token));
  }
}

void add_first(std::string detail, KernelName& name) {
  name.details.insert(name.details.begin(), std::move(detail));
}

}  // namespace explain::names
