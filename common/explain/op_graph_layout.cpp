// SPDX-License-Identifier: Apache-2.0
//
// Sugiyama's method: layers by the longest path, order within a row by the mean place of what it is
// joined to, then the positions that are closest to straight lines.
#include "explain/op_graph_layout.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

namespace explain {
namespace {

constexpr double kItemGap = 14;  // px, between neighbours of a row
constexpr double kRowGap = 20;   // between rows, where lines bend
constexpr double kLineWidth = 4;
constexpr int kOrderSweeps = 16;
constexpr int kPlaceSweeps = 60;
constexpr double kStraight = 8;  // how much more two pieces of a line draw each other

// Something with a place in a row: a box, a label, or a line on its way through.
struct Item {
  std::size_t row = 0;
  double width = kLineWidth;
  bool is_passing = false;  // a line, which is straight rather than close
  double x = 0;             // of its middle
  std::size_t place = 0;
  std::vector<std::size_t> above{}, below{};  // items of the neighbouring rows that it is joined to
};

using Rows = std::vector<std::vector<std::size_t>>;

// Rows of boxes are even: a box is one layer below the lowest that it has a line from, and one that
// has none is as low as it can be.
std::vector<std::size_t> layers_of(std::size_t boxes, const std::vector<GraphLine>& lines) {
  std::vector<std::vector<std::size_t>> readers(boxes);
  std::vector<std::size_t> missing(boxes), layer(boxes), ready;
  for (const GraphLine& line : lines) {
    readers[line.from].push_back(line.to);
    ++missing[line.to];
  }
  const std::vector<std::size_t> sources = missing;
  for (std::size_t i = 0; i < boxes; ++i)
    if (missing[i] == 0) ready.push_back(i);
  for (std::size_t next = 0; next < ready.size(); ++next) {
    for (const std::size_t reader : readers[ready[next]]) {
      layer[reader] = std::max(layer[reader], layer[ready[next]] + 1);
      if (--missing[reader] == 0) ready.push_back(reader);
    }
  }
  for (std::size_t i = 0; i < boxes; ++i) {
    if (sources[i] > 0 || readers[i].empty()) continue;
    std::size_t first = SIZE_MAX;
    for (const std::size_t reader : readers[i]) first = std::min(first, layer[reader]);
    layer[i] = first - 1;
  }
  return layer;
}

// Crossings between two neighbouring rows: pairs of joints in opposite order above and below.
std::size_t crossings(const std::vector<Item>& items, const std::vector<std::size_t>& row,
                      std::size_t places_below) {
  std::vector<std::size_t> seen(places_below + 1);  // a Fenwick tree of the places below
  std::size_t all = 0, result = 0;
  for (const std::size_t item : row) {
    for (const std::size_t below : items[item].below) {
      std::size_t not_right = 0;
      for (std::size_t i = items[below].place + 1; i > 0; i &= i - 1) not_right += seen[i];
      result += all - not_right;
    }
    for (const std::size_t below : items[item].below) {
      for (std::size_t i = items[below].place + 1; i < seen.size(); i += i & (~i + 1)) ++seen[i];
      ++all;
    }
  }
  return result;
}

class Graph {
 public:
  Graph(const std::vector<GraphSize>& boxes, const std::vector<GraphLine>& lines)
      : boxes_(boxes), lines_(lines), layers_(layers_of(boxes.size(), lines)) {}

  [[nodiscard]] bool fits() const {
    std::size_t places = boxes_.size();
    for (const GraphLine& line : lines_) {
      places += 2 * (layers_[line.to] - layers_[line.from]);
      if (places > kMostGraphPlaces) return false;
    }
    return places <= kMostGraphPlaces;
  }

  GraphPlaces lay_out() {
    add_items();
    order();
    place();
    sort_ports();
    return result();
  }

 private:
  void add_item(std::size_t row, double width) {
    if (row >= rows_.size()) rows_.resize(row + 1);
    items_.push_back({.row = row, .width = width, .is_passing = width == kLineWidth});
    rows_[row].push_back(items_.size() - 1);
  }

  void join(std::size_t above, std::size_t below) {
    items_[above].below.push_back(below);
    items_[below].above.push_back(above);
  }

