// SPDX-License-Identifier: Apache-2.0
#include "explain/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>

#include "explain/figure_layout.h"
#include "explain/figure_style.h"
#include "explain/figure_text.h"
#include "explain/text.h"
#include "trace/wrapping.h"

namespace explain {
namespace {

// All in px. Names in boxes are set in a fixed-width font so that what fits can be counted.
constexpr double kMargin = 12;
constexpr double kBoxCharWidth = 6.65;  // of common fixed-width fonts at this size, rounded up
constexpr double kTextCharWidth = 6.2;  // of common proportional fonts, on average
constexpr double kRowHeight = 19;
constexpr double kBoxHeight = 18;
constexpr double kLineHeight = 17;
constexpr double kLaneLabelHeight = 20;
constexpr double kLaneGap = 8;
constexpr double kArrowBand = 28;  // between CPU and GPU, where the arrows bend
constexpr double kTickDistance = 90;
constexpr std::size_t kMostNameLength = 2000;

// 1, 2 or 5 times a power of ten: the smallest that keeps `most` ticks.
double tick_step(double span, double most) {
  const double least = span / std::max(1.0, most);
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least) return factor * power;
  return 10 * power;
}

struct Unit {
  double us;
  std::string_view name;
};

Unit axis_unit(double span_us) {
  if (span_us > 5e6) return {1e6, "s"};
  if (span_us > 5e3) return {1e3, "ms"};
  return {1, "us"};
}

class Writer {
 public:
  Writer(const trace::Trace& trace, const FigureRange& range, const Layout& layout, int width)
      : trace_(trace), range_(range), layout_(layout), width_(width) {
    write_title();
    const double axis_y = y_;
    y_ += kLineHeight + 4;
    place_lanes();
    write_lane_backgrounds();
    write_axis(axis_y);
    write_boxes();
    write_arrows();
    write_lane_labels();
    write_legend();
    write_notes();
  }

  [[nodiscard]] std::string result() const {
    const double height = y_ + kMargin - 6;
    const std::string title = xml_text(range_.title);
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tf\" width=\"{0}\" "
               "height=\"{1:.0f}\" viewBox=\"0 0 {0} {1:.0f}\" role=\"img\" aria-label=\"{2}\">\n",
               width_, height, title) +
           figure_style() +
           "<defs><marker id=\"tf-head\" viewBox=\"0 0 6 6\" refX=\"5\" refY=\"3\" "
           "markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\">"
           "<path class=\"ah\" d=\"M0 0L6 3L0 6Z\"/></marker></defs>\n" +
           fmt::format("<rect class=\"bg\" width=\"{}\" height=\"{:.0f}\" rx=\"6\"/>\n", width_,
                       height) +
           body_ + "</svg>\n";
  }

