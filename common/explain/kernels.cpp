// SPDX-License-Identifier: Apache-2.0
#include "explain/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>

#include "explain/text.h"
#include "trace/printable.h"

namespace explain {
namespace {

constexpr std::size_t kColumns = 116;  // of a line of text, behind its indent of 4

using LaunchKey = std::tuple<std::array<std::uint32_t, 3>, std::array<std::uint32_t, 3>,
                             std::int32_t, std::int64_t>;

LaunchKey key_of(const trace::Launch& launch) {
  return {launch.grid, launch.block, launch.registers_per_thread, launch.shared_memory};
}

// What is collected for one name.
struct Calls {
  std::int64_t count = 0;
  std::vector<std::int64_t> durations;  // ns, of those that have a time
  std::int64_t bytes = 0;
  std::map<LaunchKey, std::pair<std::int64_t, const trace::Launch*>> launches;  // ns of each
};

double median_of(std::vector<std::int64_t>& durations) {
  if (durations.empty()) return 0;
  const std::size_t half = durations.size() / 2;
  std::nth_element(durations.begin(), durations.begin() + half, durations.end());
  const auto upper = static_cast<double>(durations[half]);
  if (durations.size() % 2 == 1) return upper;
  return (upper +
          static_cast<double>(*std::max_element(durations.begin(), durations.begin() + half))) /
         2;
}

KernelRow row_of(std::string_view name, Calls& calls, const trace::Trace& trace) {
  KernelRow row;
  row.name = trace::printable(name);
  row.decoded = decode(name);
  row.calls = calls.count;
  if (!calls.durations.empty()) {
    const auto [least, most] = std::minmax_element(calls.durations.begin(), calls.durations.end());
    row.min_us = static_cast<double>(*least) / 1000;
    row.max_us = static_cast<double>(*most) / 1000;
  }
  row.total_us = std::accumulate(calls.durations.begin(), calls.durations.end(), 0.0) / 1000;
  row.median_us = median_of(calls.durations) / 1000;
  row.bytes = calls.bytes;
  row.launches = static_cast<std::int64_t>(calls.launches.size());
  const auto longest = std::max_element(
      calls.launches.begin(), calls.launches.end(),
      [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
  row.launch = *longest->second.second;
  const trace::DeviceProperties device = device_of(trace, row.launch);
  row.occupancy = occupancy(row.launch, device);
  row.kineto_difference = kineto_difference(row.launch, device);
  return row;
}

// "8x8x16", "32x4", "8192"; "-" where the file does not say
std::string sides_text(const std::array<std::uint32_t, 3>& sides) {
  if (sides[0] == 0) return "-";
  if (sides[2] > 1) return fmt::format("{}x{}x{}", sides[0], sides[1], sides[2]);
  if (sides[1] > 1) return fmt::format("{}x{}", sides[0], sides[1]);
  return fmt::format("{}", sides[0]);
}

// In the words of the columns: the line must stay within 120 characters.
std::string short_limit(std::string text) {
  for (const auto& [word, column] :
       {std::pair("registers", "regs"), std::pair("shared memory", "shared")}) {
    const std::size_t at = text.find(word);
    if (at != std::string::npos) text.replace(at, std::string_view(word).size(), column);
  }
  constexpr std::size_t kWidest = 17;
  return text.size() > kWidest ? "several" : text;
}

std::string limit_column(const KernelRow& row) {
  if (!row.occupancy) return "-";
  if (!row.occupancy->by_grid) return short_limit(limit_text(*row.occupancy));
  const double waves = row.occupancy->waves;
  return waves < 0.01 ? "grid, <0.01 waves" : fmt::format("grid, {:.2g} waves", waves);
}

// Broken at blanks, each line indented.
std::string wrapped(std::string_view text) {
  std::string lines;
  while (text.size() > kColumns) {
    std::size_t end = text.rfind(' ', kColumns);
    if (end == std::string_view::npos || end == 0) end = kColumns;
    lines += fmt::format("    {}\n", text.substr(0, end));
    text.remove_prefix(end);
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  return lines + fmt::format("    {}\n", text);
}

std::string text_of(const KernelRow& row) {
  const bool has_launch = row.launch.block[0] > 0;
  // 0 registers say that the file has none, on AMD; then 0 bytes of shared memory are no figure.
  const bool has_resources = row.launch.registers_per_thread > 0 || row.launch.shared_memory > 0;
  const std::string shared =
      has_resources ? fmt::format("{:.1f}K", static_cast<double>(row.launch.shared_memory) / 1024)
                    : "-";
  const std::string registers = row.launch.registers_per_thread > 0
                                    ? fmt::format("{}", row.launch.registers_per_thread)
                                    : "-";
  const std::string share = row.occupancy ? share_text(row.occupancy->theoretical) : "-";
  std::string text =
      fmt::format("{:>9} {:>6} {:>6} {:>9} {:>9} {:>9}  {:<13} {:<9} {:>4} {:>7} {:>9}  {}\n",
                  time_text(row.total_us), share_text(row.share), row.calls, time_text(row.min_us),
                  time_text(row.median_us), time_text(row.max_us), sides_text(row.launch.grid),
                  sides_text(row.launch.block), registers, shared, share, limit_column(row));
  text += fmt::format("    {}\n", cut(row.name, kColumns));
  std::string sentence = row.decoded.sentence;
  if (row.bytes > 0) sentence += ", " + size_text(row.bytes / row.calls) + " a call";
  if (has_launch && row.launches > 1) {
    sentence +=
        fmt::format("; {} different launches, shown is the one with most time", row.launches);
  }
  text += wrapped(sentence);
  if (!row.kineto_difference.empty()) text += wrapped(row.kineto_difference);
  return text;
}

std::string text_of(const trace::DeviceProperties& device) {
  std::string text = fmt::format("GPU {}: {}", device.id, trace::printable(device.name));
  if (device.multiprocessors > 0) text += fmt::format(", {} SMs", device.multiprocessors);
  if (device.compute_major > 0 && device.warp_size <= 32) {
    text += fmt::format(", sm_{}{}", device.compute_major, device.compute_minor);
  }
  return text + "\n";
}

}  // namespace

KernelReport kernels(const trace::Trace& trace) {
  std::unordered_map<trace::TextId, Calls> by_name;
  std::set<std::int64_t> used_devices;
  for (const trace::Event& event : trace.events) {
    if (!trace::is_gpu_operation(event.category)) continue;
    const trace::Launch& launch = trace.launch_of(event);
    Calls& calls = by_name[event.name];
    ++calls.count;
    if (event.is_timed) calls.durations.push_back(event.duration_ns);
    calls.bytes += launch.bytes;
    used_devices.insert(launch.device);
    auto& [time, example] = calls.launches.try_emplace(key_of(launch), 0, &launch).first->second;
    time += event.duration_ns;
  }
  KernelReport report;
  for (auto& [name, calls] : by_name) {
    report.rows.push_back(row_of(trace.text(name), calls, trace));
    report.calls += report.rows.back().calls;
    report.total_us += report.rows.back().total_us;
  }
  for (KernelRow& row : report.rows) {
    row.share = report.total_us > 0 ? row.total_us / report.total_us : 0;
  }
  for (const trace::DeviceProperties& device : trace.devices) {
    if (used_devices.contains(device.id)) report.devices.push_back(device);
  }
  // By name where times are equal, so that the same file gives the same text.
  std::sort(report.rows.begin(), report.rows.end(), [](const KernelRow& a, const KernelRow& b) {
    return std::tie(b.total_us, a.name) < std::tie(a.total_us, b.name);
  });
  return report;
}

std::string to_text(const KernelReport& report, const KernelTextOptions& options) {
  if (report.rows.empty()) return "";
  std::vector<const KernelRow*> rows;
  for (const KernelRow& row : report.rows) rows.push_back(&row);
  if (options.order == KernelOrder::calls) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto* a, const auto* b) { return a->calls > b->calls; });
  } else if (options.order == KernelOrder::max) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto* a, const auto* b) { return a->max_us > b->max_us; });
  }
  std::string text;
  for (const trace::DeviceProperties& device : report.devices) text += text_of(device);
  text +=
      fmt::format("{} GPU operation{} of {} name{}, {}; the occupancy is the theoretical one\n\n",
                  report.calls, report.calls == 1 ? "" : "s", report.rows.size(),
                  report.rows.size() == 1 ? "" : "s", time_text(report.total_us));
  text += fmt::format("{:>9} {:>6} {:>6} {:>9} {:>9} {:>9}  {:<13} {:<9} {:>4} {:>7} {:>9}  {}\n",
                      "total", "share", "calls", "min", "median", "max", "grid", "block", "regs",
                      "shared", "occupancy", "limited by");
  const std::size_t shown = options.limit < 0
                                ? rows.size()
                                : std::min(rows.size(), static_cast<std::size_t>(options.limit));
  double left_us = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i < shown) {
      text += text_of(*rows[i]);
    } else {
      left_us += rows[i]->total_us;
    }
  }
  if (shown < rows.size()) {
    text += fmt::format("... and {} more names, {}\n", rows.size() - shown, time_text(left_us));
  }
  return text;
}

}  // namespace explain
