// SPDX-License-Identifier: Apache-2.0
//
// The cache that everybody writes first: each token makes tensors that are one token longer, and
// copies all the old ones into them.
//
// Sequences of different lengths begin together and go on together: behind a short prompt there is
// a gap, which SDPA must be told of and which the decode kernel does not know.
#pragma once

#include "cache.h"

namespace kv {

class Concat : public Cache {
 public:
  explicit Concat(const CacheShape& shape);

  void clear() override;
  void fill(std::int64_t layer, const at::Tensor& k, const at::Tensor& v) override;
  void append(std::int64_t layer, const at::Tensor& k, const at::Tensor& v) override;
  [[nodiscard]] Kept kept(std::int64_t layer) const override;
  [[nodiscard]] Dense dense(std::int64_t layer) const override;
  [[nodiscard]] Usage usage() const override;

 private:
  std::vector<at::Tensor> k_, v_;  // by layer: [B, Hkv, longest prompt + decoded, D]
};

}  // namespace kv
