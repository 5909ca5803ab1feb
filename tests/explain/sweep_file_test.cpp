// SPDX-License-Identifier: Apache-2.0
//
// A sweep survives its file; what is no sweep is refused in one sentence.
#include "explain/sweep_file.h"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>

#include "trace/files.h"
#include "trace/reader.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

explain::Sweep two_lines() {
  return {.chapter = "05_memory",
          .title = "one step of training",
          .x = "S",
          .facts = {{"device", "a \"quoted\" \\ device"}},
          .quantities = {{"peak", "peak of a step", "bytes", explain::SweepLimit{"device", 1e9}},
                         {"time", "time of a step", "us"}},
          .rows = {{"naive", 256, {1048576.0, 12.5}},
                   {"naive", 512, {std::nullopt, 99.0}, "out of memory"},
                   {"flash", 256, {}, "out of \x1b[31m memory"}}};
}

std::string file(const std::string& rows, const std::string& limit = "") {
  return R"({"chapter":"c","title":"t","x":"S","quantities":[{"key":"k","title":"q","unit":"us")" +
         limit + R"(}],"rows":[)" + rows + "]}";
}

constexpr const char* kRow = R"({"line":"a","x":1,"values":{"k":2}})";

}  // namespace

TEST_CASE("A sweep is read back as it was written") {
  const explain::Sweep sweep = explain::parse_sweep(explain::to_json(two_lines()));
  CHECK(sweep.chapter == "05_memory");
  CHECK(sweep.x == "S");
  CHECK(sweep.facts.front().value == "a \"quoted\" \\ device");
  REQUIRE(sweep.quantities.size() == 2);
  CHECK(sweep.quantities[0].limit->value == 1e9);
  CHECK_FALSE(sweep.quantities[1].limit);
  REQUIRE(sweep.rows.size() == 3);
  CHECK(sweep.rows[0].values[0] == 1048576.0);
  CHECK(sweep.rows[0].values[1] == 12.5);
  CHECK_FALSE(sweep.rows[1].values[0]);
  CHECK(sweep.rows[1].values[1] == 99.0);
  CHECK(sweep.rows[1].reason == "out of memory");
  CHECK(sweep.rows[2].values.size() == 2);
  CHECK(sweep.rows[2].reason == "out of \\x1b[31m memory");  // made printable on its way
}

TEST_CASE("A sweep's file may be gzip") {
  const std::string json = explain::to_json(two_lines());
  CHECK(explain::to_json(explain::parse_sweep(json)) == json);
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("prof-sweep-" + std::to_string(::getpid()) + ".json.gz");
  trace::write_file(file, trace::gzip(json));
  CHECK(explain::to_json(explain::read_sweep(file)) == json);
  std::filesystem::remove(file);
}

TEST_CASE("What is no sweep is refused with a reason") {
  const auto [text, why] = GENERATE(table<std::string, std::string>({
      {"", "no whole JSON"},
      {"{\"chapter\":", "no whole JSON"},
      {"[1]", "no object"},
      {R"({"traceEvents":[]})", "no chapter"},
      {file(""), "0 rows"},
      {file("1"), "no object"},
      {file(R"({"line":"a","x":1,"values":{}})"), "missing without a reason"},
      {file(R"({"line":"a","values":{"k":2}})"), "an x is not"},
      {file(R"({"line":"a","x":-1,"values":{"k":2}})"), "an x is not"},
      {file(R"({"line":"a","x":1,"values":{"k":-2}})"), "a value is not"},
      {file(R"({"line":"a","x":1,"values":{"k":1e19}})"), "a value is not"},
      {file(R"({"line":"a","x":1,"values":{"k":1e999}})"), "no whole JSON"},
      {file(R"({"line":"a","x":1,"values":{"k":"2"}})"), "k is no number"},
      {file(R"({"line":"a","x":1,"values":[2]})"), "no object"},
      {file(R"({"line":7,"x":1,"values":{"k":2}})"), "line is no text"},
      {file(R"({"x":1,"values":{"k":2}})"), "no line"},
      {file(std::string(kRow) + "," + kRow), "the same x twice"},
      {file(kRow, R"(,"limit":{"label":"device"})"), "a limit has no label, or a value"},
      {file(kRow, R"(,"limit":3)"), "no object"},
      {R"({"chapter":"c","title":"t","x":"S","quantities":{},"rows":[]})", "quantities is no list"},
      {R"({"chapter":"c","title":"t","x":"S","rows":[]})", "0 quantities"},
  }));
  CAPTURE(text);
  CHECK_THROWS_MATCHES(explain::parse_sweep(text), trace::ReadError,
                       MessageMatches(ContainsSubstring(why) && ContainsSubstring("is no sweep") &&
                                      !ContainsSubstring("\n")));
}

TEST_CASE("A sweep is bounded in rows, lines, texts and bytes") {
  const auto rows = [](int count, bool is_one_line) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += (i > 0 ? "," : "") + (R"({"line":"a)" + std::to_string(is_one_line ? 0 : i)) +
              R"(","x":)" + std::to_string(i) + R"(,"values":{"k":2}})";
    return file(text);
  };
  CHECK(explain::parse_sweep(rows(1024, true)).rows.size() == 1024);
  CHECK_THROWS_AS(explain::parse_sweep(rows(1025, true)), trace::ReadError);
  CHECK(explain::parse_sweep(rows(32, false)).rows.size() == 32);
  CHECK_THROWS_AS(explain::parse_sweep(rows(33, false)), trace::ReadError);
  const std::string name(401, 'a');
  CHECK_THROWS_AS(
      explain::parse_sweep(file(R"({"line":")" + name + R"(","x":1,"values":{"k":2}})")),
      trace::ReadError);
  CHECK_THROWS_MATCHES(explain::parse_sweep(file(kRow) + std::string(1 << 20, ' ')),
                       trace::ReadError, MessageMatches(ContainsSubstring("longer than")));
  CHECK_THROWS_AS(explain::parse_sweep(std::string(100'000, '[')), trace::ReadError);
}

TEST_CASE("What could not be read back is not written") {
  explain::Sweep sweep = two_lines();
  sweep.rows[0].values[0] = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(explain::to_json(sweep), std::invalid_argument);
  sweep = two_lines();
  sweep.rows.push_back(sweep.rows.front());
  CHECK_THROWS_AS(explain::to_json(sweep), std::invalid_argument);
  sweep = two_lines();
  sweep.rows[1].reason = "";
  CHECK_THROWS_AS(explain::to_json(sweep), std::invalid_argument);
  sweep = two_lines();
  sweep.rows[0].values.emplace_back(1.0);
  CHECK_THROWS_AS(explain::to_json(sweep), std::invalid_argument);
}
