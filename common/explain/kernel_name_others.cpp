// SPDX-License-Identifier: Apache-2.0
//
// Names that are neither matrix multiplications, attention nor PyTorch's own: copies, collectives,
// Inductor, cuDNN's templates, CUB, ROCm, and libraries that are told by their namespace.
#include <algorithm>
#include <cstddef>

#include "explain/kernel_name_grammars.h"

namespace explain::names {
namespace {

using Tokens = std::vector<std::string_view>;

// "a_b" is found in "_a_b_c" but not in "xa_b": whole words only.
bool has_words(std::string_view text, std::string_view part) {
  return contains(concat(" ", text, " "), concat(" ", part, " "));
}

}  // namespace

KernelFamily family_of_words(std::string_view text) {
  using enum KernelFamily;
  // In this order: "fused add rms norm" is a normalization, "embedding backward" an index kernel.
  static constexpr std::pair<std::string_view, KernelFamily> kWords[] = {
      {"attention", attention},
      {"attn", attention},
      {"fmha", attention},
      {"mha", attention},
      {"mla", attention},
      {"softmax", softmax},
      {"soft max", softmax},
      {"allreduce", collective},
      {"all reduce", collective},
      {"allgather", collective},
      {"all gather", collective},
      {"reduce scatter", collective},
      {"all to all", collective},
      {"alltoall", collective},
      {"cross device reduce", collective},
      {"norm", normalization},
      {"layernorm", normalization},
      {"rmsnorm", normalization},
      {"batchnorm", normalization},
      {"gamma beta", normalization},
      {"moments", normalization},
      {"gemm", matmul},
      {"tinygemm", matmul},
      {"gemv", matmul},
      {"matmul", matmul},
      {"mat mul", matmul},
      {"bmm", matmul},
      {"convolution", convolution},
      {"conv", convolution},
      {"pool", pooling},
      {"pooling", pooling},
      {"unpooling", pooling},
      {"adam", optimizer},
      {"adagrad", optimizer},
      {"sgd", optimizer},
      {"quant", quantize},
      {"quantize", quantize},
      {"dequant", quantize},
      {"sort", sort},
      {"topk", sort},
      {"top k", sort},
      {"scan", scan},
      {"cumsum", scan},
      {"transpose", layout},
      {"permute", layout},
      {"embedding", index},
      {"gather", index},
      {"scatter", index},
      {"index", index},
      {"select", index},
      {"copy", copy},
      {"memcpy", copy},
      {"cache", copy},
      {"fill", fill},
      {"memset", fill},
      {"dropout", random},
      {"random", random},
      {"rotary", elementwise},
      {"rope", elementwise},
      {"silu", elementwise},
      {"gelu", elementwise},
      {"activation", elementwise},
      {"act and mul", elementwise},
      {"reduce", reduce},
      {"spin", wait},
  };
  for (const auto& [part, family] : kWords) {
    if (has_words(text, part)) return family;
  }
  return other;
}

// What CUPTI and Kineto call the driver's copies; on AMD, what HIP calls them
bool read_memory_operation(const Symbol& symbol, KernelName& name) {
  static constexpr std::pair<std::string_view, std::string_view> kDirections[] = {
      {"HtoD", "host to device"},         {"DtoH", "device to host"},
      {"DtoD", "device to device"},       {"PtoP", "device to another device"},
      {"HtoH", "host to host"},           {"HostToDevice", "host to device"},
      {"DeviceToHost", "device to host"}, {"DeviceToDevice", "device to device"},
  };
  const std::string_view raw = symbol.raw;
  const bool is_rocm =
      raw.starts_with("__amd_rocclr_") || raw.starts_with("Copy") || raw.starts_with("FillBuffer");
  const bool is_copy = raw.starts_with("Memcpy") || raw.starts_with("__amd_rocclr_copy");
  const bool is_set = raw.starts_with("Memset") || raw.starts_with("FillBuffer") ||
                      raw.starts_with("__amd_rocclr_fill");
  std::string_view direction;
  for (const auto& [part, text] : kDirections) {
    if (contains(raw, part)) direction = text;
  }
  if (!is_copy && !is_set && !(raw.starts_with("Copy") && !direction.empty())) return false;
  name.author = is_rocm ? "HIP runtime" : "CUDA driver";
  name.family = is_set ? KernelFamily::fill : KernelFamily::copy;
  name.operation = is_set ? "memset" : "memcpy";
  if (!direction.empty()) name.operation += concat(" ", direction);
  name.tensor_cores = TensorCores::no;
  // Pageable memory makes the driver copy by way of a buffer of its own, and the call waits.
  if (contains(raw, "Pageable")) name.details.push_back("pageable host memory");
  if (contains(raw, "Pinned")) name.details.push_back("pinned host memory");
  return true;
}

// nccl[Dev|SymkDev]Kernel_COLLECTIVE_[OPERATION_TYPE_]ALGORITHM_PROTOCOL; before 2.19 the operation
// stood behind
bool read_nccl(const Symbol& symbol, KernelName& name) {
  Tokens tokens = split(symbol.qualified, '_');
  if (!tokens[0].starts_with("nccl") || !tokens[0].ends_with("Kernel")) return false;
  static constexpr std::pair<std::string_view, std::string_view> kCollectives[] = {
      {"AllReduce", "all-reduce"}, {"AllGather", "all-gather"},
      {"Broadcast", "broadcast"},  {"ReduceScatter", "reduce-scatter"},
      {"Reduce", "reduce"},        {"SendRecv", "send and receive"},
      {"AllToAll", "all-to-all"},  {"AlltoAll", "all-to-all"},
  };
  name.author = "NCCL";
  name.family = KernelFamily::collective;
  name.operation = "kernel of several collectives";
  name.tensor_cores = TensorCores::no;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    const std::string_view token = tokens[i];
    const std::string lower = words(token);
    if (i == 1) {
      for (const auto& [part, text] : kCollectives) {
        if (token == part) name.operation = text;
      }
    } else if (lower == "sum" || lower == "prod" || lower == "min" || lower == "max" ||
               lower == "avg" || lower == "min max" || lower == "pre mul sum" ||
               lower == "sum post div") {
      if (name.operation != "send and receive") name.operation += " " + lower;
    } else if (token == "RING" || token == "TREE" || token == "NVLS" || token == "COLLNET" ||
               token == "PAT") {
      name.details.push_back(token == "NVLS" ? "reduced by NVLink switches" : lower);
    } else if (token == "LL" || token == "LL128" || token == "SIMPLE") {
      name.details.push_back(concat("protocol ", token));
    } else if (const std::string type = dtype_of(token); !type.empty() && name.dtype.empty()) {
      name.dtype = type;
    }
  }
  // "int8_t" and "__nv_bfloat16" hold the separator themselves.
  if (name.dtype.empty() && contains(symbol.qualified, "int8_t")) name.dtype = "int8";
  if (tokens[0] == "ncclSymkDevKernel" || tokens[0] == "ncclSymDevKernel") {
    name.details.push_back("symmetric memory");
  }
  return true;
}

