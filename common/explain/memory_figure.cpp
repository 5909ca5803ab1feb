// SPDX-License-Identifier: Apache-2.0
#include "explain/memory_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "explain/figure_style.h"
#include "explain/figure_text.h"
#include "explain/text.h"
#include "trace/wrapping.h"

namespace explain {
namespace {

// All in px.
constexpr double kMargin = 12;
constexpr double kAxisWidth = 70;  // of the bytes' labels
constexpr double kPlotHeight = 260;
constexpr double kBandHeight = 18;  // a phase's name
constexpr double kLineHeight = 17;
constexpr double kTextCharWidth = 6.2;
constexpr double kBoldCharWidth = 7;
constexpr std::size_t kMostPhases = 64;

// Whose colours each category has: what stays all the while is pale, what a step makes is not.
constexpr std::array<Kind, kMemoryCategories> kColours = {
    Kind::annotation, Kind::overhead, Kind::memset, Kind::memcpy,
    Kind::other,      Kind::op,       Kind::kernel, Kind::call};

const KindStyle& look_of(std::size_t category) {
  return style_of(kColours[category]);
}

// The areas' colours; boxes have theirs from figure_style().
std::string area_style() {
  std::string light, dark;
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    light += fmt::format(".tf .{} path{{fill:{}}}\n", look_of(i).css_class, look_of(i).light);
    dark += fmt::format(".tf .{} path{{fill:{}}}\n", look_of(i).css_class, look_of(i).dark);
  }
  return fmt::format("<style>{}@media (prefers-color-scheme:dark){{\n{}}}\n</style>\n", light,
                     dark);
}

class Writer {
 public:
  Writer(const trace::OpTree& tree, const MemoryTimeline& memory, int width)
      : tree_(tree), memory_(memory), width_(width) {
    most_ = std::max(1.0, static_cast<double>(total(peak().bytes)));
    write_title();
    write_phases();
    write_axis();
    write_areas();
    write_peak();
    write_times();
    write_legend();
    for (const std::string& line : notes()) write_note(line);
  }

  [[nodiscard]] std::string result() const {
    const std::string title = xml_text("Memory of " + memory_.title);
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tf\" width=\"{0}\" "
               "height=\"{1:.0f}\" viewBox=\"0 0 {0} {1:.0f}\" role=\"img\" aria-label=\"{2}\">\n"
               "{3}{4}<rect class=\"bg\" width=\"{0}\" height=\"{1:.0f}\" rx=\"6\"/>\n",
               width_, y_ + kMargin - 6, title, figure_style(), area_style()) +
           body_ + "</svg>\n";
  }

