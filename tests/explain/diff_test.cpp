// SPDX-License-Identifier: Apache-2.0
//
// A diff follows what was changed between two small traces, and is empty where nothing was.
#include "explain/diff.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "../trace/written.h"
#include "explain/steps.h"
#include "explain/structure.h"
#include "explain/text_table.h"

using Catch::Matchers::ContainsSubstring;
using explain::Basis;

namespace {

constexpr std::int64_t kStep = 100'000;  // ns from step to step

struct Run {
  int steps = 2;
  int first_step = 2;
  std::int64_t origin = 1000;
  std::string thread = "1";
  std::int64_t copy_bytes = 4096;
  std::int64_t kernel_ns = 5000;
  std::string parent_op = "aten::clone";
  bool has_step_marks = true;
};

// Each step: attn_fwd, in it aten::clone > aten::copy_ (a memcpy), and aten::mul (a kernel that the
// device runs after the step is over).
std::vector<Written> events(const Run& run) {
  std::vector<Written> all;
  for (int i = 0; i < run.steps; ++i) {
    const std::int64_t t = run.origin + i * kStep;
    const std::int64_t id = 10 * i + 1;
    const std::string stream = R"("device": 0, "stream": 7)";
    if (run.has_step_marks) {
      all.push_back({"ProfilerStep#" + std::to_string(run.first_step + i), "user_annotation", t,
                     t + 50'000, run.thread, id});
    }
    all.push_back({"attn_fwd", "user_annotation", t + 1000, t + 49'000, run.thread, id + 1});
    all.push_back({run.parent_op, "cpu_op", t + 2000, t + 20'000, run.thread, id + 2});
    all.push_back({"aten::copy_", "cpu_op", t + 3000, t + 15'000, run.thread, id + 3});
    all.push_back(
        {"cudaMemcpyAsync", "cuda_runtime", t + 4000, t + 5000, run.thread, id + 3, id + 3});
    all.push_back({"Memcpy DtoD (Device -> Device)", "gpu_memcpy", t + 60'000, t + 62'000, "7",
                   id + 3, id + 3, stream + R"(, "bytes": )" + std::to_string(run.copy_bytes)});
    all.push_back({"aten::mul", "cpu_op", t + 30'000, t + 40'000, run.thread, id + 4});
    all.push_back(
        {"cudaLaunchKernel", "cuda_runtime", t + 31'000, t + 32'000, run.thread, id + 4, id + 4});
    all.push_back({"mul_kernel", "kernel", t + 70'000, t + 70'000 + run.kernel_ns + i * 100, "7",
                   id + 4, id + 4, stream});
  }
  return all;
}

std::vector<WrittenMemory> memory(const Run& run, std::int64_t bytes) {
  std::vector<WrittenMemory> records;
  for (int i = 0; i < run.steps; ++i) {
    records.push_back({run.origin + i * kStep + 6000, bytes, 1});
    records.push_back({run.origin + i * kStep + 7000, -bytes, 1});
  }
  return records;
}

explain::Diff diff(const trace::Trace& a, const trace::Trace& b,
                   std::optional<Basis> per = std::nullopt, const std::string& label = "") {
  const trace::OpTree tree_a(a), tree_b(b);
  return explain::diff(tree_a, tree_b, explain::diff_basis(tree_a, tree_b, per, label));
}

std::vector<std::string> structure(const trace::Trace& a, const trace::Trace& b) {
  const trace::OpTree tree_a(a), tree_b(b);
  std::vector<std::string> whats;
  for (const explain::StructureDifference& one :
       explain::structure_diff(tree_a, tree_b, explain::diff_basis(tree_a, tree_b, {}, ""))
           .differences) {
    CHECK((one.a.least != one.b.least || one.a.most != one.b.most));
    whats.push_back(one.what);
  }
  return whats;
}

const explain::RowPair& row(const explain::Diff& diff, std::string_view name) {
  for (const explain::RowPair& row : diff.rows) {
    if (row.name == name) return row;
  }
  FAIL("no row " << name);
  throw std::logic_error("unreachable");
}

const explain::TotalPair& total(const explain::Diff& diff, std::string_view name) {
  for (const explain::TotalPair& total : diff.totals) {
    if (total.name == name) return total;
  }
  FAIL("no total " << name);
  throw std::logic_error("unreachable");
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("The same trace twice has no difference") {
  const trace::Trace trace = written(events({}), memory({}, 512));
  const explain::Diff same = diff(trace, trace);
  CHECK(same.is_empty());
  CHECK_THAT(to_text(same, {}), ContainsSubstring("\n\nNo difference.\n"));
  CHECK(structure(trace, trace).empty());
}

TEST_CASE("Figures are per step, an op's time is its own, a kernel belongs to its launch") {
  const trace::Trace trace = written(events({.steps = 3}));
  const explain::Diff same = diff(trace, trace);
  CHECK(same.basis == Basis::step);
  CHECK(same.a.periods == 3);
  CHECK(same.a.left_out == 0);
  CHECK(row(same, "aten::clone").a.calls.mean == 1);
  CHECK(row(same, "aten::clone").a.time_us.mean == 6);  // 18 of which copy_ takes 12
  CHECK(row(same, "aten::copy_").a.time_us.mean == 11);
  CHECK(row(same, "mul_kernel").a.time_us.least == 5);
  CHECK(row(same, "mul_kernel").a.time_us.mean == 5.1);
  CHECK(row(same, "mul_kernel").a.time_us.most == 5.2);
  CHECK(total(same, "GPU operations").a->mean == 2);
  CHECK(total(same, "bytes copied").a->mean == 4096);
  CHECK(total(same, "CPU time").a->mean == 50);
  CHECK(total(same, "ops").a->mean == 3);
}

TEST_CASE(
    "Another number of steps, other threads, times and order are no difference in structure") {
  const trace::Trace trace = written(events({}), memory({}, 512));
  const Run other{.steps = 5, .first_step = 40, .origin = 7777, .thread = "9", .kernel_ns = 9000};
  CHECK(structure(trace, written(events(other), memory(other, 512))).empty());
  std::vector<Written> reversed = events({});
  std::reverse(reversed.begin(), reversed.end());
  CHECK(structure(trace, written(reversed, memory({}, 512))).empty());
}

TEST_CASE("An added op, an added kernel, another copy: each is told, and nothing else") {
  const trace::Trace trace = written(events({}));
  std::vector<Written> more = events({});
  more.push_back({"aten::relu", "cpu_op", 1000 + 41'000, 1000 + 42'000, "1", 90});
  more.push_back({"aten::relu", "cpu_op", 1000 + kStep + 41'000, 1000 + kStep + 42'000, "1", 91});
  CHECK(structure(trace, written(more)) == Strings{"op aten::relu < attn_fwd"});
  CHECK(row(diff(trace, written(more)), "aten::relu").b.calls.mean == 1);

  std::vector<Written> kernel = events({});
  kernel.push_back({"extra", "kernel", 90'000, 91'000, "7", 5, 5});  // of aten::mul in step one
  CHECK(structure(trace, written(kernel)) == Strings{"kernel extra"});
  const explain::Diff uneven = diff(trace, written(kernel));
  CHECK(row(uneven, "extra").b.calls.least == 0);
  CHECK(row(uneven, "extra").b.calls.most == 1);
  CHECK_THAT(to_text(uneven, {}), ContainsSubstring("2 to 3"));

  const trace::Trace halved = written(events({.copy_bytes = 2048}));
  CHECK(structure(trace, halved) == Strings{"memcpy Memcpy DtoD (Device -> Device), 4.00 KiB",
                                            "memcpy Memcpy DtoD (Device -> Device), 2.00 KiB"});
  const std::string text = to_text(diff(trace, halved), {});
  CHECK_THAT(text, ContainsSubstring("Memcpy DtoD (Device -> Device), 4.00 KiB -> 2.00 KiB"));
  CHECK_THAT(text, ContainsSubstring("-2.00 KiB"));
}

TEST_CASE("A renamed op is told once with what is inside it") {
  const trace::Trace a = written(events({})),
                     b = written(events({.parent_op = "aten::contiguous"}));
  const trace::OpTree tree_a(a), tree_b(b);
  const explain::StructureDiff found =
      explain::structure_diff(tree_a, tree_b, explain::diff_basis(tree_a, tree_b, {}, ""));
  REQUIRE(found.differences.size() == 2);
  CHECK(found.differences[0].what == "op aten::clone < attn_fwd");
  CHECK(found.differences[0].below == 1);
  CHECK_THAT(to_text(found, {}), ContainsSubstring("    and 1 inside it\n"));
}

TEST_CASE("Memory: allocated and freed by step, compared where both files have it") {
  const trace::Trace small = written(events({}), memory({}, 512));
  const trace::Trace large = written(events({}), memory({}, 1024));
  const trace::Trace none = written(events({}));
  CHECK(structure(small, large) ==
        Strings{"memory of device type 1: allocated", "memory of device type 1: freed"});
  CHECK(structure(small, none).empty());
  CHECK(total(diff(small, large), "GPU memory allocated").b->mean == 1024);
  CHECK(total(diff(small, large), "GPU memory kept").b->mean == 0);
  CHECK_FALSE(total(diff(small, none), "GPU memory allocated").b);
}

TEST_CASE("Left out: what lies outside the steps, and kernels launched before the recording") {
  std::vector<Written> more = events({});
  more.push_back({"aten::zeros", "cpu_op", 500, 600, "1", 80});             // before step one
  more.push_back({"of_the_warm_up", "kernel", 1500, 1600, "7", 81, 4711});  // no launch
  const explain::Diff found = diff(written(events({})), written(more));
  CHECK(found.b.left_out == 2);
  CHECK(found.b.without_launch == 1);
  CHECK(found.is_empty());
  CHECK(structure(written(events({})), written(more)).empty());
  const explain::Diff whole = diff(written(events({})), written(more), Basis::recording);
  CHECK(row(whole, "of_the_warm_up").b.calls.mean == 1);
}

TEST_CASE("The basis: steps, else forwards, else the recording; never two of them") {
  const trace::Trace steps = written(events({}));
  const trace::Trace forwards = written(events({.steps = 3, .has_step_marks = false}));
  const trace::Trace ops = written({{"aten::mul", "cpu_op", 0, 100, "1", 1}});
  CHECK(diff(steps, steps).basis == Basis::step);
  const explain::Diff mixed = diff(steps, forwards);
  CHECK(mixed.basis == Basis::forward);
  CHECK(mixed.a.periods == 2);
  CHECK(mixed.b.periods == 3);
  CHECK(mixed.b.label == "attn_fwd");
  CHECK(row(mixed, "aten::mul").time_difference() == 0);
  CHECK(diff(ops, ops).basis == Basis::recording);
  CHECK(diff(forwards, ops).basis == Basis::recording);
  CHECK_THROWS_AS(diff(steps, ops), explain::RangeError);
  CHECK_THROWS_AS(diff(ops, steps), explain::RangeError);
  CHECK_THROWS_AS(diff(steps, forwards, Basis::step), explain::RangeError);
  CHECK_THROWS_AS(diff(steps, steps, std::nullopt, "nothing"), explain::RangeError);
  CHECK(diff(steps, ops, Basis::recording).basis == Basis::recording);
  CHECK(diff(steps, steps, std::nullopt, "attn_fwd").basis == Basis::forward);
}

TEST_CASE("A difference inside the spread of the steps is marked and hides its row") {
  // Steps of A take 5.0 and 5.1 us, of B 5.05 and 5.15; of C 8.0 and 8.1.
  const trace::Trace a = written(events({})), b = written(events({.kernel_ns = 5050}));
  const trace::Trace c = written(events({.kernel_ns = 8000}));
  CHECK(row(diff(a, b), "mul_kernel").is_similar());
  CHECK_FALSE(row(diff(a, b), "mul_kernel").is_same());
  CHECK_FALSE(row(diff(a, c), "mul_kernel").is_similar());
  const std::string near = to_text(diff(a, b), {}), far = to_text(diff(a, c), {});
  CHECK_THAT(near, !ContainsSubstring("mul_kernel") && ContainsSubstring("CUDA time") &&
                       ContainsSubstring("  ~\n") && ContainsSubstring("~ within the spread"));
  CHECK_THAT(far, ContainsSubstring("+3.0us   1.59    mul_kernel\n") &&
                      !ContainsSubstring("~ within the spread"));
  CHECK_THAT(to_text(diff(a, b), {.all = true}), ContainsSubstring("mul_kernel"));
}

TEST_CASE("Rows: the largest difference in time first, either way; a limit is said") {
  std::vector<Written> other = events({.kernel_ns = 1000});
  other.push_back({"aten::relu", "cpu_op", 1000 + 41'000, 1000 + 43'000, "1", 90});
  const explain::Diff found = diff(written(events({})), written(other));
  CHECK(found.rows[0].name == "mul_kernel");
  CHECK(found.rows[1].name == "aten::relu");
  const std::string text = to_text(found, {.limit = 1});
  CHECK_THAT(text, ContainsSubstring("mul_kernel") && !ContainsSubstring("aten::relu"));
  CHECK_THAT(text, ContainsSubstring("\n1 more row (--limit -1 prints them); "));
}

TEST_CASE("What is known of the runs stands above, once where it is the same") {
  const trace::Trace a = written(events({}), {}, R"("dtype": "bf16", "shape": "8_16_1024_64")");
  const trace::Trace b = written(events({}), {}, R"("dtype": "fp32", "shape": "8_16_1024_64")");
  const std::string text = to_text(diff(a, b), {.name_a = "a.json", .name_b = "b\x1b.json"});
  CHECK_THAT(text, ContainsSubstring("A  a.json: 2 steps\nB  b\\x1b.json: 2 steps\n"));
  CHECK_THAT(text, ContainsSubstring("\nShape     8_16_1024_64\n"));
  CHECK_THAT(text, ContainsSubstring("\ndtype     differs: A bf16; B fp32\n"));
}

TEST_CASE("Markdown: one row a line, nothing in a name is markup") {
  std::vector<Written> other = events({});
  other.push_back({R"(a|b`c<d*e\nf)", "cpu_op", 1000 + 41'000, 1000 + 43'000, "1", 90});
  const std::string text =
      to_text(diff(written(events({})), written(other)), {.format = explain::DiffFormat::markdown});
  CHECK_THAT(text, ContainsSubstring(R"(| a\|b\`c&lt;d\*e\\x0af |)"));
  std::istringstream lines(text);
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| op |")) continue;
    ++rows;
    int bars = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\') ? 1 : 0;
    }
    CHECK(bars == 10);
  }
  CHECK(rows == 1);
}

TEST_CASE("Long names are cut so that they can be told apart, within 120 columns") {
  const std::string prefix = "void at::native::elementwise_kernel<" + std::string(300, 'x');
  std::vector<Written> other = events({});
  for (const char* end : {"first", "second"}) {
    other.push_back({prefix + end + std::string(100, 'y'), "kernel", 90'000, 99'000, "7", 5, 5});
  }
  const std::string text = to_text(diff(written(events({})), written(other)), {});
  CHECK_THAT(text, ContainsSubstring("xxfirstyy") && ContainsSubstring("xxsecondyy"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 120);
  const std::vector<std::string> cuts =
      explain::distinct_cuts({"same", "same", "a-very-long-name", "a-very-long-nose"}, 12);
  CHECK(cuts == std::vector<std::string>{"same", "same", "...ng-name", "...ng-nose"});
}

TEST_CASE("Absurd numbers wrap, and a deep chain is no recursion") {
  std::vector<Written> hostile = events({.copy_bytes = 9'223'372'036'854'775'807});
  const trace::Trace a = written(hostile);
  CHECK_FALSE(diff(a, written(events({}))).is_empty());
  std::vector<Written> deep;
  for (int i = 0; i < 20'000; ++i) {
    deep.push_back({"op" + std::to_string(i % 7), "cpu_op", i, 100'000 - i, "1", i + 1});
  }
  const trace::Trace nested = written(deep);
  CHECK(structure(nested, nested).empty());
  const Strings found = structure(nested, written({{"op0", "cpu_op", 0, 100'000, "1", 1}}));
  REQUIRE(found.size() == 1);
  CHECK(found[0] == "op op1 < op0");
}
