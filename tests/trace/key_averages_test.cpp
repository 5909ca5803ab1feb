// SPDX-License-Identifier: Apache-2.0
#include "trace/key_averages.h"

#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "trace/op_arguments.h"
#include "written.h"

using trace::Averages;
using trace::key_averages;
using trace::Row;

namespace {

// The only row of a name, on the CPU unless said otherwise.
Row row_of(const Averages& averages, std::string_view name, bool on_device = false) {
  const Row* found = nullptr;
  for (const Row& row : averages.rows) {
    if (row.name != name || row.on_device != on_device) continue;
    REQUIRE(found == nullptr);
    found = &row;
  }
  REQUIRE(found != nullptr);
  return *found;
}

std::string three_digits(double value) {
  return fmt::format("{:.3f}", value);
}

std::int64_t flops(const std::string& name, const std::string& arguments) {
  const auto trace =
      written({{.name = name, .end = 10, .arguments = arguments}}, {}, R"("with_flops": 1)");
  return key_averages(trace).rows.at(0).flops;
}

std::string shapes(const std::string& arguments) {
  const auto trace = written({{.name = "op", .end = 10, .arguments = arguments}});
  return key_averages(trace, {.group_by_input_shape = true}).rows.at(0).input_shapes;
}

const std::string kTensors = R"("Input type": ["float", "float", "float"])";

}  // namespace

