// SPDX-License-Identifier: Apache-2.0
//
// Where everything stands in a figure: which lanes there are, which box goes into which row, which
// arrows join them. figure.cpp draws it; nothing here knows about SVG.
//
//   explain::FigureRange range = explain::step_range(trace, step, launches);
//   explain::Layout layout = explain::lay_out(trace, launches, range, 936);
//   for (const explain::Lane& lane : layout.lanes) draw(lane.rows);
//
// Horizontal positions are pixels from the left edge of the plot, times are ns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explain/figure_range.h"
#include "explain/launches.h"
#include "trace/trace.h"

namespace explain {

// What a colour stands for.
enum class Kind : std::uint8_t {
  annotation,
  op,
  call,
  kernel,
  memcpy,
  memset,
  sync,
  overhead,
  other,
};
inline constexpr int kKinds = 9;

// One event, or several that are too narrow to draw one by one.
struct Box {
  double x = 0, width = 0;  // px, cut to the plot
  std::uint32_t event = 0;  // of several the longest
  std::uint32_t count = 1;
  std::int64_t from_ns = 0, to_ns = 0;
  std::int64_t total_ns = 0;  // the sum of the durations
  Kind kind = Kind::other;
  bool is_subject = true;
};

// A CPU thread or a GPU stream. Rows from top to bottom: on the CPU the outermost spans first; on
// the GPU the operations first, where the arrows end, and the annotations around them below.
struct Lane {
  std::string label;
  bool is_gpu = false;
  std::vector<std::vector<Box>> rows;
};

struct Arrow {
  double from_x = 0, to_x = 0;  // the middle of the call, the start of the GPU operation
  std::size_t from_lane = 0, from_row = 0;
  std::size_t to_lane = 0, to_row = 0;
};

struct Layout {
  std::vector<Lane> lanes;  // the CPU's first
  std::vector<Arrow> arrows;
  std::vector<std::string> notes;  // what is not drawn one by one, a sentence each
};

// Bounded whatever the file holds: `kMostBoxes`, `kMostArrows`, rows and lanes.
[[nodiscard]] Layout lay_out(const trace::Trace& trace, const Launches& launches,
                             const FigureRange& range, double width);

inline constexpr std::size_t kMostBoxes = 2500;
inline constexpr std::size_t kMostArrows = 100;
inline constexpr std::size_t kMostRows = 24;   // of a lane
inline constexpr std::size_t kMostLanes = 10;  // CPU threads, and as many streams

}  // namespace explain
