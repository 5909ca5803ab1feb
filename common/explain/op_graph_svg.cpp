// SPDX-License-Identifier: Apache-2.0
#include "explain/op_graph_svg.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "explain/figure_style.h"
#include "explain/figure_text.h"
#include "explain/op_graph_layout.h"
#include "explain/op_graph_text.h"

namespace explain {
namespace {

// All in px. Everything but title and legend is set in a fixed-width font, so that it can be
// measured.
constexpr double kMargin = 12;
constexpr double kCharWidth = 6.65;
constexpr double kTextCharWidth = 6.2;
constexpr double kLineHeight = 14;
constexpr double kPadding = 6;
constexpr double kTitleHeight = 26;
constexpr double kLegendHeight = 24;
constexpr double kLeastWidth = 460;  // of the legend
constexpr std::size_t kMostLength = 44;
constexpr std::size_t kMostTitleLength = 60;
constexpr std::size_t kMostTooltipLength = 2000;

double text_width(const std::vector<std::string>& lines) {
  std::size_t most = 0;
  for (const std::string& line : lines) most = std::max(most, length(line));
  return kCharWidth * static_cast<double>(most);
}

// The name, and below it what there is to say.
std::vector<std::string> lines_of(const OpGraph::Node& node) {
  std::vector<std::string> lines{node.name};
  if (node.kind == OpGraph::Kind::op) lines[0] = fmt::format("{} #{}", node.name, node.call);
  for (std::string& note : node_notes(node)) lines.push_back(std::move(note));
  for (std::string& line : lines) line = clipped(line, kMostLength);
  return lines;
}

// "[8, 16, 64]" above "bf16 16.00 KiB".
std::vector<std::string> lines_of(const OpGraph::Edge& edge) {
  const std::size_t end = edge.tensor.find("] ") + 1;
  return {clipped(edge.tensor.substr(0, end), kMostLength),
          clipped(edge.tensor.substr(end + 1), kMostLength)};
}

Kind kind_of(const OpGraph::Node& node) {
  if (node.kind != OpGraph::Kind::op) return Kind::annotation;
  return node.is_copy ? Kind::memcpy : Kind::op;
}

class Writer {
 public:
  explicit Writer(const OpGraph& graph) : graph_(graph) {
    std::vector<GraphSize> boxes;
    std::vector<GraphLine> lines;
    for (const OpGraph::Node& node : graph.nodes) {
      const std::vector<std::string> text = lines_of(node);
      boxes.push_back({text_width(text) + 2 * kPadding,
                       kLineHeight * static_cast<double>(text.size()) + kPadding});
    }
    for (const OpGraph::Edge& edge : graph.edges)
      lines.push_back({edge.from, edge.to, text_width(lines_of(edge))});
    if (graph.nodes.size() <= kMostGraphNodes) places_ = lay_out_graph(boxes, lines);
    if (places_.boxes.empty()) refuse();
    width_ = std::max(places_.width, kLeastWidth) + 2 * kMargin;
    left_ = (width_ - places_.width) / 2;
    for (std::size_t i = 0; i < places_.lines.size(); ++i) write_line(i);
    for (std::size_t i = 0; i < boxes.size(); ++i) write_box(i, boxes[i]);
    write_legend();
  }

  [[nodiscard]] std::string result() const {
    const double height = kTitleHeight + places_.height + kLegendHeight + 2 * kMargin;
    const std::string title = xml_text(title_text());
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tf\" width=\"{0:.0f}\" "
               "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" "
               "aria-label=\"{2}\">\n{3}"
               "<defs><marker id=\"tf-head\" viewBox=\"0 0 6 6\" refX=\"5\" refY=\"3\" "
               "markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\">"
               "<path class=\"ah\" d=\"M0 0L6 3L0 6Z\"/></marker></defs>\n"
               "<rect class=\"bg\" width=\"{0:.0f}\" height=\"{1:.0f}\" rx=\"6\"/>\n"
               "<text class=\"t\" x=\"{4}\" y=\"{5}\">{2}</text>\n",
               width_, height, title, figure_style(), kMargin, kMargin + 11) +
           body_ + "</svg>\n";
  }

 private:
  template <typename... T>
  void add(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(body_), format, std::forward<T>(values)...);
  }
  [[nodiscard]] double x(double of_graph) const { return left_ + of_graph; }
  [[nodiscard]] static double y(double of_graph) { return kMargin + kTitleHeight + of_graph; }

  [[nodiscard]] std::size_t count(OpGraph::Kind kind) const {
    return static_cast<std::size_t>(
        std::count_if(graph_.nodes.begin(), graph_.nodes.end(),
                      [&](const OpGraph::Node& node) { return node.kind == kind; }));
  }

