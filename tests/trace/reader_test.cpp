// SPDX-License-Identifier: Apache-2.0
#include "trace/reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "describe.h"
#include "trace/files.h"

using Catch::Matchers::ContainsSubstring;
using trace::Category;
using trace::Event;
using trace::read_text;
using trace::ReadError;
using trace::Trace;

namespace {

// A trace with these elements in its event list.
std::string list_of(const std::string& elements) {
  return "{\"traceEvents\": [" + elements + "]}";
}

// The only event of a list of one.
Event only_event(const Trace& trace) {
  REQUIRE(trace.events.size() == 1);
  return trace.events.front();
}

Category category_of(const std::string& name) {
  const Trace trace = read_text(list_of(R"({"ph": "X", "ts": 1, "cat": ")" + name + "\"}"));
  return only_event(trace).category;
}

// A file that is gone when the test is over.
class File {
 public:
  explicit File(std::string_view bytes)
      : path_(std::filesystem::temp_directory_path() /
              ("prof_reader_" + std::to_string(::getpid()) + "_" + std::to_string(++count_))) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  static inline int count_ = 0;
  std::filesystem::path path_;
};

// As Kineto 2.11 lays it out.
const std::string kKineto = R"x(
  {
    "schemaVersion": 1,
    "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320,
      "computeMajor": 9, "computeMinor": 0,
      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
      "regsPerBlock": 65536, "warpSize": 32,
      "sharedMemPerBlock": 49152, "numSms": 132
    , "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472
    }
    ],
      "trace_id": "075E6DF633934B13B50EEF9B5001353E",
      "profile_memory": 1,
      "with_flops": 0,
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::bmm", "pid": 425, "tid": 426,
    "ts": 5177640516690.125, "dur": 30.250,
    "args": {
      "External id": 3,"Record function id": 0, "Concrete Inputs": ["", ""], "Input type": ["float", "float"], "Input Dims": [[2, 8, 16], [2, 16, 8]], "Ev Idx": 2
    }
  },
  {
    "ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7,
    "ts": 5177640516700.001, "dur": 12.000,
    "args": {
      "External id": 3, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 99,
      "registers per thread": 32, "shared memory": 2048, "blocks per SM": 1.9, "warps per SM": 7.7,
      "grid": [128, 2, 1],
      "block": [256, 1, 1],
      "est. achieved occupancy %": 87.5
    }
  },
  {
    "ph": "s", "id": 99, "pid": 425, "tid": 426, "ts": 5177640516690.125,
    "cat": "ac2g", "name": "ac2g"
  },
  {
    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",
    "pid": 425, "tid": 426,
    "ts": 5177640516691.000,
    "args": {
      "Total Reserved": 0, "Total Allocated": 64, "Bytes": -64, "Device Id": -1, "Device Type": 0, "Addr": 1311750848, "finished": false, "Ev Idx": 124
    }
  },
  {
    "name": "process_name", "ph": "M", "ts": 5177640516654.382, "pid": 425, "tid": 0,
    "args": {
      "name": "python"
    }
  },
  {
    "ph": "X", "cat": "Trace", "ts": 5177640516654.382, "dur": 1392.090,
    "pid": "Spans", "tid": "PyTorch Profiler",
    "name": "PyTorch Profiler (0)",
                  "args" : {
  "Op count" : 0
}
},
  {
    "name": "Record Window End", "ph": "i", "s": "g",
    "pid": "", "tid": "", "ts": 5177640518046.472
  }
  ],
  "traceName": "x.json"
}
)x";

}  // namespace

