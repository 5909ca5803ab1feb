// SPDX-License-Identifier: Apache-2.0
//
// Traces that broke other readers, as the public reports describe them: each with a small input of
// our own and what a reader should make of it. The number is that of the report.
#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "trace/key_averages.h"
#include "trace/reader.h"
#include "trace/stream_overlaps.h"
#include "trace/tree.h"

using Catch::Matchers::ContainsSubstring;
using trace::Trace;

namespace {

// An op of 10 us with more keys than it has by itself.
std::string op(const std::string& name, const std::string& more = "") {
  return R"({"ph": "X", "cat": "cpu_op", "name": ")" + name +
         R"(", "pid": 1, "tid": 1, "ts": 5, "dur": 10)" + more + "}";
}
std::string kernel(const std::string& name, double start, double duration,
                   const std::string& arguments) {
  return fmt::format(
      R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 7, "ts": {}, "dur": {}, "args": {{{}}}}})",
      name, start, duration, arguments);
}
std::string file(const std::string& events, const std::string& top = "") {
  return "{" + top + "\"traceEvents\": [\n" + events + "\n]}";
}
std::string table(const std::string& text) {
  return trace::key_averages(trace::read_text(text)).table();
}
const trace::Row* find_row(const trace::Averages& averages, std::string_view name) {
  for (const trace::Row& row : averages.rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// The damaged event stands between two good ones, which must both be there.
Trace between(const std::string& event) {
  Trace trace = trace::read_text(file(op("before") + ",\n" + event + ",\n" + op("after")));
  REQUIRE(trace.events.size() >= 2);
  CHECK(trace.name(trace.events.front()) == "before");
  CHECK(trace.name(trace.events.back()) == "after");
  return trace;
}
std::string middle_name(const Trace& trace) {
  REQUIRE(trace.events.size() == 3);
  return std::string(trace.name(trace.events[1]));
}

}  // namespace

TEST_CASE("pytorch#146900, kineto#1459, pytorch#113001: raw quotes and newlines in names") {
  const Trace quotes = between(op(R"(Library("aten", "IMPL"))"));
  CHECK(middle_name(quotes) == R"(Library("aten", "IMPL"))");
  CHECK(quotes.report.complete());
  REQUIRE(quotes.report.warnings.size() == 1);
  CHECK_THAT(quotes.report.warnings[0], ContainsSubstring("mended") && ContainsSubstring("byte"));
  CHECK(middle_name(between(op("one\ntwo"))) == "one\ntwo");
}

TEST_CASE("pytorch#98432, kineto#336: backslashes of Windows") {
  const Trace trace = between(op(R"(C:\Users\me\model.py(3): run)"));
  CHECK_THAT(middle_name(trace), ContainsSubstring(R"(C:\Users\me)"));
  CHECK(trace.report.complete());
  CHECK(trace.report.warnings.size() == 1);
}

TEST_CASE("perfetto#598, pytorch#130622, pytorch#136180: control characters in names") {
  const std::string text = table(file(op("a\x01\x1b[31mb")));
  CHECK_THAT(text, ContainsSubstring(R"(a\x01\x1b[31mb)"));
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("kineto#988, pytorch#136040, kineto#80: invalid UTF-8 in names") {
  const Trace trace = between(op("caf\xe9 \xf0\x9f"));
  CHECK(middle_name(trace) == "caf\xef\xbf\xbd \xef\xbf\xbd");
  CHECK(trace.report.complete());
  // The column is as wide as the longest name has code points, not bytes.
  const std::string text = table(file(op("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9")));
  CHECK_THAT(text, ContainsSubstring("\n    \xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9  "));
}

TEST_CASE("kineto#205, #173, #619, #703, #1336: broken values in what no table needs") {
  CHECK(middle_name(between(op("a", R"(, "args": )"))) == "a");
  CHECK(middle_name(between(op("a", R"(, "args": {"ptr": 0x7f3c00, "n": nan, "x": })"))) == "a");
  const Trace logs = trace::read_text("{\"INFO\": [\"line one\nline two\", \"say \"hi\"\"],\n" +
                                      file(op("a")).substr(1));
  CHECK(logs.events.size() == 1);
  CHECK(logs.report.complete());
}

TEST_CASE("pytorch#33961: a key without its first quote") {
  const Trace trace = between(
      R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, tid": 0, "ts": 5, "dur": 10})");
  CHECK(middle_name(trace) == "a");
  CHECK(trace.text(trace.threads[trace.events[1].thread].tid) == "0");
  CHECK_THAT(trace.report.warnings.at(0), ContainsSubstring("byte"));
}

TEST_CASE("pytorch#95460: a bare list, as torch without Kineto writes it") {
  const std::string text = table(R"([{"name": "aten::mul", "ph": "X", "ts": 1.5, "dur": 2, "tid": 1,
                 "pid": "CPU functions", "args": {}}])");
  CHECK_THAT(text, ContainsSubstring("aten::mul") && ContainsSubstring("2.000us"));
  CHECK(text.find("CUDA") == std::string::npos);
}

