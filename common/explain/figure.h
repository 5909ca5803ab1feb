// SPDX-License-Identifier: Apache-2.0
//
// A timeline of a trace as one SVG file: CPU threads above, GPU streams below, an arrow from each
// launch to what it launched.
//
//   std::string svg = explain::figure(trace, {.step = 2, .width = 960});
//   trace::write_file("docs/figures/01_naive.svg", svg);
//
// The file needs nothing but itself: no script, no font, no other resource. Its colours follow the
// reader's dark or light theme and are told apart by colour-blind readers; its text can be selected
// and searched. Names too long for their box are cut; the full name, the start and the duration are
// in the box's <title>. The size is bounded (figure_layout.h), and what is not drawn one by one is
// said below the legend.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "explain/steps.h"
#include "trace/trace.h"

namespace explain {

struct FigureOptions {
  // ProfilerStep#N; by default the first one. Other steps' events in its time are drawn faded.
  std::optional<std::int64_t> step = std::nullopt;
  // Microseconds since the start of the recording, instead of a step; one end may be left out.
  std::optional<double> from_us = std::nullopt, to_us = std::nullopt;
  int width = 960;  // px
};

// Throws RangeError where the trace has no such step or nothing in the range.
[[nodiscard]] std::string figure(const trace::Trace& trace, const FigureOptions& options);

}  // namespace explain
