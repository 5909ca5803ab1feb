// SPDX-License-Identifier: Apache-2.0
//
// Facts follow the trace: each test changes a recording and expects the facts to change with it.
#include "explain/facts.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "explain/finding.h"
#include "explain/text.h"
#include "trace/reader.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;

namespace {

trace::Trace recording(const std::string& name) {
  return trace::read(std::string(PROF_TEST_DATA "/pytorch/") + name + ".json.gz");
}

explain::Facts facts_of(const trace::Trace& trace) {
  return explain::facts(trace::OpTree(trace), "attn_fwd");
}

// The n-th event of a category, in order of the file.
trace::Event& event_of(trace::Trace& trace, trace::Category category, int n = 0) {
  for (trace::Event& event : trace.events) {
    if (event.category == category && n-- == 0) return event;
  }
  FAIL("the recording has no such event");
  throw std::logic_error("unreachable");
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

// Counted by hand in the recording: two matmuls, mul, masking and softmax are kernels; the copy and
// cuBLAS's memset of 4 bytes are GPU operations, too.
TEST_CASE("Facts of the naive recording") {
  const explain::Facts facts = facts_of(recording("naive"));
  CHECK(facts.forwards == 3);
  CHECK(facts.on_gpu);
  CHECK(facts.kernels.least == 5);
  CHECK(facts.kernels.most == 5);
  CHECK(facts.gpu_operations.least == 7);
  CHECK(facts.gpu_operations.most == 7);
  CHECK_THAT(explain::to_text(facts), ContainsSubstring("7: 5 kernels, 1 memcpy, 1 memset\n"));
  CHECK(facts.bytes_copied == 3 * 268435456);
  CHECK(facts.unattributed == 2);  // softmax and matmul of the warm-up, still running
  REQUIRE(facts.copies.size() == 1);
  CHECK(facts.copies[0].count == 3);
  CHECK(facts.copies[0].chain ==
        std::vector<std::string>{"aten::copy_", "aten::clone", "aten::masked_fill"});
  CHECK_THAT(explain::to_text(explain::copies(facts)),
             ContainsSubstring("Memcpy DtoD (Device -> Device), 256.00 MiB") &&
                 ContainsSubstring("launched by aten::copy_ < aten::clone < aten::masked_fill"));
  REQUIRE(facts.idle_share);
  CHECK(*facts.idle_share > 0);
  CHECK(*facts.idle_share < 0.5);
}

TEST_CASE("Facts of the in-place recording: the copy is gone") {
  const explain::Facts facts = facts_of(recording("inplace"));
  CHECK(facts.gpu_operations.most == 6);
  CHECK(facts.kernels.most == 5);
  CHECK(facts.bytes_copied == 0);
  CHECK(facts.copies.empty());
  CHECK_THAT(explain::to_text(explain::copies(facts)),
             ContainsSubstring("not one memcpy in 3 forwards"));
}

TEST_CASE("On a CPU the copy is an op") {
  const explain::Facts facts = facts_of(recording("cpu_naive"));
  CHECK_FALSE(facts.on_gpu);
  CHECK_FALSE(facts.idle_share);
  CHECK(facts.copies.size() == 2);  // the masked tensor's and the scalar's
  CHECK_THAT(explain::to_text(explain::copies(facts)),
             ContainsSubstring("called by aten::clone < aten::masked_fill"));
  CHECK(explain::to_text(facts).find("GPU") == std::string::npos);
}

TEST_CASE("A kernel more is a kernel more") {
  trace::Trace trace = recording("naive");
  trace::Event more = event_of(trace, trace::Category::kernel, 3);
  more.duration_ns = 1'000'000;
  const double before = facts_of(trace).cuda_time_us;
  trace.events.push_back(more);
  const explain::Facts facts = facts_of(trace);
  CHECK(facts.kernels.least == 5);
  CHECK(facts.kernels.most == 6);
  CHECK_THAT(facts.cuda_time_us, WithinRel(before + 1000.0 / 3, 1e-9));
  CHECK_THAT(explain::to_text(facts),
             ContainsSubstring("7 to 8: 5 to 6 kernels, 1 memcpy, 1 memset"));
}

TEST_CASE("Without the copies the finding changes") {
  trace::Trace trace = recording("naive");
  std::erase_if(trace.events,
                [](const auto& event) { return event.category == trace::Category::gpu_memcpy; });
  const explain::Facts facts = facts_of(trace);
  CHECK(facts.gpu_operations.most == 6);
  CHECK(facts.bytes_copied == 0);
  CHECK_THAT(explain::to_text(explain::copies(facts)), ContainsSubstring("no copy"));
}

TEST_CASE("Swapped durations move the time, not the counts") {
  trace::Trace trace = recording("naive");
  trace::Event& leaked = event_of(trace, trace::Category::kernel, 0);  // not part of a forward
  trace::Event& copy = event_of(trace, trace::Category::gpu_memcpy, 0);
  const explain::Facts before = facts_of(trace);
  std::swap(leaked.duration_ns, copy.duration_ns);
  const explain::Facts after = facts_of(trace);
  const double difference = static_cast<double>(copy.duration_ns - leaked.duration_ns) / 1000 / 3;
  CHECK_THAT(after.cuda_time_us, WithinRel(before.cuda_time_us + difference, 1e-9));
  CHECK(after.gpu_operations.most == before.gpu_operations.most);
}

TEST_CASE("Idle share is what is left of first start to last end") {
  // One step with two kernels of 1 us that overlap by half, and one of 1 us, 1.5 us later.
  const std::string text = R"({"traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "pid": 1, "tid": 1, "ts": 0, "dur": 90},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"correlation": 7}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 3, "dur": 1, "args": {"correlation": 8}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 5, "dur": 1, "args": {"correlation": 9}},
    {"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 10, "dur": 1, "args": {"correlation": 7}},
    {"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 8, "ts": 10.5, "dur": 1, "args": {"correlation": 8}},
    {"ph": "X", "cat": "kernel", "name": "c", "pid": 0, "tid": 7, "ts": 13, "dur": 1, "args": {"correlation": 9}}
  ]})";
  const explain::Facts facts = facts_of(trace::read_text(text));
  REQUIRE(facts.idle_share);
  CHECK_THAT(*facts.idle_share, WithinRel(1.5 / 4, 1e-9));
  // Without its time the last kernel is no part of the span, before the others or behind them.
  for (const std::int64_t earlier : {0, 1'000'000}) {
    trace::Trace untimed = trace::read_text(text);
    for (trace::Event& event : untimed.events) event.start_ns -= earlier;
    trace::Event& last = untimed.events.back();
    last.start_ns = last.duration_ns = 0;
    last.is_timed = false;
    REQUIRE(facts_of(untimed).idle_share);
    CHECK(*facts_of(untimed).idle_share == 0);
  }
  CHECK(facts.forwards == 0);
  CHECK_THAT(explain::to_text(explain::copies(facts)), ContainsSubstring("no forward (attn_fwd)"));
}

