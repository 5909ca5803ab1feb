// SPDX-License-Identifier: Apache-2.0
#include "concat.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace kv {

Concat::Concat(const CacheShape& shape)
    : Cache(shape),
      k_(static_cast<std::size_t>(shape.layers)),
      v_(static_cast<std::size_t>(shape.layers)) {}

void Concat::clear() {
  Cache::clear();
  for (std::vector<at::Tensor>* tensors : {&k_, &v_})
    for (at::Tensor& tensor : *tensors) tensor.reset();
}

void Concat::fill(std::int64_t layer, const at::Tensor& k, const at::Tensor& v) {
  const auto i = static_cast<std::size_t>(layer);
  k_[i] = k.contiguous();
  v_[i] = v.contiguous();
}

// [begin concat]
void Concat::append(std::int64_t layer, const at::Tensor& k, const at::Tensor& v) {
  const auto i = static_cast<std::size_t>(layer);
  k_[i] = at::cat({k_[i], k}, 2);  // [B, Hkv, T + 1, D], new; the old one dies here
  v_[i] = at::cat({v_[i], v}, 2);
}
// [end concat]

Kept Concat::kept(std::int64_t layer) const {
  const auto i = static_cast<std::size_t>(layer);
  return {k_[i], v_[i], lengths_, {}};
}

Dense Concat::dense(std::int64_t layer) const {
  const auto i = static_cast<std::size_t>(layer);
  Dense dense{k_[i], v_[i], {}};
  if (!shape_.is_ragged()) return dense;
  const at::Tensor keys = at::arange(longest(), prompts_.options());
  const at::Tensor own = (keys < prompts_.unsqueeze(1)).logical_or_(keys >= shape_.longest());
  dense.mask = own.view({shape_.batch(), 1, 1, longest()});
  return dense;
}

Usage Concat::usage() const {
  Usage usage{.tokens = tokens(), .slots = shape_.batch() * longest()};
  for (const std::vector<at::Tensor>* tensors : {&k_, &v_})
    for (const at::Tensor& tensor : *tensors)
      usage.bytes += tensor.defined() ? static_cast<std::int64_t>(tensor.nbytes()) : 0;
  return usage;
}

}  // namespace kv
