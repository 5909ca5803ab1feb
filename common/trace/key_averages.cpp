// SPDX-License-Identifier: Apache-2.0
#include "trace/key_averages.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>

#include "trace/op_arguments.h"
#include "trace/tree.h"
#include "trace/wrapping.h"

namespace trace {
namespace {

// Python's sum() of floats (3.12 and later): it carries the rounding errors along (Neumaier), so
// the last bit of every total depends on it.
template <typename Value>
double total(std::span<const std::uint32_t> events, const Value& value) {
  double result = 0;
  double error = 0;
  for (const std::uint32_t event : events) {
    const double x = value(event);
    const double next = result + x;
    error += std::abs(result) >= std::abs(x) ? (result - next) + x : (x - next) + result;
    result = next;
  }
  return result + error;
}

// Device time of each event: its kernels' and its children's. Children come after their parents, so
// backwards they are there when they are needed.
std::vector<double> device_totals(const OpTree& tree) {
  const std::vector<Event>& events = tree.trace().events;
  std::vector<double> own(tree.kernel_group_count());
  for (std::size_t group = 0; group < own.size(); ++group)
    own[group] =
        total(tree.kernels_of_group(group), [&](auto kernel) { return tree.elapsed(kernel); });
  std::vector<double> result(events.size(), 0);
  const std::span<const std::uint32_t> order = tree.order();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (is_device(events[*it].category)) {
      result[*it] = tree.elapsed(*it);
    } else {
      result[*it] = own[tree.kernel_group(*it)] +
                    total(tree.children(*it), [&](auto child) { return result[child]; });
    }
  }
  return result;
}

// Adds events to rows, in the order of the table because sums of doubles depend on it.
class Averager {
 public:
  Averager(const Trace& trace, const AveragesOptions& options)
      : trace_(trace),
        options_(options),
        tree_(trace, {.graph_kernels_to_launch = options.graph_kernels_to_launch}),
        row_of_(trace.events.size(), 0) {}

  Averages run() {
    if (holds_device()) {
      averages_.use_device = trace_.device_kind;
      device_totals_ = device_totals(tree_);
    }
    averages_.with_flops = trace_.flag("with_flops");
    averages_.profile_memory = trace_.flag("profile_memory") || !trace_.memory.empty();
    auto row = tree_.memory_rows().begin();
    for (const std::uint32_t event : tree_.order()) {
      for (; row != tree_.memory_rows().end() && tree_.time(*row) < tree_.start(event); ++row)
        add(*row);
      add(event);
    }
    for (; row != tree_.memory_rows().end(); ++row) add(*row);
    return std::move(averages_);
  }

 private:
  // A file does not say which activities were recorded. Without a device event it tells by what
  // only a recording of the device holds: CUPTI's overhead, or the sync that ends it. One of the
  // CPU alone may end with a sync, too, but then it shows launches whose kernels are missing.
  bool holds_device() const {
    bool has_sync = false;
    bool has_launch = false;
    for (const std::uint32_t index : tree_.order()) {
      const Event& event = trace_.events[index];
      if (is_device(event.category) || event.category == Category::overhead) return true;
      if (event.category != Category::cuda_runtime && event.category != Category::cuda_driver)
        continue;
      const std::string_view call = trace_.name(event);
      has_sync |= call == "cudaDeviceSynchronize" && event.external_id == 0;
      for (const std::string_view start :
           {"cudaLaunch", "cuLaunch", "cudaMemcpy", "cudaMemset", "cudaGraphLaunch"})
        has_launch |= call.starts_with(start);
    }
    return has_sync && !has_launch;
  }

  void add(std::uint32_t index) {
    const Event& event = trace_.events[index];
    const bool on_device = is_device(event.category);
    const std::uint32_t place = row_of_[index] = find_or_add_row(index);
    Row& row = averages_.rows[place];
    row.count += 1;
    row.flops = wrapping_add(row.flops, flops_of(index));
    const std::span<const std::uint32_t> children = tree_.children(index);
    if (on_device) {
      row.device_time_total += device_totals_[index];
      row.self_device_time_total += device_totals_[index];
      return;
    }
    row.cpu_time_total += tree_.elapsed(index);
    add_memory(row, tree_.memory(index), tree_.parent(index));
    if (row.is_async) return;
    row.self_cpu_time_total +=
        tree_.elapsed(index) - total(children, [&](auto child) { return tree_.elapsed(child); });
    if (device_totals_.empty()) return;
    row.device_time_total += device_totals_[index];
    row.self_device_time_total +=
        device_totals_[index] - total(children, [&](auto child) { return device_totals_[child]; });
  }

