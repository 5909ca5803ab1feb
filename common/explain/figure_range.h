// SPDX-License-Identifier: Apache-2.0
//
// Which part of a recording a figure shows.
//
//   explain::FigureRange range = explain::step_range(trace, step, launches);
//   explain::FigureRange part = explain::time_range(trace, 120, 480);   // us
//   double width = explain::span_ns(range.from_ns, range.to_ns) / 1000;  // us
#pragma once

#include <cstdint>
#include <string>

#include "explain/launches.h"
#include "trace/trace.h"

namespace explain {

struct FigureRange {
  std::int64_t from_ns = 0, to_ns = 0;  // what is drawn, as Event::start_ns
  std::int64_t zero_ns = 0;             // where the axis reads 0
  // Of a step the subject is what the CPU starts in here and what that launched: the rest is faded.
  bool is_step = false;
  std::int64_t subject_from_ns = 0, subject_to_ns = 0;
  std::string title;
};

// From the start of a step to its end, or to the end of the last GPU operation that it launched.
[[nodiscard]] FigureRange step_range(const trace::Trace& trace, std::uint32_t step,
                                     const Launches& launches);

// Microseconds since the start of the recording, cut to where there are events: infinite ends stand
// for all. Throws RangeError where nothing is left.
[[nodiscard]] FigureRange time_range(const trace::Trace& trace, double from_us, double to_us);

// True for the kinds of events that a figure draws.
[[nodiscard]] bool is_drawn(const trace::Event& event);

// to_ns - from_ns, from_ns <= to_ns, also where that of a hostile file needs all 64 bits.
[[nodiscard]] double span_ns(std::int64_t from_ns, std::int64_t to_ns);

}  // namespace explain
