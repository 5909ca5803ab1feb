// SPDX-License-Identifier: Apache-2.0
//
// What the name of a GPU operation tells: names are fingerprints, since every library follows a
// scheme of its own.
//
//   explain::KernelName name = explain::decode("ampere_sgemm_128x64_nn");
//   name.family;        // KernelFamily::matmul
//   name.sentence;      // "cuBLAS: matrix multiplication, fp32, for Ampere (sm_80), tile 128x64,
//   ..."
//
// One small grammar per scheme (kernel_name_*.cpp), so that names never seen before decode as far
// as their scheme goes. A field stays empty where the name does not say; a name of no known scheme
// has the family `unknown` and says so. Names may be demangled (by Kineto, nsys or ncu), mangled,
// or cut off. All texts are safe to print on a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace explain {

enum class KernelFamily : std::uint8_t {
  unknown,
  matmul,
  convolution,
  attention,
  elementwise,
  reduce,
  softmax,
  normalization,
  copy,
  fill,
  triu_tril,
  index,  // gather, scatter, index, embedding look-up
  concatenate,
  sort,
  scan,
  random,
  pooling,
  optimizer,
  layout,  // transposes and changes between NCHW and NHWC
  quantize,
  collective,
  wait,
  other,  // the author is known, the work is not told apart further
};

[[nodiscard]] std::string_view to_string(KernelFamily family);

enum class TensorCores : std::uint8_t { unknown, no, yes };

[[nodiscard]] std::string_view to_string(TensorCores tensor_cores);

struct KernelName {
  KernelFamily family = KernelFamily::unknown;
  std::string author;        // "cuBLAS", "PyTorch ATen", ...; "" where unknown
  std::string operation;     // "matrix multiplication", "mul by a scalar", "all-reduce sum"
  std::string architecture;  // that the kernel was built for: "sm_90"; not that of the device
  std::string dtype;         // of the input: "bf16", "fp32", "fp8 e4m3"
  std::string tile;          // of one block: "256x128x64", MxNxK; attention: queries x keys
  int stages = 0;            // of the load pipeline; 0 where the name does not say
  std::string instruction;   // "mma 16x8x16", "wgmma", "FFMA"
  TensorCores tensor_cores = TensorCores::unknown;
  std::vector<std::string> details;  // what else the name says, each a few words
  std::string sentence;              // all of the above in one line
  std::string short_name;            // for a figure: "matmul bf16 256x128x64"
};

[[nodiscard]] KernelName decode(std::string_view name);

// "Hopper" for "sm_90"; "" for what is not known.
[[nodiscard]] std::string_view architecture_name(std::string_view architecture);

}  // namespace explain
