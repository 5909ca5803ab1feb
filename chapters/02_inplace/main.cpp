// SPDX-License-Identifier: Apache-2.0
//
// 02_inplace: attention as in 01_naive, but the mask is written into the scores in place.
//
// What changed since 01: one underscore, masked_fill_. The out-of-place op copies its input before
// it writes; these scores are ours alone. (With autograd somebody may still need the old values.)
//
// Guess first: how many GPU operations does a forward launch now, and is the memory peak lower?
// Names to look for:
//   Memcpy DtoD / aten::copy_   gone
//   aten::masked_fill_          what is left of the masking: one kernel
//
// Run:   make 02_inplace          (make diff N=02 shows what changed)
// Page:  docs/02_inplace.md
#include <ATen/Functions.h>

#include <cmath>

#include "chapter/inputs.h"
#include "chapter/report.h"
#include "profiler/memory.h"
#include "profiler/profiler.h"

namespace {

const chapter::Info kChapter{
    .name = "02_inplace",
    .variant = "inplace",
    .summary = "attention in plain LibTorch ops, masked in place",
    .score_tensors = 2,
};

// [begin attention]
// q [B, H, S, D], k and v [B, Hkv, S, D], mask [S, S] with true where a query must not look.
at::Tensor attention(const at::Tensor& q, at::Tensor k, at::Tensor v, const at::Tensor& mask) {
  k = chapter::repeat_kv(k, q.size(1));  // [B, H, S, D]; nothing to do where Hkv = H
  v = chapter::repeat_kv(v, q.size(1));
  at::Tensor scores = at::matmul(q, k.transpose(-2, -1));  // [B, H, S, S]
  scores = scores * (1.0 / std::sqrt(q.size(-1)));
  scores.masked_fill_(mask, -INFINITY);
  scores = at::softmax(scores, -1);
  return at::matmul(scores, v);  // [B, H, S, D]
}
// [end attention]

chapter::Recording record(const chapter::Options& options, const chapter::Inputs& in) {
  const auto forward = [&] { return attention(in.q, in.k, in.v, in.mask); };
  const chapter::Error error = chapter::check(options, forward(), in);  // ends a wrong program

  // The first calls are colder than the rest: libraries choose algorithms, the allocator asks the
  // device for memory. Warm up, then look.
  for (int i = 0; i < 3; ++i) forward();
  const std::int64_t peak = prof::peak_memory(options.device.type(), forward);

  prof::Profiler profiler(chapter::profiler_options(options, error, peak));
  for (std::int64_t step = 0; step < options.steps(); ++step) {
    {
      const prof::record_function scope("attn_fwd");
      forward();
    }
    profiler.step();
  }
  return chapter::finish(options, profiler, "attn_fwd", forward);
}

}  // namespace

int main(int argc, char** argv) {
  return chapter::run(argc, argv, kChapter, [](const chapter::Options& options) {
    const chapter::Inputs in = chapter::make_inputs(options);
    chapter::show(options, record(options, in));
  });
}
