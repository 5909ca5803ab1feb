// SPDX-License-Identifier: Apache-2.0
//
// What is odd in a trace file itself: events that are missing or damaged, times that cannot be, GPU
// operations that no op owns, steps that got lost. What is right in the file is not mentioned.
//
//   const explain::Health health = explain::health(trace);
//   std::cout << explain::to_text(health);
//   return health.has_fault() ? 1 : 0;
//
// One small function per kind of finding, all in the table at the end of health.cpp. The cost is a
// few passes over the events and as many sorts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace explain {

enum class Severity : std::uint8_t {
  fault,  // figures of the table, or times, are wrong or missing
  note,   // odd, but the figures hold
};

struct HealthFinding {
  Severity severity = Severity::note;
  std::string title{};     // what it is that is counted
  std::int64_t count = 0;  // of events, ids, steps; -1: nothing to count
  std::string share{};     // "120.1us, 3.2% of the GPU time"; "" where no time is concerned
  std::vector<std::string> examples{};  // the worst ones: name, time since the start, step
  std::string meaning{};                // for the table, and what can be done
};

struct Health {
  std::vector<HealthFinding> findings;  // faults first
  std::int64_t events = 0;
  std::int64_t gpu_operations = 0;
  std::int64_t steps = 0;  // that the CPU recorded

  [[nodiscard]] bool has_fault() const;
};

// `examples`: how many each finding shows at most.
[[nodiscard]] Health health(const trace::Trace& trace, std::size_t examples = 1);

// A line that says how healthy the file is, then for each finding a line "fault" or "note" with
// title, count and share, and below it examples and meaning. At most 120 columns, safe to print.
[[nodiscard]] std::string to_text(const Health& health);

}  // namespace explain
