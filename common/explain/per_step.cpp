// SPDX-License-Identifier: Apache-2.0
#include "explain/per_step.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

#include "explain/facts.h"
#include "explain/forwards.h"
#include "explain/steps.h"
#include "trace/wrapping.h"

namespace explain {
namespace {

using trace::Category;
using trace::wrapping_add;
using trace::wrapping_subtract;

Amount in_us(Amount ns) {
  return {ns.mean / 1000, ns.least / 1000, ns.most / 1000};
}

struct Tallies {
  Tally calls, ns, bytes;

  void add(std::size_t period, std::int64_t duration, std::int64_t size) {
    calls.add(period, 1);
    ns.add(period, duration);
    bytes.add(period, size);
  }
};

struct Placed {
  std::uint32_t period, event;
};

class Counter {
 public:
  Counter(const trace::OpTree& tree, const Periods& periods)
      : tree_(tree), trace_(tree.trace()), periods_(periods) {
    place();
    for (const Placed& placed : placed_) count(placed);
    for (const auto& [key, tallies] : rows_) add_row(key, tallies);
    std::sort(result_.rows.begin(), result_.rows.end(),
              [](const PerStepRow& a, const PerStepRow& b) {
                return std::tie(a.kind, a.name) < std::tie(b.kind, b.name);
              });
    add_totals();
    count_memory();
  }

  [[nodiscard]] PerStep result() && { return std::move(result_); }

 private:
  // Names of GPU operations count as they stand: by their text, others as the table has them.
  using Key = std::pair<Kind, std::uint32_t>;
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::size_t{key.second} * 8 + static_cast<std::size_t>(key.first);
    }
  };

  // Period by period; within one in the order of the table.
  void place() {
    for (const std::uint32_t event : tree_.order()) {
      if (!kind_of(trace_.events[event].category) || periods_.is_boundary(event)) continue;
      if (const auto period = periods_.of(event)) {
        placed_.push_back({static_cast<std::uint32_t>(*period), event});
      } else {
        ++result_.left_out;
        const bool on_gpu = trace::is_gpu_operation(trace_.events[event].category);
        result_.without_launch += on_gpu && !periods_.is_launched(event) ? 1 : 0;
      }
    }
    std::stable_sort(placed_.begin(), placed_.end(),
                     [](const Placed& a, const Placed& b) { return a.period < b.period; });
  }

  void count(const Placed& placed) {
    const trace::Event& event = trace_.events[placed.event];
    const Kind kind = *kind_of(event.category);
    const std::int64_t bytes = is_on_gpu(kind) ? trace_.launch_of(event).bytes : 0;
    const std::int64_t ns = is_on_gpu(kind) ? event.duration_ns : own_ns(placed.event);
    const std::uint32_t name = is_on_gpu(kind) ? event.name : tree_.name_id(placed.event);
    Tallies& tallies = rows_[{kind, name}];
    tallies.add(placed.period, ns, bytes);
    names_.try_emplace({kind, name},
                       is_on_gpu(kind) ? trace_.name(event) : tree_.name(placed.event));
    kinds_[kind].add(placed.period, ns, bytes);
    if (!is_on_gpu(kind)) return;
    gpu_.add(placed.period, ns, bytes);
    if (event.is_timed) gpu_operations_.push_back(placed.event);
  }

  // Of a CPU event without what it called.
  [[nodiscard]] std::int64_t own_ns(std::uint32_t event) const {
    if (tree_.is_async(event)) return 0;
    std::int64_t ns = trace_.events[event].duration_ns;
    for (const std::uint32_t child : tree_.children(event)) {
      ns = wrapping_subtract(ns, trace_.events[child].duration_ns);
    }
    return ns;
  }

  void add_row(const Key& key, const Tallies& tallies) {
    const std::size_t count = periods_.count();
    result_.rows.push_back({.kind = key.first,
                            .name = std::string(names_.at(key)),
                            .calls = tallies.calls.over(count),
                            .time_us = in_us(tallies.ns.over(count)),
                            .bytes = tallies.bytes.over(count)});
  }

  void add(std::string name, Unit unit, Amount amount) {
    result_.totals.push_back({std::move(name), unit, amount});
  }

  void add_totals() {
    const std::size_t count = periods_.count();
    const auto calls = [&](const char* name, Kind kind) {
      add(name, Unit::count, kinds_[kind].calls.over(count));
    };
    if (gpu_.calls.over(count).most > 0) {
      add("GPU operations", Unit::count, gpu_.calls.over(count));
      calls("kernels", Kind::kernel);
      add("CUDA time", Unit::time, in_us(gpu_.ns.over(count)));
      add("bytes copied", Unit::bytes, kinds_[Kind::memcpy].bytes.over(count));
      add("bytes set", Unit::bytes, kinds_[Kind::memset].bytes.over(count));
      calls("runtime calls", Kind::call);
    }
    calls("ops", Kind::op);
    if (const auto amount = cpu_time()) add("CPU time", Unit::time, *amount);
    if (const auto share = idle_share()) add("idle share of the GPU", Unit::share, one(*share));
    if (const auto peak = peak_memory(trace_)) {
      add("peak memory", Unit::bytes, one(static_cast<double>(*peak)));
    }
  }

  static Amount one(double value) { return {value, value, value}; }

