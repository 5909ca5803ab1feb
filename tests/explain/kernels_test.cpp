// SPDX-License-Identifier: Apache-2.0
//
// The report by kernel name follows the trace, and its text stays readable.
#include "explain/kernels.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sstream>
#include <string>

#include "trace/reader.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using Catch::Matchers::WithinRel;

namespace {

trace::Trace recording(const std::string& name) {
  return trace::read(std::string(PROF_TEST_DATA "/pytorch/") + name + ".json.gz");
}

const explain::KernelRow& row_of(const explain::KernelReport& report, std::string_view part) {
  for (const explain::KernelRow& row : report.rows) {
    if (row.name.find(part) != std::string::npos) return row;
  }
  FAIL("no kernel " << part);
  throw std::logic_error("unreachable");
}

// Three calls of one kernel with two grids, one of another, and a copy.
const char* const kSmall = R"json({
  "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0,
                        "numSms": 132, "warpSize": 32}],
  "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "ampere_sgemm_32x32_nn", "pid": 0, "tid": 7, "ts": 1, "dur": 4,
     "args": {"device": 0, "grid": [10, 1, 1], "block": [64, 1, 1], "registers per thread": 64,
              "shared memory": 1024, "est. achieved occupancy %": 0}},
    {"ph": "X", "cat": "kernel", "name": "ampere_sgemm_32x32_nn", "pid": 0, "tid": 7, "ts": 10, "dur": 20,
     "args": {"device": 0, "grid": [20, 5, 1], "block": [64, 1, 1], "registers per thread": 64,
              "shared memory": 1024}},
    {"ph": "X", "cat": "kernel", "name": "ampere_sgemm_32x32_nn", "pid": 0, "tid": 7, "ts": 40, "dur": 6,
     "args": {"device": 0, "grid": [10, 1, 1], "block": [64, 1, 1], "registers per thread": 64,
              "shared memory": 1024}},
    {"ph": "X", "cat": "kernel", "name": "plain", "pid": 0, "tid": 7, "ts": 50, "dur": 10},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "pid": 0, "tid": 7, "ts": 70, "dur": 2,
     "args": {"bytes": 4096}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 99}
  ]
})json";

}  // namespace

TEST_CASE("Calls, times and shares by name") {
  const explain::KernelReport report = explain::kernels(trace::read_text(kSmall));
  REQUIRE(report.rows.size() == 3);
  CHECK(report.calls == 5);
  CHECK_THAT(report.total_us, WithinRel(42.0, 1e-12));
  const explain::KernelRow& row = report.rows[0];
  CHECK(row.name == "ampere_sgemm_32x32_nn");
  CHECK(row.calls == 3);
  CHECK_THAT(row.total_us, WithinRel(30.0, 1e-12));
  CHECK_THAT(row.min_us, WithinRel(4.0, 1e-12));
  CHECK_THAT(row.median_us, WithinRel(6.0, 1e-12));
  CHECK_THAT(row.max_us, WithinRel(20.0, 1e-12));
  CHECK_THAT(row.share, WithinRel(30.0 / 42, 1e-12));
  CHECK(row.decoded.family == explain::KernelFamily::matmul);
  CHECK(row.launches == 2);
  CHECK(row.launch.grid == std::array<std::uint32_t, 3>{20, 5, 1});  // 20us of 30
  CHECK(report.rows[1].name == "plain");
  CHECK(report.rows[2].bytes == 4096);
}

TEST_CASE("The median of an even number of calls lies between the two in the middle") {
  std::string events;
  for (const char* duration : {"9", "1", "4", "2"}) {
    events += std::string(events.empty() ? "" : ",") +
              R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": )" +
              duration + "}";
  }
  const explain::KernelReport report =
      explain::kernels(trace::read_text(R"({"traceEvents": [)" + events + "]}"));
  REQUIRE(report.rows.size() == 1);
  CHECK_THAT(report.rows[0].median_us, WithinRel(3.0, 1e-12));
}

