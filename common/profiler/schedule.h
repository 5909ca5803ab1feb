// SPDX-License-Identifier: Apache-2.0
//
// torch.profiler.schedule: which steps of a loop are recorded. The first steps of a run are colder
// than the rest (libraries choose algorithms, memory is fetched), so they are waited out.
//
//   prof::Schedule schedule{.wait = 1, .warmup = 1, .active = 3, .repeat = 1};
//   schedule.action_at(1) == prof::Action::warmup;
//   schedule.action_at(4) == prof::Action::record_and_save;
#pragma once

#include <cstdint>

namespace prof {

enum class Action { none, warmup, record, record_and_save };

// All counts are steps. The cycle wait + warmup + active is repeated `repeat` times, 0 = for ever.
struct Schedule {
  int skip_first = 0;            // steps before the first cycle
  int wait = 0;                  // steps of a cycle that run without the profiler
  int warmup = 0;                // steps with the profiler on whose events are thrown away
  int active = 1;                // steps that are recorded
  int repeat = 0;                // cycles; 0 = as long as the loop runs
  bool skip_first_wait = false;  // the first cycle does not wait

  // Throws prof::Error where a count is negative or nothing would be recorded.
  void validate() const;

  // What torch.profiler does during step `step` (>= 0).
  [[nodiscard]] Action action_at(std::int64_t step) const;
};

}  // namespace prof
