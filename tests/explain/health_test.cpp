// SPDX-License-Identifier: Apache-2.0
//
// Each finding in a small trace that has what it is about, and silence where it is just not so.
#include "explain/health.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "../trace/written.h"
#include "explain/figure_text.h"
#include "trace/reader.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using explain::HealthFinding;
using explain::Severity;

namespace {

std::optional<HealthFinding> find(const trace::Trace& trace, std::string_view title) {
  for (const HealthFinding& finding : explain::health(trace).findings)
    if (finding.title.find(title) != std::string::npos) return finding;
  return std::nullopt;
}

void check_finding(const trace::Trace& trace, std::string_view title, std::int64_t count,
                   Severity severity) {
  INFO(title);
  const auto finding = find(trace, title);
  REQUIRE(finding);
  CHECK(finding->severity == severity);
  CHECK(finding->count == count);
}

void check_fault(const trace::Trace& trace, std::string_view title, std::int64_t count) {
  check_finding(trace, title, count, Severity::fault);
}

void check_note(const trace::Trace& trace, std::string_view title, std::int64_t count) {
  check_finding(trace, title, count, Severity::note);
}

void check_silent(const trace::Trace& trace, std::string_view title) {
  INFO(title);
  CHECK_FALSE(find(trace, title));
}

std::string text_of(const trace::Trace& trace) {
  return explain::to_text(explain::health(trace));
}

// ---- Parts of a trace, all times in ns.

Written step(int number, std::int64_t start, std::int64_t end) {
  return {.name = "ProfilerStep#" + std::to_string(number),
          .category = "user_annotation",
          .start = start,
          .end = end,
          .id = 900'000 + number};
}

Written op(std::int64_t start, std::int64_t end, std::int64_t id) {
  return {.name = "aten::mul", .start = start, .end = end, .id = id};
}

Written call(std::string name, std::int64_t start, std::int64_t correlation, std::int64_t id = 0) {
  return {.name = std::move(name),
          .category = "cuda_runtime",
          .start = start,
          .end = start + 1'000,
          .id = id,
          .correlation = correlation};
}

Written kernel(std::int64_t start, std::int64_t end, std::int64_t correlation,
               std::int64_t id = 0) {
  return {.name = "k",
          .category = "kernel",
          .start = start,
          .end = end,
          .thread = "7",
          .id = id,
          .correlation = correlation,
          .arguments = R"("device": 0, "stream": 7)"};
}

// An op in each of three steps that launches one kernel of 20 us. Nothing is odd.
std::vector<Written> sound() {
  std::vector<Written> events;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t at = i * 100'000;
    events.push_back(step(i + 2, at, at + 99'001));
    events.push_back(op(at + 10'001, at + 30'000, 11 + i));
    events.push_back(call("cudaLaunchKernel", at + 15'000, 101 + i, 11 + i));
    events.push_back(kernel(at + 20'000, at + 40'000, 101 + i, 11 + i));
  }
  return events;
}

std::vector<Written> operator+(std::vector<Written> events, const std::vector<Written>& more) {
  events.insert(events.end(), more.begin(), more.end());
  return events;
}

constexpr const char* kBefore = "start before their launch";
constexpr const char* kLost = "launches without a GPU operation";
constexpr const char* kAtEnd = "launches at the end";
constexpr const char* kOverlaps = "reach over the next one";
constexpr const char* kEarly = "launched before the recording";

}  // namespace

TEST_CASE("A sound file is one line") {
  CHECK(text_of(written(sound())) ==
        "healthy: 13 events, 3 GPU operations, 3 steps; nothing odd\n");
  CHECK(text_of(written({step(2, 0, 9'001), op(1'000, 2'000, 1)})) ==
        "healthy: 3 events, 0 GPU operations, 1 step; nothing odd\n");
}

TEST_CASE("A fault and a note, their lines") {
  auto events = sound() + std::vector<Written>{call("cudaMemsetAsync", 240'000, 200),
                                               call("cudaLaunchKernel", 45'000, 201)};
  events[1].name = "evil\\u001b[2J";
  events[3].start = 2'000;  // 13 us before its launch
  events[3].end = 22'000;
  const trace::Trace trace = written(events);
  const std::string text = text_of(trace);
  CHECK_THAT(text,
             StartsWith("unhealthy: 15 events, 3 GPU operations, 3 steps; 2 faults, 1 note\n"
                        "fault  GPU operations that start before their launch: 1, 20.0us, "
                        "33.3% of the GPU time\n"
                        "       e.g. k at 2.0us, step 2, 13.0us before its cudaLaunchKernel\n"));
  CHECK_THAT(text, ContainsSubstring("\nfault  launches without a GPU operation: 1, of 4 launches\n"
                                     "       e.g. cudaLaunchKernel at 45.0us, step 2\n"));
  CHECK_THAT(text, ContainsSubstring("\nnote   copies and memsets without a GPU operation: 1\n"));
  CHECK(explain::health(trace).has_fault());
}

TEST_CASE("Examples: the worst first, as many as asked for") {
  auto events = sound();
  events[3].start = 2'000;
  events[7].start = 100'000;  // 15 us before its launch
  const auto finding = [&](std::size_t examples) {
    for (const auto& found : explain::health(written(events), examples).findings)
      if (found.title.find(kBefore) != std::string::npos) return found;
    FAIL("nothing found");
    return HealthFinding();
  };
  CHECK(finding(0).examples.empty());
  CHECK(finding(1).examples.size() == 1);
  REQUIRE(finding(9).examples.size() == 2);
  CHECK_THAT(finding(9).examples[0], ContainsSubstring("15.0us before"));
  CHECK_THAT(finding(9).examples[1], ContainsSubstring("13.0us before"));
}

TEST_CASE("A file that ends early, events left out, events mended, ends without a begin") {
  const std::string good =
      R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1.005, "dur": 1.000},)";
  trace::Trace trace = trace::read_text(R"({"traceEvents": [)" + good + good + R"({"ph": "X",)");
  check_fault(trace, "the file ends before its event list does", 2);
  CHECK_THAT(text_of(trace), ContainsSubstring("the file ends too early, after "));
  check_silent(trace, "damaged events");

  trace = trace::read_text(R"({"traceEvents": [)" + good + R"({"ph": "X", "name": "odd"}, )" +
                           good + R"({"ph": "X", "name": "b"c", "ts": 3.001, "dur": 1}]})");
  check_fault(trace, "damaged events left out", 1);
  check_note(trace, "events mended", 1);
  const std::string text = text_of(trace);
  CHECK_THAT(text, ContainsSubstring("The first is at byte " +
                                     std::to_string(trace.report.first_dropped) + " of"));
  CHECK(trace.report.first_dropped == static_cast<std::int64_t>(17 + good.size()));
  CHECK(trace.report.first_repaired > trace.report.first_dropped);

  trace = trace::read_text(R"({"traceEvents": [)" + good +
                           R"({"ph": "E", "pid": 1, "tid": 1, "ts": 1.005}]})");
  check_fault(trace, "without a partner", 1);

  trace = trace::read_text(R"({"x" true, "traceEvents": [)" + good + "]} more");
  check_note(trace, "damage outside the event list", -1);
  check_note(trace, "more text behind the end", -1);
  CHECK(trace.report.damaged_from >= 0);
  CHECK(trace.report.unread_from == static_cast<std::int64_t>(30 + good.size()));
  trace = trace::read_text(R"({"traceEvents": [)" + good + "]} \n");
  check_silent(trace, "damage");
  check_silent(trace, "more text");
}

TEST_CASE("No events: the profiler was never active") {
  const trace::Trace trace = trace::read_text(R"({"traceEvents": []})");
  check_fault(trace, "no events", -1);
  CHECK(explain::health(trace).findings.size() == 1);
}

TEST_CASE("Durations that cannot be, kernels without a time, decimals without zeros") {
  check_fault(
      trace::read_text(R"([{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1.005, "dur": -0.5}])"),
      "durations below 0", 1);
  check_silent(written({op(1'005, 1'005, 1)}), "durations below 0");
  const trace::Trace absurd = written({op(1'005, 2'005, 1), op(0, 90'000'000'000'000, 2)});
  check_fault(absurd, "longer than the recording", 1);
  CHECK_THAT(text_of(absurd), ContainsSubstring("The longest says 90000.000s."));
  // written() records for 1 ms.
  const trace::Trace beyond = written({op(5, 1'100'005, 1)});
  check_note(beyond, "events longer than the recording", 1);
  CHECK_THAT(text_of(beyond), ContainsSubstring("1.100ms in a recording of 1.000ms"));
  check_silent(written({op(5, 1'000'005, 1)}), "events longer than the recording");
  auto events = sound();
  events[7].start = events[7].end = 0;
  check_fault(written(events), "without a time", 1);
  CHECK_THAT(text_of(written(events)), ContainsSubstring("e.g. k without a time\n"));
  check_silent(written(events), kBefore);  // it has no start
  const auto decimals = [](const std::string& time) {
    return trace::read_text(R"([{"ph": "X", "cat": "cpu_op", "name": "a", "ts": )" + time +
                            R"(, "dur": 1.5}])");
  };
  check_fault(decimals("1.50"), "leading zeros", -1);
  check_silent(decimals("1.005"), "leading zeros");
}

TEST_CASE("The unit of the clock") {
  const auto at = [](const std::string& first, const std::string& digits, int count = 12) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += (i == 0 ? "[" : ",") +
              (R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": )" + first) +
              std::to_string(10 + i) + digits + R"(, "dur": 0.5})";
    return trace::read_text(text + "]");
  };
  check_fault(at("41024448000000", ".125"), "times after 2100", 12);
  check_silent(at("17024448000000", ".125"), "times after 2100");
  check_fault(at("-", ".125"), "times before 1970", 12);
  check_note(at("17024448000000", ""), "whole microseconds", -1);
  check_silent(at("17024448000000", "", 9), "whole microseconds");
  check_silent(at("17024448000000", ".001"), "whole microseconds");
  check_note(at("17024448000000", ".75"), "multiples of 250ns", -1);
  check_note(at("17024448000000", ".125"), "multiples of 125ns", -1);
  check_silent(at("", ".125"), "multiples of");  // not since 1970: nothing was lost
}

TEST_CASE("Nothing on the GPU, and why that may be") {
  constexpr const char* kGpu = R"("deviceProperties": [{"id": 0, "name": "GPU"}])";
  const std::vector<Written> cpu = {step(2, 0, 9'001), op(1'000, 2'000, 1)};
  check_silent(written(cpu), "no GPU operation");
  check_note(written(cpu, {}, kGpu), "no GPU operation and no launch", -1);
  const trace::Trace launches = written(cpu + std::vector{call("cudaLaunchKernel", 1'100, 5, 1)});
  check_fault(launches, "launches, but not one GPU operation", 1);
  CHECK_THAT(text_of(launches), ContainsSubstring("CUPTI"));
  check_silent(launches, kAtEnd);
  Written span = kernel(1'000, 2'000, 0);
  span.category = "gpu_user_annotation";
  check_fault(written(cpu + std::vector{span}), "annotations on the GPU, but not one", 1);
  check_silent(written(sound() + std::vector{span}), "annotations on the GPU");
}

TEST_CASE("Kernels before their launch: a fault where the clocks are far apart") {
  auto events = sound();
  events[7].start = 114'000;  // 1 us before its launch: rounding
  check_silent(written(events), kBefore);
  events[7].start = 113'000;
  check_note(written(events), kBefore, 1);
  events[7].start = 104'000;
  check_fault(written(events), kBefore, 1);
}

TEST_CASE("Launches without work: lost, too late, captured into a graph, of 0 bytes") {
  check_fault(written(sound() + std::vector{call("cuLaunchKernelEx", 50'000, 300)}), kLost, 1);
  check_fault(written(sound() + std::vector{call("hipExtModuleLaunchKernel", 250'000, 300)}),
              kAtEnd, 1);
  check_silent(written(sound() + std::vector{call("hipExtModuleLaunchKernel", 250'000, 300)}),
               kLost);
  const trace::Trace captured =
      written(sound() + std::vector{call("cudaStreamBeginCapture_v10000", 50'000, 300),
                                    call("cudaLaunchKernel", 52'000, 301),
                                    call("cudaStreamEndCapture_v10000", 54'000, 302)});
  check_note(captured, "stream capture", 1);
  check_silent(captured, kLost);
  const trace::Trace copies = written(sound() + std::vector{call("cudaMemcpyAsync", 50'000, 300)});
  check_note(copies, "copies and memsets", 1);
  check_silent(copies, kLost);
  check_silent(written(sound() + std::vector{call("cudaEventRecord", 50'000, 300)}), "launches");
  check_silent(written(sound() + std::vector{call("cudaLaunchKernel", 50'000, 0)}), kLost);
  // A driver call inside the runtime call that launched.
  Written inner = call("cuLaunchKernel", 15'100, 300, 11);
  inner.end = 15'900;
  inner.category = "cuda_driver";
  check_silent(written(sound() + std::vector{inner}), kLost);
}

TEST_CASE("GPU operations that no op owns, by reason") {
  // 0.4 us of 60.4 is below a hundredth, 20 is above.
  check_note(written(sound() + std::vector{kernel(5'000, 5'400, 9)}), kEarly, 1);
  const trace::Trace early = written(sound() + std::vector{kernel(50'000, 70'000, 9)});
  check_fault(early, kEarly, 1);
  CHECK_THAT(text_of(early), ContainsSubstring(": 1, 20.0us, 25.0% of the GPU time\n"
                                               "       e.g. k at 50.0us, 20.0us\n"));
  check_fault(written(sound() + std::vector{kernel(50'000, 70'000, 999)}), "without a launch call",
              1);
  check_fault(written(sound() + std::vector{call("cudaLaunchKernel", 45'000, 300, 77),
                                            kernel(50'000, 70'000, 300, 77)}),
              "whose External id no op of the file has", 1);
  const trace::Trace graph =
      written(sound() + std::vector{call("cudaGraphLaunch", 45'000, 300),
                                    kernel(50'000, 60'000, 300), kernel(60'000, 70'000, 300)});
  check_note(graph, "launched by a CUDA graph", 2);
  CHECK_FALSE(explain::health(graph).has_fault());
  check_note(written(sound() +
                     std::vector{call("cuLaunchKernel", 45'000, 300), kernel(50'000, 60'000, 300)}),
             "launched outside every op", 1);
  // As Kineto once wrote it: the External id is the correlation.
  auto unlinked = sound();
  unlinked[2].id = unlinked[3].id = unlinked[2].correlation;
  check_fault(written(unlinked), "launched in an op, but without its External id", 1);
  check_silent(written(sound()), "unattributed");
}

TEST_CASE("Replays of a CUDA graph without any op are no recording of the GPU alone") {
  const trace::Trace trace = written(
      {call("cudaGraphLaunch", 1'000, 5), kernel(3'000, 4'000, 5), kernel(4'000, 5'000, 5)});
  check_note(trace, "launched by a CUDA graph", 2);
  check_silent(trace, "no ops of the CPU");
}

TEST_CASE("A recording of the GPU alone says so once") {
  const trace::Trace trace = written({kernel(1'000, 2'005, 1), kernel(3'000, 4'000, 2)});
  check_note(trace, "no ops of the CPU", 2);
  check_silent(trace, kEarly);
}

TEST_CASE("Files of several processes") {
  const auto merged = [](const std::string& second_id) {
    return trace::read_text(
        R"([{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1.001, "dur": 9, "args": {"External id": 5}},
            {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 2, "tid": 2, "ts": 1.001, "dur": 9, "args": {"External id": )" +
        second_id + R"(}},
            {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 4.001, "dur": 2, "args": {"External id": 5}}])");
  };
  check_note(merged("6"), "processes with ops or calls", 2);
  check_silent(merged("6"), "another process's op");
  check_fault(merged("5"), "External id of another process's op", 1);
  CHECK_THAT(text_of(merged("5")), ContainsSubstring("readtrace merge"));
  check_silent(written(sound()), "processes");
  const auto calls = [](const std::string& second) {
    return trace::read_text(
        R"([{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 9.001, "dur": 9, "args": {"correlation": 5}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 2, "tid": 2, "ts": 1.001, "dur": 9, "args": {"correlation": )" +
        second +
        R"(}},
            {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 4.001, "dur": 2, "args": {"correlation": 5}}])");
  };
  check_fault(calls("5"), "correlation of another process's call", 1);
  check_silent(calls("6"), "another process's call");
  check_silent(calls("6"), kBefore);  // it may be the other process's kernel
}

TEST_CASE("Ids that make a kernel count twice") {
  check_fault(written(sound() + std::vector{op(50'000, 60'000, 11)}),
              "External id of an earlier op", 1);
  check_silent(written(sound() + std::vector{op(50'000, 60'000, 15)}), "of an earlier op");
  check_fault(written(sound() + std::vector{call("cudaEventRecord", 50'000, 11)}),
              "whose correlation is the External id", 1);
  // With an id of its own, and with an op of no kernel, nothing comes of it.
  check_silent(written(sound() + std::vector{call("cudaEventRecord", 50'000, 11, 12)}),
               "whose correlation is");
  check_silent(
      written(sound() + std::vector{op(50'000, 60'000, 15), call("cudaEventRecord", 50'000, 15)}),
      "whose correlation is");
}

TEST_CASE("Overlap on one stream: early starts are a note, what outlasts the next is a fault") {
  const auto overlapping = [](std::int64_t end, std::int64_t next_end) {
    return written(sound() + std::vector{call("cudaLaunchKernel", 16'000, 104, 11),
                                         call("cudaLaunchKernel", 17'000, 105, 11),
                                         kernel(350'000, 300'000 + end, 104, 11),
                                         kernel(360'000, 300'000 + next_end, 105, 11)});
  };
  check_silent(overlapping(61'000, 90'000), kOverlaps);
  check_note(overlapping(64'000, 90'000), kOverlaps, 1);
  CHECK_THAT(text_of(overlapping(64'000, 90'000)),
             ContainsSubstring("e.g. k at 350.0us, step 2, 4.0us of its 14.0us after k at 360.0us, "
                               "step 2 began\n"));
  check_fault(overlapping(80'000, 61'000), kOverlaps, 1);
  check_note(overlapping(68'000, 61'000), kOverlaps, 1);  // below 10 us
  check_fault(overlapping(160'500, 190'000), kOverlaps, 1);
  check_note(overlapping(162'000, 320'000), kOverlaps, 1);  // below 0.3 of all
}

TEST_CASE("One call that takes much of the GPU time") {
  const auto with_long = [](std::int64_t us) {
    return written(sound() + std::vector{call("cudaLaunchKernel", 216'000, 104, 13),
                                         kernel(250'000, 250'000 + us * 1000, 104, 13)});
  };
  check_note(with_long(201), "one call that takes much", -1);
  CHECK_THAT(text_of(with_long(201)), ContainsSubstring("the median of its 4 calls is 20.0us"));
  check_silent(with_long(200), "one call that takes much");
}

TEST_CASE("Self times below 0, and events that overlap in part") {
  const auto children = [](std::int64_t second_start) {
    return written({op(0, 10'000, 1),
                    {.name = "b", .start = 1'000, .end = 8'000, .id = 2},
                    {.name = "c", .start = second_start, .end = 10'000, .id = 3}});
  };
  check_fault(children(4'000), "self CPU time below 0", 1);  // 10 - 7 - 6
  CHECK_THAT(text_of(children(4'000)), ContainsSubstring("e.g. aten::mul at 0.0us, self -3.0us"));
  check_fault(children(4'000), "overlap the one before them", 1);
  check_silent(children(7'000), "self CPU time below 0");
  check_silent(children(7'000), "overlap the one before them");  // 1 us is rounding
  check_silent(children(8'000), "overlap the one before them");
}

TEST_CASE("Steps: none, lost, overlapping, a first one that does more") {
  check_note(written({op(0, 1'005, 1)}), "no steps", -1);
  check_silent(written(sound()), "steps");
  auto events = sound();
  events[8] = step(9, 200'000, 299'001);
  check_fault(written(events), "steps missing between 2 and 9", 5);
  CHECK_THAT(text_of(written(events)), ContainsSubstring("e.g. step 4, 5, 6, 7, 8\n"));
  events[8] = step(1'000'000'000, 200'000, 299'001);
  CHECK_THAT(text_of(written(events)), ContainsSubstring("step 4, 5, 6, 7, 8, 9, 10, 11, ...\n"));

  events[0].name = "ProfilerStep#-9000000000000000000";
  events[8].name = "ProfilerStep#9000000000000000000";
  check_fault(written(events), "steps missing", std::numeric_limits<std::int64_t>::max());

  events = sound();
  events[0].end = 101'000;
  check_silent(written(events), "steps that start before");
  events[0].end = 101'001;
  check_note(written(events), "steps that start before", 1);

  const std::vector more = {call("cudaLaunchKernel", 16'000, 104, 11),
                            kernel(50'000, 60'000, 104, 11)};
  check_note(written(sound() + more), "the first step launched another number", -1);
  check_silent(written(sound()), "the first step launched");
  const std::vector in_second = {call("cudaLaunchKernel", 116'000, 104, 12),
                                 kernel(150'000, 160'000, 104, 12)};
  check_silent(written(sound() + in_second), "the first step launched");
}

TEST_CASE("Steps that a device has not, or has alone") {
  const auto span = [](int number, std::int64_t start) {
    Written result = step(number, start, start + 10'000);
    result.category = "gpu_user_annotation";
    result.thread = "7";
    return result;
  };
  check_silent(written(sound() + std::vector{span(2, 20'000), span(3, 120'000), span(4, 220'000)}),
               "steps that");
  check_note(written(sound() + std::vector{span(2, 20'000), span(4, 220'000)}),
             "have no span there", 1);
  check_note(written(sound() +
                     std::vector{span(1, 0), span(2, 20'000), span(3, 120'000), span(4, 220'000)}),
             "steps that only GPU 1 shows", 1);
  // A step without work on the device needs no span there.
  check_silent(written(sound() + std::vector{step(5, 300'000, 399'001), span(2, 20'000),
                                             span(3, 120'000), span(4, 220'000)}),
               "have no span there");
}

TEST_CASE("Warm-up that runs into the first step") {
  auto events = sound();
  events[0].start = 20'000;  // behind the launch; the kernel ends later
  check_fault(written(events), "launched before the first step", 1);
  events[0].start = 40'000;  // the kernel has ended
  check_silent(written(events), "launched before the first step");
}

TEST_CASE("Memory: freed that was never allocated, and allocations that failed") {
  check_note(written(sound(), {{.time = 5, .bytes = 8}, {.time = 9, .bytes = -12}}),
             "freed on the CPU that was allocated before the recording, at least 4 B", -1);
  check_silent(written(sound(), {{.time = 9, .bytes = -8}, {.time = 5, .bytes = 8}}), "freed");
  check_note(written(sound(), {{.time = 5, .bytes = -8}, {.time = 9, .bytes = 20}}),
             "freed on the CPU that was allocated before the recording, at least 8 B", -1);
  // Each device for itself.
  check_note(
      written(sound(), {{.time = 5, .bytes = 8}, {.time = 9, .bytes = -8, .device_type = 1}}),
      "freed on device 0", -1);
  check_fault(written(sound(), {{.time = 5'000, .bytes = 8, .name = "[OutOfMemory]"}}),
              "allocations that failed", 1);
}

TEST_CASE("Lines stay within 120 columns, and nothing in a name reaches the terminal") {
  auto events = sound();
  for (Written& event : events)
    if (event.category != "user_annotation") event.name = "\\u001b[2J" + std::string(300, 'x');
  for (std::size_t i = 3; i < events.size(); i += 4) events[i].start -= 15'000;
  std::istringstream lines(text_of(written(events + std::vector{kernel(50'000, 90'000, 5)})));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    INFO(line);
    CHECK(explain::length(line) <= 120);
    CHECK(std::all_of(line.begin(), line.end(), [](unsigned char c) { return c >= 0x20; }));
  }
  CHECK(count > 5);
}

TEST_CASE("Real recordings: warm-up kernels are found, sound ones are left alone") {
  const auto recording = [](const std::string& name) {
    return trace::read(std::string(PROF_TEST_DATA) + "/" + name + ".json.gz");
  };
  check_fault(recording("pytorch/naive"), kEarly, 2);
  check_fault(recording("pytorch/sdpa_math"), kEarly, 9);
  for (const char* name :
       {"pytorch/sdpa_flash", "explain/naive", "explain/cudnn", "explain/math"}) {
    INFO(name);
    CHECK(explain::health(recording(name)).findings.empty());
  }
}
