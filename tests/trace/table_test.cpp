// SPDX-License-Identifier: Apache-2.0
//
// The text of the table, from rows made by hand.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "trace/key_averages.h"

using Catch::Matchers::ContainsSubstring;
using trace::Averages;
using trace::Row;
using trace::TableError;
using trace::TableOptions;

namespace {

Row cpu_row(const std::string& name, double self, double total, std::int64_t count = 1) {
  Row row;
  row.name = name;
  row.is_top_level = true;
  row.count = count;
  row.self_cpu_time_total = self;
  row.cpu_time_total = total;
  return row;
}

Row device_row(const std::string& name, double total, bool is_annotation = false) {
  Row row;
  row.name = name;
  row.on_device = true;
  row.is_annotation = is_annotation;
  row.is_top_level = true;
  row.count = 1;
  row.device_time_total = row.self_device_time_total = total;
  return row;
}

Averages averages_of(std::vector<Row> rows) {
  Averages averages;
  averages.rows = std::move(rows);
  return averages;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

// Cells of a line, cut at runs of two or more blanks.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> result;
  std::size_t at = line.find_first_not_of(' ');
  while (at != std::string::npos) {
    const std::size_t end = line.find("  ", at);
    result.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(' ', end);
  }
  return result;
}

// The cell of the only row's column.
std::string cell(const Averages& averages, const std::string& title, TableOptions options = {}) {
  const std::vector<std::string> text = lines(averages.table(options));
  const std::vector<std::string> titles = cells(text.at(1));
  const std::vector<std::string> row = cells(text.at(3));
  for (std::size_t i = 0; i < titles.size(); ++i)
    if (titles[i] == title) return row.at(i);
  return "no such column";
}

// The names of the rows that a table shows, in order.
std::string shown(const Averages& averages, const TableOptions& options) {
  std::string result;
  int rules = 0;
  for (const std::string& line : lines(averages.table(options))) {
    if (line.starts_with("---")) {
      ++rules;
    } else if (rules == 2) {
      result += (result.empty() ? "" : " ") + cells(line).at(0);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("the whole text of a small table") {
  const Averages averages =
      averages_of({cpu_row("aten::mul", 30, 40, 4), cpu_row("aten::add", 10, 10)});
  CHECK(averages.table() ==
        "-------------  ------------  ------------  ------------  ------------  ------------  "
        "------------  \n"
        "         Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # "
        "of Calls  \n"
        "-------------  ------------  ------------  ------------  ------------  ------------  "
        "------------  \n"
        "    aten::mul        75.00%      30.000us       100.00%      40.000us      10.000us       "
        "      4  \n"
        "    aten::add        25.00%      10.000us        25.00%      10.000us      10.000us       "
        "      1  \n"
        "-------------  ------------  ------------  ------------  ------------  ------------  "
        "------------  \n"
        "Self CPU time total: 40.000us\n");
  CHECK(averages_of({}).table().empty());
}

TEST_CASE("header and the note on top-level events stand above, under rules of the table's width") {
  const Averages averages = averages_of({cpu_row("op", 1, 1)});
  const std::vector<std::string> text =
      lines(averages.table({.top_level_events_only = true, .header = "Step 3"}));
  const std::string rule(text.at(4).size() - 2, '=');
  CHECK(text[0] == rule);
  CHECK(text[1] == "Step 3");
  CHECK(text[2] == rule);
  CHECK(text[3] == "This report only display top-level ops statistics");
}

TEST_CASE("times: each in its own unit, negative ones always in us") {
  const auto time = [](double us, const std::string& unit = "") {
    return cell(averages_of({cpu_row("op", us, us)}), "CPU total", {.time_unit = unit});
  };
  CHECK(time(0) == "0.000us");
  CHECK(time(999.9994) == "999.999us");
  CHECK(time(999.9999) == "1000.000us");
  CHECK(time(1000) == "1.000ms");
  CHECK(time(999'999.9) == "1000.000ms");
  CHECK(time(1e6) == "1.000s");
  CHECK(time(-4) == "-4.000us");
  CHECK(time(-5e6) == "-5000000.000us");
  CHECK(time(1234.5, "s") == "0.001s");
  CHECK(time(1234.5, "ms") == "1.234ms");  // a tie as the double lies
  CHECK(time(1234.5, "us") == "1234.500us");
  // 181497 ns in 6 calls, the sum of doubles that torch gets, and the exact one.
  CHECK(cell(averages_of({cpu_row("op", 1, 181.49699999999996, 6)}), "CPU time avg") == "30.249us");
  CHECK(cell(averages_of({cpu_row("op", 1, 181.497, 6)}), "CPU time avg") == "30.250us");
}

TEST_CASE("the time unit counts for the footer, too") {
  CHECK_THAT(averages_of({cpu_row("op", 1500, 1500)}).table({.time_unit = "s"}),
             ContainsSubstring("Self CPU time total: 0.002s\n"));
}

TEST_CASE("shares are of all rows' self time; of nothing they are NaN") {
  const Averages averages = averages_of({cpu_row("step", 1, 300), cpu_row("op", 2, 2)});
  CHECK(cell(averages, "CPU total %") == "10000.00%");
  CHECK(cell(averages, "Self CPU %", {.row_limit = 1}) == "33.33%");
  CHECK(cell(averages_of({cpu_row("op", 0, 0)}), "Self CPU %") == "NaN");
  CHECK(cell(averages_of({cpu_row("op", 0, 5)}), "CPU total %") == "NaN");
}

TEST_CASE("asynchronous rows have no share of the total") {
  Averages averages = averages_of({cpu_row("gloo:all_reduce", 0, 50), cpu_row("op", 2, 2)});
  averages.rows[0].is_async = true;
  CHECK(cell(averages, "CPU total %") == "0");
  CHECK(cell(averages, "Self CPU %") == "0.00%");
}

TEST_CASE("device columns where a row has device time; annotations are not in the sum") {
  Averages averages =
      averages_of({device_row("gemm", 30), device_row("fill", 10), device_row("span", 80, true)});
  averages.use_device = "CUDA";
  CHECK(cell(averages, "Self CUDA") == "30.000us");
  CHECK(cell(averages, "Self CUDA %") == "75.00%");
  CHECK(cell(averages, "CUDA total") == "30.000us");
  CHECK(cell(averages, "CUDA time avg") == "30.000us");
  CHECK(cell(averages, "Self CPU %") == "NaN");
  CHECK_THAT(averages.table(), ContainsSubstring("200.00%"));
  CHECK_THAT(averages.table(), ContainsSubstring("Self CUDA time total: 40.000us\n"));

  averages.use_device = "XPU";
  CHECK(cell(averages, "Self XPU") == "30.000us");

  averages.rows = {cpu_row("op", 1, 1)};
  CHECK(cell(averages, "Self XPU") == "no such column");
  CHECK_THAT(averages.table(), !ContainsSubstring("XPU"));
}

TEST_CASE("memory columns and units") {
  Averages averages = averages_of({cpu_row("op", 1, 1)});
  averages.use_device = "CUDA";
  CHECK(cell(averages, "CPU Mem") == "no such column");
  averages.profile_memory = true;
  const auto memory = [&](std::int64_t bytes) {
    averages.rows[0].cpu_memory_usage = bytes;
    return cell(averages, "CPU Mem");
  };
  CHECK(memory(0) == "0 B");
  CHECK(memory(1023) == "1023 B");
  CHECK(memory(1024) == "1.00 KB");
  CHECK(memory(-1536) == "-1.50 KB");
  CHECK(memory(1024 * 1024 - 1) == "1024.00 KB");
  CHECK(memory(816LL << 20) == "816.00 MB");
  CHECK(memory(-(9LL << 28)) == "-2.25 GB");
  CHECK(memory(std::numeric_limits<std::int64_t>::min()) == "-8589934592.00 GB");

  CHECK(cell(averages, "CUDA Mem") == "no such column");
  averages.rows[0].device_memory_usage = averages.rows[0].self_device_memory_usage = 512;
  CHECK(cell(averages, "CUDA Mem") == "512 B");
  CHECK(cell(averages, "Self CUDA Mem") == "512 B");
  averages.use_device = "";
  CHECK_THAT(averages.table(), !ContainsSubstring("512 B"));
}

TEST_CASE("long names are cut, counted in characters") {
  const auto name = [](const std::string& text, std::optional<int> width = 55) {
    return cells(lines(averages_of({cpu_row(text, 1, 1)}).table({.max_name_column_width = width}))
                     .at(3))
        .at(0);
  };
  CHECK(name(std::string(51, 'x')) == std::string(51, 'x'));
  CHECK(name(std::string(52, 'x')) == std::string(52, 'x') + "...");
  CHECK(name(std::string(60, 'x')) == std::string(52, 'x') + "...");
  CHECK(name(std::string(60, 'x'), std::nullopt) == std::string(60, 'x'));
  CHECK(name("cudaStreamIsCapturing", 25) == "cudaStreamIsCapturing");
  CHECK(name("cudaStreamWaitEvents__", 25) == "cudaStreamWaitEvents__...");
  CHECK(name("abcdef", 4) == "a...");
  CHECK(name("abcdef", 3) == "...");
  CHECK(name("abcdef", 2) == "abcde...");  // text[:-1]
  CHECK(name("abcdef", 0) == "abc...");
  std::string wide;
  for (int i = 0; i < 52; ++i) wide += "é";
  CHECK(name(wide) == wide + "...");
  CHECK(name(wide.substr(2)) == wide.substr(2));
}

TEST_CASE("columns are as wide as their text and 4 more, within the limit") {
  CHECK(lines(averages_of({cpu_row("漢字", 1, 1)}).table())[0].starts_with("------  ---"));
  CHECK(lines(averages_of({cpu_row(std::string(60, 'x'), 1, 1)}).table())[0].starts_with(
      std::string(55, '-') + "  -"));
  CHECK(lines(averages_of({cpu_row(std::string(60, 'x'), 1, 1)})
                  .table({.max_name_column_width = std::nullopt}))[0]
            .starts_with(std::string(64, '-') + "  -"));
}

TEST_CASE("the shapes column is cut without a sign of it") {
  Averages averages = averages_of({cpu_row("mm", 1, 1), cpu_row("add", 1, 1)});
  averages.rows[0].input_shapes = "[[1, 2], [3, 4]]";
  averages.rows[1].input_shapes = "[]";
  CHECK(cell(averages, "Input Shapes") == "[[1, 2], [3, 4]]");
  CHECK(lines(averages.table())[0].ends_with("  --------------------  "));
  CHECK_THAT(averages.table({.max_shapes_column_width = 5}),
             ContainsSubstring("             1  [[1,   \n"));
  averages.rows[0].input_shapes = "[]";
  CHECK(cell(averages, "Input Shapes") == "no such column");
}

TEST_CASE("FLOPs: one unit, that of the smallest") {
  Averages averages =
      averages_of({cpu_row("mul", 1, 1), cpu_row("mm", 1, 1), cpu_row("copy", 1, 1)});
  averages.rows[0].flops = 98'304;
  averages.rows[1].flops = 103'079'215'104;
  CHECK(cell(averages, "Total KFLOPs") == "no such column");
  averages.with_flops = true;
  CHECK(cell(averages, "Total KFLOPs") == "98.304");
  CHECK_THAT(averages.table(), ContainsSubstring("  103079215.104  \n"));
  CHECK_THAT(averages.table(), ContainsSubstring("            --  \n"));
  averages.rows[0].flops = 999;
  CHECK(cell(averages, "Total FLOPs") == "999.000");
  averages.rows[0].flops = 0;
  CHECK_THAT(averages.table(), ContainsSubstring("Total GFLOPs"));
  averages.rows[1].flops = 4'000'000'000'000'000'000;
  CHECK_THAT(averages.table(), ContainsSubstring("Total PFLOPs"));
  averages.rows[1].flops = 0;
  CHECK_THAT(averages.table(), !ContainsSubstring("FLOPs"));
}

TEST_CASE("row_limit cuts rows and nothing else; below 0 it cuts none") {
  const Averages averages =
      averages_of({cpu_row("a", 1, 1), cpu_row("b", 2, 2), cpu_row("c", 3, 3)});
  CHECK(shown(averages, {.row_limit = 2}) == "a b");
  CHECK(shown(averages, {.row_limit = 0}).empty());
  CHECK(shown(averages, {.row_limit = -1}) == "a b c");
  CHECK(shown(averages, {.row_limit = -7}) == "a b c");
  CHECK_THAT(averages.table({.row_limit = 0}), ContainsSubstring("Self CPU time total: 6.000us"));
  std::vector<Row> many;
  for (int i = 0; i < 120; ++i) many.push_back(cpu_row("row" + std::to_string(i), 1, 1));
  CHECK(lines(averages_of(many).table()).size() == 100 + 5);
}

TEST_CASE("top-level rows alone; the others do not count toward the limit") {
  Averages averages = averages_of({cpu_row("a", 1, 1), cpu_row("b", 2, 2), cpu_row("c", 3, 3)});
  averages.rows[0].is_top_level = false;
  CHECK(shown(averages, {.row_limit = 1, .top_level_events_only = true}) == "b");
}

TEST_CASE("sorting: largest first, equal ones in table order") {
  Averages averages = averages_of(
      {cpu_row("a", 1, 5, 2), cpu_row("b", 7, 5), cpu_row("c", 3, 9, 3), device_row("d", 4)});
  averages.rows[0].cpu_memory_usage = 4;
  averages.rows[1].self_device_memory_usage = 4;
  averages.rows[2].flops = 4;
  averages.rows[3].device_memory_usage = 4;
  averages.use_device = "CUDA";
  const auto by = [&](const std::string& key) { return shown(averages, {.sort_by = key}); };
  CHECK(by("") == "a b c d");
  CHECK(by("cpu_time_total") == "c a b d");
  CHECK(by("self_cpu_time_total") == "b c a d");
  CHECK(by("cpu_time") == "b c a d");
  CHECK(by("count") == "c a b d");
  CHECK(by("cuda_time_total") == "d a b c");
  CHECK(by("xpu_time_total") == by("cuda_time_total"));
  CHECK(by("device_time_total") == by("cuda_time_total"));
  CHECK(by("self_privateuse1_time_total") == "d a b c");
  CHECK(by("cuda_time") == "d a b c");
  CHECK(by("cpu_memory_usage") == "a b c d");
  CHECK(by("self_cuda_memory_usage") == "b a c d");
  CHECK(by("xpu_memory_usage") == "d a b c");
  CHECK(by("self_cpu_memory_usage") == "a b c d");
  CHECK(by("flops") == "c a b d");
  CHECK(by("key") == "d c b a");
  CHECK(by("is_user_annotation") == "a b c d");
  CHECK(by("node_id") == "a b c d");
  CHECK(by("self_cpu_time_total_str") == "b c a d");  // "7.000us" > "3.000us" > ...
  averages.rows[0].input_shapes = "[[2, 10]]";
  averages.rows[1].input_shapes = "[[10]]";
  CHECK(by("input_shapes") == "b a c d");  // by number, not by letter
}

TEST_CASE("what does not exist is said, with what does") {
  const Averages averages = averages_of({cpu_row("a", 1, 1)});
  CHECK_THROWS_AS(averages.table({.sort_by = "cuda_tiem"}), TableError);
  CHECK_THROWS_AS(averages_of({}).table({.sort_by = "cuda_tiem"}), TableError);
  CHECK_THROWS_AS(averages.table({.sort_by = "scope"}), TableError);
  CHECK_THROWS_AS(averages.table({.max_name_column_width = -1}), TableError);
  CHECK_THROWS_AS(averages.table({.max_shapes_column_width = -1}), TableError);
  CHECK_THROWS_AS(averages.table({.time_unit = "min"}), TableError);
  CHECK_NOTHROW(trace::check({.sort_by = "cuda_time_total"}));
  try {
    trace::check({.sort_by = "\x1b[2J"});
    FAIL("no error");
  } catch (const TableError& error) {
    CHECK_THAT(error.what(), ContainsSubstring("self_cpu_time_total, "));
    CHECK_THAT(error.what(), ContainsSubstring("'\\x1b[2J'"));
  }
}
