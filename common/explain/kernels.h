// SPDX-License-Identifier: Apache-2.0
//
// Every GPU operation of a trace by name: how often and how long it ran, how it was launched, how
// full that launch makes the GPU, and what its name says.
//
//   explain::KernelReport report = explain::kernels(trace);
//   std::cout << to_text(report, {.limit = 10});
//   report.rows[0].decoded.family;  // of what takes most time
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explain/kernel_name.h"
#include "explain/occupancy.h"
#include "trace/trace.h"

namespace explain {

struct KernelRow {
  std::string name;  // as in the file, safe to print
  KernelName decoded;
  std::int64_t calls = 0;
  // Of the calls that have a time.
  double total_us = 0, min_us = 0, median_us = 0, max_us = 0;
  double share = 0;        // of the time of all GPU operations
  std::int64_t bytes = 0;  // moved or set by all calls

  // The launch that took most time, of those that differ in grid, block, registers or shared
  // memory.
  trace::Launch launch;
  std::int64_t launches = 0;  // how many differ
  std::optional<Occupancy> occupancy;
  std::string kineto_difference;  // see occupancy.h
};

struct KernelReport {
  std::vector<KernelRow> rows;                   // what takes most time first
  std::vector<trace::DeviceProperties> devices;  // that something ran on
  std::int64_t calls = 0;
  double total_us = 0;
};

[[nodiscard]] KernelReport kernels(const trace::Trace& trace);

enum class KernelOrder : std::uint8_t { total, calls, max };

struct KernelTextOptions {
  KernelOrder order = KernelOrder::total;
  std::int64_t limit = -1;  // rows, -1 for all
};

// A line of figures for each name, the name, and what it says; at most 120 columns but for names of
// no ASCII. "" where the trace has no GPU operation.
[[nodiscard]] std::string to_text(const KernelReport& report,
                                  const KernelTextOptions& options = {});

}  // namespace explain
