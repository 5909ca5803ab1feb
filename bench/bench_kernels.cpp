// SPDX-License-Identifier: Apache-2.0
//
// Chapter 04's kernels beside LibTorch's backends, in one process: the shapes of the chapter's
// page, bf16 on a GPU, fp32 on a CPU. Normal inputs, because zeros draw less power and read faster
// than any real data; the L2 cache is overwritten before each call, because a model does that, too.
//
//   bench_kernels build/libattention_kernels.so --benchmark_out=result.json
//
// bench_kernels.py turns the result into a table of ratios.
#include <ATen/DeviceAccelerator.h>
#include <ATen/Functions.h>
#include <benchmark/benchmark.h>
#include <c10/core/Event.h>
#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <vector>

#include "chapter/backends.h"
#include "op.h"
#include "versions.h"

namespace {

using at::Tensor;

struct Shape {
  std::int64_t B, H, S, D;
};

constexpr Shape kGpuShapes[] = {{8, 16, 1024, 64},  {16, 32, 1024, 64},  {4, 32, 4096, 64},
                                {1, 32, 16384, 64}, {16, 16, 1024, 128}, {4, 16, 4096, 128},
                                {1, 16, 16384, 128}};
constexpr Shape kCpuShapes[] = {
    {1, 8, 512, 64}, {1, 8, 1024, 64}, {1, 8, 2048, 64}, {1, 8, 4096, 64}};

double flops(const Shape& s, bool is_causal) {
  const double all = 4.0 * static_cast<double>(s.B * s.H * s.S * s.S * s.D);
  return is_causal ? all / 2 : all;
}

struct Inputs {
  Tensor q, k, v;  // [B, H, S, D]
};

// One set of inputs at a time: benchmarks of one shape follow each other.
const Inputs& inputs_of(const Shape& s, bool on_gpu) {
  static std::string held;
  static Inputs inputs;
  const std::string wanted = fmt::format("{} {} {} {}", s.B, s.H, s.S, s.D);
  if (held != wanted) {
    inputs = {};
    const auto like = on_gpu ? at::TensorOptions().device(at::kCUDA).dtype(at::kBFloat16)
                             : at::TensorOptions().dtype(at::kFloat);
    const auto random = [&] { return at::randn({s.B, s.H, s.S, s.D}, like); };
    inputs = {random(), random(), random()};
    held = wanted;
  }
  return inputs;
}

// Seconds of one call.
double time_of(const std::function<void()>& run, bool on_gpu) {
  if (!on_gpu) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  static Tensor cache =
      at::empty({std::int64_t{256} << 20}, at::TensorOptions().device(at::kCUDA).dtype(at::kByte));
  static c10::Event begin(c10::kCUDA, c10::EventFlag::BACKEND_DEFAULT);  // with timing
  static c10::Event end(c10::kCUDA, c10::EventFlag::BACKEND_DEFAULT);
  const c10::Stream stream = at::accelerator::getCurrentStream(at::accelerator::getDeviceIndex());
  cache.zero_();
  begin.record(stream);
  run();
  end.record(stream);
  end.synchronize();
  return begin.elapsedTime(end) * 1e-3;
}

void add(const std::string& who, const Shape& s, bool is_causal, bool on_gpu,
         const std::function<void(const Inputs&)>& run) {
  const std::string name =
      fmt::format("{}_{}_{}_{}/{}/{}", s.B, s.H, s.S, s.D, is_causal ? "causal" : "full", who);
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 const Inputs& in = inputs_of(s, on_gpu);
                                 run(in);  // the first call is colder
                                 for (auto _ : state)
                                   state.SetIterationTime(time_of([&] { run(in); }, on_gpu));
                                 state.counters["TFLOP/s"] =
                                     benchmark::Counter(flops(s, is_causal) * 1e-12 *
                                                            static_cast<double>(state.iterations()),
                                                        benchmark::Counter::kIsRate);
                               })
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc != 2) {
    fmt::print(stderr, "usage: bench_kernels libattention_kernels.so [--benchmark_...]\n");
    return 2;
  }
  const kernels::Op op = kernels::Op::load(argv[1]);
  const prof::Machine machine = prof::Machine::here();
  const bool on_gpu = !machine.gpus.empty();
  const int capability = on_gpu ? machine.gpus.front().compute_capability() : 0;
  const std::string device = on_gpu ? machine.gpus.front().name : machine.cpu_name;
  benchmark::AddCustomContext("device", device);
  benchmark::AddCustomContext("libtorch", machine.libtorch_version);
  benchmark::AddCustomContext("driver", machine.driver_version);
  benchmark::AddCustomContext("threads", std::to_string(machine.cpu_threads));

  std::vector<Shape> shapes(std::begin(kGpuShapes), std::end(kGpuShapes));
  if (!on_gpu) shapes.assign(std::begin(kCpuShapes), std::end(kCpuShapes));
  for (const Shape& shape : shapes) {
    for (const bool is_causal : {true, false}) {
      for (const auto backend :
           {chapter::Backend::flash, chapter::Backend::efficient, chapter::Backend::cudnn}) {
        if (!on_gpu && backend != chapter::Backend::flash) continue;
        add(chapter::name_of(backend), shape, is_causal, on_gpu, [=](const Inputs& in) {
          const chapter::Pinned pinned(backend);
          benchmark::DoNotOptimize(
              at::scaled_dot_product_attention(in.q, in.k, in.v, {}, 0.0, is_causal));
        });
      }
      for (const kernels::Version& version : kernels::kVersions) {
        if (!kernels::why_not(version, capability).empty()) continue;
        add(std::string(version.name), shape, is_causal, on_gpu, [=](const Inputs& in) {
          benchmark::DoNotOptimize(
              op(in.q, in.k, in.v, is_causal ? "top_left" : "none", version.name));
        });
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
