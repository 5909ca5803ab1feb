// SPDX-License-Identifier: Apache-2.0
#include "in_place.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

namespace kv {
namespace {

std::int64_t pages_for(std::int64_t tokens) {
  return (tokens + kPageSize - 1) / kPageSize;
}

// [..., D] -> [rows, D], the same memory.
at::Tensor as_rows(const at::Tensor& tensor) {
  return tensor.view({-1, tensor.size(-1)});
}

}  // namespace

InPlace::InPlace(const CacheShape& shape, std::int64_t first, std::int64_t slots)
    : Cache(shape),
      heads_(at::arange(shape.kv_heads, lengths_.options().dtype(at::kLong)).view({1, -1, 1})) {
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    for (std::vector<at::Tensor>* tensors : {&k_, &v_})
      tensors->push_back(at::zeros({first, shape.kv_heads, slots, shape.head_dim}, shape.like));
  }
}

void InPlace::clear() {
  Cache::clear();
  rows_.reset();
}

// [begin in_place]
// Where the new token goes, worked out on the device, once for all layers.
void InPlace::advance() {
  rows_ = rows(lengths_.unsqueeze(1)).flatten();
  Cache::advance();
}

void InPlace::append(std::int64_t layer, const at::Tensor& k, const at::Tensor& v) {
  const auto i = static_cast<std::size_t>(layer);
  as_rows(k_[i]).index_copy_(0, rows_, as_rows(k));  // B Hkv rows, and nothing else is touched
  as_rows(v_[i]).index_copy_(0, rows_, as_rows(v));
}
// [end in_place]

Usage InPlace::usage() const {
  const auto tensors = static_cast<std::int64_t>(k_.size() + v_.size());
  return {.tokens = tokens(),
          .slots = 0,
          .bytes = tensors * static_cast<std::int64_t>(k_.front().nbytes())};
}

Preallocated::Preallocated(const CacheShape& shape)
    : InPlace(shape, shape.batch(), shape.capacity),
      first_rows_(at::arange(shape.batch() * shape.kv_heads, heads_.options())
                      .mul_(shape.capacity)
                      .view({shape.batch(), shape.kv_heads, 1})) {}

at::Tensor Preallocated::rows(const at::Tensor& positions) const {
  return first_rows_ + positions.unsqueeze(1);
}

// What lies behind a short prompt is not a token's: tokens to come are written over it.
void Preallocated::fill(std::int64_t layer, const at::Tensor& k, const at::Tensor& v) {
  const auto i = static_cast<std::size_t>(layer);
  k_[i].narrow(2, 0, k.size(2)).copy_(k);
  v_[i].narrow(2, 0, v.size(2)).copy_(v);
}

void Preallocated::make_room() {
  if (longest() == shape_.capacity) {
    throw CacheFull(fmt::format(
        "the cache is full: a sequence has room for {} tokens and one more came; raise --capacity",
        shape_.capacity));
  }
  Cache::make_room();
}

Kept Preallocated::kept(std::int64_t layer) const {
  const auto i = static_cast<std::size_t>(layer);
  return {k_[i], v_[i], lengths_, {}};
}

Dense Preallocated::dense(std::int64_t layer) const {
  const auto i = static_cast<std::size_t>(layer);
  return {k_[i].narrow(2, 0, longest()), v_[i].narrow(2, 0, longest()), own_keys()};
}

Usage Preallocated::usage() const {
  Usage usage = InPlace::usage();
  usage.slots = shape_.batch() * shape_.capacity;
  return usage;
}

Paged::Paged(const CacheShape& shape)
    : InPlace(shape, shape.batch() * pages_for(shape.capacity), kPageSize),
      pages_(shape.batch() * pages_for(shape.capacity)),
      taken_(shape.prompts.size()),
      table_(at::zeros({shape.batch(), pages_.count()}, lengths_.options())) {}

