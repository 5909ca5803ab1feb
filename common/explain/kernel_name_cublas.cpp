// SPDX-License-Identifier: Apache-2.0
//
// cuBLAS's names and, since the two share their kernels' generators, most of cuDNN's. Their parts
// are joined by "_" and come in a fixed order, some of them optional.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "explain/kernel_name_grammars.h"
#include "explain/kernel_name_matmul.h"

namespace explain::names {
namespace {

// "tst": A and B are bf16 (t), sums in fp32 (s), the result is bf16. "qqtst": A, B, C, sums, D.
void set_nvjet_types(std::string_view letters, KernelName& name) {
  const auto type = [](char letter) -> std::string_view {
    switch (letter) {
      case 't':
        return "bf16";
      case 'q':
        return "fp8 e4m3";
      case 'o':
        return "fp4 e2m1";
      case 'b':
        return "int8";
      default:
        return type_of_letter(letter);
    }
  };
  name.dtype = type(letters[0]);
  const std::string sums(type(letters[letters.size() - 2]));
  const std::string output(type(letters.back()));
  if (!sums.empty() && sums != name.dtype) name.details.push_back("sums in " + sums);
  if (!output.empty() && output != name.dtype) name.details.push_back("result in " + output);
}

// "bf16bf16", "e4m3e5m2f32": data types without anything in between. Empty where there is more.
Tokens split_types(std::string_view token) {
  Tokens types;
  while (!token.empty()) {
    std::size_t size = 0;
    for (std::size_t length = 2; length <= std::min<std::size_t>(5, token.size()); ++length) {
      if (!dtype_of(token.substr(0, length)).empty()) size = length;
    }
    if (size == 0) return {};
    types.push_back(token.substr(0, size));
    token.remove_prefix(size);
  }
  return types;
}

// What multiplies: "tensor16x8x16", "warpgroupsize1x1x1" (Hopper's wgmma), "ffma".
bool read_xmma_cores(std::string_view token, KernelName& name) {
  const auto set = [&name](TensorCores tensor_cores, const std::string& instruction) {
    name.tensor_cores = tensor_cores;
    name.instruction = instruction;
    return true;
  };
  for (const auto& [prefix, instruction] :
       {std::pair("tensor", "mma "), {"sptensor", "sparse mma "}}) {
    if (!token.starts_with(prefix)) continue;
    const std::string_view shape = token.substr(std::string_view(prefix).size());
    if (is_product(shape, 3)) return set(TensorCores::yes, instruction + std::string(shape));
  }
  if (token.starts_with("warpgroupsize")) return set(TensorCores::yes, "wgmma");
  if (token == "hmma" || token == "imma" || token == "dmma") return set(TensorCores::yes, "mma");
  if (token == "ffma") return set(TensorCores::no, "FFMA");
  return false;
}

// The first group is input (or A and B) and output, the second what is multiplied and what sums.
void set_xmma_types(const std::vector<Tokens>& groups, KernelName& name) {
  if (groups.empty()) return;
  const std::string input = dtype_of(groups[0].front()), output = dtype_of(groups[0].back());
  name.dtype = input;
  if (groups[0].size() == 3) name.dtype += " x " + dtype_of(groups[0][1]);
  if (output != input) add_first("result in " + output, name);
  if (groups.size() < 2) return;
  const std::string math = dtype_of(groups[1].front()), sums = dtype_of(groups[1].back());
  if (sums != input) add_first("sums in " + sums, name);
  if (math != input && !name.instruction.empty()) name.instruction += " " + math;
  // Tensor cores take no fp32, so where a name was cut off before its cores, this still tells.
  if (math == "fp32" && groups[1].size() > 1) name.tensor_cores = TensorCores::no;
}

}  // namespace

// nvjet_[smNN_]TYPES_[tf32_]MxN_KxSTAGES_CLUSTER_[2cta_](h|v)_bz_..._TNT, and for sm_120
// nvjet_sm120_TYPES_mma_MxNxK_STAGES_WARPTILE_...
bool read_nvjet(const Symbol& symbol, KernelName& name) {
  Tokens tokens = split(symbol.qualified, '_');
  if (tokens[0] != "nvjet") return false;
  name.author = "cuBLAS";
  set_purpose("gemm", name);
  tokens.erase(tokens.begin());
  if (!tokens.empty() && tokens[0].starts_with("sm")) {
    set_architecture(tokens[0], name);
    tokens.erase(tokens.begin());
  }
  int products = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view token = tokens[i];
    if (i == 0 && (token.size() == 3 || token.size() == 5)) {
      set_nvjet_types(token, name);
    } else if (is_product(token, 3) && name.tile.empty()) {
      name.tile = token;
      if (i + 1 < tokens.size()) name.stages = number_after(tokens[i + 1], "").value_or(0);
    } else if (is_product(token, 2)) {
      ++products;
      if (products == 1) name.tile = token;
      if (products == 2) set_depth(token, name);
      if (products == 3) name.details.push_back(concat("clusters of ", token, " blocks"));
    } else if (token == "2cta") {
      name.details.push_back("pairs of blocks work together");
    } else if (token == "tf32") {
      name.instruction = "tf32";
    } else if (token.size() >= 3 && token.size() <= 4 && i + 1 == tokens.size() &&
               std::all_of(token.begin(), token.end(),
                           [](char c) { return c == 'T' || c == 'N'; })) {
      name.details.push_back(concat("layout ", token));
    } else {
      read_common(token, name);
    }
  }
  name.tensor_cores = TensorCores::yes;
  const std::string math = name.instruction.empty() ? "" : " " + name.instruction;
  if (name.architecture == "sm_90") name.instruction = "wgmma" + math;
  if (name.architecture.starts_with("sm_10")) name.instruction = "tcgen05" + math;
  if (name.architecture.starts_with("sm_12")) name.instruction = "mma" + math;
  return true;
}

