// SPDX-License-Identifier: Apache-2.0
#include "cache.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <numeric>

#include "concat.h"
#include "in_place.h"

namespace kv {
namespace {

constexpr std::array<const char*, kKinds.size()> kNames{"none", "concat", "preallocated", "paged"};

}  // namespace

std::string name_of(Kind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<Kind> kind_of(std::string_view name) {
  for (const Kind kind : kKinds)
    if (name == name_of(kind)) return kind;
  return std::nullopt;
}

std::int64_t CacheShape::longest() const {
  return *std::max_element(prompts.begin(), prompts.end());
}

bool CacheShape::is_ragged() const {
  return *std::min_element(prompts.begin(), prompts.end()) != longest();
}

Cache::Cache(CacheShape shape)
    : shape_(std::move(shape)),
      prompts_(at::tensor(shape_.prompts, at::kInt).to(shape_.like.device())),
      lengths_(prompts_.clone()) {}

void Cache::clear() {
  decoded_ = 0;
}

void Cache::take_prompts() {
  lengths_.copy_(prompts_);
}

void Cache::make_room() {
  ++decoded_;
}

void Cache::advance() {
  lengths_.add_(1);
}

std::int64_t Cache::length(std::int64_t b) const {
  return shape_.prompts[static_cast<std::size_t>(b)] + decoded_;
}

std::int64_t Cache::tokens() const {
  return std::accumulate(shape_.prompts.begin(), shape_.prompts.end(), decoded_ * shape_.batch());
}

at::Tensor Cache::own_keys() const {
  if (!shape_.is_ragged()) return {};
  const at::Tensor keys = at::arange(longest(), lengths_.options());
  return (keys < lengths_.unsqueeze(1)).view({shape_.batch(), 1, 1, longest()});
}

std::unique_ptr<Cache> make_cache(Kind kind, const CacheShape& shape) {
  if (kind == Kind::concat) return std::make_unique<Concat>(shape);
  if (kind == Kind::preallocated) return std::make_unique<Preallocated>(shape);
  return std::make_unique<Paged>(shape);
}

}  // namespace kv
