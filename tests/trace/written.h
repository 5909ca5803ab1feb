// SPDX-License-Identifier: Apache-2.0
//
// A small trace, written in the test that needs it: one line per event, times in ns since the
// recording began.
//
//   const trace::Trace trace = written({
//       {.name = "aten::mul", .start = 0, .end = 100, .id = 1},
//       {.name = "kernel", .category = "kernel", .start = 50, .end = 60, .id = 1},
//   });
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "trace/reader.h"
#include "trace/trace.h"

struct Written {
  std::string name;
  std::string category = "cpu_op";
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::string thread = "1";
  std::int64_t id = 0;  // `External id`
  std::int64_t correlation = 0;
  std::string arguments = "";  // more of them, as JSON
};

struct WrittenMemory {
  std::int64_t time = 0;
  std::int64_t bytes = 0;
  int device_type = 0;
  std::string thread = "1";
  std::string name = "[memory]";
  std::int64_t address = 0;
  std::int64_t total_allocated = -1;  // not written below 0
};

inline std::string microseconds_text(std::int64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

// The process is 1, so thread 1 is its main thread.
inline trace::Trace written(const std::vector<Written>& events,
                            const std::vector<WrittenMemory>& memory = {},
                            const std::string& top_level = "") {
  std::string text = "{" + top_level + (top_level.empty() ? "" : ", ") + "\"traceEvents\": [";
  for (const Written& event : events) {
    std::string arguments = event.arguments;
    const auto add = [&](const std::string& key, std::int64_t value) {
      if (value != 0)
        arguments += fmt::format("{}\"{}\": {}", arguments.empty() ? "" : ", ", key, value);
    };
    add("External id", event.id);
    add("correlation", event.correlation);
    text += fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": {}, "ts": {}, "dur": {}, "args": {{{}}}}},)"
        "\n",
        event.category, event.name, event.thread, microseconds_text(event.start),
        microseconds_text(event.end - event.start), arguments);
  }
  for (const WrittenMemory& record : memory) {
    std::string arguments;
    if (record.address != 0) arguments += fmt::format(R"(, "Addr": {})", record.address);
    if (record.total_allocated >= 0)
      arguments += fmt::format(R"(, "Total Allocated": {})", record.total_allocated);
    text += fmt::format(
        R"({{"ph": "i", "cat": "cpu_instant_event", "name": "{}", "pid": 1, "tid": {}, "ts": {}, "s": "t", "args": {{"Bytes": {}, "Device Type": {}, "Device Id": 0{}}}}},)"
        "\n",
        record.name, record.thread, microseconds_text(record.time), record.bytes,
        record.device_type, arguments);
  }
  const std::string span =
      R"-("ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "ts": 0.000, "dur": 1000.000)-";
  text += "{" + span + R"(, "pid": "Spans", "tid": "PyTorch Profiler"}]})";
  return trace::read_text(text);
}
