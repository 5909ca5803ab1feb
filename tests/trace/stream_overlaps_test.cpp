// SPDX-License-Identifier: Apache-2.0
#include "trace/stream_overlaps.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <string>
#include <vector>

#include "written.h"

namespace {

Written kernel(std::int64_t start, std::int64_t end, int stream = 7, const std::string& more = "") {
  return {.name = "k",
          .category = "kernel",
          .start = start,
          .end = end,
          .thread = std::to_string(stream),
          .arguments = "\"device\": 0, \"stream\": " + std::to_string(stream) + more};
}

}  // namespace

TEST_CASE("What one stream runs one after the other, or two at a time, is no overlap") {
  CHECK(trace::stream_overlaps(written({kernel(0, 10), kernel(10, 20), kernel(25, 30)})).empty());
  CHECK(trace::stream_overlaps(written({kernel(0, 10, 7), kernel(5, 20, 8)})).empty());
  CHECK(trace::stream_overlaps(written({})).empty());
  // The span of an annotation lies over its kernels.
  Written annotation = kernel(0, 100);
  annotation.category = "gpu_user_annotation";
  CHECK(trace::stream_overlaps(written({annotation, kernel(10, 20), kernel(30, 40)})).empty());
}

TEST_CASE("An operation that reaches over the next one, and over many, counts once") {
  const trace::Trace trace =
      written({kernel(50, 60), kernel(0, 1000), kernel(10, 20), kernel(30, 42), kernel(40, 45)});
  const std::vector<trace::Overlap> overlaps = trace::stream_overlaps(trace);
  REQUIRE(overlaps.size() == 2);
  CHECK(overlaps[0].event == 1);
  CHECK(overlaps[0].next == 2);
  CHECK(overlaps[0].excess_ns == 990);
  CHECK(overlaps[1].event == 3);
  CHECK(overlaps[1].next == 4);
  CHECK(overlaps[1].excess_ns == 2);
}

TEST_CASE("Clipped, each ends where the next begins and the sum is what was taken") {
  trace::Trace trace = written({kernel(0, 1000), kernel(10, 20), kernel(15, 30)});
  CHECK(trace::clip_overlaps(trace) == 990 + 5);
  CHECK(trace.events[0].duration_ns == 10);
  CHECK(trace.events[1].duration_ns == 5);
  CHECK(trace.events[2].duration_ns == 15);
  CHECK(trace::stream_overlaps(trace).empty());
  CHECK(trace::clip_overlaps(trace) == 0);
}

TEST_CASE("Of two that start together the shorter comes first") {
  CHECK(trace::stream_overlaps(written({kernel(10, 30), kernel(10, 10)})).empty());
  const auto overlaps = trace::stream_overlaps(written({kernel(10, 30), kernel(10, 20)}));
  REQUIRE(overlaps.size() == 1);
  CHECK(overlaps[0].event == 1);
  CHECK(overlaps[0].excess_ns == 10);
}

TEST_CASE("A stream is one thread of one device") {
  Written other = kernel(5, 20);
  other.arguments = R"("device": 1, "stream": 7)";
  CHECK(trace::stream_overlaps(written({kernel(0, 10), other})).empty());
}

TEST_CASE("Operations without a time and without a stream are passed over") {
  trace::Trace trace = written({kernel(0, 100), kernel(10, 20)});
  trace.events[0].is_timed = false;
  CHECK(trace::stream_overlaps(trace).empty());
  CHECK(trace::stream_overlaps(trace::read_text(R"([
    {"ph": "X", "name": "aten::linear", "pid": "CUDA functions", "tid": 0, "ts": 1, "dur": 9},
    {"ph": "X", "name": "aten::addmm", "pid": "CUDA functions", "tid": 0, "ts": 2, "dur": 5}])"))
            .empty());
}

TEST_CASE("Absurd times do not overflow") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  trace::Trace trace = written({kernel(0, 10), kernel(5, 20)});
  trace.events[0].start_ns = -kMost;
  trace.events[0].duration_ns = kMost;
  trace.events[1].start_ns = kMost;
  CHECK(trace::stream_overlaps(trace).empty());
  trace.events[1].start_ns = -1;
  CHECK(trace::clip_overlaps(trace) == 1);
}