TEST_CASE("Peak memory comes from the file's metadata, and only if it is a number") {
  const auto peak = [](const std::string& json) {
    return facts_of(
               trace::read_text(R"({"peak_memory_bytes": )" + json + R"(, "traceEvents": []})"))
        .peak_memory;
  };
  CHECK(peak("33554432") == 33554432);
  CHECK_FALSE(peak("\"many\""));
  CHECK_FALSE(peak("1e30"));
  CHECK_THAT(explain::to_text(facts_of(
                 trace::read_text(R"({"peak_memory_bytes": 33554432, "traceEvents": []})"))),
             ContainsSubstring("32.00 MiB beyond its inputs"));
}

TEST_CASE("Sizes and times in sentences") {
  CHECK(explain::time_text(129.94) == "129.9us");
  CHECK(explain::time_text(1955.0) == "1.955ms");
  CHECK(explain::time_text(2.5e6) == "2.500s");
  CHECK(explain::size_text(4) == "4 B");
  CHECK(explain::size_text(1536) == "1.50 KiB");
  CHECK(explain::size_text(268435456) == "256.00 MiB");
  CHECK(explain::size_text(-3221225472) == "-3.00 GiB");
  CHECK(explain::share_text(0.125) == "12.5%");
  CHECK(first_line(explain::to_text(explain::Facts{})) == "Facts from the trace, 0 forwards ():");
}
