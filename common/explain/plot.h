// SPDX-License-Identifier: Apache-2.0
//
// A sweep as a line plot in SVG: a line with markers for each variant, its name at its end, a cross
// where a size did not run, and the limit. Both axes are logarithmic where all values are above 0,
// so that what grows as a power is a straight line; dashed guides show the slopes 1 and 2.
//
//   const explain::Sweep sweep = explain::read_sweep("05_memory.sweep.json");
//   trace::write_file("growth.svg", explain::plot_svg(sweep, {.quantity = "peak"}));
//   trace::write_file("narrow.svg", explain::plot_svg(sweep, {.is_linear = true, .width = 400}));
#pragma once

#include <string>

#include "explain/sweep_file.h"

namespace explain {

struct PlotOptions {
  std::string quantity{};  // a key of the sweep's quantities; "" is the first
  bool is_linear = false;  // both axes, from 0 on
  int width = 960;         // px
};

// Throws RangeError (steps.h), which says what there is, where the sweep has no such quantity.
[[nodiscard]] std::string plot_svg(const Sweep& sweep, const PlotOptions& options);

}  // namespace explain