TEST_CASE("A call without a time counts, but is no shortest and no median") {
  const explain::KernelReport report = explain::kernels(trace::read_text(R"({"traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 0, "dur": 0},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 3},
    {"ph": "X", "cat": "kernel", "name": "lost", "pid": 0, "tid": 7, "ts": 0, "dur": 0}]})"));
  REQUIRE(report.rows.size() == 2);
  CHECK(report.calls == 3);
  CHECK(report.rows[0].calls == 2);
  CHECK_THAT(report.rows[0].min_us, WithinRel(3.0, 1e-12));
  CHECK_THAT(report.rows[0].median_us, WithinRel(3.0, 1e-12));
  CHECK(report.rows[1].calls == 1);
  CHECK(report.rows[1].max_us == 0);
  CHECK_THAT(to_text(report), ContainsSubstring("lost"));
}

// Both limits of one kernel would make its line too wide: they stand in the words of the columns.
TEST_CASE("Two limits in one column") {
  const std::string text = to_text(explain::kernels(recording("naive")));
  CHECK_THAT(text, ContainsSubstring(" 160.1K     18.8%  regs, shared\n"));
}

TEST_CASE("The report of a recording") {
  const trace::Trace trace = recording("naive");
  const explain::KernelReport report = explain::kernels(trace);
  CHECK(std::is_sorted(report.rows.begin(), report.rows.end(),
                       [](const auto& a, const auto& b) { return a.total_us > b.total_us; }));
  double share = 0;
  for (const explain::KernelRow& row : report.rows) share += row.share;
  CHECK_THAT(share, WithinRel(1.0, 1e-9));
  const explain::KernelRow& matmul = row_of(report, "nvjet_sm90_tst_256x128");
  REQUIRE(matmul.occupancy);
  CHECK_THAT(matmul.occupancy->theoretical, WithinRel(0.1875, 1e-12));
  CHECK_THAT(matmul.kineto_difference, StartsWith("Kineto prints 0 %"));
  const explain::KernelRow& softmax = row_of(report, "softmax");
  CHECK(softmax.calls == 4);  // one of them from the warm-up
  CHECK(softmax.kineto_difference.empty());
  const explain::KernelRow& copy = row_of(report, "Memcpy DtoD");
  CHECK(copy.bytes == 3 * 268435456);
  CHECK_FALSE(copy.occupancy);
}

TEST_CASE("Text: columns, order, limit") {
  const explain::KernelReport report = explain::kernels(trace::read_text(kSmall));
  const std::string text = to_text(report);
  CHECK_THAT(text, StartsWith("GPU 0: NVIDIA H200, 132 SMs, sm_90\n5 GPU operations of 3 names, "
                              "42.0us;"));
  CHECK_THAT(text,
             ContainsSubstring("   30.0us  71.4%      3     4.0us     6.0us    20.0us  20x5 "));
  CHECK_THAT(text, ContainsSubstring(" 64    1.0K     50.0%  grid, 0.047 waves\n"));
  CHECK_THAT(text,
             ContainsSubstring("    ampere_sgemm_32x32_nn\n    cuBLAS: matrix multiplication, "
                               "fp32, for Ampere (sm_80)"));
  CHECK_THAT(text, ContainsSubstring("different launches, shown is the one with most time"));
  CHECK_THAT(text, ContainsSubstring("memcpy device to device, 4.00 KiB a call\n"));
  CHECK_THAT(text, ContainsSubstring("    plain\n    a name of no known scheme\n"));

  const std::string one = to_text(report, {.limit = 1});
  CHECK_THAT(one, ContainsSubstring("... and 2 more names, 12.0us\n"));
  CHECK_THAT(one, !ContainsSubstring("plain"));
  CHECK_THAT(to_text(report, {.limit = 0}), ContainsSubstring("... and 3 more names, 42.0us\n"));

  const auto first = [&report](explain::KernelOrder order) {
    const std::string all = to_text(report, {.order = order});
    return std::min(all.find("    ampere"),
                    std::min(all.find("    plain"), all.find("    Memcpy")));
  };
  CHECK(to_text(report, {.order = explain::KernelOrder::calls}).find("    ampere") ==
        first(explain::KernelOrder::calls));
  CHECK(to_text(report, {.order = explain::KernelOrder::max}).find("    ampere") ==
        first(explain::KernelOrder::max));
}

