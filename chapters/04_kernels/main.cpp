// SPDX-License-Identifier: Apache-2.0
//
// 04_kernels: the same attention by kernels of our own, from a library that is loaded at run time.
//
// What changed since 03: attention() calls an op that LibTorch did not bring. Behind it is a ladder
// of kernels, one file and one idea each: v1 to v6 for GPUs, c1 and c2 for the CPU.
//
// Guess first: how many times faster is v3 (tensor cores) than v2, and which has more warps on a
// multiprocessor?
// Names to look for:
//   attention_kernels::attention   our op, with its launch and its kernel under it
//   kernels::...                   the kernel itself; registers, shared memory and occupancy under
//                                  "Kernels" say what each step of the ladder paid and got
//
// Run:   make 04_kernels ARGS="--kernel all --against flash"    (make diff N=04 shows what changed)
// Page:  docs/04_kernels.md
#include <ATen/Functions.h>

#include "chapter/inputs.h"
#include "chapter/report.h"
#include "choose.h"
#include "profiler/memory.h"
#include "profiler/profiler.h"

namespace {

const chapter::Info kChapter{
    .name = "04_kernels",
    .variant = "auto",
    .summary = "attention by kernels written by hand",
    .score_tensors = 0,
    .extra_options = kernels::extra_options(),
    .why_impossible = kernels::why_impossible,
};

// [begin attention]
// q [B, H, S, D], k and v [B, Hkv, Skv, D]; `kernel` is a version of the ladder.
at::Tensor attention(const kernels::Op& op, const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v, const std::string& causal, const std::string& kernel) {
  const auto [out, log_sum_exp] = op(q, k, v, causal, kernel);
  return out;  // [B, H, S, D]
}
// [end attention]

chapter::Recording record(const chapter::Options& options, const chapter::Inputs& in,
                          const std::function<at::Tensor()>& forward) {
  const chapter::Error error = chapter::check(options, forward(), in);  // ends a wrong program

  // The first calls are colder than the rest: libraries choose algorithms, the allocator asks the
  // device for memory. Warm up, then look.
  for (int i = 0; i < 3; ++i) forward();
  const std::int64_t peak = prof::peak_memory(options.device.type(), forward);

  prof::Profiler profiler(chapter::profiler_options(options, error, peak));
  for (std::int64_t step = 0; step < options.steps(); ++step) {
    {
      const prof::record_function scope("kernel_fwd");
      forward();
    }
    profiler.step();
  }
  return chapter::finish(options, profiler, "kernel_fwd", forward);
}

}  // namespace

int main(int argc, char** argv) {
  return chapter::run(argc, argv, kChapter, [](const chapter::Options& options) {
    const chapter::Inputs in = kernels::make_inputs(options);
    const std::string causal = kernels::causal_of(options);
    const kernels::Op op = kernels::load_op(options);
    std::vector<chapter::Compared> recordings = kernels::record_backends(options, in, record);
    const std::vector<std::string> versions = kernels::asked_versions(options);
    for (const std::string& version : versions) {
      kernels::say_choice(options, version);
      const auto named = kernels::named_after(version, options);
      const auto recording =
          record(named, in, [&] { return attention(op, in.q, in.k, in.v, causal, version); });
      if (versions.size() == 1) chapter::show(named, recording);
      recordings.push_back({version, recording.facts});
    }
    if (recordings.size() > 1) kernels::show_comparison(options, recordings);
  });
}