TEST_CASE("a Kineto trace is read whole") {
  const Trace trace = read_text(kKineto);
  CHECK(trace.report.complete());
  CHECK(trace.report.warnings.empty());
  CHECK(trace.report.bytes == static_cast<std::int64_t>(kKineto.size()));
  CHECK(trace.base_ns == 1790857026000000000);
  CHECK(trace.start_ns == 1790857026000000000 + 5177640516654382);
  REQUIRE(trace.events.size() == 3);

  const Event& op = trace.events[0];
  CHECK(op.category == Category::cpu_op);
  CHECK(trace.name(op) == "aten::bmm");
  CHECK(op.start_ns == 1790857026000000000 + 5177640516690125);
  CHECK(op.duration_ns == 30250);
  CHECK(op.external_id == 3);
  CHECK(trace.text(trace.threads[op.thread].pid) == "425");
  CHECK(trace.text(trace.threads[op.thread].tid) == "426");
  CHECK(trace.text(trace.arguments_of(op).input_dims) == "[[2, 8, 16], [2, 16, 8]]");
  CHECK(trace.text(trace.arguments_of(op).input_types) == R"(["float", "float"])");
  CHECK(trace.arguments_of(op).concrete_inputs == 0);

  const Event& kernel = trace.events[1];
  CHECK(kernel.category == Category::kernel);
  CHECK(kernel.correlation == 99);
  const trace::Launch& launch = trace.launch_of(kernel);
  CHECK(launch.stream == 7);
  CHECK(launch.grid == std::array<std::uint32_t, 3>{128, 2, 1});
  CHECK(launch.block == std::array<std::uint32_t, 3>{256, 1, 1});
  CHECK(launch.registers_per_thread == 32);
  CHECK(launch.shared_memory == 2048);
  CHECK(launch.occupancy_percent == 87.5);
  CHECK(trace.events[2].category == Category::profiler_span);

  REQUIRE(trace.memory.size() == 1);
  CHECK(trace.memory[0].bytes == -64);
  CHECK(trace.memory[0].total_allocated == 64);
  CHECK(trace.memory[0].address == 1311750848);
  CHECK(trace.memory[0].device_type == 0);
  CHECK(trace.memory[0].device_index == -1);
  CHECK(trace.memory[0].time_ns == 1790857026000000000 + 5177640516691000);

  REQUIRE(trace.devices.size() == 1);
  CHECK(trace.devices[0].name == "NVIDIA H200");
  CHECK(trace.devices[0].total_memory == 150109880320);
  CHECK(trace.devices[0].compute_major == 9);
  CHECK(trace.devices[0].multiprocessors == 132);
  CHECK(trace.devices[0].shared_memory_per_multiprocessor == 233472);
  CHECK(trace.flag("profile_memory"));
  CHECK_FALSE(trace.flag("with_flops"));
  CHECK_FALSE(trace.flag("with_stack"));
  CHECK(trace.metadata_value("trace_id") == "\"075E6DF633934B13B50EEF9B5001353E\"");
}

TEST_CASE("keys come in any order, around the list and in events") {
  const Trace trace = read_text(R"({"traceEvents": [
    {"args": {"stream": 7, "External id": 5}, "cat": "kernel", "dur": 2, "name": "k", "ph": "X",
     "pid": 0, "tid": 7, "ts": 10},
    {"ts": 3, "name": "[memory]", "args": {"Bytes": 8}, "ph": "i"},
    {"ts": 4, "name": "b", "ph": "B"}, {"ts": 5, "ph": "E"}],
    "baseTimeNanoseconds": 1000000, "metadata": {"peak": 17, "note": "a\"b", "baseTimeNanoseconds": 5}})");
  REQUIRE(trace.events.size() == 2);
  CHECK(trace.events[0].start_ns == 1010000);
  CHECK(trace.events[0].external_id == 5);
  CHECK(trace.launch_of(trace.events[0]).stream == 7);
  CHECK(trace.events[1].start_ns == 1004000);
  CHECK(trace.events[1].duration_ns == 1000);
  CHECK(trace.memory.at(0).time_ns == 1003000);
  CHECK(trace.start_ns == 1004000);
  CHECK(trace.metadata_value("peak") == "17");
  CHECK(trace.metadata_value("note") == R"("a\"b")");
}

TEST_CASE("of a key that stands twice the last one counts") {
  const Trace trace = read_text(R"({"baseTimeNanoseconds": 7, "with_flops": 1,
    "traceEvents": [{"ph": "X", "name": "old", "ts": 1}, {"ph": "X", "name": "old", "ts": 2}],
    "with_flops": 0, "baseTimeNanoseconds": 9,
    "traceEvents": [{"ph": "X", "name": "old", "name": "new", "ts": 1}]})");
  CHECK(trace.name(only_event(trace)) == "new");
  CHECK(trace.events[0].start_ns == 1009);
  CHECK(trace.start_ns == 1009);
  CHECK_FALSE(trace.flag("with_flops"));
  CHECK(trace.metadata.size() == 2);
}

TEST_CASE("an array of events is a trace, torch without Kineto has no categories") {
  const Trace trace = read_text(R"([{"name": "aten::add", "ph": "X", "ts": 1.5, "dur": 2, "tid": 1,
    "pid": "CPU functions", "args": {}}, {"name": "k", "ph": "X", "ts": 2, "dur": 1, "tid": 0,
    "pid": "CUDA functions", "args": {}}])");
  CHECK(trace.report.complete());
  REQUIRE(trace.events.size() == 2);
  CHECK(trace.events[0].category == Category::cpu_op);
  CHECK(trace.events[1].category == Category::kernel);
}

