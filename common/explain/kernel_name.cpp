// SPDX-License-Identifier: Apache-2.0
#include "explain/kernel_name.h"

#include <fmt/format.h>

#include <utility>

#include "explain/kernel_name_grammars.h"
#include "explain/text.h"
#include "trace/printable.h"

namespace explain {
namespace {

// The first that knows the name wins: what is special stands before what is general.
constexpr names::Grammar kGrammars[] = {
    names::read_memory_operation,
    names::read_nccl,
    names::read_inductor,
    names::read_nvjet,
    names::read_xmma,
    names::read_assembly,
    names::read_cudnn_generated,
    names::read_memory_efficient,
    names::read_older_attention,
    names::read_flash2,
    names::read_flash3,
    names::read_flash4,
    names::read_trtllm_fmha,
    names::read_ladder,
    names::read_trtllm_gemm,
    names::read_cutlass3,
    names::read_cutlass,
    names::read_cutlass_types,
    names::read_cublas_templates,
    names::read_cudnn_templates,
    names::read_cub,
    names::read_aten,
    names::read_rocm,
    names::read_by_namespace,
};

// Where a kernel runs its multiplications matters for these only.
bool multiplies_matrices(KernelFamily family) {
  return family == KernelFamily::matmul || family == KernelFamily::convolution ||
         family == KernelFamily::attention;
}

std::string cores(const KernelName& name) {
  if (!multiplies_matrices(name.family) || name.tensor_cores == TensorCores::unknown) {
    return name.instruction;
  }
  const std::string_view where =
      name.tensor_cores == TensorCores::yes ? "tensor cores" : "CUDA cores, no tensor cores";
  if (name.instruction.empty()) return std::string(where);
  return fmt::format("{} ({})", where, name.instruction);
}

std::string sentence(const KernelName& name) {
  if (name.family == KernelFamily::unknown) return "a name of no known scheme";
  std::string text = fmt::format("{}: {}", name.author, name.operation);
  const auto add = [&text](const std::string& part) {
    if (!part.empty()) text += ", " + part;
  };
  add(name.dtype);
  if (!name.architecture.empty()) {
    const std::string_view known = architecture_name(name.architecture);
    add(known.empty() ? fmt::format("for {}", name.architecture)
                      : fmt::format("for {} ({})", known, name.architecture));
  }
  if (!name.tile.empty()) add("tile " + name.tile);
  if (name.stages > 0) add(fmt::format("{} stage{}", name.stages, name.stages == 1 ? "" : "s"));
  add(cores(name));
  for (const std::string& detail : name.details) add(detail);
  return text;
}

// What a figure has room for. Of a matmul's many names the numbers tell it from its neighbours.
std::string short_name(const KernelName& name, const names::Symbol& symbol) {
  std::string text = name.operation;
  if (text.starts_with("copy to ") && !name.dtype.empty()) {
    return "copy " + name.dtype + text.substr(4);  // "copy fp32 to bf16"
  }
  if (name.family == KernelFamily::unknown) text = std::string(symbol.function);
  if (name.family == KernelFamily::matmul && text == "matrix multiplication") text = "matmul";
  if (name.family == KernelFamily::collective) text = name.author + " " + text;
  if (!name.dtype.empty()) text += " " + name.dtype;
  if (name.family == KernelFamily::matmul && !name.tile.empty()) text += " " + name.tile;
  return cut(text, 32);
}

}  // namespace

std::string_view to_string(KernelFamily family) {
  switch (family) {
    case KernelFamily::unknown:
      return "unknown";
    case KernelFamily::matmul:
      return "matmul";
    case KernelFamily::convolution:
      return "convolution";
    case KernelFamily::attention:
      return "attention";
    case KernelFamily::elementwise:
      return "elementwise";
    case KernelFamily::reduce:
      return "reduce";
    case KernelFamily::softmax:
      return "softmax";
    case KernelFamily::normalization:
      return "normalization";
    case KernelFamily::copy:
      return "copy";
    case KernelFamily::fill:
      return "fill";
    case KernelFamily::triu_tril:
      return "triu_tril";
    case KernelFamily::index:
      return "index";
    case KernelFamily::concatenate:
      return "concatenate";
    case KernelFamily::sort:
      return "sort";
    case KernelFamily::scan:
      return "scan";
    case KernelFamily::random:
      return "random";
    case KernelFamily::pooling:
      return "pooling";
    case KernelFamily::optimizer:
      return "optimizer";
    case KernelFamily::layout:
      return "layout";
    case KernelFamily::quantize:
      return "quantize";
    case KernelFamily::collective:
      return "collective";
    case KernelFamily::wait:
      return "wait";
    case KernelFamily::other:
      return "other";
  }
  return "unknown";
}

std::string_view to_string(TensorCores tensor_cores) {
  switch (tensor_cores) {
    case TensorCores::unknown:
      return "unknown";
    case TensorCores::no:
      return "no";
    case TensorCores::yes:
      return "yes";
  }
  return "unknown";
}

std::string_view architecture_name(std::string_view architecture) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"sm_5", "Maxwell"},    {"sm_6", "Pascal"},     {"sm_70", "Volta"},     {"sm_72", "Volta"},
      {"sm_75", "Turing"},    {"sm_89", "Ada"},       {"sm_8", "Ampere"},     {"sm_90", "Hopper"},
      {"sm_10", "Blackwell"}, {"sm_11", "Blackwell"}, {"sm_12", "Blackwell"}, {"gfx90a", "MI200"},
      {"gfx942", "MI300"},    {"gfx950", "MI350"},
  };
  for (const auto& [prefix, name] : kNames) {
    if (architecture.starts_with(prefix)) return name;
  }
  return "";
}

KernelName decode(std::string_view raw) {
  const names::Symbol symbol(trace::printable(raw));
  KernelName name;
  for (const names::Grammar read : kGrammars) {
    if (read(symbol, name)) break;
  }
  name.sentence = cut(sentence(name), 400);
  name.short_name = short_name(name, symbol);
  return name;
}

}  // namespace explain
