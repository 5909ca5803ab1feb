// SPDX-License-Identifier: Apache-2.0
//
// The memory of a step: which block is of which category, where the peak is, who let go of what.
#include "explain/memory.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "explain/forwards.h"
#include "explain/memory_figure.h"
#include "explain/quiz.h"
#include "explain/steps.h"
#include "trace/written.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using explain::MemoryCategory;
using explain::total;

namespace {

constexpr const char* kHeld = R"("held_weight_bytes": 1000, "held_input_bytes": 500)";

Written annotation(const std::string& name, std::int64_t start, std::int64_t end,
                   const std::string& thread = "1") {
  return {
      .name = name, .category = "user_annotation", .start = start, .end = end, .thread = thread};
}

WrittenMemory memory(std::int64_t time, std::int64_t bytes, std::int64_t address,
                     const std::string& thread = "1") {
  return {.time = time, .bytes = bytes, .thread = thread, .address = address};
}

// A step of training; its backward pass has a thread of its own, as on CUDA.
std::vector<Written> training() {
  return {annotation("ProfilerStep#2", 100, 1000),
          annotation("forward", 110, 300),
          {.name = "aten::softmax", .start = 120, .end = 200, .id = 1},
          {.name = "aten::_softmax", .start = 130, .end = 190, .id = 2},
          {.name = "aten::mul", .start = 210, .end = 250, .id = 3},
          annotation("backward", 400, 700),
          {.name = "autograd::engine::evaluate_function: SoftmaxBackward0",
           .start = 420,
           .end = 500,
           .thread = "2",
           .id = 4},
          {.name = "SoftmaxBackward0", .start = 425, .end = 490, .thread = "2", .id = 5},
          annotation("optimizer", 700, 900)};
}

std::vector<WrittenMemory> blocks() {
  return {memory(130, -40, 9),  // allocated before the recording
          memory(140, 100, 1),  // the softmax result, kept
          memory(220, 50, 2), memory(240, -50, 2), memory(430, 70, 3, "2"), memory(440, 30, 4, "2"),
          memory(450, -100, 1, "2"),  // and let go by the node that had
                                      // kept it
          memory(460, -70, 3, "2"), memory(710, 20, 5), memory(720, 10, 2), memory(730, -10, 2),
          memory(800, -30, 4)};
}

std::int64_t of(const explain::BytesByCategory& bytes, MemoryCategory category) {
  return bytes[static_cast<std::size_t>(category)];
}

MemoryCategory category_of(const explain::MemoryTimeline& timeline, std::int64_t bytes) {
  const auto found =
      std::find_if(timeline.blocks.begin(), timeline.blocks.end(),
                   [&](const explain::MemoryBlock& block) { return block.bytes == bytes; });
  REQUIRE(found != timeline.blocks.end());
  return found->category;
}

}  // namespace

TEST_CASE("Each block has the category of its phase and its life") {
  const trace::Trace trace = written(training(), blocks(), kHeld);
  const trace::OpTree tree(trace);
  const explain::MemoryTimeline timeline = explain::memory_timeline(tree, std::nullopt);
  CHECK(timeline.blocks.size() == 7);
  CHECK(category_of(timeline, 40) == MemoryCategory::other);
  CHECK(category_of(timeline, 100) == MemoryCategory::activation);
  CHECK(category_of(timeline, 50) == MemoryCategory::temporary);
  CHECK(category_of(timeline, 70) == MemoryCategory::temporary);
  CHECK(category_of(timeline, 30) == MemoryCategory::gradient);
  CHECK(category_of(timeline, 20) == MemoryCategory::optimizer_state);
  CHECK(category_of(timeline, 10) == MemoryCategory::temporary);
  CHECK(timeline.unpaired == 0);
  CHECK(timeline.is_whole);
}

