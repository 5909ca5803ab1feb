// SPDX-License-Identifier: Apache-2.0
//
// Attention layers that write a sequence token by token: the output for a token, normalised, is the
// next token's input. Each layer is x = layer_norm(x + attention(x) Wo).
//
//   const kv::Model model(options, kv::kLayers);
//   at::Tensor x = model.prefill(prompt, lengths, cache.get());   // [B, S, E] -> [B, E]
//   x = model.decode(x, attention, *cache);                       // [B, E] -> [B, E]
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "cache.h"
#include "chapter/options.h"
#include "op.h"

namespace kv {

inline constexpr std::int64_t kLayers = 2;

// One new query per sequence against its cache.
class Attention {
 public:
  // By the decode kernel of 04, whose library is loaded here (throws std::runtime_error where it is
  // not there), or by SDPA.
  explicit Attention(bool by_kernel);
  // q [B, H, 1, D] -> [B, H, 1, D]
  [[nodiscard]] at::Tensor operator()(const at::Tensor& q, const Cache& cache,
                                      std::int64_t layer) const;
  [[nodiscard]] bool is_kernel() const { return op_.has_value(); }

 private:
  std::optional<kernels::DecodeOp> op_;
};

struct Layer {
  at::Tensor wq, wk, wv, wo;  // [E, H D], [E, Hkv D], [E, Hkv D], [H D, E]
};

class Model {
 public:
  // Random weights, seeded.
  Model(const chapter::Options& options, std::int64_t layers);

  // prompt [B, S, E] of which sequence b has the first lengths[b] ([B] int64, on the device).
  // Returns the output for the last of these, [B, E]. The cache is filled; null: nothing is kept.
  [[nodiscard]] at::Tensor prefill(const at::Tensor& prompt, const at::Tensor& lengths,
                                   Cache* cache) const;
  // One token more: x [B, E] -> [B, E]. The cache has room for it.
  [[nodiscard]] at::Tensor decode(at::Tensor x, const Attention& attention, Cache& cache) const;

  [[nodiscard]] const std::vector<Layer>& layers() const { return layers_; }
  [[nodiscard]] std::int64_t width() const { return width_; }  // E = H D

 private:
  [[nodiscard]] at::Tensor finish(const Layer& layer, const at::Tensor& x,
                                  const at::Tensor& out) const;

  std::int64_t width_, head_dim_;
  std::vector<Layer> layers_;
};

}  // namespace kv
