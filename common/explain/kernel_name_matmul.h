// SPDX-License-Identifier: Apache-2.0
//
// What the names of matrix multiplications and convolutions have in common, whoever wrote them: the
// instruction's part ("s16816gemm"), the data types around it, tile, stages, layout.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/kernel_name.h"

namespace explain::names {

using Tokens = std::vector<std::string_view>;  // of a name, between its "_"

// "s16816gemm", "sgemm", "s1688tf32gemm", "h884cudnn", "s64x128x16gemm", "i8816wgrad".
struct Instruction {
  char accumulator = 0;      // s fp32, h fp16, d fp64, i int32, c and z complex
  std::string shape;         // "16x8x16"; "" for CUDA cores
  std::string math;          // "tf32", where what is multiplied is not of the data's type
  std::string_view purpose;  // "gemm", "fprop", ...
};
[[nodiscard]] std::optional<Instruction> read_instruction(std::string_view token);
[[nodiscard]] Tokens::const_iterator find_instruction(const Tokens& tokens);

[[nodiscard]] std::string_view type_of_letter(char letter);  // "fp32" for s, ...

// "gemm", "fprop", "sparse_gemm", ...: family and operation.
void set_purpose(std::string_view purpose, KernelName& name);

// Data type, instruction and cores, from the data types that stand before and behind the
// instruction: of the output and of the input. Either may be "".
void set_types(const Instruction& instruction, const std::string& output, const std::string& input,
               KernelName& name);

void set_architecture(std::string_view token, KernelName& name);  // "sm80", "80"

// "64x3": 64 of K at a time, in 3 stages.
void set_depth(std::string_view token, KernelName& name);

// What most schemes share: tile, split of K, epilogue, alignment, layout. Other tokens are passed
// over.
void read_common(std::string_view token, KernelName& name);

void add_first(std::string detail, KernelName& name);

}  // namespace explain::names
