// SPDX-License-Identifier: Apache-2.0
//
// Occupancy worked out from launches: figures computed by hand from NVIDIA's rules, what profilers
// printed for the same launches, and why Kineto's estimate is 0 for some of them.
#include "explain/occupancy.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>

#include "trace/reader.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using explain::limit_text;
using explain::occupancy;
using explain::Occupancy;

namespace {

trace::Launch launch(std::array<std::uint32_t, 3> grid, std::array<std::uint32_t, 3> block,
                     int registers, std::int64_t shared_memory) {
  trace::Launch result;
  result.grid = grid;
  result.block = block;
  result.registers_per_thread = registers;
  result.shared_memory = shared_memory;
  return result;
}

// Only what the table by compute capability cannot know: the rest must come from there.
trace::DeviceProperties device(int major, int minor, int multiprocessors) {
  trace::DeviceProperties result;
  result.name = "NVIDIA";
  result.compute_major = major;
  result.compute_minor = minor;
  result.multiprocessors = multiprocessors;
  return result;
}

const trace::DeviceProperties kH200 = device(9, 0, 132);
const trace::DeviceProperties kA100 = device(8, 0, 108);
const trace::DeviceProperties kB200 = device(10, 0, 148);

trace::Trace recording(const std::string& name) {
  return trace::read(std::string(PROF_TEST_DATA "/pytorch/") + name + ".json.gz");
}

}  // namespace

// 255 registers of 128 threads, rounded up to 256: 8192 a warp, so a partition of 16384 holds two
// of them, four partitions eight: two blocks of four warps.
TEST_CASE("Registers limit FlashAttention-2 on purpose") {
  const auto result = occupancy(launch({8, 8, 16}, {128, 1, 1}, 255, 49152), kH200);
  REQUIRE(result);
  CHECK(result->blocks_per_multiprocessor == 2);
  CHECK(result->warps_per_multiprocessor == 8);
  CHECK(result->most_warps == 64);
  CHECK_THAT(result->theoretical, WithinAbs(0.125, 1e-12));
  CHECK(limit_text(*result) == "registers");
  CHECK_THAT(result->waves, WithinAbs(1024.0 / (132 * 2), 1e-12));
}

// The same kernel with head_dim 32 on an Orin: Nsight Systems printed 16.6667 %
// (github.com/Dao-AILab/flash-attention/issues/1202).
TEST_CASE("An SM with 48 warps") {
  const auto result = occupancy(launch({13, 1, 8}, {128, 1, 1}, 255, 24576), device(8, 7, 16));
  REQUIRE(result);
  CHECK_THAT(result->theoretical, WithinAbs(1.0 / 6, 1e-12));
  CHECK(limit_text(*result) == "registers");
}

TEST_CASE("Each resource can be the one that limits") {
  const auto limit_of = [](const trace::Launch& l, const trace::DeviceProperties& d) {
    const auto result = occupancy(l, d);
    REQUIRE(result);
    return limit_text(*result);
  };
  const std::array<std::uint32_t, 3> many{100000, 1, 1};
  // 208 KiB of 228: one block, 12 warps; its registers (168 x 384) allow one block, too.
  CHECK(limit_of(launch(many, {384, 1, 1}, 168, 213188), kH200) == "registers, shared memory");
  CHECK(limit_of(launch(many, {384, 1, 1}, 64, 213188), kH200) == "shared memory");
  CHECK(limit_of(launch(many, {128, 1, 1}, 128, 0), kH200) == "registers");
  // 640 threads are 20 warps: three blocks leave 4 of 64 warps that no block fits into.
  CHECK(limit_of(launch(many, {640, 1, 1}, 16, 0), kH200) == "threads");
  // With 32 registers the 65536 of an SM are used up by 64 warps, too: three blocks either way.
  CHECK(limit_of(launch(many, {640, 1, 1}, 32, 0), kH200) == "registers, threads");
  CHECK(limit_of(launch(many, {32, 1, 1}, 16, 0), kH200) == "blocks");  // 32 of them, one warp each
  CHECK(limit_of(launch(many, {128, 1, 1}, 32, 0), kH200) == "none");
  CHECK(limit_of(launch({64, 1, 1}, {128, 1, 1}, 32, 0), kH200) == "grid");
  CHECK(limit_of(launch(many, {1024, 1, 1}, 32, 0), device(8, 6, 84)) == "threads");  // 48 warps
}

