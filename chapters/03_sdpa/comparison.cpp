// SPDX-License-Identifier: Apache-2.0
#include "comparison.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "explain/text.h"
#include "profiler/memory.h"

namespace sdpa {
namespace {

// Chapter 02's attention: what the backends are measured against, in the same run.
at::Tensor in_place(const chapter::Inputs& in) {
  const at::Tensor k = chapter::repeat_kv(in.k, in.q.size(1));
  const at::Tensor v = chapter::repeat_kv(in.v, in.q.size(1));
  at::Tensor scores = at::matmul(in.q, k.transpose(-2, -1));
  scores = scores * (1.0 / std::sqrt(in.q.size(-1)));
  scores.masked_fill_(in.mask, -INFINITY);
  scores = at::softmax(scores, -1);
  return at::matmul(scores, v);
}

double time_us(const explain::Facts& facts) {
  return facts.on_gpu ? facts.cuda_time_us : facts.cpu_time_us;
}

std::string row(const std::string& name, const explain::Facts& f, const explain::Facts& baseline) {
  return fmt::format("{:<11}{:>6}{:>12}{:>12}{:>13}{:>12}{:>12}{:>12}\n", name,
                     f.on_gpu ? f.gpu_operations.most : f.ops.most,
                     f.on_gpu ? explain::time_text(f.cuda_time_us) : "-",
                     explain::time_text(f.cpu_time_us),
                     explain::size_text(f.peak_memory.value_or(0)),
                     f.occupancy ? explain::share_text(*f.occupancy) : "-",
                     fmt::format("{:.2f}x", time_us(baseline) / time_us(f)), f.relative_error);
}

}  // namespace

void compare(const chapter::Options& options, const chapter::Inputs& inputs,
             const std::function<chapter::Recording(const chapter::Options&, const chapter::Inputs&,
                                                    const std::function<at::Tensor()>&)>& record,
             const std::function<chapter::Recording(Backend)>& record_with) {
  chapter::Options baseline_options = options;
  baseline_options.info.variant = "inplace";
  const explain::Facts baseline =
      record(baseline_options, inputs, [&] { return in_place(inputs); }).facts;
  std::string rows = row("in place", baseline, baseline);
  std::string missing;
  for (const Backend backend : kBackends) {
    const std::string why = why_not(backend, options);
    if (why.empty()) {
      rows += row(name_of(backend), record_with(backend).facts, baseline);
    } else {
      missing += fmt::format("not {}: {}\n", name_of(backend), why);
    }
  }
  fmt::print(
      "\nOne forward of each, recorded in this "
      "run:\n{:<11}{:>6}{:>12}{:>12}{:>13}{:>12}{:>12}{:>12}\n{}",
      "", options.on_gpu() ? "GPU ops" : "ops", "CUDA time", "CPU time", "peak memory", "occupancy",
      "speed", "rel. error", rows);
  fmt::print("{}speed: time of in place / time. Traces and tables: {}\n", missing,
             options.file("").parent_path().string());
}

}  // namespace sdpa
