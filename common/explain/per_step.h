// SPDX-License-Identifier: Apache-2.0
//
// What a step of a recording holds, by name: calls, time and bytes of ops, runtime calls and GPU
// operations, over all steps of the file.
//
//   const explain::Periods periods(tree, explain::Basis::step, "");
//   const explain::PerStep counted = explain::per_step(tree, periods);
//   counted.rows[0].calls.mean;   // per step; .least and .most of any step
//
// Times are us, sizes bytes. One sort of the events; memory is a few words per event.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/launches.h"
#include "trace/tree.h"

namespace explain {

// What figures are divided by: the profiler's steps, the forwards, or nothing.
enum class Basis : std::uint8_t { step, forward, recording };

[[nodiscard]] std::string_view to_string(Basis basis);  // "step", "forward", "recording"

// The steps (or forwards) of a file as stretches of time. What belongs to one is told by where its
// CPU side lies, on any thread: a GPU operation belongs where it was launched, wherever the device
// ran it. A recording of the GPU alone has no CPU side, there its own start counts.
class Periods {
 public:
  // `label` names the annotation of the forwards. The tree must live on.
  Periods(const trace::OpTree& tree, Basis basis, std::string_view label);

  [[nodiscard]] Basis basis() const { return basis_; }
  [[nodiscard]] std::size_t count() const { return is_whole() ? 1 : stretches_.size(); }
  [[nodiscard]] std::optional<std::size_t> at(std::int64_t time_ns) const;
  [[nodiscard]] std::optional<std::size_t> of(std::uint32_t event) const;
  // True where the file has the call that launched a GPU operation.
  [[nodiscard]] bool is_launched(std::uint32_t operation) const {
    return launches_.call_of(operation) != trace::kNoEvent;
  }
  // True for the events that the periods are made from: they are no content of a period.
  [[nodiscard]] bool is_boundary(std::uint32_t event) const;
  // How long each took on the CPU, in us; empty where the periods are no CPU time.
  [[nodiscard]] std::vector<double> durations_us() const;

 private:
  struct Stretch {
    std::int64_t start_ns = 0, end_ns = 0;
  };
  void take(std::vector<std::uint32_t> events);
  [[nodiscard]] bool is_forward(std::uint32_t event) const;
  [[nodiscard]] bool is_whole() const { return basis_ == Basis::recording; }

  const trace::OpTree& tree_;
  Launches launches_;
  Basis basis_;
  std::string label_;
  bool on_device_ = false;  // the file has the spans of its steps on the device alone
  std::vector<Stretch> stretches_;
};

// Something that each period has an amount of.
struct Amount {
  double mean = 0, least = 0, most = 0;
};

// The amounts of one thing, given period by period.
class Tally {
 public:
  // Periods in rising order.
  void add(std::size_t period, std::int64_t value);
  [[nodiscard]] Amount over(std::size_t periods) const;

 private:
  void close();
  std::int64_t current_ = 0, total_ = 0, least_ = 0, most_ = 0;
  std::size_t period_ = 0, closed_ = 0;
  bool is_open_ = false;
};

enum class Kind : std::uint8_t { op, annotation, call, kernel, memcpy, memset };

[[nodiscard]] std::string_view to_string(Kind kind);

// What an event counts as; nullopt for what no comparison is about (overhead, Python functions,
// spans on the device, syncs).
[[nodiscard]] std::optional<Kind> kind_of(trace::Category category);
[[nodiscard]] bool is_on_gpu(Kind kind);

// All calls of one name. Time is an op's own (without what it called), a GPU operation's duration.
struct PerStepRow {
  Kind kind = Kind::op;
  std::string name;  // of a GPU operation as in the file
  Amount calls, time_us, bytes;
};

enum class Unit : std::uint8_t { count, time, bytes, share };

struct Total {
  std::string name;  // "CUDA time"
  Unit unit = Unit::count;
  Amount amount;
};

struct PerStep {
  std::vector<Total> totals;        // of what the file has
  std::vector<PerStepRow> rows;     // by kind, then name
  std::int64_t left_out = 0;        // events and memory records outside all periods
  std::int64_t without_launch = 0;  // of these, GPU operations whose launch is not in the file
};

[[nodiscard]] PerStep per_step(const trace::OpTree& tree, const Periods& periods);

}  // namespace explain
