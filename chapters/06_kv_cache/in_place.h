// SPDX-License-Identifier: Apache-2.0
//
// Two caches whose memory is there before the first token and stays where it is. A token is written
// into its slot: one row of D numbers per head in a table of rows [slots, D].
//
//   Preallocated  [B, Hkv, capacity, D]: a sequence has its slots whether it fills them or not
//   Paged         [pages, Hkv, kPageSize, D]: a sequence takes a page when the last one is full
#pragma once

#include "cache.h"
#include "pages.h"

namespace kv {

class InPlace : public Cache {
 public:
  void clear() override;
  void advance() final;
  void append(std::int64_t layer, const at::Tensor& k, const at::Tensor& v) final;
  [[nodiscard]] Usage usage() const override;

 protected:
  // Makes tensors [first, Hkv, slots, D] for each layer.
  InPlace(const CacheShape& shape, std::int64_t first, std::int64_t slots);

  // The rows that tokens at `positions` [B, N] have: [B, Hkv, N] int64.
  [[nodiscard]] virtual at::Tensor rows(const at::Tensor& positions) const = 0;

  at::Tensor heads_;               // [1, Hkv, 1]: 0, 1, 2, ...
  std::vector<at::Tensor> k_, v_;  // by layer
  at::Tensor rows_;                // [B Hkv] int64, of the token that is being written
};

class Preallocated : public InPlace {
 public:
  explicit Preallocated(const CacheShape& shape);

  void fill(std::int64_t layer, const at::Tensor& k, const at::Tensor& v) override;
  void make_room() override;
  [[nodiscard]] Kept kept(std::int64_t layer) const override;
  [[nodiscard]] Dense dense(std::int64_t layer) const override;
  [[nodiscard]] Usage usage() const override;

 private:
  [[nodiscard]] at::Tensor rows(const at::Tensor& positions) const override;

  at::Tensor first_rows_;  // [B, Hkv, 1] int64, of each sequence and head
};

class Paged : public InPlace {
 public:
  explicit Paged(const CacheShape& shape);

  void clear() override;
  void take_prompts() override;
  void fill(std::int64_t layer, const at::Tensor& k, const at::Tensor& v) override;
  void make_room() override;
  [[nodiscard]] Kept kept(std::int64_t layer) const override;
  [[nodiscard]] Dense dense(std::int64_t layer) const override;
  [[nodiscard]] Usage usage() const override;

 private:
  [[nodiscard]] at::Tensor rows(const at::Tensor& positions) const override;
  [[nodiscard]] at::Tensor row(std::size_t b) const;
  void take_page(std::size_t b);

  Pages pages_;
  std::vector<std::vector<std::int32_t>> taken_;  // by sequence, in order of its tokens
  at::Tensor table_;                              // [B, pages of a sequence] int32, on the device
};

}  // namespace kv
