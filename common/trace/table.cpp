// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>
#include <variant>

#include "trace/key_averages.h"
#include "trace/op_arguments.h"
#include "trace/printable.h"
#include "trace/table_columns.h"

namespace trace {
namespace {

// ---- Numbers as text. fmt rounds the double itself to three or two digits, as Python does.

std::string format_time(double us, std::string_view unit) {
  if (unit == "s" || (unit.empty() && us >= 1e6)) return fmt::format("{:.3f}s", us / 1e6);
  if (unit == "ms" || (unit.empty() && us >= 1e3)) return fmt::format("{:.3f}ms", us / 1e3);
  return fmt::format("{:.3f}us", us);
}

std::string format_share(double part, double whole) {
  return whole == 0 ? "NaN" : fmt::format("{:.2f}%", part * 100.0 / whole);
}

std::string format_memory(std::int64_t bytes) {
  constexpr std::array<std::pair<double, std::string_view>, 3> kUnits = {
      {{1024.0 * 1024 * 1024, "GB"}, {1024.0 * 1024, "MB"}, {1024.0, "KB"}}};
  for (const auto& [size, unit] : kUnits)
    if (std::abs(double(bytes)) >= size)
      return fmt::format("{:.2f} {}", double(bytes) / size, unit);
  return fmt::format("{} B", bytes);
}

// ---- Text by code points, as Python counts it.

bool starts_code_point(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
}

std::int64_t length(std::string_view text) {
  return std::count_if(text.begin(), text.end(), starts_code_point);
}

// text[:count]; a negative count leaves that many off the end.
std::string_view prefix(std::string_view text, std::int64_t count) {
  if (count < 0) count = std::max<std::int64_t>(0, length(text) + count);
  std::size_t bytes = 0;
  for (; bytes < text.size(); ++bytes)
    if (starts_code_point(text[bytes]) && count-- == 0) break;
  return text.substr(0, bytes);
}

std::string shortened(std::string_view name, std::optional<int> width) {
  if (!width || length(name) < *width - 3) return std::string(name);
  return std::string(prefix(name, *width - 3)) + "...";
}

void append_right_aligned(std::string& line, std::string_view cell, std::int64_t width) {
  line.append(static_cast<std::size_t>(std::max<std::int64_t>(0, width - length(cell))), ' ');
  line += cell;
  line += "  ";
}

// ---- Sorting

// What a row is compared by: numbers, text or shapes, the same for all rows of a table.
using SortKey = std::variant<double, std::int64_t, std::string, Shapes>;

struct Attribute {
  std::string_view name;
  SortKey (*key)(const Row&);
};

// The attributes of torch's FunctionEventAvg that have an order. Some are the same for every row
// that a trace file can give; sorting by them keeps the order, as in Python.
constexpr Attribute kAttributes[] = {
    {"cpu_time", [](const Row& r) { return SortKey(r.cpu_time()); }},
    {"cpu_time_total", [](const Row& r) { return SortKey(r.cpu_time_total); }},
    {"self_cpu_time_total", [](const Row& r) { return SortKey(r.self_cpu_time_total); }},
    {"device_time", [](const Row& r) { return SortKey(r.device_time()); }},
    {"device_time_total", [](const Row& r) { return SortKey(r.device_time_total); }},
    {"self_device_time_total", [](const Row& r) { return SortKey(r.self_device_time_total); }},
    {"cpu_memory_usage", [](const Row& r) { return SortKey(r.cpu_memory_usage); }},
    {"self_cpu_memory_usage", [](const Row& r) { return SortKey(r.self_cpu_memory_usage); }},
    {"device_memory_usage", [](const Row& r) { return SortKey(r.device_memory_usage); }},
    {"self_device_memory_usage", [](const Row& r) { return SortKey(r.self_device_memory_usage); }},
    {"count", [](const Row& r) { return SortKey(r.count); }},
    {"flops", [](const Row& r) { return SortKey(r.flops); }},
    {"key", [](const Row& r) { return SortKey(r.name); }},
    {"input_shapes", [](const Row& r) { return SortKey(table_shapes(r.input_shapes)); }},
    {"is_async", [](const Row& r) { return SortKey(std::int64_t{r.is_async}); }},
    {"is_user_annotation", [](const Row& r) { return SortKey(std::int64_t{r.is_annotation}); }},
    {"is_legacy", [](const Row&) { return SortKey(std::int64_t{0}); }},
    {"is_remote", [](const Row&) { return SortKey(std::int64_t{0}); }},
    {"node_id", [](const Row&) { return SortKey(std::int64_t{-1}); }},
    {"overload_name", [](const Row&) { return SortKey(std::string()); }},
    {"stack", [](const Row&) { return SortKey(Shapes()); }},
    {"cpu_time_str", [](const Row& r) { return SortKey(format_time(r.cpu_time(), "")); }},
    {"cpu_time_total_str", [](const Row& r) { return SortKey(format_time(r.cpu_time_total, "")); }},
    {"self_cpu_time_total_str",
     [](const Row& r) { return SortKey(format_time(r.self_cpu_time_total, "")); }},
    {"device_time_str", [](const Row& r) { return SortKey(format_time(r.device_time(), "")); }},
    {"device_time_total_str",
     [](const Row& r) { return SortKey(format_time(r.device_time_total, "")); }},
    {"self_device_time_total_str",
     [](const Row& r) { return SortKey(format_time(r.self_device_time_total, "")); }},
};

Attribute find_attribute(std::string name) {
  const std::string asked = name;
  for (const std::string_view device : {"cuda", "xpu", "privateuse1"})
    for (std::size_t at = 0; (at = name.find(device, at)) != std::string::npos;)
      name.replace(at, device.size(), "device");
  std::string names;
  for (const Attribute& attribute : kAttributes) {
    if (attribute.name == name) return attribute;
    names += names.empty() ? "" : ", ";
    names += attribute.name;
  }
  throw TableError("cannot sort by '" + printable(asked) + "': the attributes are " + names +
                   " (cuda, xpu or privateuse1 may stand for device)");
}

// ---- Columns

constexpr std::int64_t kColumnWidth = 12;

// The longest text and 4 more, within the limit.
template <typename Text>
std::int64_t width_of(const std::vector<Row>& rows, const Text& text, std::optional<int> limit) {
  std::int64_t longest = 0;
  for (const Row& row : rows) longest = std::max(longest, length(row.*text));
  return limit ? std::min<std::int64_t>(longest + 4, *limit) : longest + 4;
}

// One unit for the column: that of the smallest number in it.
std::optional<Column> flops_column(const Averages& averages) {
  std::int64_t smallest = 0;
  for (const Row& row : averages.rows)
    if (row.flops > 0 && (smallest == 0 || row.flops < smallest)) smallest = row.flops;
  if (!averages.with_flops || smallest == 0) return std::nullopt;
  constexpr std::array<std::string_view, 6> kPrefixes = {"", "K", "M", "G", "T", "P"};
  const double thousands = std::floor(std::clamp(std::log10(double(smallest)) / 3, 0.0, 5.0));
  const double scale = std::pow(10, thousands * -3.0);
  return Column{fmt::format("Total {}FLOPs", kPrefixes[static_cast<std::size_t>(thousands)]),
                kColumnWidth, [scale](const Row& row) {
                  return row.flops > 0 ? fmt::format("{:8.3f}", double(row.flops) * scale) : "--";
                }};
}

}  // namespace

std::vector<Column> columns_of(const Averages& averages, const TableOptions& options,
                               const Sums& sums) {
  const std::vector<Row>& rows = averages.rows;
  std::vector<Column> result;
  const auto add = [&](std::string title, std::function<std::string(const Row&)> cell) {
    result.push_back({std::move(title), kColumnWidth, std::move(cell)});
  };
  const auto time = [unit = options.time_unit](double us) { return format_time(us, unit); };
  const auto any = [&](const auto& condition) {
    return std::any_of(rows.begin(), rows.end(), condition);
  };

  result.push_back(
      {"Name", width_of(rows, &Row::name, options.max_name_column_width),
       [width = options.max_name_column_width](const Row& r) { return shortened(r.name, width); }});
  add("Self CPU %", [=](const Row& r) { return format_share(r.self_cpu_time_total, sums.cpu); });
  add("Self CPU", [=](const Row& r) { return time(r.self_cpu_time_total); });
  add("CPU total %",
      [=](const Row& r) { return r.is_async ? "0" : format_share(r.cpu_time_total, sums.cpu); });
  add("CPU total", [=](const Row& r) { return time(r.cpu_time_total); });
  add("CPU time avg", [=](const Row& r) { return time(r.cpu_time()); });

  const std::string& device = averages.use_device;
  if (any([](const Row& r) { return r.self_device_time_total > 0; })) {
    add("Self " + device, [=](const Row& r) { return time(r.self_device_time_total); });
    add("Self " + device + " %",
        [=](const Row& r) { return format_share(r.self_device_time_total, sums.device); });
    add(device + " total", [=](const Row& r) { return time(r.device_time_total); });
    add(device + " time avg", [=](const Row& r) { return time(r.device_time()); });
  }
  if (averages.profile_memory) {
    add("CPU Mem", [](const Row& r) { return format_memory(r.cpu_memory_usage); });
    add("Self CPU Mem", [](const Row& r) { return format_memory(r.self_cpu_memory_usage); });
    if (!device.empty() && any([](const Row& r) { return r.self_device_memory_usage > 0; })) {
      add(device + " Mem", [](const Row& r) { return format_memory(r.device_memory_usage); });
      add("Self " + device + " Mem",
          [](const Row& r) { return format_memory(r.self_device_memory_usage); });
    }
  }
  add("# of Calls", [](const Row& r) { return std::to_string(r.count); });
  if (any([](const Row& r) { return !r.input_shapes.empty() && r.input_shapes != "[]"; })) {
    const std::int64_t width = width_of(rows, &Row::input_shapes, options.max_shapes_column_width);
    result.push_back({"Input Shapes", width,
                      [=](const Row& r) { return std::string(prefix(r.input_shapes, width)); }});
  }
  if (std::optional<Column> column = flops_column(averages)) result.push_back(std::move(*column));
  return result;
}

void check(const TableOptions& options) {
  if (!options.sort_by.empty()) find_attribute(options.sort_by);
  for (const std::optional<int>& width :
       {options.max_name_column_width, options.max_shapes_column_width})
    if (width && *width < 0) throw TableError("a column cannot be narrower than 0");
  if (options.time_unit != "" && options.time_unit != "s" && options.time_unit != "ms" &&
      options.time_unit != "us")
    throw TableError("the time unit is s, ms or us");
}

std::vector<const Row*> Averages::sorted(const std::string& sort_by) const {
  std::vector<const Row*> result;
  for (const Row& row : rows) result.push_back(&row);
  if (sort_by.empty()) return result;
  const Attribute attribute = find_attribute(sort_by);
  std::vector<std::pair<SortKey, const Row*>> keyed;
  for (const Row* row : result) keyed.emplace_back(attribute.key(*row), row);
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::transform(keyed.begin(), keyed.end(), result.begin(),
                 [](const auto& pair) { return pair.second; });
  return result;
}

Sums sums_of(const std::vector<const Row*>& order) {
  Sums sums;
  for (const Row* row : order) {
    sums.cpu += row->self_cpu_time_total;
    if (row->on_device && !row->is_annotation) sums.device += row->self_device_time_total;
  }
  return sums;
}

std::vector<const Row*> shown(const std::vector<const Row*>& order, const TableOptions& options) {
  std::vector<const Row*> result;
  for (const Row* row : order) {
    if (std::int64_t(result.size()) == options.row_limit) break;
    if (!options.top_level_events_only || row->is_top_level) result.push_back(row);
  }
  return result;
}

std::vector<std::string> footer_of(const Averages& averages, const TableOptions& options,
                                   const Sums& sums) {
  std::vector<std::string> lines = {"Self CPU time total: " +
                                    format_time(sums.cpu, options.time_unit)};
  const auto has_device_time = [](const Row& row) { return row.self_device_time_total > 0; };
  if (std::any_of(averages.rows.begin(), averages.rows.end(), has_device_time)) {
    lines.push_back(fmt::format("Self {} time total: {}", averages.use_device,
                                format_time(sums.device, options.time_unit)));
  }
  return lines;
}

std::string Averages::table(const TableOptions& options) const {
  check(options);
  const std::vector<const Row*> order = sorted(options.sort_by);
  if (rows.empty()) return "";
  const Sums sums = sums_of(order);
  const std::vector<Column> columns = columns_of(*this, options, sums);

  std::string titles, rule;
  for (const Column& column : columns) {
    append_right_aligned(titles, column.title, column.width);
    rule.append(static_cast<std::size_t>(column.width), '-').append("  ");
  }
  titles += '\n';
  const std::string double_rule = std::string(rule.size() - 2, '=') + '\n';
  rule += '\n';

  std::string text;
  if (options.header) text += double_rule + *options.header + '\n';
  if (options.top_level_events_only)
    text += double_rule + "This report only display top-level ops statistics\n";
  text += rule + titles + rule;
  for (const Row* row : shown(order, options)) {
    for (const Column& column : columns)
      append_right_aligned(text, column.cell(*row), column.width);
    text += '\n';
  }
  text += rule;
  for (const std::string& line : footer_of(*this, options, sums)) text += line + '\n';
  return text;
}

}  // namespace trace