  // The boxes come first, then what each line has between its two: its label last.
  void add_items() {
    for (std::size_t i = 0; i < boxes_.size(); ++i) add_item(2 * layers_[i], boxes_[i].width);
    for (const GraphLine& line : lines_) {
      std::size_t above = line.from;
      first_item_.push_back(items_.size());
      const std::size_t last_row = 2 * layers_[line.to] - 1;
      for (std::size_t row = 2 * layers_[line.from] + 1; row <= last_row; ++row) {
        add_item(row, row == last_row ? line.label_width : kLineWidth);
        join(above, items_.size() - 1);
        above = items_.size() - 1;
      }
      join(above, line.to);
    }
  }

  void number_places() {
    for (const auto& row : rows_)
      for (std::size_t i = 0; i < row.size(); ++i) items_[row[i]].place = i;
  }

  [[nodiscard]] std::size_t all_crossings() const {
    std::size_t sum = 0;
    for (std::size_t row = 0; row + 1 < rows_.size(); ++row)
      sum += crossings(items_, rows_[row], rows_[row + 1].size());
    return sum;
  }

  void sort_row(std::vector<std::size_t>& row, bool by_above) {
    std::vector<double> wanted(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Item& item = items_[row[i]];
      const auto& joined = by_above ? item.above : item.below;
      double sum = 0;
      for (const std::size_t other : joined) sum += static_cast<double>(items_[other].place);
      wanted[i] = joined.empty() ? static_cast<double>(item.place)
                                 : sum / static_cast<double>(joined.size());
    }
    std::stable_sort(row.begin(), row.end(), [&](std::size_t a, std::size_t b) {
      return wanted[items_[a].place] < wanted[items_[b].place];
    });
    for (std::size_t i = 0; i < row.size(); ++i) items_[row[i]].place = i;
  }

  void order() {
    number_places();
    Rows best = rows_;
    std::size_t fewest = all_crossings();
    for (int sweep = 0; sweep < kOrderSweeps && fewest > 0; ++sweep) {
      const bool is_down = sweep % 2 == 0;
      for (std::size_t i = 0; i < rows_.size(); ++i)
        sort_row(rows_[is_down ? i : rows_.size() - 1 - i], is_down);
      const std::size_t now = all_crossings();
      if (now < fewest) {
        fewest = now;
        best = rows_;
      }
    }
    rows_ = std::move(best);
    number_places();
  }

  // The positions nearest to the wanted ones that keep order and distance: neighbours that would
  // be too close become a block, which stands at the mean of what its members want.
  void place_row(const std::vector<std::size_t>& row, const std::vector<double>& wanted) {
    struct Block {
      double sum = 0, weight = 0;
      std::size_t first = 0, count = 0;
      [[nodiscard]] double x() const { return sum / weight; }
    };
    std::vector<double> offset(row.size());  // from the first of the row, all standing close
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) {
        offset[i] =
            offset[i - 1] + kItemGap + (items_[row[i - 1]].width + items_[row[i]].width) / 2;
      }
      const double weight = items_[row[i]].is_passing ? kStraight : 1;
      blocks.push_back(
          {.sum = weight * (wanted[i] - offset[i]), .weight = weight, .first = i, .count = 1});
      while (blocks.size() > 1 && blocks[blocks.size() - 2].x() > blocks.back().x()) {
        const Block last = blocks.back();
        blocks.pop_back();
        blocks.back().sum += last.sum;
        blocks.back().weight += last.weight;
        blocks.back().count += last.count;
      }
    }
    for (const Block& block : blocks)
      for (std::size_t i = block.first; i < block.first + block.count; ++i)
        items_[row[i]].x = block.x() + offset[i];
  }