TEST_CASE("self time is what the direct children leave") {
  const Averages averages =
      key_averages(written({{.name = "outer", .start = 0, .end = 100'000},
                            {.name = "mid", .start = 10'000, .end = 60'000},
                            {.name = "in", .start = 20'000, .end = 61'000},
                            {.name = "in2", .start = 62'000, .end = 64'000}}));
  CHECK(row_of(averages, "outer").cpu_time_total == 100);
  CHECK(row_of(averages, "outer").self_cpu_time_total == 7);  // 100 - 50 - 41 - 2
  CHECK(row_of(averages, "mid").self_cpu_time_total == 50);
}

TEST_CASE("children that overlap leave a negative self time") {
  const Averages averages = key_averages(written({{.name = "outer", .start = 0, .end = 100'000},
                                                  {.name = "a", .start = 0, .end = 60'000},
                                                  {.name = "b", .start = 36'000, .end = 80'000}}));
  CHECK(row_of(averages, "outer").self_cpu_time_total == -4);
}

TEST_CASE("a recursive op counts each level's whole time") {
  const Averages averages = key_averages(written({{.name = "f", .start = 0, .end = 100'000},
                                                  {.name = "g", .start = 1'000, .end = 99'000},
                                                  {.name = "f", .start = 2'000, .end = 52'000}}));
  CHECK(row_of(averages, "f").count == 2);
  CHECK(row_of(averages, "f").cpu_time_total == 150);
  CHECK(row_of(averages, "f").cpu_time() == 75);
}

// 2104 + 1767 ns in two calls is 1.9355 us each: a tie that exact arithmetic and dur / 1000 print
// as 1.935, torch's end - start as 1.936.
TEST_CASE("averages carry the rounding of torch's doubles") {
  const Averages averages = key_averages(written({{.name = "op", .start = 42606, .end = 44710},
                                                  {.name = "op", .start = 47172, .end = 48939}}));
  CHECK(three_digits(row_of(averages, "op").cpu_time()) == "1.936");
  CHECK(three_digits((2.104 + 1.767) / 2) == "1.935");
}

TEST_CASE("device time: an op's kernels and its children's; kernels have rows, too") {
  const Averages averages = key_averages(written(
      {{.name = "attention", .category = "user_annotation", .start = 0, .end = 100'000, .id = 1},
       {.name = "aten::matmul", .start = 10'000, .end = 50'000, .id = 2},
       {.name = "aten::bmm", .start = 20'000, .end = 40'000, .id = 3},
       {.name = "gemm", .category = "kernel", .start = 200'000, .end = 230'000, .id = 3},
       {.name = "fill", .category = "gpu_memset", .start = 190'000, .end = 191'000, .id = 2},
       {.name = "stray", .category = "kernel", .start = 150'000, .end = 154'000},
       {.name = "attention",
        .category = "gpu_user_annotation",
        .start = 189'999,
        .end = 230'001,
        .id = 1}}));
  CHECK(averages.use_device == "CUDA");
  CHECK(row_of(averages, "aten::bmm").self_device_time_total == 30);
  CHECK(row_of(averages, "aten::matmul").device_time_total == 31);
  CHECK(row_of(averages, "aten::matmul").self_device_time_total == 1);
  CHECK(row_of(averages, "attention").device_time_total == 31);
  CHECK(row_of(averages, "attention").self_device_time_total == 0);
  CHECK(row_of(averages, "attention", true).device_time_total == 40);
  CHECK(row_of(averages, "attention", true).is_annotation);
  CHECK(row_of(averages, "gemm", true).self_device_time_total == 30);
  CHECK(row_of(averages, "gemm", true).cpu_time_total == 0);
  CHECK(row_of(averages, "stray", true).count == 1);
}

TEST_CASE("one row per name, device and kind, in order of first appearance") {
  const Averages averages = key_averages(written(
      {{.name = "ProfilerStep#2", .category = "user_annotation", .start = 0, .end = 100},
       {.name = "mul", .start = 10, .end = 20},
       {.name = "mul", .category = "user_annotation", .start = 30, .end = 40},
       {.name = "mul", .category = "kernel", .start = 50, .end = 60},
       {.name = "ProfilerStep#3", .category = "user_annotation", .start = 100, .end = 190}}));
  REQUIRE(averages.rows.size() == 4);
  CHECK(averages.rows[0].name == "ProfilerStep*");
  CHECK(averages.rows[0].count == 2);
  CHECK(averages.rows[0].is_top_level);
  CHECK_FALSE(averages.rows[1].is_top_level);
  CHECK_FALSE(averages.rows[1].is_annotation);
  CHECK(averages.rows[2].is_annotation);
  CHECK(averages.rows[3].on_device);
  CHECK(averages.rows[3].is_top_level);
}

TEST_CASE("grouped by input shape, a list of tensors is one empty shape") {
  CHECK(shapes("") == "[]");
  CHECK(shapes(R"("Input Dims": [])") == "[]");
  CHECK(shapes(R"("Input Dims": [[8, 16, 1024, 64], [], []])") == "[[8, 16, 1024, 64], [], []]");
  CHECK(shapes(R"("Input Dims": [[2,3],[4]])") == "[[2, 3], [4]]");
  CHECK(shapes(R"("Input Dims": [[[2048, 512], [2048]], []])") == "[[], []]");
  CHECK(shapes(R"("Input Dims": "none")") == "[]");

  const auto trace =
      written({{.name = "mm", .end = 10, .arguments = R"("Input Dims": [[2]])"},
               {.name = "mm", .start = 20, .end = 30, .arguments = R"("Input Dims": [[3]])"},
               {.name = "mm", .start = 40, .end = 50, .arguments = R"("Input Dims": [[2]])"}});
  CHECK(key_averages(trace).rows.at(0).count == 3);
  CHECK(key_averages(trace).rows.at(0).input_shapes.empty());
  const Averages grouped = key_averages(trace, {.group_by_input_shape = true});
  REQUIRE(grouped.rows.size() == 2);
  CHECK(grouped.rows[0].count == 2);
  CHECK(grouped.rows[1].input_shapes == "[[3]]");
}

TEST_CASE("memory: self is what the children leave, free memory is negative") {
  const Averages averages = key_averages(written({{.name = "attn", .start = 0, .end = 100},
                                                  {.name = "empty", .start = 10, .end = 20},
                                                  {.name = "empty", .start = 30, .end = 40}},
                                                 {{.time = 15, .bytes = 1024},
                                                  {.time = 35, .bytes = 512, .device_type = 1},
                                                  {.time = 50, .bytes = -2048},
                                                  {.time = 200, .bytes = -7}}));
  CHECK(averages.profile_memory);
  CHECK(row_of(averages, "attn").cpu_memory_usage == 1024 - 2048);
  CHECK(row_of(averages, "attn").self_cpu_memory_usage == -2048);
  CHECK(row_of(averages, "attn").device_memory_usage == 512);
  CHECK(row_of(averages, "attn").self_device_memory_usage == 0);
  CHECK(row_of(averages, "empty").self_cpu_memory_usage == 1024);
  CHECK(row_of(averages, "[memory]").count == 1);
  CHECK(row_of(averages, "[memory]").self_cpu_memory_usage == -7);
  CHECK(averages.rows.back().name == "[memory]");
}

TEST_CASE("a failed allocation allocates nothing") {
  const Averages averages =
      key_averages(written({{.name = "empty", .start = 0, .end = 100}},
                           {{.time = 50, .bytes = 64, .device_type = 1, .name = "[OutOfMemory]"}}));
  CHECK(row_of(averages, "[OutOfMemory]").self_device_memory_usage == 0);
  CHECK_FALSE(row_of(averages, "[OutOfMemory]").is_top_level);
  CHECK(row_of(averages, "empty").self_device_memory_usage == 0);
}

TEST_CASE("overhead has the kernels of the op around it, a second time") {
  const Averages averages = key_averages(written(
      {{.name = "aten::fill_", .start = 0, .end = 90'000, .id = 5},
       {.name = "Activity Buffer Request", .category = "overhead", .start = 1'000, .end = 50'000},
       {.name = "k", .category = "kernel", .start = 60'000, .end = 62'000, .id = 5}}));
  CHECK(row_of(averages, "Activity Buffer Request").self_device_time_total == 2);
  CHECK(row_of(averages, "aten::fill_").self_device_time_total == 2);
  CHECK(row_of(averages, "aten::fill_").device_time_total == 4);
}

TEST_CASE("a sync of no op carries its own correlation in the place of an op's id") {
  const Averages averages =
      key_averages(written({{.name = "aten::item", .start = 0, .end = 9'000, .id = 7},
                            {.name = "Stream Sync",
                             .category = "cuda_sync",
                             .start = 1'000,
                             .end = 2'000,
                             .id = 7,
                             .correlation = 7},
                            {.name = "Event Sync",
                             .category = "cuda_sync",
                             .start = 3'000,
                             .end = 7'000,
                             .id = 7,
                             .correlation = 8}}));
  CHECK(row_of(averages, "aten::item").device_time_total == 4);
}

TEST_CASE("a recording of the device is known without a device event") {
  const auto device = [](const std::vector<Written>& events) {
    return key_averages(written(events)).use_device;
  };
  const Written sync = {
      .name = "cudaDeviceSynchronize", .category = "cuda_runtime", .end = 9, .correlation = 1};
  const Written launch = {
      .name = "cudaLaunchKernel", .category = "cuda_runtime", .end = 9, .correlation = 2};
  CHECK(device({sync}) == "CUDA");
  CHECK(device({launch, sync}).empty());
  CHECK(device({launch}).empty());
  CHECK(device({{.name = "Activity Buffer Request", .category = "overhead", .end = 9}}) == "CUDA");
}

TEST_CASE("what had not ended when the profiler stopped has total time alone") {
  const Averages averages = key_averages(
      written({{.name = "open", .start = 0, .end = 50'000, .arguments = R"("finished": false)"},
               {.name = "op", .start = 10'000, .end = 20'000}}));
  CHECK(row_of(averages, "open").is_async);
  CHECK(row_of(averages, "open").self_cpu_time_total == 0);
  CHECK(row_of(averages, "op").is_top_level);
}

TEST_CASE("work that ends on another thread has total time alone") {
  const Averages averages = key_averages(written(
      {{.name = "gloo:all_reduce", .category = "user_annotation", .start = 0, .end = 50'000}},
      {{.time = 10, .bytes = 8}}));
  const Row row = row_of(averages, "gloo:all_reduce");
  CHECK(row.is_async);
  CHECK(row.cpu_time_total == 50);
  CHECK(row.self_cpu_time_total == 0);
  CHECK(row.cpu_memory_usage == 8);
  CHECK(row.self_cpu_memory_usage == 0);
}

TEST_CASE("what the profiler was asked for") {
  CHECK(key_averages(written({}, {}, R"("with_flops": 1)")).with_flops);
  CHECK(key_averages(written({}, {}, R"("profile_memory": 1)")).profile_memory);
  CHECK_FALSE(key_averages(written({})).with_flops);
  CHECK_FALSE(key_averages(written({})).profile_memory);
  CHECK(key_averages(written({{.name = "a", .end = 1}})).use_device.empty());
}

TEST_CASE("FLOPs of matrix products") {
  CHECK(flops("aten::mm", R"("Input Dims": [[5, 7], [7, 3]], )" + kTensors) == 2 * 5 * 7 * 3);
  CHECK(flops("aten::addmm", R"("Input Dims": [[3], [5, 7], [7, 3]], )" + kTensors) ==
        2 * 5 * 7 * 3);
  CHECK(flops("aten::bmm", R"("Input Dims": [[4, 5, 7], [4, 7, 3]], )" + kTensors) ==
        2 * 4 * 5 * 7 * 3);
  CHECK(flops("aten::baddbmm", R"("Input Dims": [[1], [4, 5, 7], [4, 7, 3]], )" + kTensors) ==
        2 * 4 * 5 * 7 * 3);
  CHECK(flops("aten::mm", R"("Input Dims": [[5, 0], [0, 3]], )" + kTensors) == 0);
  CHECK(flops("aten::bmm", R"("Input Dims": [[0, 5, 7], [0, 7, 3]], )" + kTensors) == 0);
  CHECK(flops("aten::mm", R"("Input Dims": [[], []], )" + kTensors) == 0);
  CHECK(flops("aten::mm", R"("Input Dims": [[5, 7]], "Input type": ["float"])") == 0);
}

TEST_CASE("FLOPs of mul and add: the elements of the first argument") {
  CHECK(flops("aten::mul",
              R"("Input Dims": [[1, 2, 128, 128], []], "Input type": ["float", "Scalar"])") ==
        32768);
  CHECK(flops("aten::add", R"("Input Dims": [[], [3]], )" + kTensors) == 1);
  CHECK(flops("aten::mul.Tensor", R"("Input Dims": [[3], [3]], )" + kTensors) == 3);
  CHECK(flops("aten::add", R"("Input Dims": [[], [3]], "Input type": ["Scalar", "float"])") == 0);
  CHECK(flops("aten::mul_", R"("Input Dims": [[3], [3]], )" + kTensors) == 0);
  CHECK(flops("aten::div", R"("Input Dims": [[3], [3]], )" + kTensors) == 0);
  CHECK(flops("aten::mul", "") == 0);
}

TEST_CASE("FLOPs of conv2d") {
  const auto conv2d = [](const std::string& dims, const std::string& concrete) {
    return flops(
        "aten::conv2d",
        R"("Input type": ["float", "float", "", "ScalarList", "ScalarList", "ScalarList", "Scalar"], "Input Dims": [)" +
            dims + R"(, [], [], [], [], []], "Concrete Inputs": ["", "", "", )" + concrete + "]");
  };
  const std::string kImage = "[2, 4, 8, 7], [6, 2, 3, 2]";
  CHECK(conv2d(kImage, R"("[1, 1]", "[0, 0]", "[1, 1]", "1")") ==
        2 * 2 * (6 * 6) * (3 * 2) * 4 * 6);
  CHECK(conv2d(kImage, R"("[2, 1]", "[1, 0]", "[1, 1]", "2")") ==
        2 * 2 * (4 * 6) * (3 * 2) * 4 * 6 / 2);
  CHECK(conv2d(kImage, R"("[1, 1]", "[0, 0]", "[2, 3]", "1")") ==
        2 * 2 * (4 * 4) * (3 * 2) * 4 * 6);
  CHECK(conv2d(kImage, R"("[1, 1]", "same", "[1, 1]", "1")") == 0);
  CHECK(conv2d(kImage, R"("[0, 1]", "[0, 0]", "[1, 1]", "1")") == 0);
  CHECK(conv2d(kImage, R"("[1, 1]", "[0, 0]", "[1, 1]", "0")") == 0);
  CHECK(conv2d("[4, 8, 7], [6, 2, 3, 2]", R"("[1, 1]", "[0, 0]", "[1, 1]", "1")") == 0);
  CHECK(conv2d(kImage, R"("[1, 1]", "[0, 0]", "[1, 1]")") == 0);
  CHECK(
      conv2d(
          kImage,
          R"("[9223372036854775807, 1]", "[9223372036854775807, 0]", "[-9223372036854775808, 1]", "1")") >=
      0);
}

TEST_CASE("no FLOPs are worked out where none were asked for") {
  const auto trace = written(
      {{.name = "aten::mul", .end = 10, .arguments = R"("Input Dims": [[3], [3]], )" + kTensors}});
  CHECK(key_averages(trace).rows.at(0).flops == 0);
}
