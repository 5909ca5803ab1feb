// SPDX-License-Identifier: Apache-2.0
//
// The table for programs: every attribute of every row, under names that stay, with their units.
//
//   std::cout << trace::csv(averages, {.sort_by = "cuda_time_total"});
//   std::cout << trace::json(averages, {.row_limit = 10});
//   std::cout << trace::markdown(averages);
//
// Columns (csv: one header line, RFC 4180; json: the keys of each object in "rows"):
//   name, on_device, is_annotation, is_async, is_top_level, calls,
//   self_cpu_time_us, self_cpu_percent, cpu_time_total_us, cpu_total_percent, cpu_time_avg_us,
//   self_device_time_us, self_device_percent, device_time_total_us, device_time_avg_us,
//   cpu_memory_bytes, self_cpu_memory_bytes, device_memory_bytes, self_device_memory_bytes,
//   flops, input_shapes (text in csv, lists in json; empty unless grouped by input shape)
// Per cents are of the footer's sums, empty (csv) or null (json) where that is 0. Of the options
// sort_by, row_limit and top_level_events_only count: names are whole, times in us.
#pragma once

#include <string>

#include "trace/key_averages.h"

namespace trace {

// Both throw TableError where an option asks for what does not exist.
[[nodiscard]] std::string csv(const Averages& averages, const TableOptions& options = {});
[[nodiscard]] std::string json(const Averages& averages, const TableOptions& options = {});

// PyTorch's columns as a GitHub table. The widths count as in table(), the header stands above.
[[nodiscard]] std::string markdown(const Averages& averages, const TableOptions& options = {});

}  // namespace trace
