// SPDX-License-Identifier: Apache-2.0
#include "trace/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace trace {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();

bool is_digit(char c) {
  return static_cast<unsigned char>(c - '0') < 10;
}

// The digits of a number as mantissa * 10^exponent. Digits beyond the 19 that fit matter for
// rounding only: the first one of them and whether any other is not 0.
struct Decimal {
  std::uint64_t mantissa = 0;
  int exponent = 0;
  int next_digit = 0;
  bool more = false;
  bool seen = false;  // at least one digit
  bool full = false;

  void push(int digit, bool is_fraction) {
    seen = true;
    if (mantissa < 1'000'000'000'000'000'000u && !full) {
      mantissa = 10 * mantissa + static_cast<unsigned>(digit);
      exponent -= is_fraction;
      return;
    }
    if (full) {
      more |= digit != 0;
    } else {
      next_digit = digit;
      full = true;
    }
    exponent += !is_fraction;
  }

  // Makes the exponent 0.
  bool to_integer() {
    for (; exponent > 0 && mantissa != 0; --exponent) {
      if (mantissa > std::numeric_limits<std::uint64_t>::max() / 10) return false;
      mantissa *= 10;
    }
    for (; exponent < 0 && (mantissa != 0 || next_digit != 0); ++exponent) {
      more |= next_digit != 0;
      next_digit = static_cast<int>(mantissa % 10);
      mantissa /= 10;
    }
    const bool is_odd = mantissa % 2 == 1;
    if (next_digit > 5 || (next_digit == 5 && (more || is_odd))) ++mantissa;
    return mantissa <= kMax;
  }
};

// Nearly every number of a trace: no sign, no exponent, at most 19 digits when scaled.
template <int scale>
bool parse_plain(const char* next, const char* end, std::int64_t& result) {
  constexpr std::uint64_t kPowers[] = {1, 10, 100, 1000};
  const char* first = next;
  std::uint64_t number = 0;
  for (; next != end && is_digit(*next); ++next) {
    number = 10 * number + static_cast<unsigned>(*next - '0');
  }
  const auto digits = next - first;
  int missing = scale;
  if (next != end && *next == '.') {
    for (++next; missing > 0 && next != end && is_digit(*next); ++next, --missing) {
      number = 10 * number + static_cast<unsigned>(*next - '0');
    }
  }
  if (next != end || digits == 0 || digits + scale > 19) return false;
  number *= kPowers[missing];  // below 10^19, which 64 bits without a sign hold
  if (number > kMax) return false;
  result = static_cast<std::int64_t>(number);
  return true;
}

// Any number, quoted or not, as an integer after multiplication with 10^scale.
bool parse_any(const char* next, const char* end, int scale, std::int64_t& result) {
  while (end != next && static_cast<unsigned char>(end[-1]) <= ' ') --end;
  if (end - next >= 2 && *next == '"' && end[-1] == '"') ++next, --end;
  const bool is_negative = next != end && *next == '-';
  next += is_negative;
  Decimal number{.exponent = scale};
  for (; next != end && is_digit(*next); ++next) number.push(*next - '0', false);
  if (next != end && *next == '.') {
    for (++next; next != end && is_digit(*next); ++next) number.push(*next - '0', true);
  }
  if (number.seen && next != end && (*next == 'e' || *next == 'E')) {
    const bool is_small = ++next != end && *next == '-';
    if (next != end && (*next == '-' || *next == '+')) ++next;
    if (next == end) return false;
    int exponent = 0;
    for (; next != end && is_digit(*next); ++next) {
      exponent = std::min(10 * exponent + (*next - '0'), 100'000);
    }
    number.exponent += is_small ? -exponent : exponent;
  }
  if (!number.seen || next != end || !number.to_integer()) return false;
  const auto magnitude = static_cast<std::int64_t>(number.mantissa);
  result = is_negative ? -magnitude : magnitude;
  return true;
}

template <int scale>
bool parse(std::string_view text, std::int64_t& result) {
  const char* end = text.data() + text.size();
  return parse_plain<scale>(text.data(), end, result) || parse_any(text.data(), end, scale, result);
}

}  // namespace

bool parse_integer(std::string_view text, std::int64_t& result) {
  return parse<0>(text, result);
}

bool parse_nanoseconds(std::string_view text, std::int64_t& result) {
  return parse<3>(text, result);
}

std::string microseconds_text(std::int64_t ns) {
  const bool is_negative = ns < 0;
  const std::uint64_t size =
      is_negative ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  return fmt::format("{}{}.{:03}", is_negative ? "-" : "", size / 1000, size % 1000);
}

}  // namespace trace