TEST_CASE("The peak: its bytes, the op that made it, what was alive, who had kept it") {
  const trace::Trace trace = written(training(), blocks(), kHeld);
  const trace::OpTree tree(trace);
  const explain::MemoryTimeline timeline = explain::memory_timeline(tree, 2);
  const explain::MemoryPoint& peak = timeline.curve[timeline.peak];
  CHECK(total(timeline.curve.front().bytes) == 1540);
  CHECK(total(peak.bytes) == 1700);
  CHECK(of(peak.bytes, MemoryCategory::weight) == 1000);
  CHECK(of(peak.bytes, MemoryCategory::input) == 500);
  CHECK(of(peak.bytes, MemoryCategory::activation) == 100);
  CHECK(of(peak.bytes, MemoryCategory::gradient) == 30);
  CHECK(of(peak.bytes, MemoryCategory::temporary) == 70);
  CHECK(of(peak.bytes, MemoryCategory::other) == 0);
  CHECK(explain::alive_at(timeline, peak.time_ns).size() == 3);
  CHECK(total(timeline.curve.back().bytes) == 1520);
  const std::string text = explain::to_text(tree, timeline);
  CHECK_THAT(text, ContainsSubstring("Memory of ProfilerStep#2, CPU:\n") &&
                       ContainsSubstring("1.66 KiB\n") &&
                       ContainsSubstring("reached in                  SoftmaxBackward0\n") &&
                       ContainsSubstring("100 B  activation       aten::_softmax < aten::softmax < "
                                         "forward; kept for SoftmaxBackward0\n"));
}

TEST_CASE("What a recompute makes inside of backward is an activation again") {
  auto events = training();
  events.push_back(annotation("recompute", 425, 445, "2"));
  const trace::Trace trace = written(events, blocks());
  const auto timeline = explain::memory_timeline(trace::OpTree(trace), std::nullopt);
  CHECK(category_of(timeline, 70) == MemoryCategory::activation);
  CHECK_FALSE(timeline.is_whole);
}

TEST_CASE("What a generation keeps in its cache, made there or held before") {
  const std::vector events{annotation("ProfilerStep#2", 0, 1000, "2"),
                           annotation("decode", 100, 500, "2"), annotation("cache", 200, 300, "2")};
  const std::vector<WrittenMemory> records{memory(110, 5, 1),  memory(210, 40, 2),
                                           memory(220, 7, 3),  memory(230, -7, 3),
                                           memory(490, -5, 1), memory(900, -40, 2)};
  const trace::Trace trace = written(events, records, R"("held_cache_bytes": 300)");
  const auto timeline = explain::memory_timeline(trace::OpTree(trace), std::nullopt);
  CHECK(category_of(timeline, 40) == MemoryCategory::cache);
  CHECK(category_of(timeline, 7) == MemoryCategory::temporary);  // gone before `cache` ends
  CHECK(category_of(timeline, 5) == MemoryCategory::temporary);
  CHECK(of(timeline.held, MemoryCategory::cache) == 300);
  CHECK(timeline.phases.size() == 1);  // decode
}

TEST_CASE("On a device the curve begins with what the allocator had given out before") {
  std::vector<WrittenMemory> records = blocks();
  std::int64_t allocated = 5000;
  for (WrittenMemory& record : records) {
    record.device_type = 1;
    record.total_allocated = allocated += record.bytes;
  }
  records.push_back(memory(500, 1 << 20, 77));  // the CPU's: not of this device
  const trace::Trace trace = written(training(), records, kHeld);
  const auto timeline = explain::memory_timeline(trace::OpTree(trace), std::nullopt);
  CHECK(timeline.title == "ProfilerStep#2, CUDA 0");
  CHECK(timeline.is_whole);
  CHECK(total(timeline.curve.front().bytes) == 5000);
  CHECK(of(timeline.held, MemoryCategory::other) == 5000 - 1500 - 40);
  CHECK(total(timeline.curve.back().bytes) == allocated);
}

TEST_CASE("Addresses are used again; a free that is not in the file ends at the next allocation") {
  const trace::Trace trace = written({annotation("ProfilerStep#1", 0, 100)},
                                     {memory(10, 8, 1), memory(20, -8, 1), memory(30, 16, 1),
                                      memory(40, 32, 1), memory(50, -32, 1), memory(60, 64, 0)});
  const auto timeline = explain::memory_timeline(trace::OpTree(trace), std::nullopt);
  CHECK(timeline.unpaired == 2);
  CHECK(total(timeline.curve[timeline.peak].bytes) == 32);
  CHECK(total(timeline.curve.back().bytes) == 0);
}

