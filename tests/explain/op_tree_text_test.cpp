// SPDX-License-Identifier: Apache-2.0
#include "explain/op_tree_text.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sstream>
#include <string>
#include <string_view>

#include "explain/figure_text.h"
#include "trace/reader.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::MessageMatches;

namespace {

std::string tree_text(const trace::Trace& trace, const explain::TreeTextOptions& options = {}) {
  return explain::op_tree_text(trace::OpTree(trace), options);
}

// A step in which two ops launch one kernel each and a third one calls nothing; another thread.
constexpr std::string_view kSmall = R"json({"traceEvents": [
  {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "pid": 9, "tid": 1, "ts": 0, "dur": 100, "args": {"External id": 1}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 9, "tid": 1, "ts": 10, "dur": 10, "args": {"External id": 2}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 1, "ts": 12, "dur": 4, "args": {"External id": 2, "correlation": 71}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 9, "tid": 1, "ts": 30, "dur": 12, "args": {"External id": 3}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 1, "ts": 33, "dur": 5, "args": {"External id": 3, "correlation": 72}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::view", "pid": 9, "tid": 1, "ts": 50, "dur": 1, "args": {"External id": 4}},
  {"ph": "X", "cat": "kernel", "name": "void mul_kernel<float>(float*)", "pid": 0, "tid": 7, "ts": 20, "dur": 30, "args": {"External id": 2, "correlation": 71}},
  {"ph": "X", "cat": "kernel", "name": "void mul_kernel<float>(float*)", "pid": 0, "tid": 7, "ts": 60, "dur": 40, "args": {"External id": 3, "correlation": 72}},
  {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 7, "ts": 5, "dur": 2, "args": {"bytes": 4, "correlation": 60}},
  {"ph": "X", "cat": "cpu_op", "name": "MulBackward0", "pid": 9, "tid": 2, "ts": 80, "dur": 9, "args": {"External id": 5}},
  {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 9, "tid": 1, "ts": 200, "dur": 5, "args": {"External id": 6}}
]})json";

}  // namespace

TEST_CASE("The tree of a small step") {
  const trace::Trace trace = trace::read_text(kSmall);
  CHECK("\n" + tree_text(trace) == R"(
                                                                     CPU total   CPU self       CUDA
thread 1
  ProfilerStep#2                                                       100.0us     77.0us     70.0us
    aten::mul x 2                                                       22.0us     13.0us     70.0us
      cudaLaunchKernel                                                   9.0us      9.0us     70.0us
        -> mul_kernel                                                                         70.0us
    aten::view                                                           1.0us      1.0us
thread 2
  MulBackward0                                                           9.0us      9.0us
launched by nothing in this file
  -> Memset, 4 B                                                                               2.0us
)");
}

TEST_CASE("Only alike siblings in a row are folded") {
  trace::Trace trace = trace::read_text(kSmall);
  for (trace::Event& event : trace.events)
    if (event.correlation == 72) event.correlation = 73;  // still a call and its kernel
  CHECK_THAT(tree_text(trace), ContainsSubstring("aten::mul x 2"));
  for (trace::Event& event : trace.events)
    if (event.category == trace::Category::kernel && event.correlation == 73)
      event.correlation = 71;
  const std::string text = tree_text(trace);  // now the first call launches both kernels
  CHECK(text.find("aten::mul x 2") == std::string::npos);
  CHECK_THAT(text, ContainsSubstring("-> mul_kernel x 2"));
}

TEST_CASE("A step is chosen by its number") {
  const trace::Trace trace = trace::read_text(kSmall);
  const std::string text = tree_text(trace, {.step = 3});
  CHECK_THAT(text, ContainsSubstring("ProfilerStep#3") && !ContainsSubstring("aten::"));
  CHECK_THROWS_MATCHES(tree_text(trace, {.step = 7}), explain::RangeError,
                       MessageMatches(ContainsSubstring("no step 7: choose one of 2 and 3")));
}

TEST_CASE("Depth leaves deeper levels out and says so; sums stay whole") {
  const std::string text = tree_text(trace::read_text(kSmall), {.depth = 2});
  CHECK_THAT(text, ContainsSubstring("aten::mul x 2") && !ContainsSubstring("cudaLaunch") &&
                       ContainsSubstring(" 70.0us\n") && EndsWith("Deeper levels are left out.\n"));
}

TEST_CASE("The tree of the naive recording") {
  const std::string text =
      tree_text(trace::read(PROF_TEST_DATA "/pytorch/naive.json.gz"), {.step = 2});
  CHECK_THAT(text, ContainsSubstring("          aten::copy_ ") &&
                       ContainsSubstring("            cudaMemcpyAsync ") &&
                       ContainsSubstring("              -> Memcpy DtoD, 256.00 MiB "));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(explain::length(line) <= 100);
}

TEST_CASE("Nesting without end and names without end stay readable") {
  std::string text = R"({"traceEvents": [)";
  for (int i = 0; i < 5000; ++i)
    text += R"({"ph": "X", "cat": "cpu_op", "name": "\u001b[2J)" + std::string(200, 'x') +
            std::to_string(i) + R"(", "pid": 1, "tid": 1, "ts": )" + std::to_string(i) +
            R"(, "dur": )" + std::to_string(20'000 - 2 * i) + "},";
  text.back() = ']';
  const std::string tree = tree_text(trace::read_text(text + "}"));
  std::istringstream lines(tree);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) CHECK(explain::length(line) <= 100);
  CHECK(count == explain::kMostLevels + 3);  // heading, thread, what is left out
  CHECK_THAT(tree, ContainsSubstring("\\x1b[2Jxxx") && !ContainsSubstring("\x1b"));
}

TEST_CASE("A trace without events has no tree") {
  CHECK_THROWS_AS(tree_text(trace::Trace()), explain::RangeError);
}
