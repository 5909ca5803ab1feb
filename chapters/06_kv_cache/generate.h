// SPDX-License-Identifier: Apache-2.0
//
// A model, its cache and what it is asked to do: write so many tokens behind these prompts.
//
//   kv::Generation generation(options, asked, kv::Kind::paged);
//   at::Tensor x = generation.prefill();                          // [B, E]
//   for (std::int64_t i = 0; i < generation.tokens(); ++i) x = generation.decode(x);
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cache.h"
#include "choose.h"
#include "graph.h"
#include "model.h"

namespace kv {

class Generation {
 public:
  // Where a CUDA graph is asked for, it is captured here.
  Generation(const chapter::Options& options, const Asked& asked, Kind kind);

  // The whole prompts at once, into an empty cache. Returns the first token to go on from.
  [[nodiscard]] at::Tensor prefill();
  // One token more. Throws CacheFull.
  [[nodiscard]] at::Tensor decode(const at::Tensor& x);

  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] bool has_graph() const { return graph_.has_value(); }
  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] const at::Tensor& prompt() const { return prompt_; }  // [B, S, E]
  [[nodiscard]] const std::vector<std::int64_t>& prompts() const { return shape_.prompts; }
  // Forgets all tokens; what a cache had allocated for them is free.
  void end();
  // Nullopt where nothing is kept.
  [[nodiscard]] std::optional<Usage> usage() const;

 private:
  [[nodiscard]] at::Tensor recompute(const at::Tensor& x);

  Kind kind_;
  std::int64_t tokens_;
  CacheShape shape_;
  Model model_;
  Attention attention_;
  at::Tensor prompt_;             // [B, S, E]
  at::Tensor prompt_lengths_;     // [B] int64
  std::unique_ptr<Cache> cache_;  // null for Kind::none
  std::optional<TokenGraph> graph_;
  // Kind::none: all tokens so far, and how many each sequence has.
  at::Tensor history_, history_lengths_;  // [B, longest prompt + tokens, E], [B] int64
  std::int64_t decoded_ = 0;
};

// What a generation does, phase by phase; `see` is called with the result of each.
using See = std::function<void(const at::Tensor&)>;
using Generate = std::function<void(Generation&, const See&)>;

}  // namespace kv
