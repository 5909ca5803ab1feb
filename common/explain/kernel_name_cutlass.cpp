// SPDX-License-Identifier: Apache-2.0
//
// Names that CUTLASS's generator makes, names of its templates, and TensorRT-LLM's generated
// kernels.
#include <algorithm>
#include <cstddef>

#include "explain/kernel_name_grammars.h"
#include "explain/kernel_name_matmul.h"

namespace explain::names {

// cutlass_[80_][wmma_](tensorop|simt)_[OUTPUT_]INSTRUCTION_[relu_][INPUT_]MxN_KxS_LAYOUT_alignN,
// alone, as cutlass::Kernel's argument, or in a mangled name
bool read_cutlass(const Symbol& symbol, KernelName& name) {
  std::size_t begin = symbol.text.find("cutlass_");
  while (begin != std::string::npos && symbol.text.compare(begin, 9, "cutlass__") == 0) {
    begin = symbol.text.find("cutlass_", begin + 8);  // cutlass__5x_cudnn is a namespace
  }
  if (begin == std::string::npos) return false;
  const std::string_view rest = std::string_view(symbol.text).substr(begin);
  const Tokens tokens = split(rest.substr(0, rest.find_first_of("<>(:, ")), '_');
  const auto at = find_instruction(tokens);
  if (at == tokens.end()) return false;
  const Instruction instruction = *read_instruction(*at);
  name.author = contains(symbol.text, "cudnn") ? "CUTLASS in cuDNN" : "CUTLASS";
  set_purpose(instruction.purpose, name);
  std::string output, input;
  for (auto token = tokens.begin() + 1; token != tokens.end(); ++token) {
    const std::string type = dtype_of(*token);
    if (token < at && number_after(*token, "") && name.architecture.empty()) {
      set_architecture(*token, name);
    } else if (!type.empty()) {
      (token < at ? output : input) = type;
    } else if (!name.tile.empty() && name.stages == 0 && is_product(*token, 2)) {
      set_depth(*token, name);
    } else if (token != at) {
      read_common(*token, name);
    }
  }
  set_types(instruction, output, input, name);
  if (std::find(tokens.begin(), tokens.end(), "simt") != tokens.end()) {
    name.tensor_cores = TensorCores::no;
  }
  return true;
}

// cutlass3x_smNN_(tensorop|simt|...)_INSTRUCTION_A_B_SUMS_C_D_MxNxK_[CLUSTER_]0_LAYOUT_alignN_...
bool read_cutlass3(const Symbol& symbol, KernelName& name) {
  const std::size_t begin = symbol.text.find("cutlass3x_");
  if (begin == std::string::npos) return false;
  const std::string_view rest = std::string_view(symbol.text).substr(begin);
  const Tokens tokens = split(rest.substr(0, rest.find_first_of("<>(:, ")), '_');
  name.author = "CUTLASS 3";
  set_purpose("gemm", name);
  name.tensor_cores = TensorCores::yes;
  std::vector<std::string> types;
  std::string shape;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    const std::string_view token = tokens[i];
    const std::size_t by = token.find('x');  // "ue8m0xe4m3": scales and data, block-scaled
    const std::string_view data = token.starts_with("ue") ? token.substr(by + 1) : token;
    if (i == 1) {
      set_architecture(token, name);
    } else if (token == "simt") {
      name.tensor_cores = TensorCores::no;
    } else if (const auto instruction = read_instruction(token)) {
      shape = instruction->shape;
      set_purpose(instruction->purpose, name);
    } else if (contains(token, "fprop") || contains(token, "dgrad") || contains(token, "wgrad")) {
      set_purpose(token, name);
    } else if (shape.empty() && token.starts_with('s') && is_product(token.substr(1), 3)) {
      shape = token.substr(1);  // "s128x128x16", its gemm stands behind
    } else if (name.tile.empty() && !dtype_of(data).empty()) {
      types.push_back(dtype_of(data));
    } else if (token == "scaled") {
      name.details.push_back("block-scaled");
    } else if (token == "2sm") {
      name.details.push_back("pairs of blocks work together");
    } else if (const auto stages = number_after(token, ""); stages && !name.tile.empty()) {
      name.stages = *stages;  // 0 says that there are as many as fit
    } else if (is_product(token, 3) && !name.tile.empty()) {
      name.details.push_back(concat("clusters of ", token, " blocks"));
    } else {
      read_common(token, name);
    }
  }
  if (!types.empty()) name.dtype = types[0];
  if (types.size() > 1 && types[1] != types[0]) name.dtype += " x " + types[1];
  if (types.size() > 2 && types[2] != types[0]) {
    add_first("sums in " + types[2], name);
  }
  if (name.tensor_cores == TensorCores::yes) {
    name.instruction = name.architecture == "sm_90"             ? "wgmma"
                       : name.architecture.starts_with("sm_10") ? "tcgen05"
                                                                : "mma";
    if (!shape.empty()) name.instruction += " " + shape;
  }
  return true;
}