  [[nodiscard]] std::optional<Amount> cpu_time() const {
    const std::vector<double> times =
        periods_.basis() == Basis::recording ? span_us() : periods_.durations_us();
    if (times.empty()) return std::nullopt;
    double sum = 0;
    for (const double time : times) sum += time;
    return Amount{sum / static_cast<double>(times.size()),
                  *std::min_element(times.begin(), times.end()),
                  *std::max_element(times.begin(), times.end())};
  }

  // From the first CPU event to the end of the last one; empty where there is none.
  [[nodiscard]] std::vector<double> span_us() const {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    for (const Placed& placed : placed_) {
      const trace::Event& event = trace_.events[placed.event];
      if (trace::is_gpu_operation(event.category)) continue;
      first = std::min(first, event.start_ns);
      last = std::max(last, end_ns(event));
    }
    if (first > last) return {};
    return {(static_cast<double>(last) - static_cast<double>(first)) / 1000};
  }

  [[nodiscard]] std::optional<double> idle_share() {
    std::stable_sort(gpu_operations_.begin(), gpu_operations_.end(),
                     [&](std::uint32_t a, std::uint32_t b) {
                       return trace_.events[a].start_ns < trace_.events[b].start_ns;
                     });
    const Busy time = busy(trace_, gpu_operations_);
    if (time.whole_us <= 0) return std::nullopt;
    return 1 - time.busy_us / time.whole_us;
  }

  struct MemoryTallies {
    Tally allocations, allocated, freed, net;
  };

  void count_memory() {
    std::vector<Placed> placed;
    for (std::uint32_t i = 0; i < trace_.memory.size(); ++i) {
      if (trace_.memory[i].out_of_memory) continue;
      const auto period = periods_.at(trace_.memory[i].time_ns);
      if (period) placed.push_back({static_cast<std::uint32_t>(*period), i});
      if (!period) ++result_.left_out;
    }
    std::stable_sort(placed.begin(), placed.end(),
                     [](const Placed& a, const Placed& b) { return a.period < b.period; });
    std::map<bool, MemoryTallies> devices;  // false: the CPU
    for (const Placed& one : placed) {
      const trace::MemoryRecord& record = trace_.memory[one.event];
      MemoryTallies& tallies = devices[record.device_type != 0];
      tallies.allocations.add(one.period, record.bytes > 0 ? 1 : 0);
      tallies.allocated.add(one.period, std::max<std::int64_t>(record.bytes, 0));
      tallies.freed.add(one.period, wrapping_subtract(0, std::min<std::int64_t>(record.bytes, 0)));
      tallies.net.add(one.period, record.bytes);
    }
    for (const auto& [is_device, tallies] : devices) add_memory(is_device ? "GPU" : "CPU", tallies);
  }

  void add_memory(const std::string& where, const MemoryTallies& tallies) {
    const std::size_t count = periods_.count();
    add(where + " allocations", Unit::count, tallies.allocations.over(count));
    add(where + " memory allocated", Unit::bytes, tallies.allocated.over(count));
    add(where + " memory freed", Unit::bytes, tallies.freed.over(count));
    add(where + " memory kept", Unit::bytes, tallies.net.over(count));
  }

  const trace::OpTree& tree_;
  const trace::Trace& trace_;
  const Periods& periods_;
  std::vector<Placed> placed_;
  std::unordered_map<Key, Tallies, Hash> rows_;
  std::unordered_map<Key, std::string_view, Hash> names_;
  std::map<Kind, Tallies> kinds_;
  Tallies gpu_;
  std::vector<std::uint32_t> gpu_operations_;
  PerStep result_;
};

}  // namespace

void Tally::add(std::size_t period, std::int64_t value) {
  if (is_open_ && period != period_) close();
  is_open_ = true;
  period_ = period;
  current_ = wrapping_add(current_, value);
}

void Tally::close() {
  total_ = wrapping_add(total_, current_);
  least_ = closed_ == 0 ? current_ : std::min(least_, current_);
  most_ = closed_ == 0 ? current_ : std::max(most_, current_);
  current_ = 0;
  is_open_ = false;
  ++closed_;
}

Amount Tally::over(std::size_t periods) const {
  Tally whole = *this;
  if (whole.is_open_) whole.close();
  if (whole.closed_ < periods) whole.close();  // a period without any: it has 0
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  return {real(whole.total_) / real(static_cast<std::int64_t>(std::max<std::size_t>(periods, 1))),
          real(whole.least_), real(whole.most_)};
}

std::string_view to_string(Kind kind) {
  constexpr std::string_view kNames[] = {"op", "annotation", "call", "kernel", "memcpy", "memset"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<Kind> kind_of(trace::Category category) {
  switch (category) {
    case Category::cpu_op:
      return Kind::op;
    case Category::user_annotation:
      return Kind::annotation;
    case Category::cuda_runtime:
    case Category::cuda_driver:
      return Kind::call;
    case Category::kernel:
      return Kind::kernel;
    case Category::gpu_memcpy:
      return Kind::memcpy;
    case Category::gpu_memset:
      return Kind::memset;
    default:
      return std::nullopt;
  }
}

bool is_on_gpu(Kind kind) {
  return kind >= Kind::kernel;
}

PerStep per_step(const trace::OpTree& tree, const Periods& periods) {
  return Counter(tree, periods).result();
}

}  // namespace explain