 private:
  template <typename... T>
  void add(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(body_), format, std::forward<T>(values)...);
  }
  [[nodiscard]] double plot_width() const { return width_ - 2 * kMargin; }
  [[nodiscard]] std::size_t line_length() const {
    return static_cast<std::size_t>(plot_width() / kTextCharWidth);
  }
  [[nodiscard]] double microseconds(std::int64_t ns) const {
    return static_cast<double>(trace::wrapping_subtract(ns, range_.zero_ns)) / 1000;
  }

  void write_title() {
    y_ = kMargin;
    constexpr double kTitleCharWidth = kTextCharWidth * 1.25;
    for (const std::string& line :
         wrapped(range_.title, static_cast<std::size_t>(plot_width() / kTitleCharWidth))) {
      add("<text class=\"t\" x=\"{}\" y=\"{:.0f}\">{}</text>\n", kMargin, y_ + 11, xml_text(line));
      y_ += kLineHeight + 1;
    }
    y_ += 2;
  }

  // Each lane's label, then its rows. The arrows need room between the CPU and the GPU.
  void place_lanes() {
    bool was_gpu = layout_.lanes.front().is_gpu;
    for (const Lane& lane : layout_.lanes) {
      if (lane.is_gpu && !was_gpu && !layout_.arrows.empty()) y_ += kArrowBand - kLaneGap + 4;
      was_gpu = lane.is_gpu;
      y_ += kLaneLabelHeight;
      lane_y_.push_back(y_);
      y_ += kRowHeight * static_cast<double>(lane.rows.size()) + kLaneGap;
    }
  }

  [[nodiscard]] double row_y(std::size_t lane, std::size_t row) const {
    return lane_y_[lane] + kRowHeight * static_cast<double>(row);
  }

  void write_lane_backgrounds() {
    for (std::size_t i = 0; i < layout_.lanes.size(); ++i)
      add("<rect class=\"l\" x=\"{}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n", kMargin,
          lane_y_[i] - 1, plot_width(),
          kRowHeight * static_cast<double>(layout_.lanes[i].rows.size()) + 1);
  }

  void write_axis(double top) {
    const double from = microseconds(range_.from_ns);
    const double span = microseconds(range_.to_ns) - from;
    const Unit unit = axis_unit(span);
    const double step = tick_step(span, plot_width() / kTickDistance);
    const int decimals =
        std::max(0, static_cast<int>(-std::floor(std::log10(step / unit.us) + 1e-9)));
    const double first = std::ceil(from / step - 1e-9);
    for (int i = 0; (first + i) * step <= from + span; ++i) {
      const double time = (first + i) * step;
      const double x = kMargin + (time - from) / span * plot_width();
      add("<path class=\"g\" d=\"M{0:.1f} {1:.0f}V{2:.0f}\"/>", x, top + kLineHeight,
          y_ - kLaneGap);
      const std::string label = fmt::format("{:.{}f}{}", time / unit.us + 0.0, decimals, unit.name);
      const double half = kTextCharWidth * static_cast<double>(label.size()) / 2;
      add("<text class=\"m e\" x=\"{:.1f}\" y=\"{:.0f}\">{}</text>\n",
          std::clamp(x, kMargin + half, width_ - kMargin - half), top + 12, label);
    }
  }

  void write_boxes() {
    for (std::size_t lane = 0; lane < layout_.lanes.size(); ++lane) {
      for (std::size_t row = 0; row < layout_.lanes[lane].rows.size(); ++row) {
        const Box* before = nullptr;
        for (const Box& box : layout_.lanes[lane].rows[row]) {
          if (before && layout_.lanes[lane].is_gpu) write_gap(*before, box, row_y(lane, row));
          write_box(box, row_y(lane, row));
          before = &box;
        }
      }
    }
  }

  void write_box(const Box& box, double y) {
    // A hair of background between neighbours, as long as there is something to take it from.
    const double width = box.width > 3 ? box.width - 0.7 : std::max(box.width, 1.0);
    add("<g class=\"b {}{}\"><title>{}</title><rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" "
        "height=\"{}\"/>",
        style_of(box.kind).css_class, box.is_subject ? "" : " f", xml_text(tooltip(box)),
        kMargin + box.x, y, width, kBoxHeight);
    write_label(box, width, kMargin + box.x + 3, y + 13);
    add("</g>\n");
  }

  // The name, and the duration where there is room for both.
  void write_label(const Box& box, double width, double x, double y) {
    const auto room = static_cast<std::size_t>(std::max(0.0, (width - 5) / kBoxCharWidth));
    std::string name = label(box);
    constexpr std::string_view kAten = "aten::";
    if (length(name) > room && name.starts_with(kAten)) name.erase(0, kAten.size());
    constexpr std::size_t kLeast = 4;  // less of a name says nothing, and a cut number is wrong
    if (length(name) > room && (room < kLeast || box.count > 1)) return;
    add("<text x=\"{:.1f}\" y=\"{:.0f}\">{}", x, y, xml_text(clipped(name, room)));
    const std::string time = time_text(static_cast<double>(box.total_ns) / 1000);
    if (length(name) + 1 + time.size() <= room)
      add("<tspan class=\"d\" dx=\"{}\">{}</tspan>", kBoxCharWidth, time);
    add("</text>");
  }

  [[nodiscard]] std::string label(const Box& box) const {
    if (box.count > 1) return fmt::format("{}×", box.count);
    const trace::Event& event = trace_.events[box.event];
    return short_name(event.category, trace_.name(event));
  }

  [[nodiscard]] std::string tooltip(const Box& box) const {
    const trace::Event& event = trace_.events[box.event];
    const std::string name = clipped(trace_.name(event), kMostNameLength);
    const std::string time = time_text(static_cast<double>(event.duration_ns) / 1000);
    const std::string start = time_text(microseconds(box.from_ns));
    if (box.count == 1) return fmt::format("{}\n{}, from {}", name, time, start);
    return fmt::format("{} events, {} in all, from {} to {}\nthe longest, {}: {}", box.count,
                       time_text(static_cast<double>(box.total_ns) / 1000), start,
                       time_text(microseconds(box.to_ns)), time, name);
  }

  // What lies between two operations of a stream is as telling as they are.
  void write_gap(const Box& before, const Box& after, double y) {
    if (after.from_ns <= before.to_ns || before.kind == Kind::annotation) return;
    const std::string text = fmt::format(
        "gap {}",
        time_text(static_cast<double>(trace::wrapping_subtract(after.from_ns, before.to_ns)) /
                  1000));
    const double left = before.x + before.width;
    if ((after.x - left - 6) / kBoxCharWidth < static_cast<double>(text.size())) return;
    add("<g class=\"b\"><text class=\"m e\" x=\"{:.1f}\" y=\"{:.0f}\">{}</text></g>\n",
        kMargin + (left + after.x) / 2, y + 13, text);
  }

  // Straight down from the call, across in the band above the first GPU lane, straight down again.
  void write_arrows() {
    constexpr std::size_t kMany = 30;  // drawn thinner, so that the boxes can be seen
    add("<g class=\"{}\">\n", layout_.arrows.size() > kMany ? "n" : "");
    for (const Arrow& arrow : layout_.arrows) {
      std::size_t first_gpu = arrow.to_lane;
      while (first_gpu > 0 && layout_.lanes[first_gpu - 1].is_gpu) --first_gpu;
      const double bottom = lane_y_[first_gpu] - kLaneLabelHeight;
      const double top = bottom - kArrowBand;
      add("<path class=\"a\" marker-end=\"url(#tf-head)\" d=\"M{0:.1f} {1:.0f}V{2:.0f}C{0:.1f} "
          "{3:.0f} {4:.1f} {3:.0f} {4:.1f} {5:.0f}V{6:.0f}\"/>\n",
          kMargin + arrow.from_x, row_y(arrow.from_lane, arrow.from_row) + kBoxHeight, top,
          (top + bottom) / 2, kMargin + arrow.to_x + 0.5, bottom - 2,
          row_y(arrow.to_lane, arrow.to_row));
    }
    add("</g>\n");
  }

  void write_lane_labels() {
    for (std::size_t i = 0; i < layout_.lanes.size(); ++i)
      add("<text class=\"h k\" x=\"{}\" y=\"{:.0f}\">{}</text>\n", kMargin, lane_y_[i] - 6,
          xml_text(clipped(layout_.lanes[i].label, line_length())));
  }

  void write_legend() {
    std::array<bool, kKinds> is_used{};
    bool has_faded = false;
    for (const Lane& lane : layout_.lanes)
      for (const std::vector<Box>& row : lane.rows)
        for (const Box& box : row) {
          is_used[static_cast<std::size_t>(box.kind)] = true;
          has_faded |= !box.is_subject;
        }
    double x = kMargin;
    y_ += 6;
    const auto entry = [&](std::string_view words, const auto& write_sample) {
      const double width = 18 + kTextCharWidth * static_cast<double>(words.size()) + 14;
      if (x + width > width_ - kMargin + 14 && x > kMargin) {
        x = kMargin;
        y_ += kLineHeight;
      }
      write_sample();
      add("<text x=\"{:.1f}\" y=\"{:.0f}\">{}</text>\n", x + 18, y_ + 10, words);
      x += width;
    };
    for (std::size_t i = 0; i < is_used.size(); ++i) {
      if (!is_used[i]) continue;
      const auto kind = static_cast<Kind>(i);
      entry(style_of(kind).words, [&] {
        add("<g class=\"{}\"><rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"13\" height=\"12\"/></g>",
            style_of(kind).css_class, x, y_);
      });
    }
    if (has_faded)
      entry("faded: of other steps", [&] {
        add("<g class=\"op f\"><rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"13\" height=\"12\"/></g>", x,
            y_);
      });
    if (!layout_.arrows.empty())
      entry("launch", [&] {
        add("<path class=\"a\" marker-end=\"url(#tf-head)\" d=\"M{:.1f} {:.0f}h13\"/>", x, y_ + 6);
      });
    y_ += kLineHeight + 2;
  }

  void write_notes() {
    for (const std::string& note : layout_.notes) {
      for (const std::string& line : wrapped(note, line_length())) {
        add("<text class=\"m\" x=\"{}\" y=\"{:.0f}\">{}</text>\n", kMargin, y_ + 10,
            xml_text(line));
        y_ += kLineHeight;
      }
    }
  }

  const trace::Trace& trace_;
  const FigureRange& range_;
  const Layout& layout_;
  const int width_;
  double y_ = 0;  // where the next thing goes
  std::vector<double> lane_y_;
  std::string body_;
};

}  // namespace

std::string figure(const trace::Trace& trace, const FigureOptions& options) {
  const Launches launches(trace);
  const bool has_range = options.from_us || options.to_us;
  const auto step = has_range ? std::nullopt : step_event(trace, options.step);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const FigureRange range = step ? step_range(trace, *step, launches)
                                 : time_range(trace, options.from_us.value_or(-kInfinity),
                                              options.to_us.value_or(kInfinity));
  const Layout layout = lay_out(trace, launches, range, options.width - 2 * kMargin);
  if (layout.lanes.empty()) throw RangeError("nothing in that range: no event lies there");
  return Writer(trace, range, layout, options.width).result();
}

}  // namespace explain
