// SPDX-License-Identifier: Apache-2.0
//
// Names of fused attention kernels: what their template arguments and name parts say.
#include <algorithm>
#include <cstddef>

#include "explain/kernel_name_grammars.h"

namespace explain::names {
namespace {

void set_attention(std::string_view author, std::string_view operation, KernelName& name) {
  name.author = author;
  name.family = KernelFamily::attention;
  name.operation = operation;
  name.tensor_cores = TensorCores::yes;
}

void add_head_dim(std::string_view size, KernelName& name) {
  name.details.push_back(concat("head_dim ", size));
}

// The three numbers of cute::tuple<cute::C<128>, cute::C<176>, cute::C<64> >, if there are three.
std::vector<int> cute_shape(std::string_view argument) {
  const std::vector<int> shape = integers(argument);
  return contains(argument, "<") && shape.size() == 3 ? shape : std::vector<int>{};
}

}  // namespace

// [pytorch_]flash::flash_(fwd|bwd)_...<Flash_..._kernel_traits<HEAD_DIM, M, N, WARPS, ..., TYPE>,
// FLAGS...>. The flags' number changed over the years; the first two did not.
bool read_flash2(const Symbol& symbol, KernelName& name) {
  const std::string_view function = symbol.function;
  if (!function.starts_with("flash_fwd_") && !function.starts_with("flash_bwd_")) return false;
  if (contains(symbol.text, "cutlass_kernel_")) return false;  // FlashAttention-4
  static constexpr std::pair<std::string_view, std::string_view> kFunctions[] = {
      {"splitkv_combine", "attention forward, combination of the parts"},
      {"splitkv", "attention forward, keys split over blocks"},
      {"fwd_kernel", "attention forward"},
      {"dot_do_o", "attention backward, row sums of dO * O"},
      {"convert_dq", "attention backward, dQ to its final type"},
      {"convert_dkv", "attention backward, dK and dV to their final type"},
      {"clear_dkv", "attention backward, clearing of dK and dV"},
      {"dq_dk_dv", "attention backward"},
  };
  std::string_view operation =
      function.starts_with("flash_fwd") ? "attention forward" : "attention backward";
  for (const auto& [part, text] : kFunctions) {
    if (!contains(function, part)) continue;
    operation = text;
    break;
  }
  set_attention(symbol.qualified.starts_with("pytorch_flash") ? "PyTorch's FlashAttention-2"
                                                              : "FlashAttention-2",
                operation, name);
  if (contains(operation, ",") && !contains(function, "splitkv_kernel")) {
    name.tensor_cores = TensorCores::no;  // the small kernels before and after only add and convert
  }

  const auto is_traits = [](std::string_view argument) {
    return contains(argument, "_kernel_traits");
  };
  const auto traits = std::find_if(symbol.arguments.begin(), symbol.arguments.end(), is_traits);
  if (traits == symbol.arguments.end()) return true;
  const std::vector<std::string_view> sizes = arguments_of(*traits, "_kernel_traits");
  if (sizes.size() < 4) return true;
  name.dtype = first_dtype(sizes);
  name.tile = concat(sizes[1], "x", sizes[2]);
  add_head_dim(sizes[0], name);
  name.details.push_back(std::string(sizes[3]) + " warps");
  if (name.tensor_cores == TensorCores::yes) name.instruction = "mma";

  const std::vector<std::string_view> flags(traits + 1, symbol.arguments.end());
  if (contains(function, "combine") || flags.empty()) return true;
  const bool has_dropout = !contains(function, "splitkv");
  const std::size_t causal = has_dropout ? 1 : 0;
  if (has_dropout && is_true(flags[0])) name.details.push_back("dropout");
  if (flags.size() > causal) {
    name.details.push_back(is_true(flags[causal]) ? "causal" : "not causal");
  }
  // Is_local and Has_alibi joined with version 2.3, as the fourth and fifth.
  if (flags.size() >= 7 && is_true(flags[causal + 1])) name.details.push_back("sliding window");
  if (flags.size() >= 7 && is_true(flags[causal + 2])) name.details.push_back("ALiBi");
  return true;
}

// cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<
//   flash::CollectiveMainloopFwdSm90<STAGES, CLUSTER, TILE, HEAD_DIM_V, TYPE, float, ARCH, CAUSAL,
//   LOCAL, ...>, ...> > >, and its helpers
bool read_flash3(const Symbol& symbol, KernelName& name) {
  const std::string_view text = symbol.text;
  if (symbol.qualified.starts_with("flash::prepare_varlen")) {
    set_attention("FlashAttention-3", "attention, plan of the blocks", name);
    name.tensor_cores = TensorCores::no;
    return true;
  }
  const std::size_t at = text.find("FlashAttn");
  if (at == std::string_view::npos || contains(text, "cutlass_kernel_")) return false;
  const std::string_view kernel = text.substr(at, text.find_first_of("<>(, ", at) - at);
  const bool is_backward = contains(kernel, "Bwd");
  set_attention("FlashAttention-3", is_backward ? "attention backward" : "attention forward", name);
  for (const std::string_view helper :
       {"Combine", "Preprocess", "Postprocess", "PostprocessConvert"}) {
    if (!contains(kernel, helper)) continue;
    name.operation += helper == "Combine" ? ", combination of the parts" : ", " + words(helper);
    name.tensor_cores = TensorCores::no;
  }
  for (const std::string_view version : {"80", "90", "100"}) {
    if (contains(text, concat("Sm", version))) {
      name.architecture = concat("sm_", version);
    }
  }
  if (name.tensor_cores == TensorCores::yes && name.architecture == "sm_90") {
    name.instruction = "wgmma";
  }
  std::vector<std::string_view> mainloop;
  for (const std::string_view loop :
       {"CollectiveMainloopFwdSm90", "CollectiveMainloopFwdSm80", "CollectiveMainloopBwdSm90",
        "CollectiveMainloopBwdSm80", "CollectiveMainloopFwd", "CollectiveMainloopBwd"}) {
    if (mainloop.empty()) mainloop = arguments_of(text, loop);
  }
  name.dtype = first_dtype({mainloop.begin(), mainloop.end()});
  if (mainloop.empty()) return true;
  // Clusters have ones and twos; the tile's numbers are multiples of 8.
  std::size_t arch = mainloop.size();
  for (std::size_t i = 0; i < mainloop.size(); ++i) {
    const std::vector<int> shape = cute_shape(mainloop[i]);
    if (shape.size() == 3 && shape[0] >= 8) {
      name.tile = product({shape[0], shape[1]});
      add_head_dim(std::to_string(shape[2]), name);
    }
    if (contains(mainloop[i], "arch::Sm")) arch = i;
  }
  if (const auto stages = number_after(mainloop[0], "")) name.stages = *stages;
  if (arch + 2 < mainloop.size()) {
    name.details.push_back(is_true(mainloop[arch + 1]) ? "causal" : "not causal");
    if (is_true(mainloop[arch + 2])) name.details.push_back("sliding window");
  }
  return true;
}

// ...kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_object_at_...:
// FlashAttention-4, whose names CuTe's Python compiler makes
bool read_flash4(const Symbol& symbol, KernelName& name) {
  const std::string_view text = symbol.text;
  const std::size_t at = text.find("FlashAttention");
  const std::size_t marker = text.find("kernel_cutlass_");
  if (marker == std::string_view::npos) return false;
  if (at == std::string_view::npos) {
    name.author = "CuTe DSL";
    const std::size_t end = text.find("_object_at", marker);
    name.family = family_of_words(words(text.substr(0, end)));
    name.operation = concat("kernel ", text.substr(marker + 15, end - marker - 15));
    return true;
  }
  const std::string_view kernel = text.substr(at, text.find('_', at) - at);
  set_attention("FlashAttention-4",
                contains(kernel, "Backward") ? "attention backward" : "attention forward", name);
  for (const std::string_view part : {"Preprocess", "Postprocess", "Combine"}) {
    if (!contains(kernel, part)) continue;
    name.operation += ", " + words(part);
    name.tensor_cores = TensorCores::no;
  }
  const std::size_t sm = kernel.rfind("Sm");
  if (sm != std::string_view::npos) {
    const std::vector<int> version = integers(kernel.substr(sm));
    if (!version.empty()) name.architecture = concat("sm_", std::to_string(version[0]));
  }
  // Newer names carry their settings in front: flash_fwd_sm100_bf16_head_dim128_tile128x128_causal
  for (const std::string_view token : split(text.substr(0, marker), '_')) {
    if (name.dtype.empty()) name.dtype = dtype_of(token);
    if (const auto size = number_after(token, "dim")) add_head_dim(std::to_string(*size), name);
    if (token.starts_with("tile") && is_product(token.substr(4), 2)) name.tile = token.substr(4);
    if (token == "causal") name.details.push_back("causal");
  }
  return true;
}

// fmha_cutlass(F|B)_TYPE_(aligned|notaligned)_QxK_(rf|gmem|smem|kN)_[dropout_]smNN
bool read_memory_efficient(const Symbol& symbol, KernelName& name) {
  const std::vector<std::string_view> tokens = split(symbol.qualified, '_');
  if (tokens.size() < 3 || tokens[0] != "fmha" || !tokens[1].starts_with("cutlass")) return false;
  const bool is_backward = tokens[1].ends_with("B");
  set_attention("PyTorch's memory-efficient attention (CUTLASS)",
                is_backward ? "attention backward" : "attention forward", name);
  for (std::size_t i = 2; i < tokens.size(); ++i) {
    const std::string_view token = tokens[i];
    if (const std::string type = dtype_of(token); !type.empty()) {
      name.dtype = type;
    } else if (is_product(token, 2)) {
      name.tile = token;
    } else if (token.starts_with("sm") && number_after(token, "sm")) {
      name.architecture = concat("sm_", token.substr(2));
    } else if (token == "aligned" || token == "notaligned") {
      name.details.push_back(token == "aligned" ? "aligned" : "not aligned");
    } else if (token == "rf") {
      name.details.push_back("output kept in registers");
    } else if (token == "gmem") {
      name.details.push_back("output summed in global memory");
    } else if (token == "smem") {
      name.details.push_back("output kept in shared memory");
    } else if (token == "dropout") {
      name.details.push_back("dropout");
    } else if (const auto size = number_after(token, "k")) {
      // 65536 is how the kernels for every size say "no limit".
      name.details.push_back(*size >= 65536 ? "any head_dim"
                                            : concat("head_dim up to ", std::to_string(*size)));
    }
  }
  // The kernels for Ampere multiply fp32 as three products of TF32, those for older ones on CUDA
  // cores; fp16 is multiplied by tensor cores from Volta on. (gemm_kernel_utils.h in PyTorch)
  const std::vector<int> version = integers(name.architecture);
  if (version.empty()) {
    name.tensor_cores = TensorCores::unknown;
  } else if (version[0] < (name.dtype == "fp32" ? 80 : 70)) {
    name.tensor_cores = TensorCores::no;
  } else {
    name.instruction = name.dtype == "fp32" ? "mma, fp32 as 3 x tf32" : "mma";
  }
  return true;
}

// What PyTorch had up to 2.0: attention_kernel_batched_impl<AttentionKernel<TYPE, ARCH, ALIGNED, Q,
// K,
// ...>>, and FlashAttention's first version, fmha_(fwd|bwd)_..._kernel<FMHA_kernel_traits<...>>
bool read_older_attention(const Symbol& symbol, KernelName& name) {
  const std::string_view function = symbol.function;
  const bool is_backward = contains(function, "backward") || contains(function, "bwd");
  const std::string_view operation = is_backward ? "attention backward" : "attention forward";
  if (function.starts_with("attention_kernel_")) {
    std::vector<std::string_view> settings = arguments_of(symbol.text, "AttentionKernel");
    if (settings.empty()) settings = arguments_of(symbol.text, "AttentionBackwardKernel");
    if (settings.empty()) return false;
    set_attention("PyTorch's memory-efficient attention (CUTLASS)", operation, name);
    name.tensor_cores = TensorCores::unknown;
    name.dtype = first_dtype(settings);
    for (const std::string_view setting : settings) {
      const std::size_t sm = setting.find("arch::Sm");
      if (sm != std::string_view::npos) name.architecture = concat("sm_", setting.substr(sm + 8));
    }
    return true;
  }
  if (!function.starts_with("fmha_") || !contains(symbol.text, "FMHA_kernel_traits")) return false;
  set_attention("FlashAttention (version 1)", operation, name);
  name.dtype = first_dtype(arguments_of(symbol.text, "FMHA_kernel_traits"));
  return true;
}

// cudnn_generated_(fort_native|oss)_sdpa_smNN_flash_(fprop|bprop)_[wgmma_|wmma_]TYPE_knob_K_QxKxD_
// WARPS_[cgaCLUSTER_]kernel0_0, and other generated kernels
bool read_cudnn_generated(const Symbol& symbol, KernelName& name) {
  const std::vector<std::string_view> tokens = split(symbol.qualified, '_');
  if (tokens.size() < 3 || tokens[0] != "cudnn" || tokens[1] != "generated") return false;
  name.author = "cuDNN (generated)";
  name.family = KernelFamily::other;
  const std::string_view text = symbol.qualified;
  if (contains(text, "sdpa")) {
    set_attention(name.author, contains(text, "bprop") ? "attention backward" : "attention forward",
                  name);
    if (!contains(text, "bprop") && !contains(text, "fprop")) name.operation = "attention";
  } else if (contains(words(text), "mat mul") || contains(text, "gemm")) {
    name.family = KernelFamily::matmul;
    name.operation = "matrix multiplication";
  } else if (contains(text, "conv")) {
    name.family = KernelFamily::convolution;
    name.operation = "convolution";
  } else {
    name.family = family_of_words(words(text));
    name.operation = "kernel";
  }
  for (std::size_t i = 2; i < tokens.size(); ++i) {
    const std::string_view token = tokens[i];
    if (token.starts_with("sm") && number_after(token, "sm")) {
      name.architecture = concat("sm_", token.substr(2));
    } else if (token == "wgmma" || token == "wmma" || token == "mma") {
      name.instruction = token;
    } else if (token == "f16") {
      name.dtype = "fp16 or bf16";  // cuDNN writes f16 for both
    } else if (const std::string type = dtype_of(token); !type.empty()) {
      name.dtype = type;
    } else if (token == "knob" && i + 1 < tokens.size()) {
      name.details.push_back(concat("knob ", tokens[i + 1]));
    } else if (is_product(token, 3) && name.tile.empty()) {
      const std::vector<int> sizes = integers(token);
      const bool is_attention = name.family == KernelFamily::attention;
      name.tile = is_attention ? product({sizes[0], sizes[1]}) : std::string(token);
      if (is_attention) name.details.push_back(concat("head_dim up to ", std::to_string(sizes[2])));
    }
  }
  if (name.instruction.empty() && name.architecture.starts_with("sm_10") &&
      name.family == KernelFamily::attention) {
    name.instruction = "tcgen05";
  }
  return true;
}

// fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausal...Q128Kv128...: TensorRT-LLM's
bool read_trtllm_fmha(const Symbol& symbol, KernelName& name) {
  const std::string_view text = symbol.qualified;
  const std::size_t settings = text.find("Kernel_");
  if (!text.starts_with("fmhaSm") || settings == std::string_view::npos) return false;
  set_attention("TensorRT-LLM", "attention", name);
  const std::string_view version = text.substr(6, settings - 6);
  name.architecture = concat("sm_", version);
  const std::string_view rest = text.substr(settings + 7);
  // "Q128" but not the Q of "Qkv"
  const auto number = [&rest](std::string_view marker) {
    for (std::size_t at = rest.find(marker); at != std::string_view::npos;
         at = rest.find(marker, at + 1)) {
      const std::size_t digits = at + marker.size();
      if (digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9') {
        return integers(rest.substr(digits)).front();
      }
    }
    return 0;
  };
  for (const std::string_view type : {"Bfloat16", "Fp16", "E4m3", "E2m1"}) {
    if (rest.starts_with(concat("Qkv", type)) || rest.starts_with(concat("Q", type))) {
      name.dtype = dtype_of(type);
    }
  }
  if (number("Q") > 0 && number("Kv") > 0) name.tile = product({number("Q"), number("Kv")});
  if (number("H") > 0) add_head_dim(std::to_string(number("H")), name);
  name.details.push_back(contains(rest, "Causal") ? "causal" : "not causal");
  if (contains(rest, "Paged")) name.details.push_back("paged keys and values");
  if (contains(rest, "Sliding")) name.details.push_back("sliding window");
  return true;
}

// kernels::overlapped<__nv_bfloat16, 64>: this project's own, chapters/04_kernels
bool read_ladder(const Symbol& symbol, KernelName& name) {
  struct Step {
    std::string_view function, version, architecture, instruction;
  };
  static constexpr Step kSteps[] = {
      {"warp_per_row", "v1", "", ""},
      {"shared_tiles", "v2", "", ""},
      {"tensor_cores", "v3", "", "mma"},
      {"wgmma_tma", "v4", "sm_90", "wgmma"},
      {"producer_consumer", "v5", "sm_90", "wgmma"},
      {"overlapped", "v6", "sm_90", "wgmma"},
  };
  for (const auto& [function, version, architecture, instruction] : kSteps) {
    if (symbol.qualified != concat("kernels::", function)) continue;
    set_attention("chapter 04", "attention forward", name);
    name.architecture = architecture;
    name.instruction = instruction;
    name.tensor_cores = instruction.empty() ? TensorCores::no : TensorCores::yes;
    name.dtype = first_dtype(symbol.arguments);
    name.details.emplace_back(version);
    if (symbol.arguments.size() > 1) add_head_dim(symbol.arguments[1], name);
    return true;
  }
  return false;
}

}  // namespace explain::names