TEST_CASE("Without records, without the step: one sentence") {
  const trace::Trace none = written(training());
  CHECK_FALSE(explain::has_memory(none));
  CHECK_THROWS_MATCHES(explain::memory_timeline(trace::OpTree(none), std::nullopt),
                       explain::RangeError, MessageMatches(ContainsSubstring("--profile-memory")));
  const trace::Trace trace = written(training(), blocks());
  CHECK_THROWS_MATCHES(explain::memory_timeline(trace::OpTree(trace), 7), explain::RangeError,
                       MessageMatches(ContainsSubstring("no step 7")));
}

TEST_CASE("Absurd records neither overflow nor reach a terminal") {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  auto events = training();
  events.push_back({.name = "\\u001b[2J<&", .start = 5, .end = 95, .id = 9});
  const trace::Trace trace = written(
      events,
      {memory(10, kMost, 1), memory(20, kMost, 2), memory(30, kLeast, 3), memory(40, kLeast, 1),
       memory(150, kMost, 4), memory(160, kMost, 5)},
      R"("held_weight_bytes": 9223372036854775807, "held_input_bytes": 9223372036854775807)");
  const trace::OpTree tree(trace);
  const auto timeline = explain::memory_timeline(tree, std::nullopt);
  const std::string text = explain::to_text(tree, timeline);
  const std::string svg = explain::memory_figure(tree, timeline, {});
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(svg.find('\x1b') == std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("inf") == std::string::npos);
}

TEST_CASE("The figure marks the peak and is as large as its width asks for") {
  const trace::Trace trace = written(training(), blocks(), kHeld);
  const trace::OpTree tree(trace);
  const std::string svg =
      explain::memory_figure(tree, explain::memory_timeline(tree, std::nullopt), {});
  for (const char* part :
       {"Memory of ProfilerStep#2, CPU", "peak 1.66 KiB: SoftmaxBackward0", ">forward<",
        ">backward<", "<title>activation</title>", "activation 100 B", "prefers-color-scheme:dark"})
    CHECK_THAT(svg, ContainsSubstring(part));
  CHECK(svg.find("<title>other</title>") != std::string::npos);  // at the start, not at the peak
  CHECK(svg.find("<script") == std::string::npos);

  std::vector<WrittenMemory> many;
  for (int i = 0; i < 20'000; ++i) many.push_back(memory(200 + i / 100, i % 2 == 0 ? 64 : -64, 1));
  const trace::Trace large = written(training(), many);
  const trace::OpTree large_tree(large);
  CHECK(explain::memory_figure(large_tree, explain::memory_timeline(large_tree, std::nullopt), {})
            .size() < 100'000);
}

TEST_CASE("The quiz of 05 follows the trace") {
  const auto answers = [](const std::vector<WrittenMemory>& records) {
    const trace::Trace trace = written(
        training(), records, std::string(kHeld) + R"(, "shape": "1_1_5_1", "dtype": "fp32")");
    const trace::OpTree tree(trace);
    const explain::Facts facts = explain::facts(tree, explain::forward_label(tree));
    std::vector<std::string> result;
    for (const explain::Question& question : explain::questions("05_memory", false))
      result.push_back(explain::grade(question, tree, facts, "0").answer);
    return result;
  };
  using Answers = std::vector<std::string>;
  // A score matrix is 5 * 5 * 4 = 100 bytes: one is alive when backward reaches 1700 bytes.
  CHECK(answers(blocks()) == Answers{"backward", "1", "weight", "1"});
  auto records = blocks();
  records[2].bytes = 5000;  // made and gone in forward
  records[3].bytes = -5000;
  CHECK(answers(records) == Answers{"forward", "2", "temporary", "4"});
  CHECK(answers({}) == Answers(4, "not known"));
}

TEST_CASE("Of the phases of training the forward is the forward") {
  auto events = training();
  for (const Written& event : training()) {
    if (event.category != "user_annotation") continue;
    Written again = event;
    if (again.name == "ProfilerStep#2") again.name = "ProfilerStep#3";
    again.start += 1000;
    again.end += 1000;
    events.push_back(again);
  }
  const trace::Trace trace = written(events);
  CHECK(explain::forward_label(trace::OpTree(trace)) == "forward");
}
