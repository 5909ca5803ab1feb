// SPDX-License-Identifier: Apache-2.0
#include "explain/figure_style.h"

#include <fmt/format.h>

#include <array>

namespace explain {
namespace {

// Any two but the last differ by a CIELAB distance of 12 or more for every kind of colour vision
// (simulated by Machado's matrices), and text on each has a contrast of 4.5 or more.
constexpr std::array<KindStyle, kKinds> kStyles = {{
    {"an", "annotation, step", "#d6dade", "#5f6873"},
    {"op", "op", "#8db4f2", "#2f6cbc"},
    {"ca", "CUDA call", "#e08e45", "#9d5c48"},
    {"ke", "kernel", "#3fcb86", "#124a3c"},
    {"cp", "copy", "#d592a6", "#a32959"},
    {"se", "memset", "#f4d873", "#6f6110"},
    {"sy", "wait", "#9fd63a", "#404616"},
    {"ov", "profiler's own", "#b69ccc", "#5e3285"},
    {"ot", "other", "#f0f0f0", "#30363d"},
}};

constexpr std::string_view kStyle = R"(
.tf text{font:11px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;fill:#1f2328}
.tf .b text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace}
.tf .h{font-weight:600}
.tf .t{font-size:13px;font-weight:600}
.tf .m,.tf .b .m{fill:#59636e}
.tf .b .d{fill-opacity:.85}
.tf .e{text-anchor:middle}
.tf .bg{fill:#ffffff}
.tf .l{fill:#f6f8fa}
.tf .g{stroke:#d1d9e0;stroke-width:1}
.tf .a{fill:none;stroke:#414b56;stroke-width:1;stroke-opacity:.75}
.tf .ah{fill:#414b56}
.tf .k{paint-order:stroke;stroke:#ffffff;stroke-width:4px;stroke-linejoin:round}
.tf .f{opacity:.42}
.tf .n .a{stroke-width:.7;stroke-opacity:.45}
)";

constexpr std::string_view kDarkStyle = R"(.tf text{fill:#f0f6fc}
.tf .m,.tf .b .m{fill:#a3adb8}
.tf .bg{fill:#0d1117}
.tf .l{fill:#12171e}
.tf .g{stroke:#2f3740}
.tf .a{stroke:#c3ccd6}
.tf .ah{fill:#c3ccd6}
.tf .k{stroke:#0d1117}
)";

}  // namespace

const KindStyle& style_of(Kind kind) {
  return kStyles[static_cast<std::size_t>(kind)];
}

std::string figure_style() {
  std::string light(kStyle);
  std::string dark(kDarkStyle);
  for (const KindStyle& kind : kStyles) {
    light += fmt::format(".tf .{} rect{{fill:{}}}\n", kind.css_class, kind.light);
    dark += fmt::format(".tf .{} rect{{fill:{}}}\n", kind.css_class, kind.dark);
  }
  return fmt::format("<style>{}@media (prefers-color-scheme:dark){{\n{}}}\n</style>\n", light,
                     dark);
}

}  // namespace explain
