// SPDX-License-Identifier: Apache-2.0
#include "generate.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace kv {
namespace {

CacheShape shape_of(const chapter::Options& options, const Asked& asked) {
  return {.layers = kLayers,
          .kv_heads = options.shape.kv_heads,
          .head_dim = options.shape.head_dim,
          .prompts = asked.prompts,
          .capacity = asked.capacity,
          .like = at::TensorOptions().device(options.device).dtype(options.dtype)};
}

}  // namespace

Generation::Generation(const chapter::Options& options, const Asked& asked, Kind kind)
    : kind_(kind),
      tokens_(asked.tokens),
      shape_(shape_of(options, asked)),
      model_(options, kLayers),
      attention_(by_kernel(kind, options)),
      prompt_(at::randn({shape_.batch(), shape_.longest(), model_.width()}, shape_.like)),
      prompt_lengths_(at::tensor(shape_.prompts, at::kLong).to(options.device)) {
  if (kind != Kind::none) {
    cache_ = make_cache(kind, shape_);
  } else {
    history_ = at::zeros({shape_.batch(), shape_.longest() + tokens_, model_.width()}, shape_.like);
    history_lengths_ = prompt_lengths_.clone();
  }
  if (!asked.cuda_graph) return;
  const at::Tensor x = prefill();
  cache_->make_room();
  graph_.emplace(x,
                 [this](const at::Tensor& in) { return model_.decode(in, attention_, *cache_); });
}

at::Tensor Generation::prefill() {
  end();
  if (cache_) {
    cache_->take_prompts();
  } else {
    history_.narrow(1, 0, prompt_.size(1)).copy_(prompt_);
    history_lengths_.copy_(prompt_lengths_);
  }
  return model_.prefill(prompt_, prompt_lengths_, cache_.get());
}

void Generation::end() {
  decoded_ = 0;
  if (cache_) cache_->clear();
}

at::Tensor Generation::decode(const at::Tensor& x) {
  ++decoded_;
  if (!cache_) return recompute(x);
  cache_->make_room();
  return graph_ ? (*graph_)(x) : model_.decode(x, attention_, *cache_);
}

// The whole sequence again, its new token at the end.
at::Tensor Generation::recompute(const at::Tensor& x) {
  const at::Tensor place = history_lengths_.view({-1, 1, 1}).expand({-1, 1, model_.width()});
  history_.scatter_(1, place, x.unsqueeze(1));
  history_lengths_.add_(1);
  return model_.prefill(history_.narrow(1, 0, shape_.longest() + decoded_), history_lengths_,
                        nullptr);
}

std::optional<Usage> Generation::usage() const {
  return cache_ ? std::optional(cache_->usage()) : std::nullopt;
}

}  // namespace kv