TEST_CASE("names of other versions and vendors are mapped") {
  CHECK(category_of("Operator") == Category::cpu_op);
  CHECK(category_of("Runtime") == Category::cuda_runtime);
  CHECK(category_of("hip_runtime") == Category::cuda_runtime);
  CHECK(category_of("cuda_driver") == Category::cuda_driver);
  CHECK(category_of("Kernel") == Category::kernel);
  CHECK(category_of("Memcpy") == Category::gpu_memcpy);
  CHECK(category_of("Memset") == Category::gpu_memset);
  CHECK(category_of("gpu_user_annotation") == Category::gpu_user_annotation);
  CHECK(category_of("overhead") == Category::overhead);
  CHECK(category_of("python_function") == Category::python_function);
  CHECK(category_of("what comes next year") == Category::other);
  // Every category that has a name of its own is read back as itself.
  for (int i = 0; i < static_cast<int>(Category::other); ++i) {
    const auto category = static_cast<Category>(i);
    CHECK(category_of(std::string(trace::to_string(category))) == category);
  }
}

TEST_CASE("files of 2021 write external id in lower case and [memory] without a category") {
  const Trace trace = read_text(list_of(
      R"({"ph": "X", "cat": "Kernel", "ts": 1, "dur": 2, "args": {"external id": 12, "stream": 7}},
         {"ph": "i", "name": "[memory]", "ts": 1, "args": {"Device Type": 1, "Device Id": 0, "Bytes": 512}},
         {"ph": "X", "name": "[OutOfMemory]", "ts": 2, "args": {"Bytes": 1024}})"));
  CHECK(only_event(trace).external_id == 12);
  REQUIRE(trace.memory.size() == 2);
  CHECK(trace.memory[0].device_type == 1);
  CHECK(trace.memory[0].total_allocated == -1);
  CHECK_FALSE(trace.memory[0].out_of_memory);
  CHECK(trace.memory[1].out_of_memory);
}

TEST_CASE("ids are opaque text") {
  const Trace trace = read_text(list_of(
      R"({"ph": "X", "ts": 1, "pid": -1, "tid": 0}, {"ph": "X", "ts": 1, "pid": "Spans", "tid": ""},
         {"ph": "X", "ts": 1, "pid": 0, "tid": 139871234567890123456}, {"ph": "X", "ts": 1},
         {"ph": "X", "ts": 1, "pid": "-1", "tid": "0"}, {"ph": "X", "ts": 1, "pid": null, "tid": []})"));
  REQUIRE(trace.events.size() == 6);
  const auto tid = [&](int i) { return trace.text(trace.threads[trace.events[i].thread].tid); };
  const auto pid = [&](int i) { return trace.text(trace.threads[trace.events[i].thread].pid); };
  CHECK(pid(0) == "-1");
  CHECK(pid(1) == "Spans");
  CHECK(tid(1).empty());
  CHECK(tid(2) == "139871234567890123456");
  CHECK(pid(3).empty());
  CHECK(trace.events[4].thread == trace.events[0].thread);
  CHECK(trace.events[5].thread == trace.events[3].thread);
}

TEST_CASE("times are exact, whatever displayTimeUnit says") {
  const Trace trace = read_text(R"({"displayTimeUnit": "ns", "traceEvents": [
    {"ph": "X", "ts": 1712167891234567.125, "dur": 0.001},
    {"ph": "X", "ts": "1712167891234567.126", "dur": "1.5"},
    {"ph": "X", "ts": 1.712167891234567e15, "dur": 1e2},
    {"ph": "X", "ts": 1666149715033200, "dur": 413451},
    {"ph": "X", "ts": 0, "dur": -3}, {"ph": "X", "ts": 5}, {"ph": "X", "ts": 6, "dur": null}]})");
  CHECK(trace.report.complete());
  REQUIRE(trace.events.size() == 7);
  CHECK(trace.events[0].start_ns == 1712167891234567125);
  CHECK(trace.events[0].duration_ns == 1);
  CHECK(trace.events[1].start_ns == 1712167891234567126);
  CHECK(trace.events[1].duration_ns == 1500);
  CHECK(trace.events[2].start_ns == 1712167891234567000);
  CHECK(trace.events[2].duration_ns == 100000);
  CHECK(trace.events[3].start_ns == 1666149715033200000);
  CHECK(trace.events[4].duration_ns == 0);
  CHECK(trace.events[5].duration_ns == 0);
  CHECK(trace.events[6].duration_ns == 0);
}