TEST_CASE("A small grid does not reach what its launch allows") {
  const auto result = occupancy(launch({33, 1, 1}, {256, 1, 1}, 32, 0), kH200);
  REQUIRE(result);
  CHECK_THAT(result->theoretical, WithinAbs(1.0, 1e-12));
  CHECK(result->by_grid);
  CHECK_THAT(result->waves, WithinAbs(33.0 / (132 * 8), 1e-12));
  CHECK_THAT(result->reached, WithinAbs(33.0 / (132 * 8), 1e-12));
}

// The driver keeps 1 KiB per block from compute capability 8.0 on: four blocks of 40 KiB fit into
// 164 KiB without it, with it four of 41.
TEST_CASE("Shared memory that the driver keeps counts") {
  const auto blocks = [](std::int64_t bytes, const trace::DeviceProperties& d) {
    return occupancy(launch({10000, 1, 1}, {64, 1, 1}, 16, bytes), d)->blocks_per_multiprocessor;
  };
  CHECK(blocks(40 * 1024, kA100) == 4);
  CHECK(blocks(40 * 1024 + 1, kA100) == 3);
  CHECK(blocks(48 * 1024, device(7, 0, 80)) == 2);  // Volta: 96 KiB, nothing is kept
  CHECK(blocks(0, device(7, 5, 40)) == 16);
}

// Resident blocks of 256 threads with 64 registers and 20000 bytes: by hand from NVIDIA's tables.
TEST_CASE("All architectures from Volta to Blackwell") {
  struct Expected {
    int major, minor, blocks, warps;
  };
  for (const auto& [major, minor, blocks, warps] :
       {Expected{7, 0, 4, 64}, Expected{7, 5, 3, 32}, Expected{8, 0, 4, 64}, Expected{8, 6, 4, 48},
        Expected{8, 7, 4, 48}, Expected{8, 9, 4, 48}, Expected{9, 0, 4, 64}, Expected{10, 0, 4, 64},
        Expected{10, 3, 4, 64}, Expected{11, 0, 4, 48}, Expected{12, 0, 4, 48},
        Expected{12, 1, 4, 48}}) {
    INFO(major << '.' << minor);
    const auto result =
        occupancy(launch({9999, 1, 1}, {256, 1, 1}, 64, 20000), device(major, minor, 40));
    REQUIRE(result);
    CHECK(result->blocks_per_multiprocessor == blocks);
    CHECK(result->most_warps == warps);
  }
}

TEST_CASE("What the file says of its device goes before the table") {
  trace::DeviceProperties half = kH200;
  half.shared_memory_per_multiprocessor = 116736;
  half.max_threads_per_multiprocessor = 1024;
  half.registers_per_multiprocessor = 32768;
  const auto result = occupancy(launch({9999, 1, 1}, {128, 1, 1}, 32, 50 * 1024), half);
  REQUIRE(result);
  CHECK(result->blocks_per_multiprocessor == 2);
  CHECK(result->most_warps == 32);
  CHECK(limit_text(*result) == "shared memory");
}

TEST_CASE("No figure where the file does not say enough, and why") {
  const trace::Launch good = launch({64, 1, 1}, {128, 1, 1}, 32, 0);
  const auto why = [](const trace::Launch& l, const trace::DeviceProperties& d) {
    CHECK_FALSE(occupancy(l, d));
    CHECK_FALSE(explain::kineto_estimate(l, d));
    CHECK(explain::kineto_difference(l, d).empty());
    return explain::why_unknown(l, d);
  };
  CHECK(explain::why_unknown(good, kH200).empty());
  CHECK_THAT(why(trace::Launch{}, kH200), ContainsSubstring("how it was launched"));
  CHECK_THAT(why(good, trace::DeviceProperties{}), ContainsSubstring("does not describe"));
  CHECK_THAT(why(launch({64, 1, 1}, {128, 1, 1}, 0, 0), kH200), ContainsSubstring("registers"));
  CHECK_THAT(why(good, device(3, 5, 15)), ContainsSubstring("3.5 is not known"));
  // An AMD device's "compute capability" 9.0 is no Hopper.
  trace::DeviceProperties amd = device(9, 0, 104);
  amd.name = "AMD Instinct MI210";
  amd.warp_size = 64;
  CHECK_THAT(why(good, amd), ContainsSubstring("none of NVIDIA's"));
  CHECK_THAT(why(launch({64, 1, 1}, {2048, 1, 1}, 32, 0), kH200), ContainsSubstring("no such"));
  CHECK_THAT(why(launch({64, 1, 1}, {128, 1, 1}, 32, 400000), kH200), ContainsSubstring("no such"));
  CHECK_THAT(why(launch({64, 1, 1}, {1024, 1, 1}, 255, 0), kH200), ContainsSubstring("no such"));
  CHECK_THAT(why(launch({64, 1, 1}, {128, 1, 1}, 1 << 30, 0), kH200), ContainsSubstring("no such"));
  const std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  CHECK_THAT(why(launch({most, most, most}, {most, most, most}, 32, 0), kH200),
             ContainsSubstring("no such"));
  CHECK_THAT(why(launch({64, 1, 1}, {128, 1, 1}, 32, -1), kH200), ContainsSubstring("no such"));
  CHECK_THAT(
      why(launch({64, 1, 1}, {128, 1, 1}, 32, std::numeric_limits<std::int64_t>::max()), kH200),
      ContainsSubstring("no such"));
}