TEST_CASE("Orders differ where the figures do") {
  const explain::KernelReport report = explain::kernels(trace::read_text(R"({"traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "often", "pid": 0, "tid": 7, "ts": 1, "dur": 1},
    {"ph": "X", "cat": "kernel", "name": "often", "pid": 0, "tid": 7, "ts": 3, "dur": 1},
    {"ph": "X", "cat": "kernel", "name": "often", "pid": 0, "tid": 7, "ts": 5, "dur": 1},
    {"ph": "X", "cat": "kernel", "name": "long", "pid": 0, "tid": 7, "ts": 9, "dur": 7},
    {"ph": "X", "cat": "kernel", "name": "much", "pid": 0, "tid": 7, "ts": 20, "dur": 4},
    {"ph": "X", "cat": "kernel", "name": "much", "pid": 0, "tid": 7, "ts": 30, "dur": 4}
  ]})"));
  const auto first = [&report](explain::KernelOrder order) {
    const std::string text = to_text(report, {.order = order, .limit = 1});
    const std::size_t figures = text.find('\n', text.find("limited by")) + 1;
    return text.substr(text.find('\n', figures) + 5, 4);  // the line below them is the name
  };
  CHECK(first(explain::KernelOrder::total) == "much");
  CHECK(first(explain::KernelOrder::calls) == "ofte");
  CHECK(first(explain::KernelOrder::max) == "long");
}

TEST_CASE("No launch information: dashes, and no figure made up") {
  const explain::KernelReport report = explain::kernels(trace::read_text(R"({"traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "Cijk_Ailk_Bljk_HHS_BH_MT64x64x32_MI16x16x1", "pid": 0,
     "tid": 7, "ts": 1, "dur": 3.5}]})"));
  const std::string text = to_text(report);
  CHECK_THAT(text, ContainsSubstring("3.5us  -             -            -       -         -  -\n"));
  CHECK_THAT(text, ContainsSubstring("Tensile (rocBLAS, hipBLASLt): matrix multiplication, fp16"));
}

TEST_CASE("A trace without a GPU gives no text") {
  CHECK(to_text(explain::kernels(recording("cpu_naive"))).empty());
  CHECK(to_text(explain::kernels(trace::read_text(R"({"traceEvents": []})"))).empty());
}

TEST_CASE("Lines stay within 120 columns, and nothing in a name reaches the terminal") {
  std::string names;
  for (const char* name :
       {R"(evil\u001b[2J\u0007)", R"(caf\u00e9)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
        "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"}) {
    names += R"(,{"ph": "X", "cat": "kernel", "name": ")" + std::string(name) +
             R"(", "pid": 0, "tid": 7, "ts": 1, "dur": 1})";
  }
  names += R"(,{"ph": "X", "cat": "kernel", "name": ")" + std::string(5000, 'x') +
           R"(", "pid": 0, "tid": 7, "ts": 1, "dur": 1})";
  for (const std::string& text : {to_text(explain::kernels(trace::read_text(
                                      R"({"traceEvents": [)" + names.substr(1) + "]}"))),
                                  to_text(explain::kernels(recording("sdpa_math"))),
                                  to_text(explain::kernels(recording("naive"))),
                                  to_text(explain::kernels(recording("sdpa_flash")))}) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      const auto columns = std::count_if(line.begin(), line.end(), [](unsigned char c) {
        return (c & 0xC0U) != 0x80;  // not inside a letter of UTF-8
      });
      CHECK(columns <= 120);
      for (const unsigned char c : line) CHECK((c >= 0x20 && c != 0x7f));
    }
  }
}