// triton_KIND_fused_OPS_NUMBER: what TorchInductor wrote in Triton. The ops' names hold "_", too,
// so they stay as they stand.
bool read_inductor(const Symbol& symbol, KernelName& name) {
  Tokens tokens = split(symbol.qualified, '_');
  if (tokens[0] != "triton" || tokens.size() < 2) return false;
  name.author = "Triton/Inductor";
  name.family = KernelFamily::other;
  name.operation = "generated kernel";
  const std::string_view kind = tokens[1];
  std::string_view ops = symbol.qualified;
  const std::size_t fused = ops.find("_fused_");
  ops = fused == std::string_view::npos ? std::string_view() : ops.substr(fused + 7);
  while (!ops.empty() && ((ops.back() >= '0' && ops.back() <= '9') || ops.back() == '_')) {
    ops.remove_suffix(1);
  }
  if (kind == "poi" || kind == "for") {
    name.family = KernelFamily::elementwise;
    name.operation = kind == "poi" ? "fused pointwise ops" : "foreach over many tensors";
  } else if (kind == "red" || kind == "per" || kind == "mix" || kind == "spl") {
    name.family = kind == "spl" ? KernelFamily::scan : KernelFamily::reduce;
    name.operation = kind == "red"   ? "fused reduction, in a loop"
                     : kind == "per" ? "fused reduction, rows kept in registers"
                     : kind == "mix" ? "fused reductions of several kinds"
                                     : "fused scan";
    if (contains(ops, "softmax")) name.family = KernelFamily::softmax;
  } else if (kind == "tem" || kind == "mm" || kind == "bmm") {
    name.operation = "from a template";
    const std::string text = words(ops.empty() ? symbol.qualified : ops);
    for (const std::string_view product : {"mm", "bmm", "addmm", "baddbmm", "scaled mm"}) {
      if (has_words(text, product)) name.family = KernelFamily::matmul;
    }
    if (contains(text, "attention")) name.family = KernelFamily::attention;
    if (contains(text, "convolution")) name.family = KernelFamily::convolution;
    if (name.family == KernelFamily::matmul)
      name.operation = "matrix multiplication from a template";
    if (name.family == KernelFamily::attention) name.operation = "attention from a template";
    if (name.family == KernelFamily::convolution) name.operation = "convolution from a template";
  }
  if (!ops.empty()) name.details.push_back(concat("of ", ops));
  return true;
}