// cutlass::Kernel2<cutlass::gemm::...>, cutlass::device_kernel<...GemmUniversal<...>>: the
// template's types say what is left to say
bool read_cutlass_types(const Symbol& symbol, KernelName& name) {
  if (!symbol.qualified.starts_with("cutlass::") && !symbol.qualified.starts_with("cutlass__5x")) {
    return false;
  }
  const std::string_view text = symbol.text;
  name.author = contains(text, "cudnn") ? "CUTLASS in cuDNN" : "CUTLASS";
  name.family = KernelFamily::other;
  name.operation = concat("kernel ", symbol.function);
  if (contains(text, "ImplicitGemmConvolution") || contains(text, "conv::kernel")) {
    set_purpose("conv", name);
  } else if (contains(text, "gemm::") || contains(text, "Gemm")) {
    set_purpose("gemm", name);
  }
  for (const std::string_view version : {"70", "75", "80", "89", "90", "100", "120"}) {
    if (contains(text, concat("::Sm", version)) || contains(text, concat("MainloopSm", version))) {
      set_architecture(version, name);
    }
  }
  std::size_t first = std::string_view::npos;  // of the types, A's comes first
  // CUTLASS 3: CollectiveMma<MainloopSm90...<STAGES, CLUSTER, ...>, TILE, ELEMENT, ...>
  const std::vector<std::string_view> mma = arguments_of(text, "CollectiveMma");
  if (mma.size() > 2) {
    name.tile = product(integers(mma[1]));
    name.dtype = dtype_of(mma[2]);
  } else if (const auto shape = arguments_of(text, "GemmShape"); shape.size() == 3) {
    for (const std::string_view side : shape) {
      append(name.tile, "x", side);
    }
  }
  if (name.dtype.empty()) {
    for (const std::string_view type : {"float_e4m3_t", "float_e5m2_t", "half_t", "bfloat16_t"}) {
      const std::size_t at = text.find(type);
      if (at < first) name.dtype = dtype_of(type), first = at;
    }
  }
  if (contains(text, "Gmma")) name.instruction = "wgmma";
  const bool has_tensor_cores = contains(text, "Gmma") || contains(text, "Umma") ||
                                contains(text, "OpClassTensorOp") || contains(text, "MmaTensorOp");
  if (has_tensor_cores) name.tensor_cores = TensorCores::yes;
  if (contains(text, "OpClassSimt") || contains(text, "MmaSimt"))
    name.tensor_cores = TensorCores::no;
  return true;
}

// (bmm|gemm)_D_AxB_SUMS_..._tMxNxK_sSTAGES_..._mMMA_..._smNN: TensorRT-LLM's generated kernels
bool read_trtllm_gemm(const Symbol& symbol, KernelName& name) {
  const Tokens tokens = split(symbol.qualified, '_');
  if (tokens.size() < 5 || (tokens[0] != "bmm" && tokens[0] != "gemm") ||
      !contains(symbol.qualified, "_t")) {
    return false;
  }
  // "MxE2m1MxE4m3": two types, Mx says that they share scales by block
  std::string types(tokens[2]);
  std::vector<std::string> inputs;
  for (std::size_t at = 0; at < types.size() && inputs.size() < 2;) {
    std::string found;
    for (const std::size_t length : {8U, 4U}) {
      found = dtype_of(std::string_view(types).substr(at, length));
      if (found.empty()) continue;
      at += length;
      break;
    }
    if (found.empty()) {
      ++at;
    } else {
      inputs.push_back(found);
    }
  }
  if (inputs.empty()) return false;
  name.author = "TensorRT-LLM";
  set_purpose("gemm", name);
  name.tensor_cores = TensorCores::yes;
  if (tokens[0] == "bmm") name.operation += ", batched";
  name.dtype = inputs[0];
  if (inputs.size() > 1 && inputs[1] != inputs[0]) name.dtype += " x " + inputs[1];
  for (const std::string_view token : tokens) {
    const std::string_view sides = token.substr(0, token.find('u'));  // "t128x16x256u2"
    if (sides.starts_with('t') && is_product(sides.substr(1), 3) && name.tile.empty()) {
      name.tile = sides.substr(1);
    } else if (const auto stages = number_after(token, "s"); stages && name.stages == 0) {
      name.stages = *stages;
    } else if (token.starts_with('m') && is_product(token.substr(1), 3)) {
      name.instruction = concat("mma ", token.substr(1));
    } else if (token.starts_with("sm") && integers(token).size() == 1) {
      set_architecture(std::to_string(integers(token)[0]), name);
    }
  }
  return true;
}

}  // namespace explain::names