TEST_CASE("trace-viewer#145: a file that ends in the middle of an event") {
  const std::string whole = file(op("a") + ",\n" + op("b") + ",\n" + op("c"));
  const Trace trace = trace::read_text(whole.substr(0, whole.size() - 40));
  CHECK(trace.events.size() == 2);
  CHECK(trace.report.truncated);
  CHECK_FALSE(trace.report.complete());
  CHECK_THAT(trace.report.warnings.at(0), ContainsSubstring("events read: 2"));
}

TEST_CASE("HTA#324: integers beyond 64 bits, deep and huge args") {
  const std::string deep = std::string(50'000, '[') + std::string(50'000, ']');
  const Trace trace = between(
      op("a", R"(, "args": {"Comms Id": 123456789012345678901234567890, "deep": )" + deep +
                  R"(, "long": ")" + std::string(1 << 20, 'x') + R"(", "External id": 4})"));
  CHECK(middle_name(trace) == "a");
  CHECK(trace.events[1].external_id == 4);
}

TEST_CASE("pytorch#122425, HTA#317, kineto#896: decimals are exact, and judged") {
  const Trace exact = trace::read_text(
      file(R"({"ph": "X", "name": "a", "ts": 1712167891234567.005, "dur": 0.120})"));
  CHECK(exact.events[0].start_ns == 1712167891234567005);
  CHECK(exact.events[0].duration_ns == 120);
  CHECK_FALSE(exact.report.unpadded_decimals);

  const auto with_durations = [](std::initializer_list<const char*> durations) {
    std::string events;
    for (const char* duration : durations) {
      events += fmt::format(R"({}{{"ph": "X", "name": "a", "ts": 1, "dur": {}}})",
                            events.empty() ? "" : ",", duration);
    }
    return trace::read_text(file(events)).report;
  };
  const trace::ReadReport unpadded = with_durations({"1.5", "2.50", "3.123"});
  CHECK(unpadded.unpadded_decimals);
  CHECK_THAT(unpadded.warnings.at(0), ContainsSubstring("leading zeros"));
  CHECK_FALSE(with_durations({"1.5", "2.05", "3.50"}).unpadded_decimals);  // 2.05 is padded
  CHECK_FALSE(with_durations({"1.5", "2.25", "3.1"}).unpadded_decimals);   // printed doubles
  CHECK_FALSE(with_durations({"1.500", "2.050", "3.000"}).unpadded_decimals);
}

TEST_CASE("kineto#1074, perfetto#274: displayTimeUnit changes no time") {
  const std::string us = table(file(op("a")));
  CHECK(table(file(op("a"), R"("displayTimeUnit": "ns", )")) == us);
  CHECK_THAT(us, ContainsSubstring("10.000us"));
}

TEST_CASE("Ascend/pytorch#133: times in quotes") {
  const Trace good = trace::read_text(
      file(R"({"ph": "X", "name": "a", "ts": "1712167891234567.125", "dur": "2.5"})"));
  CHECK(good.events[0].start_ns == 1712167891234567125);
  CHECK(good.events[0].duration_ns == 2500);
  const Trace bad = between(R"({"ph": "X", "name": "x", "ts": "yesterday", "dur": 1})");
  CHECK(bad.events.size() == 2);
  CHECK(bad.report.dropped == 1);
}

TEST_CASE("kineto#109: kernels without a time are rows and nothing else") {
  const Trace trace = trace::read_text(file(
      R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 5000, "dur": 10},)" +
      kernel("lost", 0, 0, "") + "," + kernel("k", 5010, 4, "")));
  CHECK(trace.report.untimed.count == 1);
  CHECK(trace.report.untimed.first == 1);
  CHECK_FALSE(trace.events[1].is_timed);
  CHECK(trace.events[2].is_timed);
  CHECK(trace.start_ns == 5'000'000);
  REQUIRE(find_row(trace::key_averages(trace), "lost") != nullptr);
  CHECK(find_row(trace::key_averages(trace), "lost")->count == 1);
  CHECK_THAT(trace.report.warnings.at(0), ContainsSubstring("without a time"));
}

