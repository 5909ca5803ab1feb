// SPDX-License-Identifier: Apache-2.0
#include "explain/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "explain/figure_style.h"
#include "explain/figure_text.h"
#include "explain/plot_axis.h"
#include "explain/plot_lines.h"
#include "explain/plot_style.h"

namespace explain {
namespace {

// All in px.
constexpr double kMargin = 12;
constexpr double kPlotHeight = 320;
constexpr double kLineHeight = 17;
constexpr double kLabelHeight = 14;
constexpr double kTextCharWidth = 6.2;
constexpr double kBoldCharWidth = 7;
constexpr double kTitleCharWidth = 7.6;
constexpr double kMarkerRoom = 22;  // a marker before its line's name
constexpr double kInset = 12;       // of the outer points from the frame

std::string x_text(double x) {
  return fmt::format("{:.12g}", x);
}

class Writer {
 public:
  Writer(const Sweep& sweep, const PlotLines& lines, const PlotOptions& options)
      : sweep_(sweep), plot_(lines), width_(options.width) {
    write_titles();
    lay_out();
    write_grid();
    write_limit();
    write_crosses();
    for (std::size_t i = 0; i < plot_.lines.size(); ++i) write_line(i);
    write_guides();  // their names stand on the lines
    if (has_end_labels_) write_end_labels();
    y_ = bottom() + 2;
    write_x_ticks();
    if (!has_end_labels_) write_legend();
    write_notes();
  }

  [[nodiscard]] std::string result() const {
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tf\" width=\"{0}\" "
               "height=\"{1:.0f}\" viewBox=\"0 0 {0} {1:.0f}\" role=\"img\" aria-label=\"{2}\">\n"
               "<desc>{3}</desc>\n{4}{5}"
               "<rect class=\"bg\" width=\"{0}\" height=\"{1:.0f}\" rx=\"6\"/>\n",
               width_, y_ + kMargin - 6, xml_text(title()), xml_text(description()), figure_style(),
               plot_style()) +
           body_ + "</svg>\n";
  }

 private:
  template <typename... T>
  void add(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(body_), format, std::forward<T>(values)...);
  }

  [[nodiscard]] double bottom() const { return top_ + kPlotHeight; }
  [[nodiscard]] double x(double value) const {
    return left_ + kInset + plot_.x.place(value) * (right_ - left_ - 2 * kInset);
  }
  [[nodiscard]] double y(double value) const {
    return bottom() - plot_.y.place(value) * kPlotHeight;
  }
  [[nodiscard]] std::string amount(double value) const {
    return amount_text(value, plot_.quantity.unit);
  }
  [[nodiscard]] std::string title() const { return sweep_.chapter + ": " + plot_.quantity.title; }

  // The figures themselves, for who cannot see the lines.
  [[nodiscard]] std::string description() const {
    std::string text;
    for (const PlotLine& line : plot_.lines) {
      text += fmt::format("{}{}:", text.empty() ? "" : "; ", line.name);
      for (const PlotPoint& point : line.points)
        text += fmt::format(" {} {} {},", sweep_.x, x_text(point.x),
                            point.y ? amount(*point.y) : point.reason);
      text.pop_back();
    }
    return text;
  }

  void write_wrapped(std::string_view css, const std::string& text, double char_width) {
    const auto room = static_cast<std::size_t>((width_ - 2 * kMargin) / char_width);
    for (const std::string& line : wrapped(text, room)) {
      add("<text class=\"{}\" x=\"{}\" y=\"{:.0f}\">{}</text>\n", css, kMargin, y_ + 10,
          xml_text(clipped(line, room)));
      y_ += kLineHeight;
    }
  }

  void write_titles() {
    y_ = kMargin;
    write_wrapped("t", title(), kTitleCharWidth);
    std::string facts = sweep_.title;
    for (const SweepFact& fact : sweep_.facts) facts += "; " + fact.value;
    write_wrapped("m", facts, kTextCharWidth);
    y_ += 4;
  }

