// SPDX-License-Identifier: Apache-2.0
#include "trace/table_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "trace/printable.h"
#include "trace/table_columns.h"

namespace trace {
namespace {

// A value of one row: in json as it stands, in csv quoted where the text needs it. Nothing is null
// in json and no text in csv.
struct Value {
  std::string text;
  bool is_text = false;
};

struct Field {
  std::string_view name;
  Value (*value)(const Row&, const Sums&);
};

Value time(double us) {
  return {fmt::format("{:.3f}", us)};
}
Value percent(double part, double whole) {
  return {whole == 0 ? "" : fmt::format("{:.2f}", part * 100.0 / whole)};
}
Value number(std::int64_t value) {
  return {std::to_string(value)};
}
Value flag(bool value) {
  return {value ? "true" : "false"};
}

constexpr Field kFields[] = {
    {"name",
     [](const Row& r, const Sums&) {
       return Value{r.name, true};
     }},
    {"on_device", [](const Row& r, const Sums&) { return flag(r.on_device); }},
    {"is_annotation", [](const Row& r, const Sums&) { return flag(r.is_annotation); }},
    {"is_async", [](const Row& r, const Sums&) { return flag(r.is_async); }},
    {"is_top_level", [](const Row& r, const Sums&) { return flag(r.is_top_level); }},
    {"calls", [](const Row& r, const Sums&) { return number(r.count); }},
    {"self_cpu_time_us", [](const Row& r, const Sums&) { return time(r.self_cpu_time_total); }},
    {"self_cpu_percent",
     [](const Row& r, const Sums& s) { return percent(r.self_cpu_time_total, s.cpu); }},
    {"cpu_time_total_us", [](const Row& r, const Sums&) { return time(r.cpu_time_total); }},
    {"cpu_total_percent",
     [](const Row& r, const Sums& s) { return percent(r.is_async ? 0 : r.cpu_time_total, s.cpu); }},
    {"cpu_time_avg_us", [](const Row& r, const Sums&) { return time(r.cpu_time()); }},
    {"self_device_time_us",
     [](const Row& r, const Sums&) { return time(r.self_device_time_total); }},
    {"self_device_percent",
     [](const Row& r, const Sums& s) { return percent(r.self_device_time_total, s.device); }},
    {"device_time_total_us", [](const Row& r, const Sums&) { return time(r.device_time_total); }},
    {"device_time_avg_us", [](const Row& r, const Sums&) { return time(r.device_time()); }},
    {"cpu_memory_bytes", [](const Row& r, const Sums&) { return number(r.cpu_memory_usage); }},
    {"self_cpu_memory_bytes",
     [](const Row& r, const Sums&) { return number(r.self_cpu_memory_usage); }},
    {"device_memory_bytes",
     [](const Row& r, const Sums&) { return number(r.device_memory_usage); }},
    {"self_device_memory_bytes",
     [](const Row& r, const Sums&) { return number(r.self_device_memory_usage); }},
    {"flops", [](const Row& r, const Sums&) { return number(r.flops); }},
};

std::string csv_text(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

// A cell of a GitHub table that shows the text as it is.
std::string markdown_cell(std::string_view text) {
  const bool is_plain = text.find_first_not_of(
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789 .,:%#()/+-") == std::string_view::npos;
  std::string result;
  for (const char c : text) {
    if (!is_plain && std::string_view("\\`*_[]<>|~&$").find(c) != std::string_view::npos) {
      result += '\\';
    }
    result += c;
  }
  return result;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += ' ' + cell + " |";
  return text + '\n';
}

}  // namespace

std::string csv(const Averages& averages, const TableOptions& options) {
  check(options);
  const std::vector<const Row*> order = averages.sorted(options.sort_by);
  const Sums sums = sums_of(order);
  std::string text;
  for (const Field& field : kFields) text += fmt::format("{},", field.name);
  text += "input_shapes\n";
  for (const Row* row : shown(order, options)) {
    for (const Field& field : kFields) text += csv_text(field.value(*row, sums).text) + ',';
    text += csv_text(row->input_shapes) + '\n';
  }
  return text;
}

std::string json(const Averages& averages, const TableOptions& options) {
  check(options);
  const std::vector<const Row*> order = averages.sorted(options.sort_by);
  const Sums sums = sums_of(order);
  std::string text = fmt::format(
      "{{\n\"device\": {},\n\"self_cpu_time_total_us\": {:.3f},\n"
      "\"self_device_time_total_us\": {:.3f},\n\"rows\": [",
      json_string(averages.use_device), sums.cpu, sums.device);
  bool is_first = true;
  for (const Row* row : shown(order, options)) {
    text += is_first ? "\n{" : ",\n{";
    is_first = false;
    for (const Field& field : kFields) {
      const Value value = field.value(*row, sums);
      text += fmt::format("{}: {}, ", json_string(field.name),
                          value.is_text        ? json_string(value.text)
                          : value.text.empty() ? "null"
                                               : value.text);
    }
    // Python's text of a list of lists of integers is JSON's.
    text += fmt::format("\"input_shapes\": {}}}",
                        row->input_shapes.empty() ? "null" : row->input_shapes);
  }
  return text + "\n]\n}\n";
}

std::string markdown(const Averages& averages, const TableOptions& options) {
  check(options);
  if (averages.rows.empty()) return "";
  const std::vector<const Row*> order = averages.sorted(options.sort_by);
  const Sums sums = sums_of(order);
  const std::vector<Column> columns = columns_of(averages, options, sums);

  std::string text = options.header ? markdown_cell(*options.header) + "\n\n" : "";
  std::vector<std::string> cells, rule;
  for (const Column& column : columns) {
    cells.push_back(column.title);
    rule.push_back(rule.empty() ? ":--" : "--:");
  }
  text += markdown_row(cells) + markdown_row(rule);
  for (const Row* row : shown(order, options)) {
    cells.clear();
    for (const Column& column : columns) cells.push_back(markdown_cell(column.cell(*row)));
    text += markdown_row(cells);
  }
  for (const std::string& line : footer_of(averages, options, sums)) text += '\n' + line + '\n';
  return text;
}

}  // namespace trace
