// SPDX-License-Identifier: Apache-2.0
//
// What only a GPU can show. Skipped, with the reason, where LibTorch can use none.
#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/Functions.h>

#include <catch2/catch_test_macros.hpp>

#include "explain/facts.h"
#include "profiler/device.h"
#include "profiler/memory.h"
#include "profiler/profiler.h"
#include "trace/tree.h"

namespace {

void skip_without_gpu() {
  if (at::hasCUDA()) return;
  const std::string why = prof::Machine::here().why_no_gpu();
  SKIP((why.empty() ? "no NVIDIA GPU here" : why));
}

constexpr prof::Schedule kBlog{.wait = 1, .warmup = 1, .active = 3, .repeat = 1};

std::int64_t kernels(const trace::Trace& trace) {
  std::int64_t count = 0;
  for (const trace::Event& event : trace.events) {
    count += event.category == trace::Category::kernel ? 1 : 0;
  }
  return count;
}

// Five steps of three kernels; the kernels are slow enough to be still running when a step ends.
const trace::Trace& record(prof::Profiler& profiler, const at::Tensor& x) {
  for (int step = 0; step < 5; ++step) {
    {
      const prof::record_function scope("forward");
      x.mul(2).add(1).neg();
    }
    profiler.step();
  }
  return profiler.stop();
}

}  // namespace

TEST_CASE("No kernel of the warm-up leaks into the recording") {
  skip_without_gpu();
  const at::Tensor x = at::ones({64 << 20}, at::kCUDA);
  prof::Profiler profiler({.schedule = kBlog});
  const trace::Trace& trace = record(profiler, x);
  CHECK(kernels(trace) == 9);
  const explain::Facts facts = explain::facts(trace::OpTree(trace), "forward");
  CHECK(facts.forwards == 3);
  CHECK(facts.kernels.least == 3);
  CHECK(facts.kernels.most == 3);
  CHECK(facts.unattributed == 0);
}

TEST_CASE("Twenty GPU profiles in one process lose no kernel") {
  skip_without_gpu();
  const at::Tensor x = at::ones({1 << 20}, at::kCUDA);
  for (int i = 0; i < 20; ++i) {
    prof::Profiler profiler({.schedule = kBlog});
    CAPTURE(i);
    CHECK(kernels(record(profiler, x)) == 9);
  }
}

TEST_CASE("CPU activity alone records no kernel") {
  skip_without_gpu();
  const at::Tensor x = at::ones({1 << 20}, at::kCUDA);
  prof::Profiler profiler({.schedule = kBlog, .activities = {prof::Activity::cpu}});
  CHECK(kernels(record(profiler, x)) == 0);
}

TEST_CASE("peak_memory is the caching allocator's own peak") {
  skip_without_gpu();
  const at::Tensor x = at::ones({1 << 20}, at::kCUDA);
  const auto work = [&] { x.mul(2).add(1).neg(); };
  work();
  const auto aggregate = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  at::accelerator::resetPeakStats(0);
  const std::int64_t before = at::accelerator::getDeviceStats(0).allocated_bytes[aggregate].current;
  work();
  const std::int64_t peak = at::accelerator::getDeviceStats(0).allocated_bytes[aggregate].peak;
  CHECK(prof::peak_memory(at::kCUDA, work) == peak - before);
  CHECK(peak - before == 12 << 20);  // three tensors of 4 MiB: temporaries live until the semicolon
}