// cuDNN's kernels in C++, by namespace or by the functions' names of older versions
bool read_cudnn_templates(const Symbol& symbol, KernelName& name) {
  static constexpr std::string_view kFunctions[] = {
      "implicit_convolve_sgemm",
      "explicit_convolve_sgemm",
      "precomputed_convolve_sgemm",
      "wgrad_alg",
      "dgrad_engine",
      "dgrad_alg",
      "nchwToNhwcKernel",
      "nhwcToNchwKernel",
      "fft2d_r2c",
      "fft2d_c2r",
      "conv2d_c1_k1",
      "elemWiseRNNcell",
      "op_generic_tensor_kernel",
  };
  const std::string_view function = symbol.function;
  const bool is_known = std::any_of(std::begin(kFunctions), std::end(kFunctions),
                                    [&](std::string_view f) { return function.starts_with(f); });
  const bool is_cudnn =
      symbol.qualified.starts_with("cudnn::") || symbol.qualified.starts_with("cask_cudnn") ||
      symbol.qualified.starts_with("cask__5x_cudnn") || symbol.qualified.starts_with("cudnn_ops") ||
      contains(symbol.text, "cudnnTensor");
  if (!is_known && !is_cudnn) return false;
  name.author = "cuDNN";
  const std::string text = words(symbol.qualified);
  name.operation = std::string(function);
  name.family = family_of_words(text);
  name.dtype = first_dtype(symbol.arguments);
  if (contains(text, "sgemm")) name.dtype = "fp32", name.tensor_cores = TensorCores::no;
  const auto set = [&name](KernelFamily family, std::string_view operation) {
    name.family = family;
    name.operation = operation;
  };
  if (function.starts_with("bn_")) {
    const bool is_backward = function.starts_with("bn_bw");
    set(KernelFamily::normalization, is_backward ? "batch norm backward" : "batch norm forward");
  } else if (contains(text, "nchw to nhwc")) {
    set(KernelFamily::layout, "NCHW to NHWC");
  } else if (contains(text, "nhwc to nchw")) {
    set(KernelFamily::layout, "NHWC to NCHW");
  } else if (contains(text, "wgrad")) {
    set(KernelFamily::convolution, "convolution, gradient of its weights");
  } else if (contains(text, "dgrad")) {
    set(KernelFamily::convolution, "convolution, gradient of its input");
  } else if (contains(text, "convolve") || contains(text, "winograd") || contains(text, "im2col") ||
             contains(text, "fft2d") || contains(text, "offsets")) {
    const bool is_part =
        contains(text, "winograd") || contains(text, "im2col") || contains(text, "offsets");
    set(KernelFamily::convolution, is_part ? "convolution, one of its steps" : "convolution");
  } else if (contains(text, "dot do o") || contains(text, "convert dq") || contains(text, "fmha")) {
    set(KernelFamily::attention, "attention backward, one of its steps");
    name.tensor_cores = TensorCores::no;
  }
  if (name.operation != function) name.details.push_back(std::string(function));
  return true;
}

// cub:: and thrust::, also inside PyTorch's at_cuda_detail
bool read_cub(const Symbol& symbol, KernelName& name) {
  const std::string scoped = concat("::", symbol.qualified);
  const bool is_thrust = contains(scoped, "::thrust::");
  if (!contains(scoped, "::cub::") && !is_thrust) return false;
  static constexpr std::pair<std::string_view, KernelFamily> kParts[] = {
      {"radix sort", KernelFamily::sort},     {"merge sort", KernelFamily::sort},
      {"segmented sort", KernelFamily::sort}, {"scan", KernelFamily::scan},
      {"reduce", KernelFamily::reduce},       {"unique", KernelFamily::sort},
      {"select", KernelFamily::index},        {"histogram", KernelFamily::reduce},
      {"partition", KernelFamily::index},
  };
  name.author = is_thrust ? "Thrust" : "CUB";
  name.family = KernelFamily::other;
  name.operation = words(symbol.function);
  name.tensor_cores = TensorCores::no;
  // Thrust's kernels are all named _kernel_agent: the agent is in the arguments.
  const std::string text = words(is_thrust ? std::string_view(symbol.text) : symbol.function);
  for (const auto& [part, family] : kParts) {
    if (!contains(text, part)) continue;
    name.family = family;
    if (is_thrust) name.operation = part;
    break;
  }
  name.dtype = first_dtype(symbol.arguments);
  return true;
}