TEST_CASE("kineto#646, pytorch#124080, #150131, HTA#325: durations that cannot be") {
  const Trace trace = trace::read_text(
      file(op("a") + R"(,{"ph": "X", "cat": "cpu_op", "name": "minus", "pid": 1, "tid": 2, "ts": 6,
                         "dur": -4})" +
           R"(,{"ph": "X", "cat": "cpu_op", "name": "years", "pid": 1, "tid": 3, "ts": 6,
               "dur": 7443000000000000})"));
  CHECK(trace.report.negative_durations.count == 1);
  CHECK(trace.report.negative_durations.first == 1);
  CHECK(trace.report.absurd_durations.count == 1);
  CHECK(trace.report.absurd_durations.first == 2);
  CHECK(trace.report.warnings.size() == 2);
  CHECK(trace.report.complete());  // nothing is missing
  CHECK(trace::read_text(file(R"({"ph": "X", "ts": 1, "dur": 9300000000000000000000})"))
            .report.absurd_durations.count == 1);
  const trace::Averages averages = trace::key_averages(trace);
  CHECK(find_row(averages, "years")->cpu_time_total == 0);
  CHECK_THAT(averages.table(), ContainsSubstring("100.00%      10.000us"));
  // A step of seconds in a recording of milliseconds stays.
  CHECK(trace::read_text(file(op("a") + R"(,{"ph": "X", "name": "step", "ts": 5, "dur": 13e6})"))
            .report.absurd_durations.count == 0);
}

