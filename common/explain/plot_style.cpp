// SPDX-License-Identifier: Apache-2.0
#include "explain/plot_style.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "explain/figure_style.h"

namespace explain {
namespace {

// Dark on light and light on dark: the fills of boxes, each in the other theme.
constexpr std::array<Kind, 7> kColours = {Kind::op,       Kind::memcpy, Kind::memset, Kind::kernel,
                                          Kind::overhead, Kind::call,   Kind::sync};
constexpr std::array<const char*, 7> kMarkers = {"M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z",  // circle
                                                 "M-3.5-3.5H3.5V3.5H-3.5Z",             // square
                                                 "M0-5L4.7 3.6H-4.7Z",                  // triangle
                                                 "M0-5.2L5.2 0L0 5.2L-5.2 0Z",          // diamond
                                                 "M0 5L4.7-3.6H-4.7Z",    // triangle on its head
                                                 "M-5 0H5M0-5V5",         // plus
                                                 "M-4-4.5H4L-4 4.5H4Z"};  // hourglass

// A line and its markers, a cross, the limit, a guide, what leads to a label.
constexpr std::string_view kStyle = R"(.tf .s path{fill:none;stroke-width:1.8;stroke-linejoin:round}
.tf .x path{stroke-width:2.6}
.tf .li{stroke-width:2}
.tf .gu{stroke-dasharray:3 4}
.tf .le{stroke-opacity:.35}
)";

}  // namespace

std::size_t colour_of(std::size_t line) {
  return line % kColours.size();
}

// Where colours begin again, the markers are shifted by one.
const char* marker_of(std::size_t line) {
  return kMarkers[(line + line / kColours.size()) % kMarkers.size()];
}

std::string plot_style() {
  std::string light, dark;
  for (std::size_t i = 0; i < kColours.size(); ++i) {
    light += fmt::format(".tf .s{} path{{stroke:{}}}\n", i, style_of(kColours[i]).dark);
    dark += fmt::format(".tf .s{} path{{stroke:{}}}\n", i, style_of(kColours[i]).light);
  }
  return fmt::format("<style>{}{}@media (prefers-color-scheme:dark){{\n{}}}\n</style>\n", kStyle,
                     light, dark);
}

}  // namespace explain
