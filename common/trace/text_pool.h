// SPDX-License-Identifier: Apache-2.0
//
// Every distinct text of a trace once: names, ids, shapes. A trace of 1e7 events holds a few
// thousand distinct names, so events refer to them by a 4-byte id.
//
//   trace::TextPool pool;
//   trace::TextId id = pool.add("aten::mul");   // the same id for the same text
//   assert(pool[id] == "aten::mul" && pool[0].empty());
//
// Views stay valid as long as the pool lives, also when it grows or is moved. It cannot be copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace trace {

using TextId = std::uint32_t;  // 0 is the empty text

class TextPool {
 public:
  TextPool();
  TextPool(TextPool&&) = default;
  TextPool& operator=(TextPool&&) = default;

  TextId add(std::string_view text);
  [[nodiscard]] std::string_view operator[](TextId id) const { return views_[id]; }
  [[nodiscard]] std::size_t size() const { return views_.size(); }
  // The id of a text that is in the pool, 0 where it is not.
  [[nodiscard]] TextId find(std::string_view text) const;

 private:
  struct Slot {
    std::uint32_t hash = 0;
    TextId id = 0;  // 0 marks a free slot: the empty text is never looked up here
  };
  [[nodiscard]] std::size_t slot_of(std::string_view text, std::uint32_t hash) const;
  [[nodiscard]] std::string_view stored(std::string_view text);
  void grow();

  std::vector<std::unique_ptr<char[]>> blocks_;  // never moved or resized: views point into them
  std::size_t block_left_ = 0;
  char* block_next_ = nullptr;
  std::vector<std::string_view> views_;
  std::vector<Slot> slots_;  // open addressing; the size is a power of two
};

}  // namespace trace
