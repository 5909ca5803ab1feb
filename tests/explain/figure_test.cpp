// SPDX-License-Identifier: Apache-2.0
//
// The structure of the SVG: boxes, arrows and texts follow the trace.
#include "explain/figure.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "explain/figure_layout.h"
#include "explain/figure_text.h"
#include "svg.h"
#include "trace/reader.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using svg::count;
using svg::is_well_formed;

namespace {

trace::Trace recording(const std::string& name) {
  return trace::read(std::string(PROF_TEST_DATA "/pytorch/") + name + ".json.gz");
}

std::size_t boxes(const std::string& svg, const std::string& css_class) {
  return count(svg, "<g class=\"b " + css_class + "\"");
}

std::size_t arrows(const std::string& svg) {
  return count(svg, "marker-end") - (svg.find(">launch<") == std::string::npos ? 0 : 1);
}

// One X event with what matters here.
std::string event(const std::string& category, const std::string& name, int thread, double ts,
                  double duration, int correlation = 0) {
  return R"({"ph":"X","cat":")" + category + R"(","name":")" + name + R"(","pid":)" +
         (thread < 10 ? "0" : "9") + R"(,"tid":)" + std::to_string(thread) + R"(,"ts":)" +
         std::to_string(ts) + R"(,"dur":)" + std::to_string(duration) +
         R"(,"args":{"correlation":)" + std::to_string(correlation) + "}}";
}

trace::Trace made_of(const std::vector<std::string>& events) {
  std::string text = R"({"traceEvents":[)";
  for (const std::string& event : events) text += (text.back() == '[' ? "" : ",") + event;
  return trace::read_text(text + "]}");
}

// A step that launches a kernel and a copy, which end after it; then a second step.
std::vector<std::string> two_steps() {
  return {event("user_annotation", "ProfilerStep#4", 11, 0, 50),
          event("cpu_op", "aten::mul", 11, 5, 20),
          event("cuda_runtime", "cudaLaunchKernel", 11, 10, 5, 71),
          event("cuda_runtime", "cudaMemcpyAsync", 11, 30, 5, 72),
          event("user_annotation", "ProfilerStep#5", 11, 60, 50),
          event("cuda_runtime", "cudaLaunchKernel", 11, 70, 5, 73),
          event("kernel", "first", 7, 20, 30, 71),
          event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 7, 60, 40, 72),
          event("kernel", "second", 7, 100, 30, 73)};
}

}  // namespace

TEST_CASE("A figure of the naive recording") {
  const trace::Trace trace = recording("naive");
  const std::string svg = explain::figure(trace, {});
  CHECK(is_well_formed(svg));
  CHECK_THAT(svg, ContainsSubstring("ProfilerStep#2: "));
  CHECK(boxes(svg, "ke") == 5);
  CHECK(boxes(svg, "cp") == 1);
  CHECK(boxes(svg, "se") == 1);
  CHECK(boxes(svg, "ca") == 7);
  CHECK(boxes(svg, "an") == 3);  // the step, the forward, and the forward on the GPU
  CHECK(arrows(svg) == 7);
  CHECK_THAT(svg,
             ContainsSubstring(">CPU, thread ") && ContainsSubstring(">GPU 0 (NVIDIA H200), "));
}

TEST_CASE("A figure needs nothing but itself and follows the theme") {
  const std::string svg = explain::figure(recording("naive"), {});
  CHECK_THAT(svg, ContainsSubstring("@media (prefers-color-scheme:dark)"));
  CHECK(svg.find("<script") == std::string::npos);
  CHECK(svg.find("href") == std::string::npos);
  CHECK(count(svg, "http") == 1);  // the name of SVG's namespace
  CHECK(count(svg, "url(") == count(svg, "url(#tf-head)"));
}

TEST_CASE("A figure of a CPU recording has one lane and no arrows") {
  const std::string svg = explain::figure(recording("cpu_naive"), {});
  CHECK(is_well_formed(svg));
  CHECK(count(svg, "class=\"l\"") == 1);
  CHECK(arrows(svg) == 0);
  CHECK(svg.find("GPU") == std::string::npos);
  CHECK(svg.find(">kernel<") == std::string::npos);  // not in the legend
}

