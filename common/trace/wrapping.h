// SPDX-License-Identifier: Apache-2.0
//
// Sums of 64-bit numbers that a file gave: they wrap where a hostile file holds absurd ones, which
// a plain + may not.
//
//   std::int64_t end_ns = trace::wrapping_add(event.start_ns, event.duration_ns);
#pragma once

#include <cstdint>

namespace trace {

[[nodiscard]] constexpr std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

[[nodiscard]] constexpr std::int64_t wrapping_subtract(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

}  // namespace trace