TEST_CASE("TraceLens#669, Hyperloom#1116: kernels that last over the next ones on their stream") {
  Trace trace = trace::read_text(file(kernel("long", 10, 2e6, R"("stream": 7)") + "," +
                                      kernel("next", 15, 3, R"("stream": 7)")));
  const std::vector<trace::Overlap> overlaps = trace::stream_overlaps(trace);
  REQUIRE(overlaps.size() == 1);
  CHECK(overlaps[0].excess_ns == 1'999'995'000);
  CHECK(find_row(trace::key_averages(trace), "long")->device_time_total == 2e6);  // as it stands
  CHECK(trace::clip_overlaps(trace) == 1'999'995'000);
  CHECK(find_row(trace::key_averages(trace), "long")->device_time_total == 5);
}

TEST_CASE("pytorch#101861, #128479, #129554: children that end after their parents") {
  const Trace trace = trace::read_text(file(
      R"({"ph": "X", "cat": "cpu_op", "name": "parent", "pid": 1, "tid": 1, "ts": 0, "dur": 10},
              {"ph": "X", "cat": "cpu_op", "name": "one", "pid": 1, "tid": 1, "ts": 0, "dur": 7},
              {"ph": "X", "cat": "cpu_op", "name": "two", "pid": 1, "tid": 1, "ts": 6, "dur": 4})"));
  CHECK(find_row(trace::key_averages(trace), "parent")->self_cpu_time_total == -1);
  CHECK_THAT(trace::key_averages(trace).table(), ContainsSubstring("-1.000us"));
}

TEST_CASE("pytorch#124388, TraceLens#581: an id of one kind is not one of another") {
  const Trace trace = trace::read_text(
      file(op("a", R"(, "args": {"External id": 3})") + "," +
           R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
          "ts": 6, "dur": 1, "args": {"External id": 4, "correlation": 3}},)" +
           kernel("of a", 20, 2, R"("External id": 3, "correlation": 8)")));
  const trace::OpTree tree(trace);
  CHECK(tree.kernels(0).size() == 1);
  CHECK(tree.kernels(1).empty());  // its correlation is 3, its op's id is not
}

TEST_CASE("kineto#1567, tracy#1330, TraceLens#510: the kernels of a CUDA graph") {
  std::string events =
      R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 1, "tid": 1,
          "ts": 6, "dur": 1, "args": {"correlation": 3}})";
  for (int i = 0; i < 5; ++i) events += "," + kernel("k", 10 + i, 1, R"("correlation": 3)");
  const Trace trace = trace::read_text(file(events));
  const trace::Averages averages = trace::key_averages(trace);
  CHECK(find_row(averages, "k")->count == 5);
  CHECK(find_row(averages, "cudaGraphLaunch")->device_time_total == 0);
  CHECK(find_row(trace::key_averages(trace, {.graph_kernels_to_launch = true}), "cudaGraphLaunch")
            ->device_time_total == 5);
}

TEST_CASE("TraceLens#297, #451, HTA#16: kernels of no op count in the footer") {
  const std::string text = table(file(op("a") + "," + kernel("triton_k", 20, 2, "")));
  CHECK_THAT(text,
             ContainsSubstring("triton_k") && ContainsSubstring("Self CUDA time total: 2.000us"));
}

TEST_CASE("pytorch#130730, #85284: only annotations on the device") {
  const std::string text = table(file(
      op("a") + R"(,{"ph": "X", "cat": "gpu_user_annotation", "name": "attn", "pid": 0, "tid": 7,
                    "ts": 5, "dur": 10.002})"));
  CHECK_THAT(text, ContainsSubstring("NaN") && ContainsSubstring("Self CUDA time total: 0.000us"));
  CHECK_THAT(table(file(R"({"ph": "X", "cat": "cpu_op", "name": "a", "ts": 5, "dur": 0})")),
             ContainsSubstring("NaN"));
}

TEST_CASE("kineto#1002, #1061, perfetto#886: ids are opaque, categories tell what ran where") {
  const Trace trace = trace::read_text(
      file(R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 0, "tid": 0, "ts": 1, "dur": 2},
              {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 7, "tid": -1390, "ts": 1, "dur": 2},
              {"ph": "X", "cat": "cpu_op", "name": "c", "pid": "", "tid": "Spans", "ts": 1})"));
  const trace::Averages averages = trace::key_averages(trace);
  CHECK(averages.rows.size() == 3);
  CHECK(averages.use_device.empty());
}

TEST_CASE("pytorch#70028, #51421, #107955: frees of what was allocated before") {
  const Trace trace = trace::read_text(
      file(op("a") + R"(,{"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 6,
                    "args": {"Bytes": -4096, "Device Type": 0, "Total Allocated": 512}},
                   {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 90,
                    "args": {"Bytes": -1024, "Device Type": 0}})"));
  const trace::Averages averages = trace::key_averages(trace);
  CHECK(find_row(averages, "a")->cpu_memory_usage == -4096);
  REQUIRE(find_row(averages, "[memory]") != nullptr);
  CHECK(find_row(averages, "[memory]")->cpu_memory_usage == -1024);
  CHECK_THAT(averages.table(), ContainsSubstring("-4.00 KB"));
  CHECK(trace.memory[0].total_allocated == 512);
}

