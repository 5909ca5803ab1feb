// SPDX-License-Identifier: Apache-2.0
#include "pages.h"

#include <numeric>

namespace kv {

Pages::Pages(std::int64_t count) : count_(count), free_(static_cast<std::size_t>(count)) {
  std::iota(free_.rbegin(), free_.rend(), 0);
}

std::optional<std::int32_t> Pages::take() {
  if (free_.empty()) return std::nullopt;
  const std::int32_t page = free_.back();
  free_.pop_back();
  return page;
}

void Pages::give_back(std::int32_t page) {
  free_.push_back(page);
}

}  // namespace kv