// smNN_xmma_PURPOSE_TYPES_MATH_SCALAR_LAYOUT_tilesizeMxNxK_stageS_..._CORES_..._(cublas|cudnn)
bool read_xmma(const Symbol& symbol, KernelName& name) {
  const Tokens tokens = split(symbol.qualified, '_');
  if (tokens.size() < 3 || !tokens[0].starts_with("sm") || tokens[1] != "xmma") return false;
  set_architecture(tokens[0], name);
  std::string purpose;
  std::vector<Tokens> types;
  for (const std::string_view token : Tokens(tokens.begin() + 2, tokens.end())) {
    const bool is_head = name.tile.empty() && !token.starts_with("tilesize");
    if (const Tokens joined = split_types(token); is_head && !joined.empty()) {
      types.push_back(joined);
    } else if (is_head && types.empty()) {
      append(purpose, "_", token);
    } else if (token.starts_with("tilesize")) {
      name.tile = token.substr(8);
    } else if (const auto stages = number_after(token, "stage")) {
      name.stages = *stages;
    } else if (types.empty() && !dtype_of(token).empty()) {
      name.dtype = dtype_of(token);  // syrk and its like write it behind the tile
    } else if (!read_xmma_cores(token, name)) {
      read_common(token, name);
    }
  }
  name.family = KernelFamily::other;
  name.operation = "kernel";
  for (const std::string_view known :
       {"gemm", "conv", "prop", "grad", "syrk", "syr2k", "herk", "her2k", "trmm", "symm", "hemm"}) {
    if (contains(purpose, known)) set_purpose(purpose, name);
  }
  // cuDNN's say so at the end, unless they were cut off; cuBLAS has no convolutions.
  const bool is_cudnn = contains(symbol.qualified, "cudnn");
  name.author = is_cudnn || name.family == KernelFamily::convolution ? "cuDNN" : "cuBLAS";
  set_xmma_types(types, name);
  return true;
}

