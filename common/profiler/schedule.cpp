// SPDX-License-Identifier: Apache-2.0
#include "profiler/schedule.h"

#include <fmt/format.h>

#include "profiler/error.h"

namespace prof {

void Schedule::validate() const {
  if (skip_first < 0 || wait < 0 || warmup < 0 || active <= 0 || repeat < 0) {
    throw Error(
        fmt::format("this schedule records nothing: skip_first={}, wait={}, warmup={} and "
                    "repeat={} must be 0 or "
                    "more, active={} must be 1 or more",
                    skip_first, wait, warmup, repeat, active));
  }
}

Action Schedule::action_at(std::int64_t step) const {
  if (step < skip_first) return Action::none;
  step -= skip_first;
  if (skip_first_wait) step += wait;

  const std::int64_t before_active = std::int64_t{wait} + warmup;
  const std::int64_t cycle = before_active + active;
  if (repeat > 0 && step / cycle >= repeat) return Action::none;

  const std::int64_t in_cycle = step % cycle;
  if (in_cycle < wait) return Action::none;
  if (in_cycle < before_active) return Action::warmup;
  return in_cycle < cycle - 1 ? Action::record : Action::record_and_save;
}

}  // namespace prof
