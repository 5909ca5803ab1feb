// SPDX-License-Identifier: Apache-2.0
//
// Colours and markers of a plot's lines. Both differ from line to line, so that no one needs to
// tell colours apart; the 50th line is the first that looks like another.
//
//   std::string css = explain::figure_style() + explain::plot_style();
//   std::size_t colour = explain::colour_of(2);   // 2: a group of the classes "s" and "s2" has it
//   const char* path = explain::marker_of(2);     // a triangle around 0, 0
#pragma once

#include <cstddef>
#include <string>

namespace explain {

[[nodiscard]] std::size_t colour_of(std::size_t line);
[[nodiscard]] const char* marker_of(std::size_t line);

// Below the class of the figure's root, as figure_style().
[[nodiscard]] std::string plot_style();

}  // namespace explain