  // Names stand at the lines' ends where that leaves enough of the width for the lines.
  void lay_out() {
    constexpr double kMostOfWidth = 0.3;
    std::size_t longest = 0, names = 0, tick = 0;
    for (const PlotLine& line : plot_.lines) {
      longest = std::max(longest, length(line.name));
      names += line.last() ? 1 : 0;
    }
    y_ticks_ = plot_.y.ticks(plot_.quantity.unit, 8);
    for (const double value : y_ticks_) tick = std::max(tick, length(amount(value)));
    const double room = kMarkerRoom + 8 + kTextCharWidth * static_cast<double>(longest);
    has_end_labels_ =
        room <= kMostOfWidth * width_ && static_cast<double>(names) * kLabelHeight <= kPlotHeight;
    left_ = kMargin + 8 + kTextCharWidth * std::min(16.0, static_cast<double>(tick));
    right_ = width_ - kMargin - (has_end_labels_ ? room : 0);
    first_row_ = y_ + 4;
    std::size_t rows = 0;
    for (const PlotLine& line : plot_.lines) rows += line.first_missing() ? 1 : 0;
    top_ = first_row_ + kLineHeight * static_cast<double>(rows);
  }

  void write_grid() {
    add("<rect class=\"l\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n", left_,
        first_row_ - 4, right_ - left_, bottom() - first_row_ + 4);
    for (const double value : y_ticks_) {
      add("<path class=\"g\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>", left_, y(value), right_);
      add("<text class=\"m\" text-anchor=\"end\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left_ - 6,
          y(value) + 4, xml_text(amount(value)));
    }
  }

  void write_limit() {
    if (!plot_.is_limit_shown) return;
    const double at = y(plot_.quantity.limit->value);
    add("<path class=\"a li\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>", left_, at, right_);
    add("<text class=\"h k\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left_ + 6, at + 15,
        xml_text(clipped(limit_text(), room(left_, right_, kBoldCharWidth))));
  }

  [[nodiscard]] std::string limit_text() const {
    const SweepLimit& limit = *plot_.quantity.limit;
    return fmt::format("{}: {}", limit.label, amount(limit.value));
  }

  [[nodiscard]] static std::size_t room(double from, double to, double char_width) {
    return static_cast<std::size_t>(std::max(0.0, (to - from - 12) / char_width));
  }

  // From the same place at the lower left, so that only their slopes differ. Each ends at the
  // frame.
  void write_guides() {
    if (!plot_.has_guides) return;
    const PlotRange &xs = plot_.x.range(), &ys = plot_.y.range();
    const double start = ys.from * 1.15;
    for (const int slope : {1, 2}) {
      const auto height = [&](double at) { return start * std::pow(at / xs.from, slope); };
      const double end = std::min(xs.to, xs.from * std::pow(ys.to / start, 1.0 / slope));
      const double label = xs.from * std::pow(end / xs.from, 0.85);
      add("<path class=\"a gu\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>", x(xs.from), y(start), x(end),
          y(height(end)));
      add("<text class=\"m k\" x=\"{:.1f}\" y=\"{:.1f}\">as {}{}</text>\n", x(label) + 6,
          std::min(bottom() - 4, y(height(label)) + 12), xml_text(clipped(sweep_.x, 12)),
          slope == 2 ? "²" : "");
    }
  }

  // A row above the plot for each line that did not run everywhere, with its first reason in words.
  void write_crosses() {
    double at = first_row_ + 5;
    for (std::size_t i = 0; i < plot_.lines.size(); ++i) {
      const PlotLine& line = plot_.lines[i];
      const PlotPoint* first = line.first_missing();
      if (first == nullptr) continue;
      double last = 0;
      for (const PlotPoint& point : line.points) {
        if (point.y) continue;
        last = x(point.x);
        add("<g class=\"s s{} x\"><title>{}</title><path "
            "d=\"M{:.1f} {:.1f}l8 8m0-8l-8 8\"/></g>",
            colour_of(i), xml_text(point_text(line, point)), last - 4, at - 4);
      }
      write_reason(fmt::format("{}: {}", line.name, first->reason), x(first->x) - 8, last + 8,
                   at + 4);
      at += kLineHeight;
    }
  }

  // Where there is more room: before the first cross or behind the last one.
  void write_reason(const std::string& text, double before, double behind, double at) {
    const bool is_before = before - left_ > right_ - behind;
    const std::size_t most =
        is_before ? room(left_, before, kTextCharWidth) : room(behind, right_, kTextCharWidth);
    add("<text{} x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", is_before ? " text-anchor=\"end\"" : "",
        is_before ? before : behind, at, xml_text(clipped(text, most)));
  }

  [[nodiscard]] std::string point_text(const PlotLine& line, const PlotPoint& point) const {
    return fmt::format("{}, {} = {}: {}", line.name, sweep_.x, x_text(point.x),
                       point.y ? amount(*point.y) : point.reason);
  }

