// SPDX-License-Identifier: Apache-2.0
#include "chapter/comparison.h"

#include <fmt/format.h>

#include "explain/text.h"

namespace chapter {
namespace {

constexpr const char* kColumns = "{:<11}{:>6}{:>12}{:>12}{:>13}{:>12}{:>12}{:>12}\n";

double time_us(const explain::Facts& facts) {
  return facts.on_gpu ? facts.cuda_time_us : facts.cpu_time_us;
}

}  // namespace

void print_comparison(const Options& options, const std::vector<Compared>& recordings,
                      const std::string& missing) {
  if (recordings.empty()) return fmt::print("\n{}", missing);
  fmt::print("\nOne forward of each, recorded in this run:\n");
  fmt::print(fmt::runtime(kColumns), "", options.on_gpu() ? "GPU ops" : "ops", "CUDA time",
             "CPU time", "peak memory", "occupancy", "speed", "rel. error");
  const double baseline_us = time_us(recordings.front().facts);
  for (const auto& [name, f] : recordings) {
    fmt::print(fmt::runtime(kColumns), name, f.on_gpu ? f.gpu_operations.most : f.ops.most,
               f.on_gpu ? explain::time_text(f.cuda_time_us) : "-",
               explain::time_text(f.cpu_time_us), explain::size_text(f.peak_memory.value_or(0)),
               f.occupancy ? explain::share_text(*f.occupancy) : "-",
               fmt::format("{:.2f}x", baseline_us / time_us(f)), f.relative_error);
  }
  fmt::print("{}speed: time of {} / time. Traces and tables: {}\n", missing,
             recordings.front().name, options.file("").parent_path().string());
}

}  // namespace chapter
