// SPDX-License-Identifier: Apache-2.0
//
// The table for programs and for pages: what is in it, and that no name can break it.
#include "trace/table_formats.h"

#include <simdjson.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "trace/reader.h"
#include "written.h"

using Catch::Matchers::ContainsSubstring;

namespace {

trace::Averages averages_of(const std::string& name, bool by_shape = false) {
  const trace::Trace trace =
      written({{.name = name,
                .start = 0,
                .end = 3500,
                .id = 1,
                .arguments = R"("Input Dims": [[2, 3], []], "Input type": ["float", "Scalar"])"},
               {.name = "k", .category = "kernel", .start = 100, .end = 1100, .id = 1}},
              {}, "\"with_flops\": 1");
  return trace::key_averages(trace, {.group_by_input_shape = by_shape});
}

std::vector<std::string> lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> result;
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

}  // namespace

TEST_CASE("csv: one header, stable names with units, one line per row") {
  const std::vector<std::string> got = lines(trace::csv(averages_of("aten::mul")));
  REQUIRE(got.size() == 3);
  CHECK(got[0] ==
        "name,on_device,is_annotation,is_async,is_top_level,calls,self_cpu_time_us,"
        "self_cpu_percent,cpu_time_total_us,cpu_total_percent,cpu_time_avg_us,"
        "self_device_time_us,self_device_percent,device_time_total_us,device_time_avg_us,"
        "cpu_memory_bytes,self_cpu_memory_bytes,device_memory_bytes,self_device_memory_bytes,"
        "flops,input_shapes");
  CHECK(got[1] ==
        "aten::mul,false,false,false,true,1,3.500,100.00,3.500,100.00,3.500,1.000,100.00,1.000,"
        "1.000,0,0,0,0,6,");
  CHECK(
      got[2] ==
      "k,true,false,false,true,1,0.000,0.00,0.000,0.00,0.000,1.000,100.00,1.000,1.000,0,0,0,0,0,");
}

TEST_CASE("csv: text that holds commas and quotes is quoted, a share of nothing is empty") {
  const std::string text = trace::csv(averages_of(R"(say \"a, b\")", true));
  CHECK_THAT(text, ContainsSubstring("\n\"say \"\"a, b\"\"\",false,"));
  CHECK_THAT(text, ContainsSubstring(",\"[[2, 3], []]\"\n"));
  const trace::Trace zero = written({{.name = "a", .start = 5, .end = 5}});
  CHECK_THAT(trace::csv(trace::key_averages(zero)), ContainsSubstring(",0.000,,0.000,,0.000,"));
}

TEST_CASE("json: the same values, whatever the name holds") {
  const std::string text = trace::json(averages_of(R"(a \"b\" \\ c\u0001)", true));
  simdjson::dom::parser parser;
  const simdjson::dom::element root = parser.parse(simdjson::padded_string(text));
  CHECK(std::string_view(root["device"]) == "CUDA");
  CHECK(double(root["self_cpu_time_total_us"]) == 3.5);
  const simdjson::dom::element row = root["rows"].at(0);
  CHECK(std::string_view(row["name"]) == R"(a "b" \ c\x01)");
  CHECK(std::int64_t(row["calls"]) == 1);
  CHECK(double(row["self_device_time_us"]) == 1.0);
  CHECK(std::int64_t(row["flops"]) == 0);
  CHECK(std::int64_t(row["input_shapes"].at(0).at(1)) == 3);
  CHECK(trace::json(trace::Averages{}).find("\"rows\": [\n]") != std::string::npos);
}

TEST_CASE("rows come in the order and the number that was asked for") {
  const trace::Averages averages = averages_of("aten::mul");
  CHECK(lines(trace::csv(averages, {.sort_by = "key", .row_limit = 1}))[1].starts_with("k,"));
  CHECK(lines(trace::csv(averages, {.row_limit = 1})).size() == 2);
  CHECK_THROWS_AS(trace::json(averages, {.sort_by = "speed"}), trace::TableError);
}

TEST_CASE("markdown: PyTorch's columns, and names that Markdown would take for its own") {
  const std::vector<std::string> got =
      lines(trace::markdown(averages_of("_a|b* `c` <d>"), {.header = "run|1"}));
  REQUIRE(got.size() == 10);
  CHECK(got[0] == "run\\|1");
  CHECK_THAT(got[2], ContainsSubstring("| Name | Self CPU % |"));
  CHECK_THAT(got[3], ContainsSubstring("| :-- | --: |"));
  CHECK_THAT(got[4], ContainsSubstring(R"(| \_a\|b\* \`c\` \<d\> | 100.00% |)"));
  CHECK(got[7] == "Self CPU time total: 3.500us");
  CHECK(trace::markdown(trace::Averages{}).empty());
}
