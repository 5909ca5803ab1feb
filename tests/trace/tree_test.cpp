// SPDX-License-Identifier: Apache-2.0
#include "trace/tree.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/key_averages.h"
#include "written.h"

using trace::kNoEvent;
using trace::OpTree;
using trace::Trace;

namespace {

// "name<parent" of each event in table order: the whole tree as one text.
std::string outline(const OpTree& tree) {
  std::string result;
  for (const std::uint32_t event : tree.order()) {
    if (!result.empty()) result += ' ';
    result += tree.name(event);
    if (tree.parent(event) != kNoEvent) result.append("<").append(tree.name(tree.parent(event)));
  }
  return result;
}

std::string outline(const std::vector<Written>& events) {
  const Trace trace = written(events);
  return outline(OpTree(trace));
}

std::string names(const OpTree& tree, std::span<const std::uint32_t> events) {
  std::string result;
  for (const std::uint32_t event : events)
    result.append(result.empty() ? "" : " ").append(tree.name(event));
  return result;
}

// The index of the only event of a name.
std::uint32_t find(const Trace& trace, std::string_view name) {
  std::uint32_t found = kNoEvent;
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    if (trace.name(trace.events[i]) != name) continue;
    REQUIRE(found == kNoEvent);
    found = i;
  }
  REQUIRE(found != kNoEvent);
  return found;
}

}  // namespace

TEST_CASE("the innermost event around another one is its parent") {
  CHECK(outline({{.name = "step", .start = 0, .end = 100},
                 {.name = "softmax", .start = 10, .end = 50},
                 {.name = "exp", .start = 20, .end = 30},
                 {.name = "sum", .start = 30, .end = 50},
                 {.name = "mul", .start = 50, .end = 60},
                 {.name = "next", .start = 100, .end = 120}}) ==
        "step softmax<step exp<softmax sum<softmax mul<step next");
}

TEST_CASE("an event that overlaps another one in part is not its child") {
  CHECK(outline({{.name = "outer", .start = 0, .end = 100},
                 {.name = "mid", .start = 10, .end = 60},
                 {.name = "in", .start = 20, .end = 61},
                 {.name = "in2", .start = 62, .end = 64}}) == "outer mid<outer in<outer in2<outer");
}

TEST_CASE("table order: by start, then the longer one, then as in the file") {
  CHECK(outline({{.name = "late", .start = 50, .end = 60},
                 {.name = "short", .start = 0, .end = 10},
                 {.name = "first", .start = 0, .end = 40},
                 {.name = "second", .start = 0, .end = 40}}) ==
        "first second<first short<second late");
  // A GPU annotation around one kernel, as Kineto writes it: 1 ns early and 2 ns too long.
  CHECK(outline({{.name = "kernel", .category = "kernel", .start = 101, .end = 200},
                 {.name = "span", .category = "gpu_user_annotation", .start = 100, .end = 201}}) ==
        "kernel span");
}

TEST_CASE("times are the doubles that torch computes") {
  const Trace trace =
      written({{.name = "op", .start = 42606, .end = 44710},
               {.name = "span", .category = "gpu_user_annotation", .start = 42605, .end = 44711}});
  const OpTree tree(trace);
  CHECK(tree.start(0) == 42.606);
  CHECK(tree.end(0) == 44.71);
  CHECK(tree.elapsed(0) == 44.71 - 42.606);
  CHECK(tree.elapsed(0) != 2.104);
  CHECK(tree.start(1) == tree.start(0));
  CHECK(tree.end(1) == tree.end(0));
}

TEST_CASE("each thread is a tree of its own") {
  CHECK(outline({{.name = "forward", .start = 0, .end = 100},
                 {.name = "backward", .start = 10, .end = 90, .thread = "2"},
                 {.name = "mul", .start = 20, .end = 30, .thread = "2"},
                 {.name = "add", .start = 20, .end = 30}}) ==
        "forward backward mul<backward add<forward");
}

TEST_CASE("what is never a row is not in the tree") {
  CHECK(outline({{.name = "f.py(1): run", .category = "python_function", .start = 0, .end = 90},
                 {.name = "aten::is_leaf", .start = 1, .end = 2},
                 {.name = "aten::output_nr", .start = 3, .end = 4},
                 {.name = "aten::_version", .start = 5, .end = 6},
                 {.name = "profiler::_record_function_enter", .start = 7, .end = 8},
                 {.name = "profiler::_record_function_enter_new", .start = 9, .end = 10},
                 {.name = "profiler::_record_function_exit", .start = 11, .end = 12},
                 {.name = "aten::mul", .start = 13, .end = 14}}) == "aten::mul");
}

