// SPDX-License-Identifier: Apache-2.0
#include "layers.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <cmath>

#include "chapter/backends.h"
#include "chapter/inputs.h"
#include "checkpoint.h"

namespace memory {
namespace {

constexpr double kDropout = 0.1;

constexpr std::array<const char*, kVariants.size()> kVariantNames{
    "naive", "inplace", "sdpa-math", "efficient", "flash", "cudnn", "kernel"};
constexpr std::array<const char*, kModes.size()> kModeNames{"inference", "training", "checkpoint"};

std::optional<chapter::Backend> backend_of(Variant variant) {
  return chapter::backend_of(variant == Variant::sdpa_math ? "math" : name_of(variant));
}

bool takes_a_mask(Variant variant) {
  return variant == Variant::naive || variant == Variant::inplace;
}

// Chapters 01 and 02. q, k, v [B, H, S, D], mask [S, S]
at::Tensor plain_ops(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& mask, bool in_place) {
  at::Tensor scores = at::matmul(q, k.transpose(-2, -1));  // [B, H, S, S]
  scores = scores * (1.0 / std::sqrt(q.size(-1)));
  if (in_place) {
    scores.masked_fill_(mask, -INFINITY);
  } else {
    scores = scores.masked_fill(mask, -INFINITY);
  }
  scores = at::softmax(scores, -1);
  return at::matmul(scores, v);
}

}  // namespace

std::string name_of(Variant variant) {
  return kVariantNames[static_cast<std::size_t>(variant)];
}

std::optional<Variant> variant_of(std::string_view name) {
  for (const Variant variant : kVariants)
    if (name == name_of(variant)) return variant;
  return std::nullopt;
}

std::string name_of(Mode mode) {
  return kModeNames[static_cast<std::size_t>(mode)];
}

std::optional<Mode> mode_of(std::string_view name) {
  for (const Mode mode : kModes)
    if (name == name_of(mode)) return mode;
  return std::nullopt;
}

std::string why_not(Variant variant, Mode mode, const chapter::Options& options) {
  if (const auto backend = backend_of(variant)) return chapter::why_not(*backend, options);
  if (variant != Variant::kernel) return "";
  if (mode != Mode::inference) {
    return "the kernels of 04 have no backward: they run with --mode inference";
  }
  const std::int64_t D = options.shape.head_dim;
  if (!options.on_gpu()) {
    if (options.dtype != c10::kFloat) return "on the CPU the kernels of 04 take fp32 alone";
    return D > 256 ? "on the CPU the kernels of 04 take a --head-dim up to 256" : "";
  }
  if (options.dtype == c10::kFloat) return "on a GPU the kernels of 04 take bf16 and fp16";
  return D != 64 && D != 128 ? "on a GPU the kernels of 04 take a --head-dim of 64 or 128" : "";
}

at::Tensor mask_for(Variant variant, const chapter::Options& options) {
  if (!takes_a_mask(variant)) return {};
  const std::int64_t S = options.shape.seq;
  const auto like = at::TensorOptions().device(options.device).dtype(c10::kBool);
  return at::ones({S, S}, like).triu_(1);
}

Attention::Attention(Variant variant) : variant_(variant) {
  if (variant == Variant::kernel) op_ = kernels::Op::load(kernels::Op::own_library());
}

at::Tensor Attention::operator()(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                 const at::Tensor& mask) const {
  if (op_) return std::get<0>((*op_)(q, k, v, "top_left", "auto"));
  if (const auto backend = backend_of(variant_)) {
    const chapter::Pinned pinned(*backend);
    return at::scaled_dot_product_attention(q, k, v, /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                            /*is_causal=*/true, /*scale=*/{},
                                            /*enable_gqa=*/q.size(1) != k.size(1));
  }
  return plain_ops(q, chapter::repeat_kv(k, q.size(1)), chapter::repeat_kv(v, q.size(1)), mask,
                   variant_ == Variant::inplace);
}

Model::Model(const chapter::Options& options, const Attention& attention, std::int64_t layers,
             Mode mode)
    : attention_(attention),
      mode_(mode),
      head_dim_(options.shape.head_dim),
      mask_(mask_for(attention.variant(), options)) {
  const std::int64_t E = options.shape.heads * head_dim_;
  const std::int64_t kv = options.shape.kv_heads * head_dim_;
  const auto like = at::TensorOptions().device(options.device).dtype(options.dtype);
  at::Generator generator = at::globalContext().defaultGenerator(options.device);
  generator.set_current_seed(options.seed);
  const auto weight = [&](std::int64_t rows) {  // results of about the size of the inputs
    at::Tensor w = at::randn({rows, E}, like).mul_(1 / std::sqrt(static_cast<double>(E)));
    return w.set_requires_grad(mode != Mode::inference);
  };
  for (std::int64_t i = 0; i < layers; ++i)
    layers_.push_back({weight(E), weight(kv), weight(kv), weight(E)});
}

at::Tensor Model::forward(const at::Tensor& x) const {
  at::Tensor y = x;
  for (const Layer& layer : layers_) {
    y = mode_ == Mode::checkpoint
            ? checkpoint([this, &layer](const at::Tensor& in) { return run(layer, in); }, y,
                         layer.wq)
            : run(layer, y);
  }
  return y;
}

at::Tensor Model::run(const Layer& layer, const at::Tensor& x) const {
  const auto heads = [&](const at::Tensor& w) {  // -> [B, H or Hkv, S, D]
    return at::linear(x, w).view({x.size(0), x.size(1), -1, head_dim_}).transpose(1, 2);
  };
  const at::Tensor out = attention_(heads(layer.wq), heads(layer.wk), heads(layer.wv), mask_);
  const at::Tensor y = at::linear(out.transpose(1, 2).flatten(2), layer.wo);  // [B, S, E]
  return mode_ == Mode::inference ? y : at::dropout(y, kDropout, /*train=*/true);
}

std::vector<at::Tensor> Model::weights() const {
  std::vector<at::Tensor> weights;
  for (const Layer& layer : layers_)
    weights.insert(weights.end(), {layer.wq, layer.wk, layer.wv, layer.wo});
  return weights;
}

}  // namespace memory