TEST_CASE("the recording starts at its Trace span, else at the earliest event") {
  CHECK(read_text(list_of(R"({"ph": "X", "ts": 5}, {"ph": "X", "ts": 3}, {"ph": "i", "ts": 1})"))
            .start_ns == 3000);
  CHECK(read_text(list_of(R"({"ph": "X", "ts": 5}, {"ph": "X", "ts": 3},
                             {"ph": "X", "cat": "Trace", "ts": 4})"))
            .start_ns == 4000);
  CHECK(read_text(list_of("")).start_ns == 0);
}

TEST_CASE("begin and end are paired on their thread in order of time") {
  const Trace trace = read_text(list_of(R"(
    {"ph": "B", "ts": 10, "tid": 1, "name": "outer"}, {"ph": "B", "ts": 12, "tid": 1, "name": "inner"},
    {"ph": "E", "ts": 20, "tid": 1}, {"ph": "B", "ts": 11, "tid": 2, "name": "other"},
    {"ph": "E", "ts": 15, "tid": 1}, {"ph": "E", "ts": 30, "tid": 2}, {"ph": "E", "ts": 40, "tid": 2},
    {"ph": "B", "ts": 50, "tid": 2, "name": "open"})"));
  REQUIRE(trace.events.size() == 4);
  CHECK(trace.events[0].duration_ns == 10000);
  CHECK(trace.events[1].duration_ns == 3000);
  CHECK(trace.events[2].duration_ns == 19000);
  CHECK(trace.events[3].duration_ns == 0);
  REQUIRE(trace.report.warnings.size() == 1);
  CHECK_THAT(trace.report.warnings[0], ContainsSubstring("without a partner: 2"));
}

TEST_CASE("what repeats is stored once") {
  std::string events;
  for (int i = 0; i < 100; ++i) {
    events += R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "args": {
                  "Input Dims": [[4, 4], [4, 4]], "Input type": ["float", "float"]}},
                 {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "args": {"stream": 7}},)";
  }
  const Trace trace =
      read_text(list_of(events + R"({"ph": "X", "ts": 1, "cat": "gpu_user_annotation",
                                                     "args": {"External id": 1}})"));
  CHECK(trace.events.size() == 201);
  CHECK(trace.arguments.size() == 2);
  CHECK(trace.launches.size() == 2);
  CHECK(trace.threads.size() == 1);
  CHECK(trace.texts.size() < 12);
}