TEST_CASE("names are the table's") {
  CHECK(outline({{.name = "ProfilerStep#12", .start = 0, .end = 9}}) == "ProfilerStep*");
  CHECK(outline({{.name = "Pi", .start = 0, .end = 9}}) == "int*");
  CHECK(outline({{.name = "i", .start = 0, .end = 9}}) == "i");
  CHECK(outline({{.name = "_Z3fooi", .start = 0, .end = 9}}) == "foo(int)");
  CHECK(outline({{.name = "aten::mul.Tensor", .start = 0, .end = 9}}) == "aten::mul");
  CHECK(outline({{.name = "model.layer.0", .start = 0, .end = 9}}) == "model.layer.0");
  CHECK(outline({{.name = R"(\u001b[31mred\u009b)", .start = 0, .end = 9}}) ==
        R"(\x1b[31mred\xc2\x9b)");
}

TEST_CASE("a name of few characters cannot stand for gigabytes") {
  std::string bomb = "1AIiiE";  // A<int, int>, then 30 times A<previous, previous>
  for (int i = 0; i < 30; ++i) {
    const std::string previous =
        i < 10 ? std::string(1, char('0' + i)) : std::string(1, char('A' + i - 10));
    bomb += "S_IS" + previous + "_S" + previous + "_E";
  }
  CHECK(outline({{.name = "_Z1f" + bomb, .start = 0, .end = 9}}) == "_Z1f" + bomb);
}

TEST_CASE("an only child with its parent's name is merged into it") {
  const Trace trace =
      written({{.name = "div", .start = 0, .end = 100, .id = 1},
               {.name = "div", .start = 10, .end = 90, .id = 2},
               {.name = "div", .start = 20, .end = 80, .id = 3},
               {.name = "copy", .start = 30, .end = 40, .id = 4},
               {.name = "of 1", .category = "kernel", .start = 50, .end = 60, .id = 1},
               {.name = "of 3", .category = "kernel", .start = 70, .end = 80, .id = 3}});
  const OpTree tree(trace);
  CHECK(outline(tree) == "div copy<div of 1 of 3");
  // The kernels of the innermost replace the others, which are nobody's then.
  CHECK(names(tree, tree.kernels(0)) == "of 3");
  CHECK(names(tree, tree.children(0)) == "copy");
  CHECK(tree.launcher(find(trace, "of 3")) == 0);
  CHECK(tree.launcher(find(trace, "of 1")) == 0);

  CHECK(outline({{.name = "div", .start = 0, .end = 100},
                 {.name = "div", .start = 10, .end = 20},
                 {.name = "div", .start = 30, .end = 40}}) == "div div<div div<div");
  CHECK(outline({{.name = "ProfilerStep#1", .start = 0, .end = 100},
                 {.name = "ProfilerStep#2", .start = 10, .end = 20}}) == "ProfilerStep*");
}

TEST_CASE("merging a deep chain takes one pass") {
  std::vector<Written> events;
  constexpr std::int64_t kDepth = 100'000;  // quadratic would be minutes
  for (std::int64_t i = 0; i < kDepth; ++i)
    events.push_back({.name = "recurse", .start = i, .end = 2 * kDepth - i});
  events.push_back({.name = "leaf", .start = kDepth, .end = kDepth});
  CHECK(outline(events) == "recurse leaf<recurse");
}

TEST_CASE("kernels belong to the op whose External id they carry") {
  const Trace trace =
      written({{.name = "aten::mm", .start = 0, .end = 100, .id = 7},
               {.name = "cudaLaunchKernel",
                .category = "cuda_runtime",
                .start = 10,
                .end = 20,
                .id = 7,
                .correlation = 70},
               {.name = "later",
                .category = "kernel",
                .start = 300,
                .end = 400,
                .id = 7,
                .correlation = 71},
               {.name = "memset",
                .category = "gpu_memset",
                .start = 200,
                .end = 250,
                .id = 7,
                .correlation = 70},
               {.name = "stray", .category = "kernel", .start = 50, .end = 60, .correlation = 3}});
  const OpTree tree(trace);
  CHECK(names(tree, tree.kernels(0)) == "memset later");
  CHECK(tree.kernels(find(trace, "cudaLaunchKernel")).empty());
  CHECK(tree.launcher(find(trace, "later")) == 0);
  CHECK(tree.launcher(find(trace, "stray")) == kNoEvent);
  CHECK(outline(tree) == "aten::mm cudaLaunchKernel<aten::mm stray memset later");
}