TEST_CASE("A device that cannot be is survived") {
  trace::DeviceProperties absurd = kH200;
  constexpr int kMost = std::numeric_limits<int>::max();
  absurd.max_threads_per_multiprocessor = absurd.registers_per_multiprocessor = kMost;
  absurd.registers_per_block = absurd.multiprocessors = kMost;
  absurd.shared_memory_per_block = absurd.shared_memory_per_block_optin =
      absurd.shared_memory_per_multiprocessor = std::numeric_limits<std::int64_t>::max();
  const trace::Launch any = launch({64, 1, 1}, {128, 1, 1}, 32, 1024);
  REQUIRE(occupancy(any, absurd));
  CHECK(occupancy(any, absurd)->theoretical <= 1);
  absurd.compute_major = absurd.compute_minor = kMost;
  CHECK_FALSE(occupancy(any, absurd));
}

// Every kernel of every recording: Kineto's figure follows from its formula alone, whatever call
// launched the kernel.
TEST_CASE("Kineto's estimate is reproduced for every launch of the recordings") {
  std::int64_t checked = 0;
  for (const char* name :
       {"naive", "naive_full", "inplace", "sdpa_flash", "sdpa_math", "cuda_stack"}) {
    const trace::Trace trace = recording(name);
    for (const trace::Event& event : trace.events) {
      if (event.category != trace::Category::kernel) continue;
      const trace::Launch& l = trace.launch_of(event);
      const auto estimate = explain::kineto_estimate(l, explain::device_of(trace, l));
      INFO(name << ": " << trace.name(event));
      REQUIRE(estimate);
      CHECK(*estimate == std::lround(l.occupancy_percent));
      ++checked;
    }
  }
  CHECK(checked > 100);
}

