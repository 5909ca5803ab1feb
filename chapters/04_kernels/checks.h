// SPDX-License-Identifier: Apache-2.0
//
// What both ops ask of their tensors, in sentences, and what both read off them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <optional>

#include "attention.h"

namespace kernels {

inline void check_tensors(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  for (const auto& [name, x] : {std::pair("q", &q), {"k", &k}, {"v", &v}}) {
    TORCH_CHECK_VALUE(x->dim() == 4, name, " must have four dimensions, [B, H, S, D]; it has ",
                      x->dim());
    TORCH_CHECK_VALUE(x->device() == q.device(), name, " is on ", x->device(), ", q on ",
                      q.device(), ": move them to one device");
    TORCH_CHECK_VALUE(x->scalar_type() == q.scalar_type(), name, " is ", x->scalar_type(),
                      ", q is ", q.scalar_type(), ": convert them to one dtype");
    TORCH_CHECK_VALUE(x->stride(3) == 1, name,
                      "'s last dimension must lie without gaps: call .contiguous() on it");
    TORCH_CHECK_VALUE(x->numel() > 0, name, " is empty, its sizes are ", x->sizes());
  }
  TORCH_CHECK_VALUE(k.sizes() == v.sizes(), "k and v must have the same sizes; they have ",
                    k.sizes(), " and ", v.sizes());
  TORCH_CHECK_VALUE(q.size(3) == k.size(3), "q and k must agree in head_dim; they have ", q.sizes(),
                    " and ", k.sizes());
  TORCH_CHECK_VALUE(q.size(1) % k.size(1) == 0, "the ", q.size(1),
                    " query heads must be a multiple of the ", k.size(1), " key heads");
}

inline int size(const at::Tensor& x, int dim) {
  return static_cast<int>(x.size(dim));
}

inline Strides strides_of(const at::Tensor& x) {
  return {x.stride(0), x.stride(1), x.stride(2)};
}

// The scale that is asked for, or 1 / sqrt(D).
inline float scale_of(std::optional<double> wanted, int D) {
  const auto scale = static_cast<float>(wanted.value_or(1 / std::sqrt(static_cast<double>(D))));
  TORCH_CHECK_VALUE(std::isfinite(scale) && scale > 0, "scale must be a positive number, not ",
                    scale);
  return scale;
}

}  // namespace kernels
