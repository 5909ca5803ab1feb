// SPDX-License-Identifier: Apache-2.0
//
// What profiling costs a C++ program: per op while it records, and from stop() to the printed
// table. bench_profiler.py runs this beside the same work in Python and prints the ratios.
#include <ATen/Functions.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <chrono>
#include <cstdio>

#include "profiler/profiler.h"
#include "trace/key_averages.h"

namespace {

namespace kineto = torch::autograd::profiler;

// Ops in one recording. Small enough that a repetition takes milliseconds, so that the variants
// alternate quickly and see the same machine.
constexpr int kOps = 10'000;
// Ops of the recording whose table is printed.
constexpr int kTableOps = 100'000;

double seconds(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void run_ops(int count) {
  static const at::Tensor x = at::ones({4, 4});
  for (int i = 0; i < count; ++i) benchmark::DoNotOptimize(at::neg(x));
}

void no_profiler(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(seconds([] { run_ops(kOps); }));
}

// LibTorch's own three calls and nothing else.
void bare_calls(benchmark::State& state) {
  const kineto::ProfilerConfig config(kineto::ProfilerState::KINETO);
  const std::set<torch::profiler::impl::ActivityType> cpu{torch::profiler::impl::ActivityType::CPU};
  for (auto _ : state) {
    kineto::prepareProfiler(config, cpu);
    kineto::enableProfiler(config, cpu);
    state.SetIterationTime(seconds([] { run_ops(kOps); }));
    (void)kineto::disableProfiler();
  }
}

void prof_profiler(benchmark::State& state) {
  for (auto _ : state) {
    prof::Profiler profiler({.activities = {prof::Activity::cpu}});
    state.SetIterationTime(seconds([] { run_ops(kOps); }));
  }
}

void stop_to_table(benchmark::State& state) {
  for (auto _ : state) {
    prof::Profiler profiler({.activities = {prof::Activity::cpu}});
    run_ops(kTableOps);
    std::string table;
    state.SetIterationTime(seconds([&] { table = trace::key_averages(profiler.stop()).table(); }));
    std::fprintf(stderr, "%s", table.c_str());
  }
}

BENCHMARK(no_profiler)->UseManualTime()->Iterations(1)->Repetitions(31);
BENCHMARK(bare_calls)->UseManualTime()->Iterations(1)->Repetitions(31);
BENCHMARK(prof_profiler)->UseManualTime()->Iterations(1)->Repetitions(31);
BENCHMARK(stop_to_table)->UseManualTime()->Iterations(1)->Repetitions(3);

}  // namespace

BENCHMARK_MAIN();
