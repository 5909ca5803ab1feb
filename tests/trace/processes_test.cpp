// SPDX-License-Identifier: Apache-2.0
//
// Files that somebody made of the traces of several processes: an id joins within one of them only.
#include "trace/processes.h"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "trace/key_averages.h"
#include "trace/reader.h"
#include "trace/tree.h"

namespace {

std::string event(const std::string& category, const std::string& name, const std::string& pid,
                  int start, int duration, const std::string& arguments) {
  return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name + R"(", "pid": )" + pid +
         R"(, "tid": 1, "ts": )" + std::to_string(start) + R"(, "dur": )" +
         std::to_string(duration) + R"(, "args": {)" + arguments + "}}";
}

// One rank: an op that launches a kernel of `kernel_us`, and a call of no op. All ranks have the
// same ids.
std::vector<std::string> rank(const std::string& pid, int start, int kernel_us) {
  return {
      event("cpu_op", "aten::mul", pid, start, 50, R"("External id": 7)"),
      event("cuda_runtime", "cudaLaunchKernel", pid, start + 10, 5,
            R"("External id": 7, "correlation": 9)"),
      event("kernel", "k", "0", start + 100, kernel_us, R"("External id": 7, "correlation": 9)"),
      event("user_annotation", "ProfilerStep#1", pid, start - 10, 500, R"("External id": 8)"),
      event("cuda_runtime", "cudaDeviceSynchronize", pid, start + 60, 100, R"("correlation": 10)"),
      R"({"ph": "i", "name": "[memory]", "pid": )" + pid + R"(, "tid": 1, "ts": )" +
          std::to_string(start + 20) + R"(, "args": {"Bytes": 1024, "Device Type": 0}})",
  };
}

std::string joined(const std::vector<std::string>& events) {
  std::string text;
  for (const std::string& event : events) text += (text.empty() ? "[" : ",\n") + event;
  return text + "]";
}

const trace::Row& row(const trace::Averages& averages, const std::string& name) {
  for (const trace::Row& row : averages.rows) {
    if (row.name == name) return row;
  }
  FAIL("no row " << name);
  return averages.rows.front();
}

}  // namespace

TEST_CASE("the ranks of a merged file keep their ids apart") {
  std::vector<std::string> events = rank("100", 1000, 30);
  for (const std::string& event : rank("200", 1005, 4)) events.push_back(event);
  const trace::Trace trace = trace::read_text(joined(events));
  const trace::Processes processes(trace);
  REQUIRE(processes.count() == 2);
  CHECK(processes.of(2) == 0);
  CHECK(processes.of(7) == 1);

  const trace::OpTree tree(trace);
  CHECK(tree.launcher(2) == 0);
  CHECK(tree.launcher(7) == 5);
  CHECK(tree.kernels(0).size() == 1);
  CHECK(tree.parent(6) == 5);  // the call of the second rank is inside its own op
  CHECK(tree.parent(9) == 8);  // a call of no op is inside its own rank's step
  CHECK(tree.memory(0).cpu == 1024);

  const trace::Averages averages = trace::key_averages(trace);
  CHECK(row(averages, "aten::mul").device_time_total == 34);
  CHECK(row(averages, "aten::mul").cpu_memory_usage == 2048);
  CHECK(row(averages, "ProfilerStep*").device_time_total == 34);
}

TEST_CASE("where the ranks' events are mixed only ids of one rank join") {
  std::vector<std::string> events;
  const std::vector<std::string> first = rank("100", 1000, 30), second = rank("200", 1005, 4);
  for (std::size_t i = 0; i < first.size(); ++i) {
    events.push_back(first[i]);
    events.push_back(second[i]);
  }
  events.push_back(event("cpu_op", "aten::add", "200", 1200, 50, R"("External id": 77)"));
  events.push_back(event("kernel", "own", "0", 1300, 2, R"("External id": 77)"));
  const trace::Trace trace = trace::read_text(joined(events));
  const trace::Processes processes(trace);
  CHECK(processes.of(4) == trace::Processes::kUnknown);  // the kernel may be either rank's
  CHECK(processes.of(static_cast<std::uint32_t>(trace.events.size()) - 1) == 1);

  const trace::Averages averages = trace::key_averages(trace);
  CHECK(row(averages, "aten::mul").device_time_total == 0);
  CHECK(row(averages, "aten::add").device_time_total == 2);
  CHECK(row(averages, "k").device_time_total == 34);  // no row is lost
}

TEST_CASE("a file of one process is asked for nothing") {
  const trace::Trace trace = trace::read_text(joined(rank("100", 1000, 30)));
  const trace::Processes processes(trace);
  CHECK(processes.count() == 1);
  CHECK(processes.of(2) == 0);
  CHECK(processes.of(trace::Thread{}) == 0);
}

TEST_CASE("a pid that has annotations alone is no process") {
  std::vector<std::string> events = rank("100", 1000, 30);
  events.push_back(event("user_annotation", "ProfilerStep#2", "101", 0, 9, ""));
  CHECK(trace::Processes(trace::read_text(joined(events))).count() == 1);
}