TEST_CASE("many ops of one id share their kernels without many passes") {
  constexpr std::int64_t kCount = 30'000;  // of each; one pass per op would be minutes
  std::vector<Written> events = {{.name = "first", .start = 0, .end = 5, .id = 7}};
  for (std::int64_t i = 1; i < kCount; ++i) {
    events.push_back({.name = "op", .start = 10 * i, .end = 10 * i + 5, .id = 7});
    events.push_back(
        {.name = "k", .category = "kernel", .start = 10 * i, .end = 10 * i + 1, .id = 7});
  }
  events.push_back(
      {.name = "last", .start = 10 * kCount, .end = 10 * kCount + 5, .thread = "2", .id = 7});
  events.push_back({.name = "launch",
                    .category = "cuda_runtime",
                    .start = 10 * kCount + 1,
                    .end = 10 * kCount + 2,
                    .id = 7});
  const Trace trace = written(events);
  const OpTree tree(trace);
  CHECK(tree.kernels(0).size() == kCount - 1);
  CHECK(tree.launcher(2) == 0);
  CHECK(tree.parent(find(trace, "launch")) == find(trace, "last"));
  CHECK(trace::key_averages(trace).rows.size() == 5);
}

TEST_CASE("a runtime call of no op has its correlation for an id, as in torch") {
  const Trace trace = written(
      {{.name = "aten::mm", .start = 0, .end = 100, .id = 7},
       {.name = "cudaDeviceSynchronize",
        .category = "cuda_runtime",
        .start = 110,
        .end = 120,
        .correlation = 7},
       {.name = "k", .category = "kernel", .start = 50, .end = 60, .id = 7, .correlation = 70}});
  const OpTree tree(trace);
  CHECK(names(tree, tree.kernels(find(trace, "cudaDeviceSynchronize"))) == "k");
  CHECK(tree.launcher(find(trace, "k")) == 0);
}

TEST_CASE("runtime calls nest on the thread of their op") {
  CHECK(outline({{.name = "aten::mm", .start = 0, .end = 100, .thread = "2", .id = 7},
                 {.name = "launch",
                  .category = "cuda_runtime",
                  .start = 10,
                  .end = 20,
                  .thread = "99",
                  .id = 7},
                 {.name = "other", .start = 0, .end = 100, .thread = "99", .id = 8}}) ==
        "aten::mm other launch<aten::mm");
}

TEST_CASE("calls and overhead of no op nest on the thread that stopped the profiler") {
  const std::vector<Written> events = {
      {.name = "worker", .start = 0, .end = 100, .thread = "2", .id = 1},
      {.name = "main", .start = 0, .end = 100, .thread = "1", .id = 2},
      {.name = "wait",
       .category = "cuda_driver",
       .start = 10,
       .end = 20,
       .thread = "2",
       .correlation = 9},
      {.name = "flush", .category = "overhead", .start = 30, .end = 40, .thread = "0"}};
  CHECK(outline(events) == "worker main wait<main flush<main");

  std::vector<Written> stepping = events;
  stepping.push_back({.name = "ProfilerStep#1",
                      .category = "user_annotation",
                      .start = 5,
                      .end = 90,
                      .thread = "2"});
  CHECK(outline(stepping) ==
        "worker main ProfilerStep*<worker wait<ProfilerStep* flush<ProfilerStep*");
}

TEST_CASE("work that ends on another thread stays outside the tree") {
  const Trace trace =
      written({{.name = "step", .start = 0, .end = 100},
               {.name = "nccl:all_reduce", .category = "user_annotation", .start = 10, .end = 90},
               {.name = "aten::mul", .start = 20, .end = 30}});
  const OpTree tree(trace);
  CHECK(outline(tree) == "step nccl:all_reduce aten::mul<step");
  CHECK(tree.is_async(1));
  CHECK_FALSE(tree.is_async(0));
  // The span on the device and a user's own name are like all others.
  CHECK(outline({{.name = "a", .start = 0, .end = 100},
                 {.name = "gloo", .category = "user_annotation", .start = 10, .end = 20}}) ==
        "a gloo<a");
}

