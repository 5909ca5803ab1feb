// SPDX-License-Identifier: Apache-2.0
//
// What a recording says of each cache. Bytes on a CPU are exact, so they are asserted exactly.
#include <c10/core/InferenceMode.h>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "explain/decode.h"
#include "generations.h"
#include "measure.h"
#include "profiler/profiler.h"
#include "trace/tree.h"

namespace {

constexpr double kPrompt = 37, kTokens = 20, kBatch = 3;
constexpr double kSlot = 2 * kv::kLayers * 2 * 16 * 4;  // bytes of a token: K and V, Hkv, D, fp32
constexpr double kOwn = kSlot * kBatch;

explain::DecodeFacts facts_of(const std::vector<std::string>& words) {
  const c10::InferenceMode inference;
  const chapter::Options options = options_of(words);
  const kv::Asked asked = kv::asked(options);
  kv::Generation generation(options, asked, asked.kinds.front());
  prof::ProfilerOptions profiler_options =
      kv::profiler_options(options, generation, kv::measure(options, generation, generate));
  profiler_options.schedule = prof::Schedule{.wait = 0, .warmup = 1, .active = 2, .repeat = 1};
  prof::Profiler profiler(profiler_options);
  for (int step = 0; step < 3; ++step) {
    generate(generation, [](const at::Tensor&) {});
    profiler.step();
  }
  const trace::OpTree tree(profiler.stop());
  const auto facts = explain::decode_facts(tree);
  REQUIRE(facts);
  CHECK(facts->generations == 2);
  CHECK(facts->tokens == static_cast<std::int64_t>(kTokens));
  CHECK(facts->token_us > 0);
  CHECK_FALSE(facts->on_gpu);
  return *facts;
}

double total_written(const explain::DecodeFacts& facts) {
  REQUIRE(facts.bytes);
  return facts.bytes->written * kTokens;
}

}  // namespace

TEST_CASE("concat: every token writes the whole past, T (T + 1) / 2 tokens beyond the prompts") {
  const explain::DecodeFacts facts = facts_of({"--cache", "concat"});
  const double tokens = kTokens * kPrompt + kTokens * (kTokens + 1) / 2;
  CHECK(total_written(facts) == Catch::Approx(kOwn * tokens).epsilon(1e-12));
  CHECK(facts.bytes->own == kOwn);
  CHECK(facts.cache_allocations == 2.0 * kv::kLayers);
  CHECK(facts.final_bytes == kOwn * (kPrompt + kTokens));
  CHECK(facts.wasted_bytes() == 0);
  // While the last tensor is made, its predecessor is there, too.
  const double one = (kPrompt + kTokens - 1) * kOwn / (2.0 * kv::kLayers);
  CHECK(facts.peak_bytes == facts.final_bytes + one);
  // The old cache by cat, all of it by attention: twice the least but for the token itself.
  CHECK(facts.bytes->read == Catch::Approx(2 * facts.bytes->least - kOwn));
}

TEST_CASE("preallocated and paged: a token writes itself and allocates nothing") {
  const std::string cache = GENERATE("preallocated", "paged");
  const explain::DecodeFacts facts = facts_of({"--cache", cache, "--capacity", "100"});
  CAPTURE(cache);
  CHECK(total_written(facts) == kOwn * kTokens);
  CHECK(facts.cache_allocations == 0.0);
  CHECK(facts.allocations.value_or(0) > 0);  // q, k, v, ...
  CHECK(facts.bytes->read == facts.bytes->least);
  const double slots = cache == "paged" ? 64 : 100;  // four pages hold 57 tokens
  CHECK(facts.wasted_bytes() == (slots - 57) * kOwn);
  // Pages for 100 tokens of each sequence are there, and the prompts' padding for a moment.
  if (cache == "preallocated") CHECK(facts.peak_bytes == 100 * kOwn);
  if (cache == "paged") CHECK(facts.peak_bytes >= 112 * kOwn);
  if (cache == "paged") CHECK(facts.peak_bytes < 120 * kOwn);
}

TEST_CASE("paged with SDPA: the copy that SDPA needs is seen, and read") {
  const explain::DecodeFacts facts = facts_of({"--cache", "paged", "--attention", "sdpa"});
  const double copied = kTokens * kPrompt + kTokens * (kTokens + 1) / 2;
  CHECK(total_written(facts) == Catch::Approx(kOwn * (copied + kTokens)).epsilon(1e-12));
  CHECK(facts.bytes->read == Catch::Approx(2 * facts.bytes->least));
  CHECK(facts.cache_allocations.value_or(0) >= 2.0 * kv::kLayers);
}

TEST_CASE("Prompts of different lengths: SDPA reads up to the longest, the kernel what is there") {
  const std::vector<std::string> words{"--cache", "preallocated", "--lengths", "37,1,20"};
  const explain::DecodeFacts kernel = facts_of(words);
  CHECK(kernel.bytes->read == kernel.bytes->least);
  CHECK(kernel.cache_tokens == 37 + 1 + 20 + 3 * 20);
  std::vector<std::string> with_sdpa = words;
  with_sdpa.insert(with_sdpa.end(), {"--attention", "sdpa"});
  const explain::DecodeFacts sdpa = facts_of(with_sdpa);
  const double mean = kPrompt + (kTokens + 1) / 2;
  CHECK(sdpa.bytes->read == Catch::Approx(kOwn * mean));
  CHECK(sdpa.bytes->least == Catch::Approx(kernel.bytes->least));
  CHECK(sdpa.bytes->least < sdpa.bytes->read);
}

TEST_CASE("Without a cache there is none to write or to read") {
  const explain::DecodeFacts facts = facts_of({"--cache", "none"});
  CHECK_FALSE(facts.bytes);
  CHECK(facts.cache_slots == 0);
  CHECK(facts.cache_allocations == 0.0);
}
