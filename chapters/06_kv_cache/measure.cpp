// SPDX-License-Identifier: Apache-2.0
#include "measure.h"

#include <numeric>

#include "chapter/report.h"
#include "check.h"
#include "profiler/memory.h"

namespace kv {

Measured measure(const chapter::Options& options, Generation& generation,
                 const Generate& generate) {
  Measured measured;
  measured.error = error_of(options, generation, [&](Generation& g, const See& see) {
    generate(g, [&](const at::Tensor& x) {
      see(x);
      measured.usage = g.usage().value_or(Usage{});  // the last token's stays
    });
  });
  const c10::DeviceType device = options.device.type();
  // Watched from the prefill on, so that LibTorch knows the blocks that the token frees.
  (void)prof::peak_memory(device, [&] {
    at::Tensor x = generation.prefill();
    measured.token_peak = prof::peak_memory(device, [&] { x = generation.decode(x); });
    generation.end();
  });
  return measured;
}

prof::ProfilerOptions profiler_options(const chapter::Options& options,
                                       const Generation& generation, const Measured& measured) {
  prof::ProfilerOptions profiler =
      chapter::profiler_options(options, measured.error, measured.token_peak);
  profiler.record_shapes = true;
  profiler.profile_memory = true;
  const std::vector<std::int64_t>& prompts = generation.prompts();
  const std::int64_t prompt_tokens =
      std::accumulate(prompts.begin(), prompts.end(), std::int64_t{0});
  const bool is_held = generation.kind() == Kind::preallocated || generation.kind() == Kind::paged;
  profiler.metadata.insert({{"cache", name_of(generation.kind())},
                            {"cache_layers", kLayers},
                            {"prompt_tokens", prompt_tokens},
                            {"cache_tokens", measured.usage.tokens},
                            {"cache_slots", measured.usage.slots},
                            {"held_cache_bytes", is_held ? measured.usage.bytes : 0}});
  return profiler;
}

}  // namespace kv