TEST_CASE("What has no time is not drawn and widens nothing") {
  const trace::Trace trace =
      made_of({event("kernel", "a", 7, 40, 10, 1), event("kernel", "lost", 7, 0, 0, 2)});
  REQUIRE_FALSE(trace.events.back().is_timed);
  const std::string svg = explain::figure(trace, {});
  CHECK(boxes(svg, "ke") == 1);
  CHECK(svg.find("lost") == std::string::npos);
  CHECK_THAT(svg, ContainsSubstring("10.0us of the recording, from 0.0us"));
}

TEST_CASE("A figure of a recording without CPU has its streams") {
  const std::string svg = explain::figure(
      made_of({event("kernel", "a", 7, 0, 10, 1), event("kernel", "b", 8, 20, 10, 2)}), {});
  CHECK(is_well_formed(svg));
  CHECK(count(svg, "class=\"l\"") == 2);
  CHECK(boxes(svg, "ke") == 2);
  CHECK(arrows(svg) == 0);
}

TEST_CASE("An operation more is a box and an arrow more") {
  trace::Trace trace = recording("naive");
  const std::string before = explain::figure(trace, {});
  for (const trace::Event& event : trace.events) {
    if (event.category != trace::Category::gpu_memcpy) continue;
    trace::Event more = event;
    more.start_ns += more.duration_ns / 2;
    more.category = trace::Category::kernel;
    trace.events.push_back(more);
    break;
  }
  const std::string after = explain::figure(trace, {});
  CHECK(boxes(after, "ke") == boxes(before, "ke") + 1);
  CHECK(arrows(after) == arrows(before) + 1);
}

TEST_CASE("Without the call there is no arrow") {
  trace::Trace trace = recording("naive");
  std::erase_if(trace.events, [](const auto& event) {
    return event.category == trace::Category::cuda_runtime ||
           event.category == trace::Category::cuda_driver;
  });
  CHECK(arrows(explain::figure(trace, {})) == 0);
}

TEST_CASE("A step reaches to its last GPU operation, others are faded") {
  const trace::Trace trace = made_of(two_steps());
  const std::string svg = explain::figure(trace, {.step = 4});
  CHECK_THAT(svg, ContainsSubstring("ProfilerStep#4: 50.0us on the CPU, 100.0us until"));
  CHECK(boxes(svg, "ke") == 1);
  CHECK(boxes(svg, "cp") == 1);
  CHECK(boxes(svg, "an f") == 1);  // step 5
  CHECK(arrows(svg) == 2);
  CHECK_THAT(svg, ContainsSubstring("faded: of other steps") && ContainsSubstring("gap 10.0us"));

  const std::string next = explain::figure(trace, {.step = 5});
  CHECK(boxes(next, "cp f") == 1);  // launched by step 4, still running
  CHECK(boxes(next, "ke") == 1);
  CHECK(arrows(next) == 1);
}

TEST_CASE("A time range shows what lies in it") {
  const trace::Trace trace = made_of(two_steps());
  const std::string svg = explain::figure(trace, {.from_us = 55, .to_us = 95});
  CHECK(boxes(svg, "an") == 1);
  CHECK(boxes(svg, "cp") == 1);
  CHECK(boxes(svg, "ke") == 0);
  CHECK(arrows(svg) == 0);  // the copy's call is not in the range
  CHECK_THAT(svg, ContainsSubstring(">60us<") && !ContainsSubstring(">50us<"));
  CHECK(boxes(explain::figure(trace, {.from_us = 55}), "ke") == 1);
  CHECK(boxes(explain::figure(trace, {.to_us = 55}), "ke") == 1);
}

