// SPDX-License-Identifier: Apache-2.0
#include "trace/numbers.h"

#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <string>

namespace {

std::optional<std::int64_t> ns(std::string_view text) {
  std::int64_t result = 0;
  return trace::parse_nanoseconds(text, result) ? std::optional(result) : std::nullopt;
}

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t result = 0;
  return trace::parse_integer(text, result) ? std::optional(result) : std::nullopt;
}

}  // namespace

TEST_CASE("microseconds become exact nanoseconds") {
  CHECK(ns("0") == 0);
  CHECK(ns("5177638103355.009") == 5177638103355009);
  CHECK(ns("96.642") == 96642);
  CHECK(ns("1.5") == 1500);
  CHECK(ns("7") == 7000);
  CHECK(ns("-2.001") == -2001);
  // Absolute times have more digits than a double holds: ...125 would come out as ...120 or ...130.
  CHECK(ns("1712167891234567.125") == 1712167891234567125);
  CHECK(ns("1712167891234567.126") == 1712167891234567126);
  CHECK(ns("9223372036854775.807") == INT64_MAX);
  CHECK(ns("-9223372036854775.807") == -INT64_MAX);
}

TEST_CASE("digits beyond the nanosecond are rounded, halves to even") {
  CHECK(ns("1.0004") == 1000);
  CHECK(ns("1.0005") == 1000);
  CHECK(ns("1.0015") == 1002);
  CHECK(ns("1.00050000000000000000001") == 1001);
  CHECK(ns("0.9999999999999999999999999") == 1000);
  CHECK(ns("1712167891234567.1255") == 1712167891234567126);
  CHECK(ns("1712167891234567.12549999999") == 1712167891234567125);
}

TEST_CASE("exponents and quotes are numbers too") {
  CHECK(ns("1.5e3") == 1500000);
  CHECK(ns("15E-1") == 1500);
  CHECK(ns("1.712167891234567125e+15") == 1712167891234567125);
  CHECK(ns("1e-400") == 0);
  CHECK(ns("0e999999999999") == 0);
  CHECK(ns("\"5177638103355.009\"") == 5177638103355009);
  CHECK(ns("12  ") == 12000);
  CHECK(integer("7.0") == 7);
  CHECK(integer("\"42\"") == 42);
}

TEST_CASE("what is no number or too large is refused and leaves the result alone") {
  for (const char* text :
       {"", "\"\"", "-", ".", "abc", "1a", "0x10", "NaN", "Infinity", "null", "true", "1.2.3", "1e",
        "1e+", "--1", "{", "9223372036854775.808", "1e300", "99999999999999999999999"}) {
    INFO(text);
    std::int64_t result = -7;
    CHECK_FALSE(trace::parse_nanoseconds(text, result));
    CHECK(result == -7);
  }
  CHECK(integer("9223372036854775807") == INT64_MAX);
  CHECK_FALSE(integer("9223372036854775808"));
  CHECK_FALSE(integer("18446744073709551616"));
}
