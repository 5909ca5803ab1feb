// SPDX-License-Identifier: Apache-2.0
//
// One axis of a plot: where a value stands on it, at which values it has ticks, and how a value is
// written in its unit.
//
//   const explain::PlotAxis axis({1.5e6, 3e8}, /*is_log=*/true);
//   axis.place(1.5e6);                    // 0: of 0..1
//   axis.ticks("bytes", 8);               // 2097152, 8388608, ...
//   explain::amount_text(8388608, "bytes");   // "8 MiB"
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace explain {

struct PlotRange {
  double from = 0, to = 1;
};

class PlotAxis {
 public:
  // A logarithmic one wants `from` above 0. An empty range is widened.
  PlotAxis(PlotRange range, bool is_log);

  [[nodiscard]] bool is_log() const { return is_log_; }
  [[nodiscard]] const PlotRange& range() const { return range_; }

  // 0 at `from`, 1 at `to`; a value outside stands at the end next to it.
  [[nodiscard]] double place(double value) const;

  // Round values within the range, in order, at most about `most`. Bytes are round in powers of 2.
  [[nodiscard]] std::vector<double> ticks(std::string_view unit, std::size_t most) const;

 private:
  PlotRange range_;
  bool is_log_;
};

// "8 MiB", "2.5 ms", "1.37" (a ratio), "312 TFLOP/s": four digits, or a whole number.
[[nodiscard]] std::string amount_text(double value, std::string_view unit);

}  // namespace explain