// ARCHITECTURE_[OUTPUT_]INSTRUCTION_[INPUT_]MxN_..._[stages_KxS_]LAYOUT: kernels in assembly
bool read_assembly(const Symbol& symbol, KernelName& name) {
  static constexpr std::pair<std::string_view, std::string_view> kArchitectures[] = {
      {"maxwell", "sm_50"}, {"pascal", "sm_60"}, {"volta", "sm_70"},  {"turing", "sm_75"},
      {"ampere", "sm_80"},  {"ada", "sm_89"},    {"hopper", "sm_90"},
  };
  Tokens tokens = split(symbol.qualified, '_');
  // cuDNN 8 wrote its library's part in front: cudnn_infer_volta_scudnn_...
  if (tokens.size() > 2 && tokens[0] == "cudnn" && (tokens[1] == "infer" || tokens[1] == "train")) {
    tokens.erase(tokens.begin(), tokens.begin() + 2);
  }
  const auto architecture =
      std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                   [&](const auto& known) { return known.first == tokens[0]; });
  if (architecture == std::end(kArchitectures)) return false;
  const auto at = find_instruction(tokens);
  if (at == tokens.end()) return false;
  const Instruction instruction = *read_instruction(*at);
  const auto position = static_cast<std::size_t>(at - tokens.begin());
  const std::string output = position > 1 ? dtype_of(tokens[1]) : "";
  const std::string input = position + 1 < tokens.size() ? dtype_of(tokens[position + 1]) : "";
  name.architecture = architecture->second;
  name.author = instruction.purpose == "cudnn" ? "cuDNN" : "cuBLAS";
  set_purpose(instruction.purpose, name);
  for (const std::string_view token : tokens) {
    if (token == "wgrad" || token == "dgrad" || token == "fprop") set_purpose(token, name);
  }
  set_types(instruction, output, input, name);
  for (std::size_t i = position + 1; i < tokens.size(); ++i) {
    if (tokens[i] == "stages" && i + 1 < tokens.size() && is_product(tokens[i + 1], 2)) {
      set_depth(tokens[++i], name);
    } else {
      read_common(tokens[i], name);
    }
  }
  return true;
}

// cuBLAS's small kernels in C++: their parameters' types give them away
bool read_cublas_templates(const Symbol& symbol, KernelName& name) {
  using enum KernelFamily;
  struct Function {
    std::string_view part;
    bool is_unique;  // nobody else names a kernel so; for the others a parameter must be cuBLAS's
    KernelFamily family;
    std::string_view operation;
  };
  static constexpr Function kFunctions[] = {
      {"splitKreduce", true, reduce, "sum of the parts of a matrix multiplication split over K"},
      {"gemvNSP", true, matmul, "matrix times vector"},
      {"gemvx::kernel", true, matmul, "matrix times vector"},
      {"gemv", false, matmul, "matrix times vector"},
      {"gemmSN", true, matmul, "matrix multiplication, one side small"},
      {"gemmk1", true, matmul, "matrix multiplication, K = 1"},
      {"gemm_largek", true, matmul, "matrix multiplication, large K"},
      {"gemm_kernel1x1", false, matmul, "matrix multiplication, one element"},
      {"dot_kernel", false, reduce, "dot product"},
      {"reduce_1Block", false, reduce, "sum of a dot product's parts"},
      {"scal_kernel", false, elementwise, "vector times scalar"},
      {"axpy_kernel", false, elementwise, "scalar times vector plus vector"},
      {"trsv", false, matmul, "triangular solve"},
      {"trsm", false, matmul, "triangular solve"},
      {"globalKernel", false, elementwise, "epilogue of a matrix multiplication"},
  };
  const bool is_cublas = contains(symbol.text, "cublas");
  const auto function =
      std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const Function& known) {
        return contains(symbol.qualified, known.part) && (known.is_unique || is_cublas);
      });
  if (function == std::end(kFunctions)) return false;
  name.author = "cuBLAS";
  name.family = function->family;
  name.operation = function->operation;
  name.tensor_cores = TensorCores::no;
  // The first types are those of indices, where they are integers.
  for (const std::string_view argument : symbol.arguments) {
    if (!name.dtype.empty() && !name.dtype.starts_with("int")) break;
    if (const std::string type = dtype_of(argument); !type.empty()) name.dtype = type;
  }
  if (symbol.function.starts_with("sgemm")) name.dtype = "fp32";
  if (symbol.function.starts_with("dgemm")) name.dtype = "fp64";
  return true;
}

}  // namespace explain::names
