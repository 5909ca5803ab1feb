// SPDX-License-Identifier: Apache-2.0
//
// Colours and fonts of a figure, as CSS that follows the reader's light or dark theme.
//
//   std::string css = explain::figure_style();            // "<style>...</style>"
//   explain::style_of(explain::Kind::kernel).css_class;   // "ke": a box of this class is coloured
//   explain::style_of(explain::Kind::kernel).words;       // "kernel", for the legend
#pragma once

#include <string>
#include <string_view>

#include "explain/figure_layout.h"

namespace explain {

struct KindStyle {
  std::string_view css_class, words;
  std::string_view light, dark;  // fills
};

[[nodiscard]] const KindStyle& style_of(Kind kind);

// Every rule is below the class of the figure's root, "tf": a page may hold the SVG itself.
[[nodiscard]] std::string figure_style();

}  // namespace explain