 private:
  template <typename... T>
  void add(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(body_), format, std::forward<T>(values)...);
  }
  [[nodiscard]] const MemoryPoint& peak() const { return memory_.curve[memory_.peak]; }
  [[nodiscard]] double left() const { return kMargin + kAxisWidth; }
  [[nodiscard]] double plot_width() const { return width_ - kMargin - left(); }
  [[nodiscard]] double x(std::int64_t ns) const {
    const auto from_start = [&](std::int64_t time) {
      return static_cast<double>(trace::wrapping_subtract(time, memory_.from_ns));
    };
    const double span = std::max(1.0, from_start(memory_.to_ns));
    return left() + plot_width() * std::clamp(from_start(ns) / span, 0.0, 1.0);
  }
  // A tenth of the plot is left for the peak's label.
  [[nodiscard]] double y(double bytes) const {
    return top_ + kPlotHeight * (1 - 0.9 * std::clamp(bytes / most_, 0.0, 1.0));
  }

  void write_title() {
    y_ = kMargin;
    add("<text class=\"t\" x=\"{}\" y=\"{:.0f}\">{}</text>\n", kMargin, y_ + 11,
        xml_text("Memory of " + memory_.title));
    y_ += kLineHeight + 6;
  }

  // Outer phases above, a recompute in a row of its own below.
  void write_phases() {
    double row_end[2] = {0, 0};
    std::size_t drawn = 0;
    const bool has_phases = !memory_.phases.empty();
    for (const MemoryPhase& phase : memory_.phases) {
      if (drawn == kMostPhases) break;
      const double from = x(phase.from_ns), to = x(phase.to_ns);
      const std::size_t row = from + 0.05 < row_end[0] ? 1 : 0;
      row_end[row] = to;
      has_inner_ |= row == 1;
      const std::string_view name = tree_.trace().name(tree_.trace().events[phase.event]);
      const auto room = static_cast<std::size_t>(std::max(0.0, (to - from - 6) / kTextCharWidth));
      const std::string time = time_text(
          static_cast<double>(trace::wrapping_subtract(phase.to_ns, phase.from_ns)) / 1000);
      add("<g class=\"an\"><title>{}</title><rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" "
          "height=\"{}\"/>",
          xml_text(fmt::format("{}, {}", clipped(name, 200), time)), from,
          y_ + kBandHeight * static_cast<double>(row), std::max(1.0, to - from - 0.7),
          kBandHeight - 1);
      if (length(name) <= room)
        add("<text x=\"{:.1f}\" y=\"{:.0f}\">{}</text>", from + 4,
            y_ + kBandHeight * static_cast<double>(row) + 13, xml_text(name));
      add("</g>\n");
      ++drawn;
    }
    if (has_phases) y_ += kBandHeight * (has_inner_ ? 2 : 1) + 2;
    top_ = y_;
    y_ += kPlotHeight;
  }

  void write_axis() {
    add("<rect class=\"l\" x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{}\"/>\n", left(),
        top_, plot_width(), kPlotHeight);
    const double step = std::exp2(std::floor(std::log2(most_ / 2.5)));
    for (double bytes = 0; bytes <= most_ * 1.05; bytes += step) {
      add("<path class=\"g\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>", left(), y(bytes),
          left() + plot_width());
      add("<text class=\"m\" x=\"{}\" y=\"{:.1f}\">{}</text>\n", kMargin, y(bytes) + 4,
          size_text(static_cast<std::int64_t>(std::min(bytes, 9e18))));
    }
  }

  // Of the points within a pixel the highest one.
  [[nodiscard]] std::vector<MemoryPoint> drawn_points() const {
    std::vector<MemoryPoint> points;
    for (const MemoryPoint& point : memory_.curve) {
      const bool is_same_pixel =
          !points.empty() && std::floor(x(points.back().time_ns)) == std::floor(x(point.time_ns));
      if (is_same_pixel && total(point.bytes) < total(points.back().bytes)) continue;
      if (is_same_pixel) points.pop_back();
      points.push_back(point);
    }
    return points;
  }

  // Each category from the top of the one below to its own: along the upper edge and back.
  void write_areas() {
    const std::vector<MemoryPoint> points = drawn_points();
    std::vector<double> base(points.size(), 0);
    for (std::size_t category = 0; category < kMemoryCategories; ++category) {
      std::vector<double> upper(base);
      bool is_used = false;
      for (std::size_t i = 0; i < points.size(); ++i) {
        const auto bytes = static_cast<double>(points[i].bytes[category]);
        upper[i] += std::max(0.0, bytes);
        is_used |= bytes > 0;
      }
      if (is_used) write_area(points, base, upper, static_cast<MemoryCategory>(category));
      is_used_[category] = is_used;
      base = std::move(upper);
    }
  }

  void write_area(const std::vector<MemoryPoint>& points, const std::vector<double>& base,
                  const std::vector<double>& upper, MemoryCategory category) {
    const double right = left() + plot_width();
    std::string path = fmt::format("M{:.1f} {:.1f}", left(), y(upper.front()));
    for (std::size_t i = 1; i < points.size(); ++i)
      path += fmt::format("H{:.1f}V{:.1f}", x(points[i].time_ns), y(upper[i]));
    path += fmt::format("H{:.1f}V{:.1f}", right, y(base.back()));
    for (std::size_t i = points.size(); i-- > 1;)
      path += fmt::format("H{:.1f}V{:.1f}", x(points[i].time_ns), y(base[i - 1]));
    add("<g class=\"{}\"><title>{}</title><path d=\"{}H{:.1f}Z\"/></g>\n", css(category),
        to_string(category), path, left());
  }

  [[nodiscard]] static std::string_view css(MemoryCategory category) {
    return look_of(static_cast<std::size_t>(category)).css_class;
  }

  // A line down from the label, which stands to the side where there is more room.
  void write_peak() {
    const double at = x(peak().time_ns);
    const std::string op =
        memory_.peak_block ? memory_chain(tree_, memory_.blocks[*memory_.peak_block].allocated_in)
                           : "no op";
    const bool is_left = at > left() + plot_width() / 2;
    const double room = (is_left ? at - left() : left() + plot_width() - at) - 16;
    const std::string text =
        clipped(fmt::format("peak {}: {}", size_text(total(peak().bytes)), op),
                static_cast<std::size_t>(std::max(20.0, room / kBoldCharWidth)));
    add("<path class=\"a\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>", at, top_ + 4, top_ + kPlotHeight);
    add("<text class=\"h k\"{} x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        is_left ? " text-anchor=\"end\"" : "", at + (is_left ? -6 : 6), top_ + 15, xml_text(text));
  }

  void write_times() {
    constexpr int kTicks = 5;
    const auto span =
        static_cast<double>(trace::wrapping_subtract(memory_.to_ns, memory_.from_ns)) / 1000;
    for (int i = 0; i <= kTicks; ++i) {
      const double part = static_cast<double>(i) / kTicks;
      add("<text class=\"m\" text-anchor=\"{}\" x=\"{:.1f}\" y=\"{:.0f}\">{}</text>",
          i == 0        ? "start"
          : i == kTicks ? "end"
                        : "middle",
          left() + plot_width() * part, y_ + 13, time_text(span * part));
    }
    y_ += kLineHeight + 6;
  }

  void write_legend() {
    double at = kMargin;
    for (std::size_t i = 0; i < kMemoryCategories; ++i) {
      if (!is_used_[i]) continue;
      const auto category = static_cast<MemoryCategory>(i);
      const std::string words =
          fmt::format("{} {}", to_string(category), size_text(peak().bytes[i]));
      const double width = 32 + kTextCharWidth * static_cast<double>(words.size());
      if (at + width > width_ - kMargin + 14 && at > kMargin) {
        at = kMargin;
        y_ += kLineHeight;
      }
      add("<g class=\"{}\"><rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"13\" height=\"12\"/></g>"
          "<text x=\"{:.1f}\" y=\"{:.0f}\">{}</text>\n",
          css(category), at, y_, at + 18, y_ + 10, words);
      at += width;
    }
    y_ += kLineHeight + 2;
  }

  [[nodiscard]] std::vector<std::string> notes() const {
    std::vector<std::string> notes{"Bytes in the legend: at the peak."};
    if (!memory_.is_whole)
      notes.emplace_back("What had been allocated before the recording is not in the file.");
    if (memory_.phases.size() > kMostPhases)
      notes.push_back(fmt::format("{} phases are not drawn.", memory_.phases.size() - kMostPhases));
    return notes;
  }

  void write_note(const std::string& note) {
    const auto room = static_cast<std::size_t>((width_ - 2 * kMargin) / kTextCharWidth);
    for (const std::string& line : wrapped(note, room)) {
      add("<text class=\"m\" x=\"{}\" y=\"{:.0f}\">{}</text>\n", kMargin, y_ + 10, xml_text(line));
      y_ += kLineHeight;
    }
  }

  const trace::OpTree& tree_;
  const MemoryTimeline& memory_;
  const int width_;
  double most_ = 1;  // bytes at the top
  double y_ = 0;     // where the next thing goes
  double top_ = 0;   // of the plot
  bool has_inner_ = false;
  std::array<bool, kMemoryCategories> is_used_{};
  std::string body_;
};

}  // namespace

std::string memory_figure(const trace::OpTree& tree, const MemoryTimeline& memory,
                          const MemoryFigureOptions& options) {
  return Writer(tree, memory, options.width).result();
}

}  // namespace explain