  void add(const OpTree::MemoryRow& memory_row) {
    const MemoryRecord& record = trace_.memory[memory_row.record];
    const std::string_view name = record.out_of_memory ? "[OutOfMemory]" : "[memory]";
    std::uint32_t& place = record.out_of_memory ? out_of_memory_row_ : memory_row_;
    if (place == kNoEvent) {
      place = static_cast<std::uint32_t>(averages_.rows.size());
      averages_.rows.push_back({.name = std::string(name),
                                .input_shapes = options_.group_by_input_shape ? "[]" : "",
                                .is_top_level = memory_row.parent == kNoEvent});
    }
    averages_.rows[place].count += 1;
    add_memory(averages_.rows[place], OpTree::memory(record), memory_row.parent);
  }

  // What is a child's own is no longer its parent's. Integers: the order does not matter.
  void add_memory(Row& row, OpTree::Memory memory, std::uint32_t parent) {
    const auto add_to = [](std::int64_t& sum, std::int64_t bytes) {
      sum = wrapping_add(sum, bytes);
    };
    add_to(row.cpu_memory_usage, memory.cpu);
    add_to(row.device_memory_usage, memory.device);
    if (row.is_async) return;
    add_to(row.self_cpu_memory_usage, memory.cpu);
    add_to(row.self_device_memory_usage, memory.device);
    if (parent == kNoEvent) return;
    Row& above = averages_.rows[row_of_[parent]];
    add_to(above.self_cpu_memory_usage, wrapping_subtract(0, memory.cpu));
    add_to(above.self_device_memory_usage, wrapping_subtract(0, memory.device));
  }

  std::uint32_t find_or_add_row(std::uint32_t index) {
    const Event& event = trace_.events[index];
    const bool on_device = is_device(event.category);
    const bool is_user = is_annotation(event.category);
    const std::uint32_t shapes = options_.group_by_input_shape ? shapes_of(event) : 0;
    const std::uint64_t key = (std::uint64_t{tree_.name_id(index)} << 34) |
                              (std::uint64_t{shapes} << 2) | (on_device ? 2U : 0U) |
                              (is_user ? 1U : 0U);
    const auto [place, is_new] =
        rows_.try_emplace(key, static_cast<std::uint32_t>(averages_.rows.size()));
    if (is_new) {
      averages_.rows.push_back(
          {.name = std::string(tree_.name(index)),
           .input_shapes = options_.group_by_input_shape ? shapes_[shapes] : "",
           .on_device = on_device,
           .is_annotation = is_user,
           .is_async = tree_.is_async(index),
           .is_top_level = tree_.parent(index) == kNoEvent});
    }
    return place->second;
  }

  // The shapes as a number, equal for equal texts; worked out once for each distinct argument list.
  std::uint32_t shapes_of(const Event& event) {
    const TextId dims = trace_.arguments_of(event).input_dims;
    const auto [place, is_new] = shapes_of_dims_.try_emplace(dims, 0);
    if (is_new) {
      std::string text = shapes_text(table_shapes(trace_.text(dims)));
      const auto [known, is_new_text] =
          shape_ids_.try_emplace(text, static_cast<std::uint32_t>(shapes_.size()));
      if (is_new_text) shapes_.push_back(std::move(text));
      place->second = known->second;
    }
    return place->second;
  }

  std::int64_t flops_of(std::uint32_t index) {
    const Event& event = trace_.events[index];
    if (!averages_.with_flops || event.category != Category::cpu_op) return 0;
    const std::uint64_t key = (std::uint64_t{event.name} << 32) | event.details;
    const auto [place, is_new] = flops_.try_emplace(key, 0);
    if (is_new) place->second = flops(tree_.name(index), trace_, trace_.arguments_of(event));
    return place->second;
  }

  const Trace& trace_;
  const AveragesOptions options_;
  const OpTree tree_;
  Averages averages_;
  std::vector<double> device_totals_;  // by event; empty without a device
  std::vector<std::uint32_t> row_of_;  // by event
  std::unordered_map<std::uint64_t, std::uint32_t> rows_;
  std::unordered_map<std::uint64_t, std::int64_t> flops_;
  std::unordered_map<TextId, std::uint32_t> shapes_of_dims_;
  std::unordered_map<std::string, std::uint32_t> shape_ids_;
  std::vector<std::string> shapes_;
  std::uint32_t memory_row_ = kNoEvent;
  std::uint32_t out_of_memory_row_ = kNoEvent;
};

}  // namespace

Averages key_averages(const Trace& trace, const AveragesOptions& options) {
  return Averager(trace, options).run();
}

}  // namespace trace