TEST_CASE("What cannot be drawn is said in one sentence") {
  const trace::Trace trace = made_of(two_steps());
  const auto draw = [&](const explain::FigureOptions& options) {
    return explain::figure(trace, options);
  };
  using explain::RangeError;
  CHECK_THROWS_MATCHES(draw({.step = 6}), RangeError,
                       MessageMatches(ContainsSubstring("no step 6: choose one of 4 and 5")));
  CHECK_THROWS_MATCHES(draw({.from_us = 200}), RangeError,
                       MessageMatches(ContainsSubstring("from 0.000 to 130.000 us")));
  CHECK_THROWS_AS(draw({.from_us = 20, .to_us = 10}), RangeError);
  CHECK_THROWS_AS(draw({.from_us = std::numeric_limits<double>::quiet_NaN()}), RangeError);
  CHECK_THROWS_MATCHES(explain::figure(made_of({event("kernel", "a", 7, 0, 1)}), {.step = 1}),
                       RangeError, MessageMatches(ContainsSubstring("no steps")));
}

TEST_CASE("Tiny neighbours share a box that says how many they are") {
  std::vector<std::string> events{event("cpu_op", "wide", 11, 0, 100'000)};
  for (int i = 0; i < 60; ++i) events.push_back(event("cpu_op", "tiny", 11, 1000 + 20.0 * i, 10));
  events.push_back(event("cpu_op", "far", 11, 50'000, 10));
  const std::string svg = explain::figure(made_of(events), {});
  CHECK(boxes(svg, "op") == 3);
  CHECK_THAT(svg, ContainsSubstring("<title>60 events, 600.0us in all"));
  CHECK_THAT(svg, ContainsSubstring("Drawn together: 60 events narrower than 0.5 px."));
}

TEST_CASE("A figure stays small whatever is in the file") {
  std::vector<std::string> events;
  for (int i = 0; i < 30'000; ++i)
    events.push_back(event("kernel", "k<" + std::to_string(i) + ">", i % 30, 10.0 * (i / 30), 9.9));
  for (int i = 0; i < 100; ++i) events.push_back(event("cpu_op", "deep", 11, i, 10'000 - 2 * i));
  const std::string svg = explain::figure(made_of(events), {.width = 4000});
  CHECK(is_well_formed(svg));
  CHECK(count(svg, "<rect") < explain::kMostBoxes + 100);
  CHECK(svg.size() < 1'000'000);
  CHECK_THAT(svg, ContainsSubstring("least busy streams") &&
                      ContainsSubstring("nested deeper than 24 levels"));
}

TEST_CASE("Names from a trace are escaped") {
  const std::string name = R"(a<b>&\"c\"\u001b[31m\u202e\uffff)";
  const std::string svg = explain::figure(
      made_of({event("kernel", name, 7, 0, 10), event("cpu_op", name, 11, 0, 9)}), {});
  CHECK(is_well_formed(svg));
  CHECK_THAT(svg, ContainsSubstring(R"(a&lt;b&gt;&amp;&quot;c&quot;\x1b[31m)"));
}

TEST_CASE("Text is valid UTF-8 and XML whatever the bytes were") {
  CHECK(explain::xml_text("\xc3\xa9\xe2\x80\xa6\xf0\x9f\x98\x80") ==
        "\xc3\xa9\xe2\x80\xa6\xf0\x9f\x98\x80");
  CHECK(explain::xml_text("\xff\xc3") == "\\xff\\xc3");
  CHECK(explain::xml_text("\xc0\x80") == "\\xc0\\x80");           // overlong
  CHECK(explain::xml_text("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(explain::xml_text("\xef\xbf\xbf") == "\\xef\\xbf\\xbf");  // U+FFFF
}

TEST_CASE("Texts are cut and broken between characters") {
  CHECK(explain::clipped("aten::mul", 9) == "aten::mul");
  CHECK(explain::clipped("aten::mul", 5) == "aten…");
  CHECK(explain::clipped("ééééé", 3) == "éé…");
  CHECK(explain::clipped("abc", 0).empty());
  CHECK(explain::wrapped("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(explain::wrapped("longer than that", 3) ==
        std::vector<std::string>{"longer", "than", "that"});
}
