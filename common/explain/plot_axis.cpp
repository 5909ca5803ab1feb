// SPDX-License-Identifier: Apache-2.0
#include "explain/plot_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace explain {
namespace {

struct Prefix {
  double size;
  std::string_view unit;
};

constexpr std::array<Prefix, 6> kBytes = {{{1, "B"},
                                           {0x1p10, "KiB"},
                                           {0x1p20, "MiB"},
                                           {0x1p30, "GiB"},
                                           {0x1p40, "TiB"},
                                           {0x1p50, "PiB"}}};
constexpr std::array<Prefix, 4> kTimes = {{{1e-3, "ns"}, {1, "us"}, {1e3, "ms"}, {1e6, "s"}}};

std::string with_prefix(double value, std::span<const Prefix> prefixes) {
  const Prefix* best = &prefixes.front();
  for (const Prefix& prefix : prefixes)
    if (value >= prefix.size) best = &prefix;
  return fmt::format("{:.4g} {}", value / best->size, best->unit);
}

// The smallest of 1, 2, 5, 10, 20, ... that is not below `least`; of bytes a power of 2.
double round_step(double least, bool is_bytes) {
  if (is_bytes) return std::exp2(std::ceil(std::log2(least)));
  const double decade = std::pow(10, std::floor(std::log10(least)));
  for (const double digit : {1.0, 2.0, 5.0})
    if (digit * decade >= least * (1 - 1e-9)) return digit * decade;
  return 10 * decade;
}

std::vector<double> multiples(const PlotRange& range, double step) {
  std::vector<double> values;
  const double first = std::ceil(range.from / step);
  const double count = std::floor(range.to / step) - first;
  for (double i = 0; i <= count; ++i) values.push_back((first + i) * step);
  return values;
}

// base^(n step) within the range, and between them what else stands at `digits`.
std::vector<double> powers(const PlotRange& range, double base, double step,
                           std::span<const double> digits) {
  std::vector<double> values;
  const double first = std::floor(std::log(range.from) / std::log(base) / step) * step;
  for (double power = first; std::pow(base, power) <= range.to; power += step)
    for (const double digit : digits)
      if (const double value = digit * std::pow(base, power);
          value >= range.from && value <= range.to)
        values.push_back(value);
  return values;
}

}  // namespace

PlotAxis::PlotAxis(PlotRange range, bool is_log) : range_(range), is_log_(is_log) {
  if (range.to > range.from) return;
  range_.to = is_log ? range.from * 2 : range.from + 1;
  if (is_log) range_.from /= 2;
}

double PlotAxis::place(double value) const {
  const auto scaled = [this](double v) { return is_log_ ? std::log(v) : v; };
  const double from = scaled(range_.from), to = scaled(range_.to);
  return std::clamp((scaled(std::clamp(value, range_.from, range_.to)) - from) / (to - from), 0.0,
                    1.0);
}

std::vector<double> PlotAxis::ticks(std::string_view unit, std::size_t most) const {
  constexpr std::array<double, 3> kDigits = {1, 2, 5};
  const bool is_bytes = unit == "bytes";
  const auto count = static_cast<double>(most);
  if (is_log_) {
    const double base = is_bytes ? 2 : 10;
    const double span = std::log(range_.to / range_.from) / std::log(base);
    const double step = std::max(1.0, round_step(span / count, /*is_bytes=*/false));
    const bool has_room = !is_bytes && 2 * span <= count;
    const std::vector<double> values =
        powers(range_, base, step, std::span(kDigits).first(has_room ? 3 : 1));
    if (values.size() > 1) return values;
  }
  return multiples(range_, round_step((range_.to - range_.from) / count, is_bytes));
}

std::string amount_text(double value, std::string_view unit) {
  if (value == 0) return "0";
  if (unit == "bytes") return with_prefix(value, kBytes);
  if (unit == "us") return with_prefix(value, kTimes);
  const bool is_whole = value >= 1e4 && value < 1e9;  // 12500, not 1.25e+04
  const std::string number = is_whole ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
  return unit == "ratio" ? number : fmt::format("{} {}", number, unit);
}

}  // namespace explain
