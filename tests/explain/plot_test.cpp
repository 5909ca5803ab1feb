// SPDX-License-Identifier: Apache-2.0
//
// What a plot shows of a sweep: lines, markers, crosses, the limit, and where they stand.
#include "explain/plot.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "explain/plot_axis.h"
#include "explain/plot_lines.h"
#include "explain/plot_style.h"
#include "explain/steps.h"
#include "svg.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::WithinAbs;

namespace {

constexpr double kMiB = 1 << 20;

// naive grows as S², flash as S; naive does not fit at 2048.
explain::Sweep growth() {
  explain::Sweep sweep{.chapter = "05_memory", .title = "one step of training"};
  sweep.facts = {{"device", "NVIDIA H200"}};
  sweep.quantities = {
      {"peak", "peak of a step", "bytes", explain::SweepLimit{"this device", 512 * kMiB}},
      {"time", "time of a step", "us"}};
  for (const double s : {256.0, 512.0, 1024.0}) {
    sweep.rows.push_back({"naive", s, {s * s * 256, s * 10}});
    sweep.rows.push_back({"flash", s, {s * 4096, s}});
  }
  sweep.rows.push_back({"naive", 2048, {}, "out of memory"});
  sweep.rows.push_back({"flash", 2048, {2048 * 4096.0, 2048.0}});
  return sweep;
}

struct Place {
  double x = 0, y = 0;
  bool operator==(const Place&) const = default;
};

// Where the markers of a line stand, from left to right.
std::vector<Place> markers(const std::string& svg, const std::string& line) {
  std::vector<Place> places;
  const std::string before = "<g transform=\"translate(";
  for (std::size_t at = svg.find(before); at != std::string::npos; at = svg.find(before, at + 1)) {
    const std::size_t title = svg.find("<title>", at) + 7;
    if (svg.compare(title, line.size() + 1, line + ",") != 0) continue;
    std::size_t size = 0;
    const std::string numbers = svg.substr(at + before.size(), 40);
    const double x = std::stod(numbers, &size);
    places.push_back({x, std::stod(numbers.substr(size))});
  }
  return places;
}

double slope(const std::vector<Place>& places) {
  return (places.back().y - places.front().y) / (places.back().x - places.front().x);
}

// y of the texts that name the lines at the right.
std::vector<double> label_heights(const std::string& svg, const std::vector<std::string>& names) {
  std::vector<double> heights;
  for (const std::string& name : names) {
    const std::size_t end = svg.find(">" + name + "</text>");
    REQUIRE(end != std::string::npos);
    heights.push_back(std::stod(svg.substr(svg.rfind("y=\"", end) + 3)));
  }
  std::sort(heights.begin(), heights.end());
  return heights;
}

}  // namespace

TEST_CASE("A plot has a marker for each value, at the right place") {
  const std::string svg = explain::plot_svg(growth(), {});
  CHECK(svg::is_well_formed(svg));
  const std::vector<Place> naive = markers(svg, "naive"), flash = markers(svg, "flash");
  REQUIRE(naive.size() == 3);
  REQUIRE(flash.size() == 4);
  // Doubled sizes stand at equal distances, and a square is twice as steep as a line.
  CHECK_THAT(naive[2].x - naive[1].x, WithinAbs(naive[1].x - naive[0].x, 0.2));
  CHECK_THAT(naive[0].x, WithinAbs(flash[0].x, 0.01));
  CHECK_THAT(slope(naive) / slope(flash), WithinAbs(2, 0.01));
  CHECK(slope(naive) < 0);  // upwards
  CHECK_THAT(svg, ContainsSubstring("<title>naive, S = 512: 64 MiB</title>") &&
                      ContainsSubstring(">as S</text>") && ContainsSubstring(">as S²</text>"));
}

