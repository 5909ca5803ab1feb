// SPDX-License-Identifier: Apache-2.0
//
// Who may write where: the pages of a pool, handed out one at a time and taken back.
//
//   kv::Pages pages(64);
//   const std::optional<std::int32_t> page = pages.take();   // nullopt: none is left
//   if (page) pages.give_back(*page);
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace kv {

class Pages {
 public:
  explicit Pages(std::int64_t count);

  // The one that was given back last, else the lowest.
  [[nodiscard]] std::optional<std::int32_t> take();
  void give_back(std::int32_t page);

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::int64_t taken() const {
    return count_ - static_cast<std::int64_t>(free_.size());
  }

 private:
  std::int64_t count_;
  std::vector<std::int32_t> free_;  // the next one is at the end
};

}  // namespace kv
