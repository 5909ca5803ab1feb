// SPDX-License-Identifier: Apache-2.0
//
// Exact integers from the text of a JSON number. A double cannot hold the nanoseconds since 1970,
// so times never pass through one.
//
//   std::int64_t ns = 0;
//   trace::parse_nanoseconds("1712167891234567.125", ns);  // true, ns == 1712167891234567125
//
// Accepted: what JSON calls a number, and one in quotes. Not a number or beyond 64 bits: false, and
// `result` stays as it was.
#pragma once

#include <cstdint>
#include <string_view>

namespace trace {

// `text` * 10^scale as an integer, scale 0 to 3; what is left over is rounded, halves to even.
[[nodiscard]] bool parse_scaled(std::string_view text, int scale, std::int64_t& result);

[[nodiscard]] inline bool parse_integer(std::string_view text, std::int64_t& result) {
  return parse_scaled(text, 0, result);
}

// Microseconds, which is what `ts` and `dur` are whatever displayTimeUnit says, to nanoseconds.
[[nodiscard]] inline bool parse_nanoseconds(std::string_view text, std::int64_t& result) {
  return parse_scaled(text, 3, result);
}

}  // namespace trace
