// SPDX-License-Identifier: Apache-2.0
//
// 06_kv_cache: writing a text token by token, and what keeping the past costs.
//
// What changed since 05: attention has one query per sequence instead of S, and the keys and values
// of all earlier tokens come from a cache. A profiler step is a generation: the prompt at once
// (prefill), then T tokens one after the other (decode). Three caches are compared, and none.
//
// Guess first: how often does a token copy the whole past? Does a token take longer the more there
// were? On a GPU: how much of the time is it idle?
// Names to look for:
//   aten::cat            a cache that grows copies all of itself for each token
//   aten::index_copy_    the others write a token into its slot
//   decode               the annotation of one token: what changes from the first to the last one
//   cudaGraphLaunch      with --cuda-graph all that the CPU does for a token
//
// Run:   make 06_kv_cache ARGS="--cache paged"     (or --cache all, --sweep 64,256,1024)
// Page:  docs/06_kv_cache.md
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "chapter/report.h"
#include "choose.h"
#include "explain/decode.h"
#include "generate.h"
#include "measure.h"
#include "profiler/profiler.h"
#include "sweep.h"
#include "trace/tree.h"

namespace {

const chapter::Info kChapter{
    .name = "06_kv_cache",
    .variant = "concat",
    .summary = "decoding token by token over a key-value cache",
    .score_tensors = 0,
    .extra_options = kv::extra_options(),
    .why_impossible = kv::why_impossible,
};

// [begin attention]
// One generation, phase by phase. The output for a token is the next token's input, so no token can
// begin before the one before it has ended.
void generate(kv::Generation& g, const kv::See& see) {
  at::Tensor x;
  {
    const prof::record_function phase("prefill");
    x = g.prefill();  // [B, E]: of the S tokens of the prompt only the last one's output goes on
  }
  see(x);
  for (std::int64_t token = 0; token < g.tokens(); ++token) {
    {
      const prof::record_function phase("decode");
      x = g.decode(x);  // [B, E] -> [B, E]
    }
    see(x);
  }
  g.end();  // and forgets all
}
// [end attention]

void record(const chapter::Options& options, const kv::Asked& asked) {
  kv::Generation generation(options, asked, asked.kinds.front());
  const kv::Measured measured = kv::measure(options, generation, generate);
  chapter::check(options, measured.error);  // ends a wrong program
  prof::Profiler profiler(kv::profiler_options(options, generation, measured));
  const auto run = [&] { generate(generation, [](const at::Tensor&) {}); };
  for (std::int64_t i = 0; i < options.steps(); ++i) {
    run();
    profiler.step();
  }
  at::Tensor x = generation.prefill();
  chapter::show(options,
                chapter::finish(options, profiler, "decode", [&] { x = generation.decode(x); }));
  const trace::OpTree tree(profiler.trace());
  fmt::print("\n{}", explain::to_text(explain::decode_facts(tree).value()));
}

}  // namespace

int main(int argc, char** argv) {
  return chapter::run(argc, argv, kChapter, [](const chapter::Options& options) {
    const c10::InferenceMode inference;  // nobody needs a gradient
    const kv::Asked asked = kv::asked(options);
    if (asked.is_sweep) return kv::sweep(options, asked, generate);
    record(kv::named_after(asked, options), asked);
  });
}
