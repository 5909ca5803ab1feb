// SPDX-License-Identifier: Apache-2.0
#include "trace/processes.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

namespace trace {
namespace {

// The process of each id; kUnknown for an id that several have.
class Owners {
 public:
  void add(std::int64_t id, std::uint32_t process) {
    if (id == 0 || process == Processes::kUnknown) return;
    const auto [owner, is_new] = owner_of_.try_emplace(id, process);
    if (!is_new && owner->second != process) owner->second = Processes::kUnknown;
  }
  [[nodiscard]] std::uint32_t of(std::int64_t id) const {
    const auto owner = owner_of_.find(id);
    return owner == owner_of_.end() ? Processes::kUnknown : owner->second;
  }

 private:
  std::unordered_map<std::int64_t, std::uint32_t> owner_of_;
};

}  // namespace

Processes::Processes(const Trace& trace) {
  for (const Event& event : trace.events) {
    if (event.category != Category::cpu_op) continue;
    const auto [place, is_new] =
        process_of_pid_.try_emplace(trace.threads[event.thread].pid, count_);
    if (is_new) ++count_;
  }
  if (count_ < 2) return;

  of_.resize(trace.events.size());
  std::vector<bool> is_seen(count_, false);
  std::uint32_t current = kUnknown;
  bool is_mixed = false;  // events of one process stand on both sides of another's
  for (std::size_t i = 0; i < of_.size(); ++i) {
    const Event& event = trace.events[i];
    of_[i] = is_device(event.category) ? kUnknown : of(trace.threads[event.thread]);
    if (of_[i] == kUnknown || of_[i] == current) continue;
    current = of_[i];
    is_mixed |= is_seen[current];
    is_seen[current] = true;
  }
  if (is_mixed) {
    by_ids(trace);
  } else {
    by_place();
  }
}

std::uint32_t Processes::of(const Thread& thread) const {
  if (count_ < 2) return 0;
  const auto place = process_of_pid_.find(thread.pid);
  return place == process_of_pid_.end() ? kUnknown : place->second;
}

// What stands before the first event of a process belongs to that one.
void Processes::by_place() {
  const auto first = std::find_if(of_.begin(), of_.end(), [](auto p) { return p != kUnknown; });
  std::uint32_t current = *first;  // there are several
  for (std::uint32_t& process : of_) {
    if (process == kUnknown) process = current;
    current = process;
  }
}

void Processes::by_ids(const Trace& trace) {
  Owners by_external_id, by_correlation;
  for (std::size_t i = 0; i < of_.size(); ++i) {
    const Event& event = trace.events[i];
    by_external_id.add(event.external_id, of_[i]);
    by_correlation.add(event.correlation, of_[i]);
  }
  for (std::size_t i = 0; i < of_.size(); ++i) {
    const Event& event = trace.events[i];
    if (of_[i] == kUnknown) of_[i] = by_external_id.of(event.external_id);
    if (of_[i] == kUnknown) of_[i] = by_correlation.of(event.correlation);
  }
}

}  // namespace trace
