// SPDX-License-Identifier: Apache-2.0
//
// Decoding token by token, from a recording of it: what a token writes into its key-value cache and
// reads from it, how long it takes and how that grows, and how idle the GPU is meanwhile.
//
//   const trace::OpTree tree(trace);
//   if (const auto facts = explain::decode_facts(tree))   // nullopt: not a recording of this kind
//     std::cout << explain::to_text(*facts);
//
// Annotations: `prefill` begins a generation, each `decode` behind it is a token (of each sequence
// of the batch), `cache` stands around what writes the cache or copies it. Metadata: `cache` names
// the kind; cache_layers, prompt_tokens (of all sequences), cache_tokens and cache_slots (of all
// sequences, at the end of a generation) and held_cache_bytes (there before the first token) are
// whole numbers.
//
// Bytes come from the shapes of the ops' inputs, so a CUDA graph's tokens have none. Byte counts
// are doubles: a hostile file's shapes do not overflow them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trace/tree.h"

namespace explain {

// Of one token (of all sequences and layers), on average.
struct TokenBytes {
  double own = 0;      // the token's key and value
  double written = 0;  // into the cache, or into a copy of it
  double read = 0;     // of the cache, by what copies it and by attention
  double least = 0;    // that attention has to read: each key and value once
};

struct DecodeFacts {
  std::string cache;  // "concat"; safe for a terminal
  std::int64_t generations = 0;
  std::int64_t tokens = 0;  // of the shortest generation

  // In us. A token ends with its last GPU operation (without a GPU with its annotation); its time
  // is what lies between that and the end of the one before it.
  double prefill_us = 0;             // median
  double token_us = 0;               // median over all tokens
  double first_us = 0, last_us = 0;  // medians over the first and the last quarter
  double slope_us = 0;               // per token, between the middles of these

  std::optional<TokenBytes> bytes;
  std::optional<double> cache_allocations,
      allocations;  // per token; nullopt without memory records

  std::int64_t cache_tokens = 0, cache_slots = 0;  // at the end of a generation
  double final_bytes = 0;                          // of the tokens in the cache
  double peak_bytes = 0;  // of everything that is the cache's, at once; 0: not recorded
  double slot_bytes = 0;  // of a token: 2 Hkv D of each layer; 0 where shape or dtype is not there

  // Of decoding on a GPU.
  bool on_gpu = false;
  double gap_us = 0;      // median from a token's last GPU operation to the next one's first
  double idle_share = 0;  // of the time from the first to the last GPU operation
  std::int64_t graph_launches = 0, graph_operations = 0;  // of all tokens; GPU operations by replay
  std::int64_t all_tokens = 0;                            // of all generations

  // How much longer the last tokens take than the first ones.
  [[nodiscard]] double growth() const { return first_us > 0 ? last_us / first_us : 1; }
  [[nodiscard]] double wasted_bytes() const {
    return slot_bytes * static_cast<double>(cache_slots - cache_tokens);
  }
};

[[nodiscard]] std::optional<DecodeFacts> decode_facts(const trace::OpTree& tree);

// One fact a line, each with its end. Safe for a terminal.
[[nodiscard]] std::string to_text(const DecodeFacts& facts);

}  // namespace explain
