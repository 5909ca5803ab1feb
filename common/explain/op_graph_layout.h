// SPDX-License-Identifier: Apache-2.0
//
// Where boxes and lines of a graph stand: from top to bottom in layers, so that every line runs
// down. A line's label has a place of its own, and lines bend only between two rows: nothing lies
// on anything else. Knows nothing of ops or SVG.
//
//   explain::GraphPlaces places = explain::lay_out_graph({{80, 40}, {80, 40}}, {{0, 1, 90}});
//   draw(places.boxes[1].x, places.boxes[1].y);   // px, the middle of its upper edge
#pragma once

#include <cstddef>
#include <vector>

namespace explain {

struct GraphSize {
  double width = 0, height = 0;
};

struct GraphLine {
  std::size_t from = 0, to = 0;
  double label_width = 0;
};

struct GraphPlaces {
  struct Point {
    double x = 0, y = 0;
  };
  // From a box down to a box. Between `down[i]` and `down[i + 1]` it is straight for odd i, inside
  // of a row, and bends for even ones, between two rows.
  struct Line {
    std::vector<Point> down;
    Point label;  // the middle of its upper edge; the line ends there and goes on below
  };
  std::vector<Point> boxes;  // the middle of the upper edge
  std::vector<Line> lines;
  double width = 0, height = 0;
};

inline constexpr double kGraphLabelHeight = 28;  // two lines of text

// Bounds what lay_out_graph() has to do: places of boxes, labels and lines in all rows. The lines
// must form no cycle.
inline constexpr std::size_t kMostGraphPlaces = 20'000;

// Nothing where there are more than kMostGraphPlaces.
[[nodiscard]] GraphPlaces lay_out_graph(const std::vector<GraphSize>& boxes,
                                        const std::vector<GraphLine>& lines);

}  // namespace explain
