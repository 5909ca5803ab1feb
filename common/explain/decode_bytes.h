// SPDX-License-Identifier: Apache-2.0
//
// What ops move of a key-value cache, told by the shapes of their inputs. Private to
// common/explain: others ask decode_facts() (decode.h).
//
//   CacheBytes reader(tree, 2);   // bytes of a number
//   const CacheBytes::Moved moved = reader.of_token(forward, forwards, least_of_a_layer);
//   if (Stretches(tree, "cache").contains(block.from_ns)) ...
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "explain/forwards.h"
#include "trace/tree.h"

namespace explain {

class CacheBytes {
 public:
  CacheBytes(const trace::OpTree& tree, double element_bytes)
      : tree_(tree), element_bytes_(element_bytes) {}

  struct Moved {
    double written = 0, read = 0;
  };
  // By the ops right below a token's annotations `cache`, and by its attention. `least`: what the
  // decode kernel reads in a layer; how long the sequences are stands in no shape.
  [[nodiscard]] Moved of_token(const Forward& token, double least);

 private:
  [[nodiscard]] bool is_in_cache(std::uint32_t op) const;
  // In numbers, not bytes.
  [[nodiscard]] const Moved& shapes_of(std::uint32_t op);

  const trace::OpTree& tree_;
  double element_bytes_;
  std::map<std::pair<trace::TextId, trace::TextId>, Moved> known_;  // by name and input shapes
};

// The stretches of time of all annotations of one name.
class Stretches {
 public:
  Stretches(const trace::OpTree& tree, std::string_view name);

  [[nodiscard]] bool contains(std::int64_t time_ns) const;

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> stretches_;  // in order, none in another
};

}  // namespace explain