// [begin paged]
void Paged::take_page(std::size_t b) {
  const std::optional<std::int32_t> page = pages_.take();
  if (!page) {
    throw CacheFull(fmt::format("all {} pages of {} tokens are taken: raise --capacity",
                                pages_.count(), kPageSize));
  }
  taken_[b].push_back(*page);
}

// A page for tokens to come. The number reaches the device as the argument of a kernel.
void Paged::make_room() {
  for (std::size_t b = 0; b < taken_.size(); ++b) {
    if (length(static_cast<std::int64_t>(b)) % kPageSize != 0) continue;
    take_page(b);
    row(b).select(0, static_cast<std::int64_t>(taken_[b].size()) - 1).fill_(taken_[b].back());
  }
  Cache::make_room();
}

at::Tensor Paged::rows(const at::Tensor& positions) const {  // [B, N]
  const at::Tensor page = table_.gather(1, at::floor_divide(positions, kPageSize).to(at::kLong));
  const at::Tensor slot = at::remainder(positions, kPageSize);
  return (page.unsqueeze(1) * shape_.kv_heads + heads_) * kPageSize + slot.unsqueeze(1);
}
// [end paged]

// The numbers of one sequence's pages, [pages of the pool].
at::Tensor Paged::row(std::size_t b) const {
  return table_.select(0, static_cast<std::int64_t>(b));
}

void Paged::clear() {
  InPlace::clear();
  for (std::vector<std::int32_t>& pages : taken_) {
    for (; !pages.empty(); pages.pop_back()) pages_.give_back(pages.back());
  }
}

// Sequences take turns, so that the pages of one lie between those of others.
void Paged::take_prompts() {
  Cache::take_prompts();
  for (std::int64_t page = 0; page < pages_for(shape_.longest()); ++page) {
    for (std::size_t b = 0; b < taken_.size(); ++b)
      if (page < pages_for(shape_.prompts[b])) take_page(b);
  }
  for (std::size_t b = 0; b < taken_.size(); ++b) {  // one copy instead of a kernel for each page
    const at::Tensor numbers = at::tensor(taken_[b], at::kInt);
    row(b).narrow(0, 0, numbers.numel()).copy_(numbers);
  }
}

void Paged::fill(std::int64_t layer, const at::Tensor& k, const at::Tensor& v) {
  const auto i = static_cast<std::size_t>(layer);
  for (std::int64_t b = 0; b < shape_.batch(); ++b) {
    const auto pages = static_cast<std::int64_t>(taken_[static_cast<std::size_t>(b)].size());
    const at::Tensor numbers = table_[b].narrow(0, 0, pages).to(at::kLong);
    for (const auto& [pool, prompt] : {std::pair(k_[i], k[b]), std::pair(v_[i], v[b])}) {
      const std::int64_t padding = pages * kPageSize - length(b);
      const at::Tensor tokens =
          at::constant_pad_nd(prompt.narrow(1, 0, length(b)), {0, 0, 0, padding});
      pool.index_copy_(0, numbers,
                       tokens.view({shape_.kv_heads, pages, kPageSize, -1}).transpose(0, 1));
    }
  }
}

Kept Paged::kept(std::int64_t layer) const {
  const auto i = static_cast<std::size_t>(layer);
  return {k_[i], v_[i], lengths_, table_};
}

// [begin gather]
// SDPA knows no pages: the cache is copied together for it, for each token again.
Dense Paged::dense(std::int64_t layer) const {
  const auto i = static_cast<std::size_t>(layer);
  const at::Tensor positions = at::arange(longest(), lengths_.options());
  const at::Tensor all = rows(positions.expand({shape_.batch(), -1})).flatten();
  const auto gathered = [&](const at::Tensor& pool) {  // -> [B, Hkv, T, D]
    return at::index_select(as_rows(pool), 0, all)
        .view({shape_.batch(), shape_.kv_heads, longest(), -1});
  };
  return {gathered(k_[i]), gathered(v_[i]), own_keys()};
}
// [end gather]

Usage Paged::usage() const {
  Usage usage = InPlace::usage();
  usage.slots = pages_.taken() * kPageSize;
  return usage;
}

}  // namespace kv
