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
#include <string>
#include <string_view>

namespace trace {

// What is left over is rounded, halves to even.
[[nodiscard]] bool parse_integer(std::string_view text, std::int64_t& result);

// Microseconds, which is what `ts` and `dur` are whatever displayTimeUnit says, to nanoseconds.
[[nodiscard]] bool parse_nanoseconds(std::string_view text, std::int64_t& result);

// The way back: 1500 is "1.500", -1 is "-0.001".
[[nodiscard]] std::string microseconds_text(std::int64_t ns);

}  // namespace trace
