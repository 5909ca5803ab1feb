// SPDX-License-Identifier: Apache-2.0
//
// 03_sdpa: the same attention by one op, with the implementation behind it chosen by --backend.
//
// What changed since 02: attention() is one call, and the causal mask is a flag instead of a
// tensor: whoever knows the mask can skip half of the scores, and need not hold them in memory.
//
// Guess first: how many GPU operations does one forward launch with math, how many with flash?
// Names to look for:
//   aten::_scaled_dot_product_*   the backend, in the op's own name
//   aten::tril / aten::where      math builds its mask anew in every call
//   pytorch_flash, fmha_cutlassF, cudnn_generated   one kernel that is the whole forward
//
// Run:   make 03_sdpa ARGS="--backend all"     (make diff N=03 shows what changed)
// Page:  docs/03_sdpa.md
#include <ATen/Functions.h>

#include "chapter/backends.h"
#include "chapter/inputs.h"
#include "chapter/report.h"
#include "choose.h"
#include "profiler/memory.h"
#include "profiler/profiler.h"

namespace {

const chapter::Info kChapter{
    .name = "03_sdpa",
    .variant = "auto",
    .summary = "attention by scaled_dot_product_attention and its backends",
    .score_tensors = 0,
    .extra_options = {sdpa::backend_option()},
    .why_impossible = sdpa::why_impossible,
};

// [begin attention]
// q [B, H, S, D], k and v [B, Hkv, S, D]; causal, so no mask is passed.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const bool gqa = q.size(1) != k.size(1);  // the op itself shares key and value heads
  return at::scaled_dot_product_attention(q, k, v, /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                          /*is_causal=*/true, /*scale=*/{}, gqa);  // [B, H, S, D]
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
      const prof::record_function scope("sdpa_fwd");
      forward();
    }
    profiler.step();
  }
  return chapter::finish(options, profiler, "sdpa_fwd", forward);
}

}  // namespace

int main(int argc, char** argv) {
  return chapter::run(argc, argv, kChapter, [](const chapter::Options& options) {
    const chapter::Inputs in = chapter::make_inputs(options);
    const auto record_with = [&](chapter::Backend backend) {
      const chapter::Pinned pinned(backend);
      return record(sdpa::named_after(backend, options), in,
                    [&] { return attention(in.q, in.k, in.v); });
    };
    if (sdpa::all_asked(options)) return sdpa::compare(options, in, record, record_with);
    chapter::show(options, record_with(sdpa::asked_or_chosen(options)));
  });
}