TEST_CASE("A plot says what did not run and why") {
  const std::string svg = explain::plot_svg(growth(), {});
  CHECK(svg::count(svg, "l8 8m0-8l-8 8") == 1);
  CHECK_THAT(svg, ContainsSubstring("<title>naive, S = 2048: out of memory</title>") &&
                      ContainsSubstring(">naive: out of memory</text>"));
  explain::Sweep nothing = growth();
  for (explain::SweepRow& row : nothing.rows) {
    row.values.clear();
    row.reason = "no device";
  }
  const std::string empty = explain::plot_svg(nothing, {});
  CHECK(svg::is_well_formed(empty));
  CHECK(svg::count(empty, "l8 8m0-8l-8 8") == 8);
  CHECK(svg::count(empty, "nan") + svg::count(empty, "inf") == 0);
}

TEST_CASE("A line is interrupted where a size did not run") {
  explain::Sweep sweep = growth();
  sweep.rows = {{"naive", 1, {1.0, 1.0}}, {"naive", 4, {16.0, 1.0}}, {"naive", 2, {}, "no"}};
  const std::string svg = explain::plot_svg(sweep, {});
  const std::size_t path = svg.find("<g class=\"s s0\"><path d=\"M");
  REQUIRE(path != std::string::npos);
  const std::string drawn = svg.substr(path, svg.find("\"/>", path) - path);
  CHECK(svg::count(drawn, "M") == 2);
  CHECK(svg::count(drawn, "L") == 0);
}

TEST_CASE("The limit is a line where it is near, else a note") {
  explain::Sweep sweep = growth();
  CHECK_THAT(explain::plot_svg(sweep, {}), ContainsSubstring(">this device: 512 MiB</text>"));
  sweep.quantities[0].limit->value = 1e15;
  CHECK_THAT(explain::plot_svg(sweep, {}), !ContainsSubstring("Above the plot"));  // it was met
  sweep.rows.resize(6);                                                            // all ran
  CHECK_THAT(explain::plot_svg(sweep, {}),
             ContainsSubstring("Above the plot: this device: 909.5 TiB."));
  CHECK_THAT(explain::plot_svg(sweep, {.quantity = "time"}), !ContainsSubstring("this device"));
}

TEST_CASE("Names of lines that end at the same height stand apart") {
  explain::Sweep sweep = growth();
  sweep.rows.clear();
  const std::vector<std::string> names = {"a", "bb", "ccc", "dddd", "eeeee"};
  for (const std::string& name : names)
    for (const double s : {256.0, 512.0}) sweep.rows.push_back({name, s, {s, s}});
  for (const int width : {400, 960}) {
    const std::string svg = explain::plot_svg(sweep, {.width = width});
    const std::vector<double> heights = label_heights(svg, names);
    CHECK(heights.front() >= markers(svg, "a").back().y);  // none is pushed out at the top
    for (std::size_t i = 1; i < heights.size(); ++i) CHECK(heights[i] - heights[i - 1] >= 14);
  }
}

TEST_CASE("Names too long for the width stand in a legend below") {
  explain::Sweep sweep = growth();
  for (explain::SweepRow& row : sweep.rows) row.line += " with a long name of its own";
  const std::string svg = explain::plot_svg(sweep, {.width = 400});
  CHECK(svg::is_well_formed(svg));
  const std::size_t tick = svg.find(">1024</text>");
  CHECK(svg.find(">flash with a long name of its own</text>") > tick);
  const std::string wide = explain::plot_svg(growth(), {.width = 400});
  CHECK(wide.find(">flash</text>") < wide.find(">1024</text>"));
}

TEST_CASE("Another quantity, linear axes, and a quantity that is not there") {
  const std::string svg = explain::plot_svg(growth(), {.quantity = "time", .is_linear = true});
  CHECK_THAT(svg, ContainsSubstring("05_memory: time of a step") && ContainsSubstring(">4 ms<") &&
                      !ContainsSubstring(">as S<"));
  const std::vector<Place> naive = markers(svg, "naive");
  CHECK_THAT(naive[2].x - naive[1].x, WithinAbs(2 * (naive[1].x - naive[0].x), 0.3));
  CHECK_THROWS_MATCHES(explain::plot_svg(growth(), {.quantity = "\x1b[2J"}), explain::RangeError,
                       MessageMatches(ContainsSubstring("no quantity \\x1b[2J") &&
                                      ContainsSubstring("peak (peak of a step), time (")));
}