TEST_CASE("concrete inputs are kept for conv2d alone") {
  const Trace trace = read_text(list_of(
      R"({"args": {"Concrete Inputs": ["", "[1, 1]"], "Input Dims": [[1], []]}, "ph": "X", "ts": 1, "name": "aten::conv2d"},
         {"args": {"Concrete Inputs": ["", "[1, 1]"], "Input Dims": [[1], []]}, "ph": "X", "ts": 1, "name": "aten::mm"})"));
  REQUIRE(trace.events.size() == 2);
  CHECK(trace.text(trace.arguments_of(trace.events[0]).concrete_inputs) == R"(["", "[1, 1]"])");
  CHECK(trace.arguments_of(trace.events[1]).concrete_inputs == 0);
}

TEST_CASE("escapes in names and ids are what they stand for") {
  const Trace trace = read_text(list_of(
      R"({"ph": "X", "ts": 1, "name": "a\"b\\c\u00e4\ud83d\ude00", "tid": "t\u0031"}, {"ph": "X", "ts": 1, "name": "\u0001"})"));
  REQUIRE(trace.events.size() == 2);
  CHECK(trace.name(trace.events[0]) == "a\"b\\c\xC3\xA4\xF0\x9F\x98\x80");
  CHECK(trace.text(trace.threads[trace.events[0].thread].tid) == "t1");
  CHECK(trace.name(trace.events[1]) == "\x01");
  CHECK(trace.report.repaired == 0);
}

TEST_CASE("gzip, several members of it, BOM and CRLF are read like the plain text") {
  const std::string expected = describe(read_text(kKineto));
  const std::size_t half = kKineto.size() / 2;
  const std::string members =
      trace::gzip(kKineto.substr(0, half)) + trace::gzip(kKineto.substr(half));
  std::string windows = "\xEF\xBB\xBF";
  for (const char c : kKineto) windows += c == '\n' ? "\r\n" : std::string(1, c);
  for (const std::string& bytes : {kKineto, trace::gzip(kKineto), members, windows}) {
    const File file(bytes);
    const Trace trace = trace::read(file.path());
    CHECK(describe(trace) == expected);
    CHECK(trace.report.complete());
  }
}

TEST_CASE("a dash is standard input, which stays open") {
  const File file(trace::gzip(kKineto));
  const int kept = ::dup(STDIN_FILENO);
  const int opened = ::open(file.path().c_str(), O_RDONLY);
  ::dup2(opened, STDIN_FILENO);
  const std::string got = describe(trace::read("-"));
  CHECK(::fcntl(STDIN_FILENO, F_GETFD) != -1);
  ::dup2(kept, STDIN_FILENO);
  ::close(kept);
  ::close(opened);
  CHECK(got == describe(read_text(kKineto)));
}

TEST_CASE("a trace without events is a trace") {
  for (const char* text : {R"({"traceEvents": []})", "[]", R"({"traceEvents": [], "a": 1})",
                           R"([{"ph": "M", "name": "process_name"}])"}) {
    const Trace trace = read_text(text);
    CHECK(trace.events.empty());
    CHECK(trace.report.complete());
    CHECK(trace.report.warnings.empty());
  }
}

TEST_CASE("what stands behind the trace is not read, and said") {
  const Trace trace = read_text(R"([{"ph": "X", "ts": 1}] [{"ph": "X", "ts": 2}])");
  CHECK(trace.events.size() == 1);
  CHECK(trace.report.unread_from == 23);
  CHECK_FALSE(trace.report.complete());
  CHECK(trace.report.warnings.size() == 1);
  CHECK(read_text("[{\"ph\": \"X\", \"ts\": 1}]\n \n").report.complete());
}

TEST_CASE("what is no trace is refused in one sentence") {
  const auto message = [](std::string_view text) -> std::string {
    try {
      (void)read_text(text);
    } catch (const ReadError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK_THAT(message(""), ContainsSubstring("empty"));
  CHECK_THAT(message(" \n"), ContainsSubstring("empty"));
  CHECK_THAT(message("\x80\x04\x95 pickle"), ContainsSubstring("not a trace"));
  CHECK_THAT(message("<html>"), ContainsSubstring("not a trace"));
  CHECK_THAT(message("42"), ContainsSubstring("not a trace"));
  CHECK_THAT(message(R"({"displayTimeUnit": "ms"})"), ContainsSubstring("no list of traceEvents"));
  CHECK_THAT(message(R"({"traceEvents": 5})"), ContainsSubstring("no list of traceEvents"));
  CHECK_THAT(message(R"({]})"), ContainsSubstring("no list of traceEvents"));
  CHECK_THAT(message("[1, 2, 3]"), ContainsSubstring("not one whole event"));
  CHECK_THAT(message(R"([{"ph": "X", "ts": "x\u0007"}])"),
             ContainsSubstring("not one whole event"));
  CHECK_THAT(message(R"({"traceEvents": [{"ph": "X", "ts")"),
             ContainsSubstring("not one whole event"));
  CHECK_THAT(message(R"({"traceEve)"), ContainsSubstring("not one whole event"));
}

TEST_CASE("files that cannot be read are named, without control characters") {
  const auto message = [](const std::filesystem::path& path) -> std::string {
    try {
      (void)trace::read(path);
    } catch (const ReadError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK_THAT(message("/no/such\x1b[2Jfile.json"),
             ContainsSubstring("/no/such\\x1b[2Jfile.json") && ContainsSubstring("No such file"));
  CHECK_THAT(message(std::filesystem::temp_directory_path()), ContainsSubstring("is a folder"));
  const File empty("");
  CHECK_THAT(message(empty.path()),
             ContainsSubstring(empty.path().string()) && ContainsSubstring("empty"));
  const File no_gzip(trace::gzip(kKineto).substr(0, 12));
  CHECK_THAT(message(no_gzip.path()), ContainsSubstring("gzip"));
  if (::geteuid() != 0) {
    const File locked(kKineto);
    std::filesystem::permissions(locked.path(), std::filesystem::perms::none);
    CHECK_THAT(message(locked.path()), ContainsSubstring("Permission denied"));
  }
}
