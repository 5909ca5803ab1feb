// SPDX-License-Identifier: Apache-2.0
#include "explain/plot_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "explain/steps.h"
#include "trace/printable.h"

namespace explain {
namespace {

std::size_t index_of(const Sweep& sweep, std::string_view key) {
  if (key.empty()) return 0;
  std::string known;
  for (std::size_t i = 0; i < sweep.quantities.size(); ++i) {
    const SweepQuantity& quantity = sweep.quantities[i];
    if (quantity.key == key) return i;
    known += fmt::format("{}{} ({})", i == 0 ? "" : ", ", quantity.key, quantity.title);
  }
  throw RangeError(fmt::format("the sweep has no quantity {}: choose one by --quantity: {}",
                               trace::printable(key), trace::printable(known)));
}

std::vector<PlotLine> lines_of(const Sweep& sweep, std::size_t quantity) {
  std::vector<PlotLine> lines;
  std::map<std::string_view, std::size_t> places;
  for (const SweepRow& row : sweep.rows) {
    const auto [place, is_new] = places.emplace(row.line, lines.size());
    if (is_new) lines.push_back({trace::printable(row.line), {}});
    const auto value = quantity < row.values.size() ? row.values[quantity] : std::nullopt;
    lines[place->second].points.push_back({row.x, value, trace::printable(row.reason)});
  }
  for (PlotLine& line : lines)
    std::stable_sort(line.points.begin(), line.points.end(),
                     [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
  return lines;
}

struct Extent {
  PlotRange x{1e300, 0}, y{1e300, 0};
  bool has_missing = false;
};

Extent extent_of(const std::vector<PlotLine>& lines) {
  const auto widen = [](PlotRange& range, double value) {
    range = {std::min(range.from, value), std::max(range.to, value)};
  };
  Extent extent;
  for (const PlotLine& line : lines) {
    for (const PlotPoint& point : line.points) {
      widen(extent.x, point.x);
      if (point.y) widen(extent.y, *point.y);
      extent.has_missing |= !point.y;
    }
  }
  if (extent.y.from > extent.y.to) extent.y = {1, 1};  // nothing ran
  return extent;
}

// A guide's slope says nothing of what stays or falls.
bool grows(const std::vector<PlotLine>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const PlotLine& line) {
    const PlotPoint* last = line.last();
    return last != nullptr && line.points.front().y && last->x >= 2 * line.points.front().x &&
           *last->y >= 2 * *line.points.front().y;
  });
}

// A limit far above all that was measured would press the lines flat.
bool is_near(const std::optional<SweepLimit>& limit, const Extent& extent, bool is_log) {
  if (!limit || limit->value <= 0) return false;
  return extent.has_missing || limit->value <= extent.y.to * (is_log ? 16 : 2);
}

// With room above the highest and below the lowest, more where the guides begin.
PlotRange with_room(const PlotRange& range, bool is_log, bool has_guides) {
  if (is_log) return {range.from / (has_guides ? 2 : 1.25), range.to * 1.25};
  return {0, range.to > 0 ? range.to * 1.08 : 1};
}

std::vector<double> x_values(const std::vector<PlotLine>& lines) {
  std::set<double> values;
  for (const PlotLine& line : lines)
    for (const PlotPoint& point : line.points) values.insert(point.x);
  return {values.begin(), values.end()};
}

}  // namespace

const PlotPoint* PlotLine::last() const {
  const auto found = std::find_if(points.rbegin(), points.rend(),
                                  [](const PlotPoint& point) { return point.y.has_value(); });
  return found == points.rend() ? nullptr : &*found;
}

const PlotPoint* PlotLine::first_missing() const {
  const auto found =
      std::find_if(points.begin(), points.end(), [](const PlotPoint& point) { return !point.y; });
  return found == points.end() ? nullptr : &*found;
}

PlotLines plot_lines(const Sweep& sweep, std::string_view key, bool is_linear) {
  const std::size_t index = index_of(sweep, key);
  const SweepQuantity& quantity = sweep.quantities[index];
  std::vector<PlotLine> lines = lines_of(sweep, index);
  Extent extent = extent_of(lines);
  const bool is_x_log = !is_linear && extent.x.from > 0;
  const bool is_y_log = !is_linear && extent.y.from > 0;
  const bool has_guides = is_x_log && is_y_log && grows(lines);
  const bool is_limit_shown = is_near(quantity.limit, extent, is_y_log);
  if (is_limit_shown) extent.y.to = std::max(extent.y.to, quantity.limit->value);
  if (!is_x_log) extent.x.from = 0;
  std::vector<double> xs = x_values(lines);
  return {.quantity = quantity,
          .lines = std::move(lines),
          .x_values = std::move(xs),
          .x = PlotAxis(extent.x, is_x_log),
          .y = PlotAxis(with_room(extent.y, is_y_log, has_guides), is_y_log),
          .is_limit_shown = is_limit_shown,
          .has_guides = has_guides};
}

}  // namespace explain
