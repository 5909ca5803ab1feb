// SPDX-License-Identifier: Apache-2.0
//
// Every distinct text of a trace once: names, ids, shapes. A trace of 1e7 events holds a few
// thousand distinct names, so events refer to them by a 4-byte id.
//
//   trace::TextPool pool;
//   trace::TextId id = pool.add("aten::mul");   // the same id for the same text
//   assert(pool[id] == "aten::mul" && pool[0].empty());
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace trace {

using TextId = std::uint32_t;  // 0 is the empty text

class TextPool {
 public:
  TextPool();
  TextId add(std::string_view text);
  [[nodiscard]] std::string_view operator[](TextId id) const { return views_[id]; }
  [[nodiscard]] std::size_t size() const { return views_.size(); }
  // The id of a text that is in the pool, 0 where it is not.
  [[nodiscard]] TextId find(std::string_view text) const;

 private:
  std::deque<std::string> owned_;  // a deque never moves its elements: the views stay valid
  std::vector<std::string_view> views_;
  std::unordered_map<std::string_view, TextId> ids_;
};

}  // namespace trace
