// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's profiler table from a trace, byte for byte (torch 2.11).
//
//   trace::Averages averages = trace::key_averages(trace, {.group_by_input_shape = true});
//   std::cout << averages.table({.sort_by = "cuda_time_total", .row_limit = 15});
//   std::cout << averages.rows.front().name;
//
// Times are microseconds, sizes bytes, as in Python. Names of rows and attributes are PyTorch's.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace trace {

// All calls of one name: torch.profiler's FunctionEventAvg. An op and its kernel, or an annotation
// and its span on the device, are two rows even if they have one name.
struct Row {
  std::string name;
  std::string input_shapes;  // as Python prints the list; "" unless grouped by input shape
  bool on_device = false;    // a kernel, a copy, a memset, an annotation's span on the device
  bool is_annotation = false;
  bool is_async = false;
  bool is_top_level = false;  // the first call has no op around it
  std::int64_t count = 0;
  std::int64_t flops = 0;
  double cpu_time_total = 0;
  double self_cpu_time_total = 0;
  double device_time_total = 0;
  double self_device_time_total = 0;
  std::int64_t cpu_memory_usage = 0;
  std::int64_t self_cpu_memory_usage = 0;
  std::int64_t device_memory_usage = 0;
  std::int64_t self_device_memory_usage = 0;

  [[nodiscard]] double cpu_time() const { return cpu_time_total / static_cast<double>(count); }
  [[nodiscard]] double device_time() const {
    return device_time_total / static_cast<double>(count);
  }
};

// The arguments of torch's table(), with its defaults. A width without a value is Python's None.
struct TableOptions {
  std::string sort_by{};         // an attribute, largest first; empty: in order of first appearance
  std::int64_t row_limit = 100;  // below 0: all rows
  std::optional<int> max_name_column_width = 55;
  std::optional<int> max_shapes_column_width = 80;
  bool top_level_events_only = false;
  std::optional<std::string> header{};
  std::string time_unit{};  // "s", "ms" or "us" for every time; empty: each in its own unit
};

// An option of a table that does not exist. what() is one sentence that lists those that do.
class TableError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// Throws TableError where an option asks for what does not exist. table() does so, too; a program
// that takes options from a person can do it before hours of work.
void check(const TableOptions& options);

struct Averages {
  std::vector<Row> rows;   // in order of first appearance
  std::string use_device;  // "CUDA", "XPU", ...; empty where the recording holds no device
  bool profile_memory = false;
  bool with_flops = false;

  // The table's text, each line with its newline; empty where there are no rows. Control characters
  // of names come out as \xNN, so that no trace can drive a terminal. Throws TableError.
  [[nodiscard]] std::string table(const TableOptions& options = {}) const;

  // The rows in the order in which the table shows them. Throws TableError for a key that no row
  // has.
  [[nodiscard]] std::vector<const Row*> sorted(const std::string& sort_by) const;
};

struct AveragesOptions {
  bool group_by_input_shape = false;
  bool graph_kernels_to_launch = false;  // OpTreeOptions: not what PyTorch prints
};

[[nodiscard]] Averages key_averages(const Trace& trace, const AveragesOptions& options = {});

}  // namespace trace