// Tensile (rocBLAS, hipBLASLt), MIOpen, Composable Kernel
bool read_rocm(const Symbol& symbol, KernelName& name) {
  const Tokens tokens = split(symbol.qualified, '_');
  const auto set = [&name](std::string_view author, KernelFamily family, std::string_view text) {
    name.author = author;
    name.family = family;
    name.operation = text;
  };
  if (tokens[0] == "Cijk" && tokens.size() > 3) {
    set("Tensile (rocBLAS, hipBLASLt)", KernelFamily::matmul, "matrix multiplication");
    static constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
        {"BBS", "bf16"}, {"BSS", "bf16"}, {"HHS", "fp16"}, {"HSS", "fp16"},  {"HB", "fp16"},
        {"SB", "fp32"},  {"S", "fp32"},   {"DB", "fp64"},  {"I8II", "int8"},
    };
    for (const auto& [letters, type] : kTypes) {
      if (tokens[3] == letters) name.dtype = type;
    }
    for (const std::string_view token : tokens) {
      if (token.starts_with("MT") && is_product(token.substr(2), 3)) name.tile = token.substr(2);
      if (token.starts_with("MI") && is_product(token.substr(2), 3)) {
        name.instruction = "mfma";
        name.tensor_cores = TensorCores::yes;
      }
      if (token.starts_with("ISA") && token.size() > 4) {
        name.architecture = concat("gfx", token.substr(3));
      }
    }
    return true;
  }
  if (tokens[0] == "igemm" && tokens.size() > 3) {
    set("MIOpen", KernelFamily::convolution,
        tokens[1] == "fwd"   ? "convolution, forward"
        : tokens[1] == "bwd" ? "convolution, gradient of its input"
                             : "convolution, gradient of its weights");
    for (const std::string_view token : tokens) {
      if (name.dtype.empty()) name.dtype = dtype_of(token);
      if (token.starts_with("bt") && is_product(token.substr(2), 3)) name.tile = token.substr(2);
    }
    return true;
  }
  if (symbol.qualified.starts_with("batched_transpose_")) {
    set("MIOpen", KernelFamily::layout, "transpose");
    name.dtype = tokens.back() == "half" ? "2-byte values" : first_dtype({tokens.back()});
    return true;
  }
  if (tokens[0].starts_with("SubTensorOp") || tokens[0].starts_with("miopen") ||
      tokens[0].starts_with("MIOpen")) {
    const std::string text = words(symbol.qualified);
    set("MIOpen", contains(text, "conv") ? KernelFamily::convolution : KernelFamily::other,
        symbol.function);
    return true;
  }
  if (symbol.qualified.starts_with("ck::") || symbol.qualified.starts_with("ck_tile::")) {
    set("Composable Kernel", family_of_words(words(symbol.text)), symbol.function);
    name.dtype = first_dtype(symbol.arguments);
    return true;
  }
  return false;
}

// Libraries whose namespace names them. What a kernel does is in its function's words, if anywhere.
bool read_by_namespace(const Symbol& symbol, KernelName& name) {
  static constexpr std::pair<std::string_view, std::string_view> kAuthors[] = {
      {"vllm::", "vLLM"},
      {"sglang::", "SGLang"},
      {"flashinfer::", "FlashInfer"},
      {"tensorrt_llm::", "TensorRT-LLM"},
      {"moe::dev::", "TensorRT-LLM"},
      {"fbgemm_gpu::", "FBGEMM"},
      {"split_embedding_", "FBGEMM"},
      {"transformer_engine::", "Transformer Engine"},
      {"deep_gemm::", "DeepGEMM"},
      {"deep_ep::", "DeepEP"},
      {"xformers::", "xFormers"},
      {"vision::", "torchvision"},
      {"aiter::", "AITER"},
      {"rocprim::", "rocPRIM"},
      {"cusparse::", "cuSPARSE"},
      {"mslk::", "MSLK"},
      {"nvfuser_", "nvFuser"},
      {"nvf::", "nvFuser"},
      {"CudaCodeGen::", "nvFuser"},
  };
  for (const auto& [prefix, author] : kAuthors) {
    if (!symbol.qualified.starts_with(prefix)) continue;
    name.author = author;
    name.family = family_of_words(words(symbol.function));
    if (author == "FBGEMM" && name.family == KernelFamily::other &&
        contains(symbol.qualified, "embedding")) {
      name.family = KernelFamily::index;
    }
    name.operation = symbol.function;
    name.dtype = first_dtype(symbol.arguments);
    return true;
  }
  // PyTorch's symmetric memory: kernels in an anonymous namespace, told by their names.
  for (const std::string_view function :
       {"multimem_all_reduce_kernel", "multimem_one_shot_all_reduce_kernel",
        "one_shot_all_reduce_kernel", "two_shot_all_reduce_kernel",
        "two_shot_all_reduce_kernel_inplace", "multimem_all_gather_kernel"}) {
    if (symbol.qualified != function) continue;
    name.author = "PyTorch symmetric memory";
    name.family = KernelFamily::collective;
    name.operation = contains(function, "gather") ? "all-gather" : "all-reduce";
    name.dtype = first_dtype(symbol.arguments);
    if (contains(function, "multimem")) name.details.push_back("reduced by NVLink switches");
    return true;
  }
  return false;
}

}  // namespace explain::names
