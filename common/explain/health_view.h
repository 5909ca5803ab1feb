// SPDX-License-Identifier: Apache-2.0
//
// What every check of a file's health looks at, and the functions of the table in health.cpp.
// Private to common/explain: others ask health() (health.h).
//
//   std::vector<HealthFinding> odd_names(const HealthView& view) {
//     Odd odd;
//     for (std::uint32_t i : view.operations) if (is odd) odd.add(i, how_odd);
//     if (odd.empty()) return {};
//     return {{.title = "odd names", .count = odd.count(), .examples = view.examples(odd)}};
//   }
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "explain/health.h"
#include "explain/launches.h"
#include "explain/steps.h"
#include "trace/trace.h"
#include "trace/tree.h"

namespace explain {

// From this part of a time on, a finding that concerns it is a fault.
inline constexpr double kMatters = 0.01;

// Events that are odd in one way, and how odd each of them is (us, mostly).
class Odd {
 public:
  void add(std::uint32_t event, double weight = 0) { events_.emplace_back(event, weight); }
  [[nodiscard]] bool empty() const { return events_.empty(); }
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(events_.size()); }
  [[nodiscard]] double sum() const;
  [[nodiscard]] double largest() const;
  using Item = std::pair<std::uint32_t, double>;
  // The heaviest first, equal ones in the order in which they were added.
  [[nodiscard]] std::vector<Item> heaviest(std::size_t most) const;

 private:
  std::vector<Item> events_;
};

class HealthView {
 public:
  HealthView(const trace::Trace& of, std::size_t examples);

  const trace::Trace& trace;
  const trace::OpTree tree;
  const Launches launches;
  std::vector<std::uint32_t> operations;  // of the GPU, in order of start
  std::vector<Step> steps;                // that the CPU recorded, in order of start
  double gpu_us = 0;                      // all GPU operations
  double cpu_us = 0;                      // all that stands at the top of the CPU's tree
  bool has_ops = false;                   // any op of the CPU
  // Ops or calls of several processes. Ids and steps of each process count from anew, so what is
  // told by them cannot be told.
  bool is_merged = false;

  [[nodiscard]] const trace::Event& event(std::uint32_t index) const { return trace.events[index]; }
  // The step that holds a time, nullptr where none does.
  [[nodiscard]] const Step* step_at(std::int64_t time_ns) const;
  // Whether any GPU operation has this correlation.
  [[nodiscard]] bool has_operation(std::int64_t correlation) const;

  // "NAME at 1.234ms, step 3", and behind it what `detail(event, weight)` says.
  [[nodiscard]] std::string place(std::uint32_t index) const;
  [[nodiscard]] std::vector<std::string> examples(const Odd& odd) const {
    return examples(odd, [](std::uint32_t, double) { return std::string(); });
  }
  template <typename Detail>
  [[nodiscard]] std::vector<std::string> examples(const Odd& odd, const Detail& detail) const {
    std::vector<std::string> texts;
    for (const auto& [index, weight] : odd.heaviest(examples_))
      texts.push_back(place(index) + detail(index, weight));
    return texts;
  }

 private:
  void count_processes();

  std::size_t examples_;
  std::vector<std::int64_t> correlations_;  // of GPU operations, sorted
};

[[nodiscard]] double part(double of, double whole);  // 0 of nothing
[[nodiscard]] std::string gpu_share_text(const HealthView& view, double us);
[[nodiscard]] std::string cpu_share_text(const HealthView& view, double us);
[[nodiscard]] Severity severity(double share);  // a fault from kMatters on

// Calls that have work done on the GPU.
[[nodiscard]] bool is_kernel_launch(std::string_view call);  // a graph's, too
[[nodiscard]] bool is_graph_launch(std::string_view call);
[[nodiscard]] bool is_copy_call(std::string_view call);  // asynchronous copies and memsets

// health_file.cpp
std::vector<HealthFinding> damage(const HealthView& view);
std::vector<HealthFinding> impossible_times(const HealthView& view);
std::vector<HealthFinding> clock_unit(const HealthView& view);
std::vector<HealthFinding> memory_records(const HealthView& view);
// health_launches.cpp
std::vector<HealthFinding> nothing_on_the_gpu(const HealthView& view);
std::vector<HealthFinding> before_their_launch(const HealthView& view);
std::vector<HealthFinding> launches_without_work(const HealthView& view);
// health_owners.cpp
std::vector<HealthFinding> unattributed(const HealthView& view);
std::vector<HealthFinding> several_processes(const HealthView& view);
std::vector<HealthFinding> shared_ids(const HealthView& view);
// health_time.cpp
std::vector<HealthFinding> overlaps_on_a_stream(const HealthView& view);
std::vector<HealthFinding> one_long_operation(const HealthView& view);
std::vector<HealthFinding> longer_than_the_span(const HealthView& view);
std::vector<HealthFinding> negative_self_times(const HealthView& view);
std::vector<HealthFinding> overlaps_on_a_thread(const HealthView& view);
// health_steps.cpp
std::vector<HealthFinding> lost_steps(const HealthView& view);
std::vector<HealthFinding> steps_of_devices(const HealthView& view);
std::vector<HealthFinding> overlapping_steps(const HealthView& view);
std::vector<HealthFinding> warm_up_in_steps(const HealthView& view);
std::vector<HealthFinding> uneven_first_step(const HealthView& view);

}  // namespace explain
