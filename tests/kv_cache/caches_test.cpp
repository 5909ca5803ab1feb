// SPDX-License-Identifier: Apache-2.0
//
// The caches hold what they should: all write the same text as no cache does, and as float64 does.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/InferenceMode.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <set>

#include "chapter/inputs.h"
#include "check.h"
#include "generations.h"
#include "in_place.h"
#include "pages.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using kv::Kind;

namespace {

using Words = std::vector<std::string>;

at::Tensor text_of(const chapter::Options& options) {
  const kv::Asked asked = kv::asked(options);
  kv::Generation generation(options, asked, asked.kinds.front());
  std::vector<at::Tensor> tokens;
  generate(generation, [&](const at::Tensor& x) { tokens.push_back(x.clone()); });
  return at::stack(tokens, 1);  // [B, 1 + T, E]
}

chapter::Error error_of(const chapter::Options& options, const kv::Generate& how = generate) {
  const kv::Asked asked = kv::asked(options);
  kv::Generation generation(options, asked, asked.kinds.front());
  return kv::error_of(options, generation, how);
}

kv::CacheShape shape_of(std::vector<std::int64_t> prompts, std::int64_t capacity) {
  return {.layers = 1,
          .kv_heads = 2,
          .head_dim = 4,
          .prompts = std::move(prompts),
          .capacity = capacity,
          .like = at::TensorOptions().dtype(at::kFloat)};
}

std::string refusal(const Words& words) {
  try {
    (void)options_of(words);
  } catch (const chapter::UsageError& error) {
    CHECK(error.exit_code == 2);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Every cache is right against float64, for each attention, dtype and prompts") {
  const c10::InferenceMode inference;
  const std::string cache = GENERATE("none", "concat", "preallocated", "paged");
  const std::string attention = GENERATE("sdpa", "auto");
  const std::string dtype = GENERATE("fp32", "bf16");
  const std::string lengths = GENERATE("37,37,37", "37,1,20", "16,32,15");
  const std::string kv_heads = GENERATE("4", "2", "1");
  CAPTURE(cache, attention, dtype, lengths, kv_heads);
  const chapter::Error error =
      error_of(options_of({"--cache", cache, "--attention", attention, "--dtype", dtype,
                           "--lengths", lengths, "--kv-heads", kv_heads}));
  CAPTURE(error.relative_l2, error.bound);
  CHECK(error.acceptable());
  CHECK(error.relative_l2 > 0);
}

TEST_CASE("Every cache writes the text that is written without one") {
  const c10::InferenceMode inference;
  const std::string lengths = GENERATE("37,37,37", "37,1,20");
  const at::Tensor expected = text_of(options_of({"--cache", "none", "--lengths", lengths}));
  for (const char* cache : {"concat", "preallocated", "paged"}) {
    for (const char* attention : {"sdpa", "auto"}) {
      CAPTURE(cache, attention, lengths);
      const at::Tensor text =
          text_of(options_of({"--cache", cache, "--attention", attention, "--lengths", lengths}));
      CHECK(at::allclose(text, expected, /*rtol=*/1e-3, /*atol=*/1e-4));
    }
  }
}

TEST_CASE("A token that is wrong is found, and so is a NaN") {
  const c10::InferenceMode inference;
  const chapter::Options options = options_of({"--cache", "paged"});
  const auto with = [&](double factor) {
    return error_of(options, [=](kv::Generation& g, const kv::See& see) {
      int token = 0;
      generate(g, [&](const at::Tensor& x) { see(++token == 9 ? x * factor : x); });
    });
  };
  CHECK(with(1).acceptable());
  CHECK_FALSE(with(1.001).acceptable());
  CHECK_FALSE(with(std::numeric_limits<double>::quiet_NaN()).acceptable());
}

TEST_CASE("A full cache says so at the token that does not fit") {
  const auto cache = kv::make_cache(Kind::preallocated, shape_of({5, 3}, 7));
  cache->take_prompts();
  cache->make_room();
  cache->make_room();
  CHECK_THROWS_MATCHES(cache->make_room(), kv::CacheFull,
                       MessageMatches(ContainsSubstring("room for 7 tokens and one more came")));
  CHECK(cache->length(0) == 7);
  const auto paged = kv::make_cache(Kind::paged, shape_of({16, 1}, 16));  // two pages
  paged->take_prompts();
  CHECK_THROWS_MATCHES(paged->make_room(), kv::CacheFull,
                       MessageMatches(ContainsSubstring("all 2 pages of 16 tokens are taken")));
}

TEST_CASE("Pages are nobody's or one sequence's") {
  kv::Pages pages(3);
  std::set<std::int32_t> seen;
  for (int i = 0; i < 3; ++i) seen.insert(pages.take().value());
  CHECK(seen == std::set<std::int32_t>{0, 1, 2});
  CHECK(pages.taken() == 3);
  CHECK_FALSE(pages.take());
  pages.give_back(1);
  CHECK(pages.taken() == 2);
  CHECK(pages.take() == 1);
}

TEST_CASE("What is wasted: room to come, gaps, ends of pages") {
  const std::vector<std::int64_t> prompts{33, 1};
  const auto usage = [&](Kind kind) {
    const auto cache = kv::make_cache(kind, shape_of(prompts, 64));
    cache->take_prompts();
    const at::Tensor k = at::ones({2, 2, 33, 4});
    cache->fill(0, k, k);
    cache->make_room();
    cache->advance();
    cache->append(0, at::ones({2, 2, 1, 4}), at::ones({2, 2, 1, 4}));
    return cache->usage();
  };
  constexpr std::int64_t kSlot = 2 * 2 * 4 * 4;  // bytes: K and V, heads, D, float
  for (const auto& [kind, slots, bytes] :
       {std::tuple(Kind::concat, 2 * 34, 2 * 34), std::tuple(Kind::preallocated, 128, 128),
        std::tuple(Kind::paged, 48 + 16, 128)}) {
    CAPTURE(kv::name_of(kind));
    CHECK(usage(kind).tokens == 34 + 2);
    CHECK(usage(kind).slots == slots);
    CHECK(usage(kind).bytes == bytes * kSlot);
  }
}

TEST_CASE("Pages go back when a generation ends, and lie between those of others") {
  const auto cache = kv::make_cache(Kind::paged, shape_of({40, 20}, 48));
  cache->take_prompts();
  CHECK(cache->usage().slots == 48 + 32);
  cache->clear();
  CHECK(cache->usage().slots == 0);
  cache->take_prompts();
  CHECK(cache->usage().slots == 48 + 32);
  const at::Tensor table = cache->kept(0).table;
  CHECK(table[0][1].item<int>() != table[0][0].item<int>() + 1);
}

TEST_CASE("What cannot be run is one sentence") {
  CHECK_THAT(refusal({"--cache", "preallocated", "--capacity", "50"}),
             ContainsSubstring("room for 50 tokens of a sequence, and 37 + 20 are to come"));
  CHECK_THAT(refusal({"--cache", "paged", "--capacity", "56"}), ContainsSubstring("raise --capac"));
  CHECK(refusal({"--cache", "concat", "--capacity", "50"}).empty());
  CHECK_THAT(refusal({"--lengths", "1,2"}), ContainsSubstring("for each of the 3 sequences"));
  CHECK_THAT(refusal({"--lengths", "1,2,38"}), ContainsSubstring("from 1 to 37"));
  CHECK_THAT(refusal({"--lengths", "1,2,x"}), ContainsSubstring("not '1,2,x'"));
  CHECK_THAT(refusal({"--tokens", "0"}), ContainsSubstring("--tokens takes a number from 1"));
  CHECK_THAT(refusal({"--sweep", "4,,8"}), ContainsSubstring("--sweep takes up to 64"));
  CHECK_THAT(refusal({"--cache", "none", "--attention", "kernel"}),
             ContainsSubstring("nothing for the decode kernel to read"));
  CHECK_THAT(refusal({"--lengths", "1,2,3", "--attention", "kernel"}),
             ContainsSubstring("has a gap"));
  CHECK_THAT(refusal({"--dtype", "fp16", "--cache", "paged", "--attention", "kernel"}),
             ContainsSubstring("takes fp32 and bf16"));
  CHECK_THAT(refusal({"--cuda-graph"}), ContainsSubstring("it takes preallocated or paged"));
  CHECK_THAT(refusal({"--cache", "paged", "--cuda-graph"}), ContainsSubstring("needs an NVIDIA"));
  CHECK_THAT(refusal({"--cache", "all", "--cuda-graph"}), ContainsSubstring("not none"));
  CHECK_THAT(refusal({"--cache", "paged", "--tokens", "1048576", "--capacity", "1048576"}),
             ContainsSubstring("raise --capacity or lower --tokens"));
  CHECK(kv::asked(options_of({"--cache", "preallocated"})).capacity == 64);
}

TEST_CASE("On a GPU: a CUDA graph writes the text that its kernels write one by one") {
  const prof::Machine machine = prof::Machine::here();
  if (machine.gpus.empty() || machine.gpus.front().compute_capability() < 80)
    SKIP("no NVIDIA GPU here that runs the decode kernel (sm_80)");
  const c10::InferenceMode inference;
  for (const char* cache : {"preallocated", "paged"}) {
    for (const char* lengths : {"37,37,37", "37,1,20"}) {
      CAPTURE(cache, lengths);
      const Words words{"--cache", cache,        "--lengths", lengths,   "--device",
                        "cuda",    "--head-dim", "64",        "--dtype", "bf16"};
      Words with_graph = words;
      with_graph.emplace_back("--cuda-graph");
      CHECK(error_of(options_of(words)).acceptable());
      CHECK(error_of(options_of(with_graph)).acceptable());
      CHECK(at::equal(text_of(options_of(words)), text_of(options_of(with_graph))));
    }
  }
}
