// SPDX-License-Identifier: Apache-2.0
//
// What a plot of one quantity of a sweep shows, before anything is drawn: its lines, its axes, and
// whether the limit has a place on them.
//
//   const explain::PlotLines plot = explain::plot_lines(sweep, "peak", /*is_linear=*/false);
//   for (const explain::PlotLine& line : plot.lines) draw(line.name, line.points);
//   if (plot.is_limit_shown) draw(plot.y.place(plot.quantity.limit->value));
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/plot_axis.h"
#include "explain/sweep_file.h"

namespace explain {

struct PlotPoint {
  double x = 0;
  std::optional<double> y;
  std::string reason;  // why there is no y
};

struct PlotLine {
  std::string name;               // printable
  std::vector<PlotPoint> points;  // in order of x

  [[nodiscard]] const PlotPoint* last() const;           // with a y; nullptr for none
  [[nodiscard]] const PlotPoint* first_missing() const;  // without one; nullptr for none
};

struct PlotLines {
  const SweepQuantity& quantity;  // of the sweep, which must outlive this
  std::vector<PlotLine> lines;    // in order of appearance
  std::vector<double> x_values;   // each once, in order
  PlotAxis x, y;
  bool is_limit_shown = false;
  bool has_guides = false;  // both axes are logarithmic, and something grows
};

// `key` "" is the first quantity. Throws RangeError (steps.h) where the sweep has no such quantity.
[[nodiscard]] PlotLines plot_lines(const Sweep& sweep, std::string_view key, bool is_linear);

}  // namespace explain
