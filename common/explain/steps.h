// SPDX-License-Identifier: Apache-2.0
//
// The steps of a recording: the spans ProfilerStep#N that profiler.step() writes.
//
//   for (const explain::Step& step : explain::steps(trace)) use(trace.events[step.event]);
//   auto step = explain::step_event(trace, 3);             // ProfilerStep#3, else a RangeError
//   auto first = explain::step_event(trace, std::nullopt); // the first, if there is one
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace explain {

// The trace has no such step, or nothing in the range asked for. what() is one sentence, free of
// control characters, that says what there is.
class RangeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Step {
  std::int64_t number = 0;
  std::uint32_t event = 0;  // index into Trace::events: the span on the CPU where there is one
};

// N of a name ProfilerStep#N, nullopt for every other name.
[[nodiscard]] std::optional<std::int64_t> step_number(std::string_view name);

// In order of start; each number once.
[[nodiscard]] std::vector<Step> steps(const trace::Trace& trace);

// The event of step `number`, or of the first step. nullopt where none is asked for and the trace
// has none. Throws RangeError where `number` is not there.
[[nodiscard]] std::optional<std::uint32_t> step_event(const trace::Trace& trace,
                                                      std::optional<std::int64_t> number);

// Where an event ends. A hostile duration ends it with time itself instead of before its start.
[[nodiscard]] std::int64_t end_ns(const trace::Event& event);

}  // namespace explain