  void place() {
    for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) {
      const bool is_down = sweep % 2 == 0;
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        const auto& row = rows_[is_down ? i : rows_.size() - 1 - i];
        std::vector<double> wanted;
        for (const std::size_t item : row) wanted.push_back(wanted_x(items_[item], sweep));
        place_row(row, wanted);
      }
    }
  }

  // The mean of what it is joined to: in turn above, below, and at last both.
  [[nodiscard]] double wanted_x(const Item& item, int sweep) const {
    const bool is_last = sweep + 4 >= kPlaceSweeps;
    double sum = 0, weights = 0;
    const auto add = [&](const std::vector<std::size_t>& joined) {
      for (const std::size_t other : joined) {
        const double weight = item.is_passing && items_[other].is_passing ? kStraight : 1;
        sum += weight * items_[other].x;
        weights += weight;
      }
    };
    if (is_last || sweep % 2 == 0) add(item.above);
    if (is_last || sweep % 2 == 1) add(item.below);
    return weights == 0 ? item.x : sum / weights;
  }

  // Where a line meets a box: side by side along its edge, in the order of their other ends.
  [[nodiscard]] double port(std::size_t box, std::size_t other, bool is_above) const {
    const std::vector<std::size_t>& joined = is_above ? items_[box].above : items_[box].below;
    const auto place = std::find(joined.begin(), joined.end(), other) - joined.begin();
    const double share =
        (static_cast<double>(place) + 1) / (static_cast<double>(joined.size()) + 1);
    return items_[box].x + (share - 0.5) * items_[box].width;
  }

  void sort_ports() {
    const auto is_left = [&](std::size_t a, std::size_t b) {
      return items_[a].place < items_[b].place;
    };
    for (std::size_t i = 0; i < boxes_.size(); ++i) {
      std::sort(items_[i].above.begin(), items_[i].above.end(), is_left);
      std::sort(items_[i].below.begin(), items_[i].below.end(), is_left);
    }
  }

  [[nodiscard]] GraphPlaces result() {
    GraphPlaces places;
    double left = std::numeric_limits<double>::max(), right = -left;
    for (const Item& item : items_) {
      left = std::min(left, item.x - item.width / 2);
      right = std::max(right, item.x + item.width / 2);
    }
    for (Item& item : items_) item.x -= left;
    places.width = right - left;

    std::vector<double> height(rows_.size()), top(rows_.size());
    for (std::size_t row = 1; row < rows_.size(); row += 2) height[row] = kGraphLabelHeight;
    for (std::size_t i = 0; i < boxes_.size(); ++i)
      height[items_[i].row] = std::max(height[items_[i].row], boxes_[i].height);
    for (std::size_t row = 1; row < rows_.size(); ++row)
      top[row] = top[row - 1] + height[row - 1] + kRowGap;
    places.height = top.back() + height.back();

    for (std::size_t i = 0; i < boxes_.size(); ++i)
      places.boxes.push_back({items_[i].x, top[items_[i].row]});
    for (std::size_t i = 0; i < lines_.size(); ++i) places.lines.push_back(line_of(i, top, height));
    return places;
  }

  [[nodiscard]] GraphPlaces::Line line_of(std::size_t index, const std::vector<double>& top,
                                          const std::vector<double>& height) const {
    const GraphLine& line = lines_[index];
    const std::size_t first = first_item_[index];
    const std::size_t last = first + 2 * (layers_[line.to] - layers_[line.from]) - 2;
    GraphPlaces::Line result;
    const std::size_t from_row = items_[line.from].row;
    result.down.push_back(
        {port(line.from, first, false), top[from_row] + boxes_[line.from].height});
    result.down.push_back({result.down.back().x, top[from_row] + height[from_row]});
    for (std::size_t item = first; item <= last; ++item) {
      const std::size_t row = items_[item].row;
      result.down.push_back({items_[item].x, top[row]});
      result.down.push_back({items_[item].x, top[row] + height[row]});
    }
    result.down.push_back({port(line.to, last, true), top[items_[line.to].row]});
    result.label = {items_[last].x, top[items_[last].row]};
    return result;
  }

  const std::vector<GraphSize>& boxes_;
  const std::vector<GraphLine>& lines_;
  std::vector<std::size_t> layers_;
  std::vector<Item> items_;
  std::vector<std::size_t> first_item_;  // of each line
  Rows rows_;
};

}  // namespace

GraphPlaces lay_out_graph(const std::vector<GraphSize>& boxes,
                          const std::vector<GraphLine>& lines) {
  Graph graph(boxes, lines);
  return boxes.empty() || !graph.fits() ? GraphPlaces{} : graph.lay_out();
}

}  // namespace explain