TEST_CASE("Values of 0 make the axis linear") {
  explain::Sweep sweep = growth();
  sweep.rows[0].values[0] = 0.0;
  const explain::PlotLines plot = explain::plot_lines(sweep, "peak", false);
  CHECK(plot.x.is_log());
  CHECK_FALSE(plot.y.is_log());
  CHECK_FALSE(plot.has_guides);
  CHECK(plot.y.place(0) == 0);
}

TEST_CASE("Guides stand beside what grows alone") {
  explain::Sweep sweep = growth();
  CHECK(explain::plot_lines(sweep, "peak", false).has_guides);
  CHECK_FALSE(explain::plot_lines(sweep, "peak", true).has_guides);
  for (explain::SweepRow& row : sweep.rows)
    if (!row.values.empty()) row.values[0] = 1 / row.x;
  CHECK_FALSE(explain::plot_lines(sweep, "peak", false).has_guides);
}

TEST_CASE("Absurd numbers and names are drawn all the same") {
  for (const double value : {0.0, 5e-324, 1e-300, 1.0, 1e18}) {
    for (const bool is_linear : {false, true}) {
      CAPTURE(value, is_linear);
      explain::Sweep sweep = growth();
      sweep.quantities[0].unit = "<&\x1b\xff";
      sweep.rows = {{"\x1b[31m<\"&\xff", value, {value, 1.0}}, {"b", 1e18, {1e18, 1.0}}};
      const std::string svg = explain::plot_svg(sweep, {.is_linear = is_linear, .width = 300});
      CHECK(svg::is_well_formed(svg));
      CHECK(svg::count(svg, "nan") + svg::count(svg, "inf") == 0);
      CHECK(svg.size() < 20'000);
    }
  }
}

TEST_CASE("Ticks are round and few, texts have units") {
  using Ticks = std::vector<double>;
  const explain::PlotAxis bytes({3 * kMiB, 700 * kMiB}, true);
  CHECK(bytes.ticks("bytes", 8) == Ticks{4 * kMiB, 8 * kMiB, 16 * kMiB, 32 * kMiB, 64 * kMiB,
                                         128 * kMiB, 256 * kMiB, 512 * kMiB});
  CHECK(explain::PlotAxis({3, 40}, true).ticks("us", 8) == Ticks{5, 10, 20});
  CHECK(explain::PlotAxis({0, 100}, false).ticks("ratio", 6) == Ticks{0, 20, 40, 60, 80, 100});
  CHECK(explain::PlotAxis({101, 102}, true).ticks("us", 6).size() > 2);  // no power between
  CHECK(explain::PlotAxis({5e-324, 1e18}, true).ticks("us", 8).size() <= 9);
  CHECK(explain::amount_text(1024 * kMiB, "bytes") == "1 GiB");
  CHECK(explain::amount_text(1536, "bytes") == "1.5 KiB");
  CHECK(explain::amount_text(0, "bytes") == "0");
  CHECK(explain::amount_text(0.5, "us") == "500 ns");
  CHECK(explain::amount_text(20'000, "us") == "20 ms");
  CHECK(explain::amount_text(1.375, "ratio") == "1.375");
  CHECK(explain::amount_text(312, "TFLOP/s") == "312 TFLOP/s");
  CHECK(explain::amount_text(12'500, "tokens/s") == "12500 tokens/s");
}

TEST_CASE("No two of 49 lines look alike") {
  std::set<std::pair<std::size_t, std::string>> looks;
  for (std::size_t i = 0; i < 49; ++i) looks.emplace(explain::colour_of(i), explain::marker_of(i));
  CHECK(looks.size() == 49);
}
