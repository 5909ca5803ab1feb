// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "profiler/record_function.h"

namespace kv {

Attention::Attention(bool by_kernel) {
  if (by_kernel) op_ = kernels::DecodeOp::load(kernels::Op::own_library());
}

at::Tensor Attention::operator()(const at::Tensor& q, const Cache& cache,
                                 std::int64_t layer) const {
  if (op_) {
    const Kept kept = cache.kept(layer);
    const auto table = kept.table.defined() ? std::optional(kept.table) : std::nullopt;
    return std::get<0>((*op_)(q, kept.k, kept.v, kept.lengths, table));
  }
  const Dense dense = [&] {
    const prof::record_function scope("cache");  // pages are copied together here
    return cache.dense(layer);
  }();
  const auto mask = dense.mask.defined() ? std::optional(dense.mask) : std::nullopt;
  // One query that sees every key: nothing is causal about it.
  return at::scaled_dot_product_attention(q, dense.k, dense.v, mask, /*dropout_p=*/0.0,
                                          /*is_causal=*/false, /*scale=*/{},
                                          /*enable_gqa=*/q.size(1) != dense.k.size(1));
}

Model::Model(const chapter::Options& options, std::int64_t layers)
    : width_(options.shape.heads * options.shape.head_dim), head_dim_(options.shape.head_dim) {
  const std::int64_t kv_width = options.shape.kv_heads * head_dim_;
  const auto like = at::TensorOptions().device(options.device).dtype(options.dtype);
  at::Generator generator = at::globalContext().defaultGenerator(options.device);
  generator.set_current_seed(options.seed);
  const auto weight = [&](std::int64_t columns) {  // results of about the size of the inputs
    return at::randn({width_, columns}, like).mul_(1 / std::sqrt(static_cast<double>(width_)));
  };
  for (std::int64_t i = 0; i < layers; ++i)
    layers_.push_back({weight(width_), weight(kv_width), weight(kv_width), weight(width_)});
}

// The rest of a layer, for any number of tokens: x [N, E] and attention's output [N, H D].
at::Tensor Model::finish(const Layer& layer, const at::Tensor& x, const at::Tensor& out) const {
  return at::layer_norm(x + at::mm(out, layer.wo), {width_});
}

at::Tensor Model::prefill(const at::Tensor& prompt, const at::Tensor& lengths, Cache* cache) const {
  const std::int64_t B = prompt.size(0), S = prompt.size(1);
  at::Tensor x = prompt.reshape({B * S, width_});
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const auto heads = [&](const at::Tensor& w) {  // -> [B, H or Hkv, S, D]
      return at::mm(x, w).view({B, S, -1, head_dim_}).transpose(1, 2);
    };
    const at::Tensor q = heads(layer.wq), k = heads(layer.wk), v = heads(layer.wv);
    if (cache != nullptr) {
      const prof::record_function scope("cache");
      cache->fill(static_cast<std::int64_t>(i), k, v);
    }
    // What stands behind a short prompt comes after its tokens: causal, they do not see it.
    const at::Tensor out = at::scaled_dot_product_attention(
        q, k, v, /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true, /*scale=*/{},
        /*enable_gqa=*/q.size(1) != k.size(1));
    x = finish(layer, x, out.transpose(1, 2).reshape({B * S, width_}));
  }
  const at::Tensor last = (lengths - 1).view({B, 1, 1}).expand({B, 1, width_});
  return x.view({B, S, width_}).gather(1, last).squeeze(1);
}

// [begin decode]
// x [B, E] -> [B, E]. Of the old tokens nothing is computed again: their keys and values are there.
at::Tensor Model::decode(at::Tensor x, const Attention& attention, Cache& cache) const {
  cache.advance();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const auto number = static_cast<std::int64_t>(i);
    const auto heads = [&](const at::Tensor& w) {  // -> [B, H or Hkv, 1, D]
      return at::mm(x, w).view({x.size(0), -1, 1, head_dim_});
    };
    const at::Tensor q = heads(layer.wq), k = heads(layer.wk), v = heads(layer.wv);
    {
      const prof::record_function scope("cache");
      cache.append(number, k, v);
    }
    x = finish(layer, x, attention(q, cache, number).view({x.size(0), width_}));
  }
  return x;
}
// [end decode]

}  // namespace kv