// Is Kineto's 0 % for cuDNN and cuBLAS the work of the driver's launch calls, or of shared memory?
// Both kinds of launch exist with both figures, and shared memory tells them apart. The rows are
// launches from recordings: ours (tests/data/pytorch) and those of Holistic Trace Analysis and
// TraceLens, with what Kineto printed.
TEST_CASE("Kineto's 0 % comes from more than 48 KiB of shared memory, not from the launch call") {
  struct Recorded {
    const char* call;
    const char* from;
    trace::DeviceProperties device;
    trace::Launch launch;
    int kineto;
    double ours;
  };
  const Recorded rows[] = {
      // The driver's call, little shared memory: not 0.
      {"cuLaunchKernelEx", "B200, TensorRT-LLM attention", kB200,
       launch({4, 8, 1}, {512, 1, 1}, 128, 42160), 5, 0.25},
      {"cuLaunchKernel", "B200, Triton pointwise", kB200, launch({56, 1, 1}, {32, 1, 1}, 16, 0), 1,
       0.5},
      // The driver's call, much shared memory: 0.
      {"cuLaunchKernelEx", "H200, cuBLAS nvjet", kH200,
       launch({2, 66, 1}, {384, 1, 1}, 168, 213188), 0, 0.1875},
      {"cuLaunchKernelEx", "B200, TensorRT-LLM matmul", kB200,
       launch({8, 342, 1}, {576, 1, 1}, 96, 121312), 0, 0.28125},
      // The runtime's call, little shared memory: not 0.
      {"cudaLaunchKernel", "H200, FlashAttention-2", kH200,
       launch({8, 8, 16}, {128, 1, 1}, 255, 49152), 13, 0.125},
      {"cudaLaunchKernelExC", "H200, cuBLAS fp32", kH200,
       launch({8, 8, 128}, {128, 1, 1}, 255, 33792), 13, 0.125},
      // The runtime's call, much shared memory: 0.
      {"cudaLaunchKernel", "A100, CUTLASS tf32", kA100, launch({32, 1, 2}, {128, 1, 1}, 240, 98304),
       0, 0.0625},
  };
  for (const Recorded& row : rows) {
    INFO(row.from << ", " << row.call);
    CHECK(explain::kineto_estimate(row.launch, row.device) == row.kineto);
    CHECK((row.kineto == 0) == (row.launch.shared_memory > 48 * 1024));
    const auto result = occupancy(row.launch, row.device);
    REQUIRE(result);
    CHECK_THAT(result->theoretical, WithinAbs(row.ours, 1e-12));
    trace::Launch printed = row.launch;
    printed.occupancy_percent = row.kineto;
    const std::string sentence = explain::kineto_difference(printed, row.device);
    if (row.kineto == 0) {
      CHECK_THAT(sentence, ContainsSubstring("Kineto prints 0 %") &&
                               ContainsSubstring("default limit of 48.00 KiB"));
    }
    // What Kineto would print if it asked with the limit that the kernel has: our figure.
    trace::DeviceProperties allowed = row.device;
    allowed.shared_memory_per_block = 227 * 1024;
    const double reached = 100 * result->reached;
    CHECK_THAT(*explain::kineto_estimate(row.launch, allowed), WithinAbs(reached, 0.5 + 1e-6));
  }
}

// The same in our own recording, by the calls that stand in the file.
TEST_CASE("In one recording, both kinds of call launch kernels of both kinds") {
  std::unordered_map<std::string, int> nonzero, zero;
  for (const char* name : {"naive", "sdpa_math", "sdpa_flash"}) {
    const trace::Trace trace = recording(name);
    std::unordered_map<std::int64_t, std::string> call_of;
    for (const trace::Event& event : trace.events) {
      const bool is_call = event.category == trace::Category::cuda_runtime ||
                           event.category == trace::Category::cuda_driver;
      if (is_call) call_of.emplace(event.correlation, trace.name(event));
    }
    for (const trace::Event& event : trace.events) {
      const auto call = call_of.find(event.correlation);
      if (event.category != trace::Category::kernel || call == call_of.end()) continue;
      const trace::Launch& l = trace.launch_of(event);
      if (l.grid[0] * l.grid[1] * l.grid[2] < 132) continue;  // too small a grid is another story
      ++(l.occupancy_percent > 0 ? nonzero : zero)[call->second];
      CHECK((l.occupancy_percent == 0) == (l.shared_memory > 48 * 1024));
    }
  }
  CHECK(zero["cuLaunchKernelEx"] > 0);
  CHECK(nonzero["cudaLaunchKernel"] > 0);
  CHECK(nonzero["cudaLaunchKernelExC"] > 0);  // the same extended launch, by the runtime
}

TEST_CASE("Why Kineto's figure is another, in other cases") {
  trace::Launch small = launch({1, 1, 1}, {128, 1, 1}, 16, 0);
  small.occupancy_percent = 0;
  CHECK(explain::kineto_difference(small, kH200) ==
        "Kineto prints 0 %: 1 block on 132 SMs, where 16 would fit on each");
  trace::Launch odd =
      launch({9999, 1, 1}, {33, 1, 1}, 16, 0);  // two warps, the second nearly empty
  odd.occupancy_percent = 52;
  CHECK_THAT(explain::kineto_difference(odd, kH200), ContainsSubstring("last warp"));
  trace::Launch strange = launch({9999, 1, 1}, {128, 1, 1}, 16, 0);
  strange.occupancy_percent = 42;
  CHECK_THAT(explain::kineto_difference(strange, kH200), ContainsSubstring("another figure"));
  trace::Launch same = strange;
  same.occupancy_percent = 100;
  CHECK(explain::kineto_difference(same, kH200).empty());
  same.occupancy_percent = -1;  // not in the file
  CHECK(explain::kineto_difference(same, kH200).empty());
}
