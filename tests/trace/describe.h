// SPDX-License-Identifier: Apache-2.0
//
// A trace as text, ids resolved: two traces are the same where their descriptions are.
#pragma once

#include <string>

#include "trace/trace.h"

inline std::string describe(const trace::Trace& trace) {
  std::string out =
      "start " + std::to_string(trace.start_ns) + " base " + std::to_string(trace.base_ns) + "\n";
  const auto add = [&out](auto... parts) { ((out += parts, out += '|'), ...); };
  const auto thread = [&](std::uint32_t index) {
    const trace::Thread& row = trace.threads.at(index);
    return std::string(trace.text(row.pid)) + "/" + std::string(trace.text(row.tid));
  };
  for (const trace::Event& event : trace.events) {
    const trace::Arguments& arguments = trace.arguments_of(event);
    const trace::Launch& launch = trace.launch_of(event);
    add(std::to_string(event.start_ns), std::to_string(event.duration_ns),
        std::to_string(event.external_id), std::to_string(event.correlation), trace.name(event),
        thread(event.thread), trace::to_string(event.category), trace.text(arguments.input_dims),
        trace.text(arguments.input_types), trace.text(arguments.concrete_inputs),
        std::to_string(launch.stream), std::to_string(launch.grid[0]),
        std::to_string(launch.bytes));
    out += '\n';
  }
  for (const trace::MemoryRecord& record : trace.memory) {
    add(std::to_string(record.time_ns), std::to_string(record.bytes), thread(record.thread));
    out += '\n';
  }
  for (const trace::Metadata& item : trace.metadata) {
    add(item.key, item.json);
    out += '\n';
  }
  return out;
}
