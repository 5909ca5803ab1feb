// SPDX-License-Identifier: Apache-2.0
//
// Records two softmax calls with prof::Profiler, exports the trace and reads it back.
#include <ATen/ops/rand.h>
#include <ATen/ops/softmax.h>

#include <iostream>

#include "profiler/profiler.h"
#include "trace/key_averages.h"
#include "trace/reader.h"

int main() {
  prof::Profiler profiler({.schedule = prof::Schedule{.wait = 0, .warmup = 1, .active = 2}});
  for (int step = 0; step < 3; ++step) {
    at::softmax(at::rand({8, 8}), -1);
    profiler.step();
  }
  std::cout << trace::key_averages(profiler.stop()).table({.sort_by = "cpu_time_total"});
  profiler.export_chrome_trace("consumer.json.gz");
}
