// SPDX-License-Identifier: Apache-2.0
//
// 01_naive: attention as its formula says it, one LibTorch op after the other.
//
//   softmax(q kᵀ / sqrt(D), with future positions masked) v
//
// Guess first: how many GPU operations does one forward launch? Five lines of code make five ops;
// the table has one row more. Names to look for:
//   Memcpy DtoD / aten::copy_   a copy that no line of this program asks for
//   aten::masked_fill           the op that it happens in
//   aten::bmm                   both matmuls; the kernels' names say which instructions they use
//
// Run:   make 01_naive            (or build/01_naive --help)
// Page:  docs/01_naive.md
#include <ATen/Functions.h>

#include <cmath>

#include "chapter/inputs.h"
#include "chapter/report.h"
#include "profiler/memory.h"
#include "profiler/profiler.h"

namespace {

const chapter::Info kChapter{
    .name = "01_naive",
    .variant = "naive",
    .summary = "attention in plain LibTorch ops",
    .score_tensors = 2,
};

// [begin attention]
// q [B, H, S, D], k and v [B, Hkv, S, D], mask [S, S] with true where a query must not look.
at::Tensor attention(const at::Tensor& q, at::Tensor k, at::Tensor v, const at::Tensor& mask) {
  k = chapter::repeat_kv(k, q.size(1));  // [B, H, S, D]; nothing to do where Hkv = H
  v = chapter::repeat_kv(v, q.size(1));
  at::Tensor scores = at::matmul(q, k.transpose(-2, -1));  // [B, H, S, S]
  scores = scores * (1.0 / std::sqrt(q.size(-1)));
  scores = scores.masked_fill(mask, -INFINITY);
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