TEST_CASE("pytorch#121126, #148314, #153949: steps are not needed, and may be on the device only") {
  CHECK_THAT(table(file(op("a") + R"(,{"ph": "X", "cat": "gpu_user_annotation", "pid": 0,
                                      "tid": 7, "name": "ProfilerStep#4", "ts": 5, "dur": 9})")),
             ContainsSubstring("ProfilerStep*"));
  CHECK_THAT(table(file(op("a"))), ContainsSubstring("Self CPU time total: 10.000us"));
}

TEST_CASE("kineto#671, #1390, #1467: flows that have no partner or come twice change nothing") {
  const std::string plain = table(file(op("a") + "," + kernel("k", 9, 2, "")));
  const std::string flow = R"({"ph": "s", "id": 0, "pid": 1, "tid": 1, "ts": 5, "cat": "ac2g"},)";
  CHECK(table(file(flow + flow + op("a") + "," + kernel("k", 9, 2, "") +
                   R"(,{"ph": "f", "id": 99, "pid": 0, "tid": 7, "ts": 1e9, "bp": "e"})")) ==
        plain);
}

TEST_CASE("pytorch#56623, kineto#126, HTA#107: many events in no more than linear time") {
  // All on one thread, each inside the one before, all of one name: what is quadratic elsewhere.
  std::string events;
  constexpr int kCount = 100'000;
  for (int i = 0; i < kCount; ++i) {
    events += fmt::format(
        "{}{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"n\", \"pid\": 1, \"tid\": 1, "
        "\"ts\": {}, \"dur\": {}}}",
        i == 0 ? "" : ",\n", i, 2 * (kCount - i));
  }
  const trace::Averages averages = trace::key_averages(trace::read_text(file(events)));
  REQUIRE(averages.rows.size() == 1);
  CHECK(averages.rows[0].count == 1);  // an only child of the same name is its parent
}

TEST_CASE("pytorch#192021, kineto#996: kernels that start before their launch keep their op") {
  const Trace trace =
      trace::read_text(file(op("a", R"(, "args": {"External id": 3})") + "," +
                            kernel("early", 1, 2, R"("External id": 3, "correlation": 8)")));
  CHECK(find_row(trace::key_averages(trace), "a")->device_time_total == 2);
  CHECK(trace::OpTree(trace).launcher(1) == 0);
}

TEST_CASE("NaN in args, keys that stand twice, BOM, CRLF and empty lists are read") {
  CHECK(middle_name(
            between(op("a", R"(, "args": {"x": NaN, "y": -Infinity, "External id": 4})"))) == "a");
  CHECK(middle_name(between(op("a", R"(, "name": "b")"))) == "b");
  std::string crlf;
  for (const char c : file(op("a"))) crlf += c == '\n' ? "\r\n" : std::string(1, c);
  CHECK(trace::read_text("\xEF\xBB\xBF" + crlf).events.size() == 1);
  CHECK(trace::key_averages(trace::read_text(file(""))).table().empty());  // HTA#337
}

TEST_CASE("events without args, category, duration or name are events") {
  const Trace trace = trace::read_text(
      file(R"({"ph": "X", "ts": 1}, {"ph": "X", "ts": 2, "name": "n"}, {"ph": "C", "ts": 3},
              {"ph": "B", "ts": 4, "name": "b", "tid": 1}, {"ph": "E", "ts": 6, "tid": 1},
              {"ph": "i", "ts": 5, "name": "mark"})"));
  REQUIRE(trace.events.size() == 3);
  CHECK(trace.events[2].duration_ns == 2000);
  CHECK(trace.report.complete());
  CHECK_FALSE(trace::key_averages(trace).table().empty());
}