  // Interrupted where a size did not run.
  void write_line(std::size_t i) {
    const PlotLine& line = plot_.lines[i];
    std::string path, markers;
    bool is_down = false;
    for (const PlotPoint& point : line.points) {
      if (point.y) {
        path += fmt::format("{}{:.1f} {:.1f}", is_down ? 'L' : 'M', x(point.x), y(*point.y));
        markers += fmt::format(
            "<g transform=\"translate({:.1f} {:.1f})\"><title>{}</title><path d=\"{}\"/></g>",
            x(point.x), y(*point.y), xml_text(point_text(line, point)), marker_of(i));
      }
      is_down = point.y.has_value();
    }
    if (!path.empty())
      add("<g class=\"s s{}\"><path d=\"{}\"/>{}</g>\n", colour_of(i), path, markers);
  }

  struct EndLabel {
    std::size_t line;
    double x, y;   // where the line ends
    double place;  // y of the label
  };

  // In the order of the lines' ends, pushed apart downwards, and up again from the plot's bottom.
  [[nodiscard]] std::vector<EndLabel> end_labels() const {
    std::vector<EndLabel> labels;
    for (std::size_t i = 0; i < plot_.lines.size(); ++i)
      if (const PlotPoint* last = plot_.lines[i].last())
        labels.push_back({i, x(last->x), y(*last->y), y(*last->y)});
    std::stable_sort(labels.begin(), labels.end(),
                     [](const EndLabel& a, const EndLabel& b) { return a.y < b.y; });
    for (std::size_t i = 1; i < labels.size(); ++i)
      labels[i].place = std::max(labels[i].place, labels[i - 1].place + kLabelHeight);
    double lowest = bottom() - 6;
    for (std::size_t i = labels.size(); i-- > 0; lowest -= kLabelHeight) {
      lowest = std::min(lowest, labels[i].place);
      labels[i].place = lowest;
    }
    return labels;
  }

  void write_end_labels() {
    for (const EndLabel& label : end_labels()) {
      add("<path class=\"a le\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>", label.x + 7, label.y,
          right_ + 8, label.place);
      write_name(label.line, right_ + 16, label.place);
    }
  }

  void write_name(std::size_t line, double at_x, double at_y) {
    add("<g class=\"s s{}\"><path transform=\"translate({:.1f} {:.1f})\" d=\"{}\"/></g>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        colour_of(line), at_x, at_y, marker_of(line), at_x + 9, at_y + 4,
        xml_text(clipped(plot_.lines[line].name, room(0, width_ - at_x, kTextCharWidth))));
  }

  // At what was measured, as far as the texts leave each other room.
  void write_x_ticks() {
    const std::string name = clipped(sweep_.x, 12);
    add("<text class=\"h\" text-anchor=\"end\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", left_ - 14,
        y_ + 12, xml_text(name));
    double free = left_ - 8;
    for (const double value : plot_.x_values) {
      const std::string text = x_text(value);
      const double half = kTextCharWidth * static_cast<double>(text.size()) / 2;
      if (x(value) - half < free) continue;
      free = x(value) + half + 8;
      add("<path class=\"g\" d=\"M{0:.1f} {1:.1f}v5\"/>"
          "<text class=\"m e\" x=\"{0:.1f}\" y=\"{2:.1f}\">{3}</text>\n",
          x(value), bottom(), y_ + 12, text);
    }
    y_ += kLineHeight + 4;
  }

  void write_legend() {
    double at = kMargin + 6;
    for (std::size_t i = 0; i < plot_.lines.size(); ++i) {
      const double width =
          kMarkerRoom + 8 + kTextCharWidth * static_cast<double>(length(plot_.lines[i].name));
      if (at + width > width_ - kMargin && at > kMargin + 6) {
        at = kMargin + 6;
        y_ += kLineHeight;
      }
      write_name(i, at, y_ + 6);
      at += width;
    }
    y_ += kLineHeight + 2;
  }

  void write_notes() {
    if (plot_.quantity.limit && !plot_.is_limit_shown)
      write_wrapped("m", fmt::format("Above the plot: {}.", limit_text()), kTextCharWidth);
  }

  const Sweep& sweep_;
  const PlotLines& plot_;
  const int width_;
  std::vector<double> y_ticks_;
  bool has_end_labels_ = false;
  double left_ = 0, right_ = 0;     // of the plot
  double first_row_ = 0, top_ = 0;  // of the crosses' rows, and of the plot below them
  double y_ = 0;                    // where the next thing goes
  std::string body_;
};

}  // namespace

std::string plot_svg(const Sweep& sweep, const PlotOptions& options) {
  return Writer(sweep, plot_lines(sweep, options.quantity, options.is_linear), options).result();
}

}  // namespace explain