  [[noreturn]] void refuse() const {
    const std::string labels = graph_.labels.empty()
                                   ? "the name of an op that calls others"
                                   : fmt::format("one of {}", fmt::join(graph_.labels, ", "));
    throw RangeError(
        fmt::format("{} ops and {} tensors are too many for a figure: narrow it by --label with "
                    "{}, or take --format dot",
                    count(OpGraph::Kind::op), graph_.edges.size(), labels));
  }

  [[nodiscard]] std::string title_text() const {
    const auto counted = [&](OpGraph::Kind kind, std::string_view word) {
      const std::size_t number = count(kind);
      return fmt::format("{} {}{}", number, word, number == 1 ? "" : "s");
    };
    return fmt::format("{}{}, {}, {}",
                       graph_.title.empty() ? "" : clipped(graph_.title, kMostTitleLength) + ": ",
                       counted(OpGraph::Kind::op, "op"), counted(OpGraph::Kind::input, "input"),
                       counted(OpGraph::Kind::output, "output"));
  }

  void write_text(const std::vector<std::string>& lines, double middle, double top) {
    for (std::size_t i = 0; i < lines.size(); ++i)
      add("<text class=\"e{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", i == 0 ? "" : " d", middle,
          top + kLineHeight * (static_cast<double>(i) + 1) - 3, xml_text(lines[i]));
  }

  void write_box(std::size_t index, const GraphSize& size) {
    const OpGraph::Node& node = graph_.nodes[index];
    const double middle = x(places_.boxes[index].x), top = y(places_.boxes[index].y);
    std::string tooltip = full_name(node);
    if (!node.with.empty()) tooltip += "\nwith " + node.with;
    if (node.in_place) tooltip += "\nin place";
    add("<g class=\"b {}\"><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\" rx=\"{}\"/>",
        style_of(kind_of(node)).css_class, xml_text(clipped(tooltip, kMostTooltipLength)),
        middle - size.width / 2, top, size.width, size.height,
        node.kind == OpGraph::Kind::op ? 3 : 9);
    write_text(lines_of(node), middle, top + kPadding / 2);
    add("</g>\n");
  }

  // Straight through a row, bent between two; interrupted where its label stands.
  void write_line(std::size_t index) {
    const GraphPlaces::Line& line = places_.lines[index];
    const OpGraph::Edge& edge = graph_.edges[index];
    add("<g class=\"b\"><title>{}</title>", xml_text(clipped(edge.tensor, kMostTooltipLength)));
    const std::size_t label = line.down.size() - 3;  // its upper end; the lower one follows
    write_path(line, 0, label, false);
    write_path(line, label + 1, line.down.size() - 1, true);
    write_text(lines_of(edge), x(line.label.x), y(line.label.y));
    add("</g>\n");
  }

  void write_path(const GraphPlaces::Line& line, std::size_t first, std::size_t last,
                  bool has_head) {
    add("<path class=\"a\"{} d=\"M{:.1f} {:.1f}", has_head ? " marker-end=\"url(#tf-head)\"" : "",
        x(line.down[first].x), y(line.down[first].y));
    for (std::size_t i = first + 1; i <= last; ++i) {
      const auto& from = line.down[i - 1];
      const auto& to = line.down[i];
      if (from.x == to.x) {
        add("V{:.1f}", y(to.y));
      } else {
        const double middle = y((from.y + to.y) / 2);
        add("C{0:.1f} {1:.1f} {2:.1f} {1:.1f} {2:.1f} {3:.1f}", x(from.x), middle, x(to.x),
            y(to.y));
      }
    }
    add("\"/>");
  }

  void write_legend() {
    struct Entry {
      Kind kind;
      std::string_view words;
    };
    constexpr std::array<Entry, 3> kEntries = {
        {{Kind::op, "op, # in order of calls"},
         {Kind::memcpy, "copy"},
         {Kind::annotation, "given to the step, or not read in it"}}};
    double left = kMargin;
    const double top = y(places_.height) + 10;
    for (const auto& [kind, words] : kEntries) {
      const auto is_of_kind = [wanted = kind](const auto& node) { return kind_of(node) == wanted; };
      if (std::none_of(graph_.nodes.begin(), graph_.nodes.end(), is_of_kind)) continue;
      add("<g class=\"{}\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"13\" height=\"12\"/></g>"
          "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
          style_of(kind).css_class, left, top, left + 18, top + 10, words);
      left += 32 + kTextCharWidth * static_cast<double>(words.size());
    }
  }

  const OpGraph& graph_;
  GraphPlaces places_;
  double width_ = 0, left_ = 0;
  std::string body_;
};

}  // namespace

std::string op_graph_svg(const OpGraph& graph) {
  return Writer(graph).result();
}

}  // namespace explain