TEST_CASE("memory: exact ns, both ends inclusive, every open event of every thread") {
  const Trace trace = written({{.name = "outer", .start = 0, .end = 100},
                               {.name = "inner", .start = 10, .end = 20},
                               {.name = "other", .start = 20, .end = 50, .thread = "2"},
                               {.name = "k", .category = "kernel", .start = 0, .end = 100}},
                              {{.time = 10, .bytes = 1},
                               {.time = 20, .bytes = 2, .device_type = 1},
                               {.time = 21, .bytes = 4, .device_type = 20},
                               {.time = 100, .bytes = -8},
                               {.time = 101, .bytes = 16, .thread = "2"},
                               {.time = 30, .bytes = 32, .device_type = 3}});
  const OpTree tree(trace);
  const auto bytes = [&](std::string_view name) {
    const OpTree::Memory memory = tree.memory(find(trace, name));
    return std::pair(memory.cpu, memory.device);
  };
  CHECK(bytes("outer") == std::pair<std::int64_t, std::int64_t>(1 - 8, 2 + 4));
  CHECK(bytes("inner") == std::pair<std::int64_t, std::int64_t>(1, 2));
  CHECK(bytes("other") == std::pair<std::int64_t, std::int64_t>(0, 2 + 4));
  CHECK(bytes("k") == std::pair<std::int64_t, std::int64_t>(0, 0));
  REQUIRE(tree.memory_rows().size() == 1);
  CHECK(trace.memory[tree.memory_rows()[0].record].bytes == 16);
}

TEST_CASE("a failed allocation is a row below the op around it") {
  const Trace trace =
      written({{.name = "aten::empty", .start = 0, .end = 100},
               {.name = "aten::empty", .start = 10, .end = 90}},
              {{.time = 50, .bytes = 64, .device_type = 1, .name = "[OutOfMemory]"},
               {.time = 5, .bytes = 64, .device_type = 1, .name = "[OutOfMemory]"}});
  const OpTree tree(trace);
  REQUIRE(tree.memory_rows().size() == 2);
  CHECK(tree.memory_rows()[0].parent == 0);
  CHECK(tree.memory_rows()[1].parent == 1);
  // With two children the outer op has no only child to merge.
  CHECK(outline(tree) == "aten::empty aten::empty<aten::empty");
}

TEST_CASE("absurd numbers in a file do no harm") {
  Trace trace = written({{.name = "a", .end = 9, .id = 1},
                         {.name = "b", .category = "gpu_user_annotation", .end = 9},
                         {.name = "c", .category = "kernel", .end = 9, .id = 1}},
                        {{.time = 5, .bytes = 1}, {.time = 6, .bytes = 1}});
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  trace.events[0].start_ns = trace.events[0].duration_ns = kMost;
  trace.events[1].start_ns = kLeast;
  trace.events[2].external_id = kLeast;
  trace.memory[0].bytes = trace.memory[1].bytes = kMost;
  trace.start_ns = kLeast;
  const OpTree tree(trace);
  CHECK(tree.order().size() == 3);
}

TEST_CASE("a CUDA graph's kernels are nobody's, or their launch's on request") {
  const Trace trace =
      written({{.name = "decode", .category = "user_annotation", .start = 0, .end = 100, .id = 3},
               {.name = "cudaGraphLaunch",
                .category = "cuda_runtime",
                .start = 10,
                .end = 20,
                .correlation = 9},
               {.name = "a", .category = "kernel", .start = 50, .end = 60, .correlation = 9},
               {.name = "b", .category = "kernel", .start = 60, .end = 65, .correlation = 9},
               {.name = "other", .category = "kernel", .start = 70, .end = 80, .correlation = 8}});
  const std::uint32_t launch = find(trace, "cudaGraphLaunch");
  CHECK(OpTree(trace).kernels(launch).empty());
  const OpTree tree(trace, {.graph_kernels_to_launch = true});
  CHECK(names(tree, tree.kernels(launch)) == "a b");

  const auto total_of = [&](bool on_request, const std::string& name) {
    for (const trace::Row& row :
         trace::key_averages(trace, {.graph_kernels_to_launch = on_request}).rows)
      if (row.name == name) return std::llround(row.device_time_total * 1000);
    return -1LL;
  };
  CHECK(total_of(false, "decode") == 0);
  CHECK(total_of(true, "cudaGraphLaunch") == 15);
  CHECK(total_of(true, "decode") == 15);
  CHECK(total_of(true, "a") == 10);
}
