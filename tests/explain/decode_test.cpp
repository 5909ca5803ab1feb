// SPDX-License-Identifier: Apache-2.0
//
// Decoding, from traces written here: what is counted where, and that hostile files are survived.
#include "explain/decode.h"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "explain/facts.h"
#include "explain/finding.h"
#include "explain/forwards.h"
#include "explain/quiz.h"
#include "trace/written.h"

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

// B = 2, H = 4, Hkv = 2, S = 10, D = 8, fp32, one layer: a token of a sequence takes 128 bytes.
const std::string kMetadata =
    R"("chapter": "06_kv_cache", "cache": "concat", "cache_layers": 1, "prompt_tokens": 20, )"
    R"("cache_tokens": 24, "cache_slots": 32, "held_cache_bytes": 0, "shape": "2_4kv2_10_8", )"
    R"("dtype": "fp32")";

Written annotation(const std::string& name, std::int64_t start, std::int64_t end) {
  return {.name = name, .category = "user_annotation", .start = start, .end = end};
}

Written op(const std::string& name, std::int64_t start, std::int64_t end, std::int64_t id,
           const std::string& dims) {
  return {
      .name = name, .start = start, .end = end, .id = id, .arguments = "\"Input Dims\": " + dims};
}

std::string cat_dims(int tokens) {
  const std::string n = std::to_string(tokens);
  return "[[[2, 2, " + n + ", 8], [2, 2, 1, 8]], []]";
}

std::string sdpa_dims(int tokens) {
  const std::string kv = "[2, 2, " + std::to_string(tokens) + ", 8]";
  return "[[2, 4, 1, 8], " + kv + ", " + kv + ", [], [], [], [], []]";
}

// Two tokens; the second takes twice as long.
std::vector<Written> generation() {
  return {annotation("ProfilerStep#2", 0, 100'000),
          annotation("prefill", 1'000, 10'000),
          annotation("decode", 10'000, 20'000),
          annotation("cache", 11'000, 13'000),
          op("aten::cat", 11'100, 11'900, 1, cat_dims(10)),
          op("aten::cat", 12'000, 12'900, 2, cat_dims(10)),
          op("aten::scaled_dot_product_attention", 14'000, 15'000, 3, sdpa_dims(11)),
          annotation("decode", 20'000, 40'000),
          annotation("cache", 21'000, 23'000),
          op("aten::cat", 21'100, 21'900, 4, cat_dims(11)),
          op("aten::cat", 22'000, 22'900, 5, cat_dims(11)),
          op("aten::scaled_dot_product_attention", 24'000, 25'000, 6, sdpa_dims(12))};
}

std::vector<WrittenMemory> blocks() {
  return {{.time = 11'200, .bytes = 1408, .address = 1},
          {.time = 12'100, .bytes = 1408, .address = 2},
          {.time = 14'100, .bytes = 64, .address = 3},
          {.time = 14'200, .bytes = -64, .address = 3},
          {.time = 21'200, .bytes = 1536, .address = 4},
          {.time = 21'800, .bytes = -1408, .address = 1},
          {.time = 22'100, .bytes = 1536, .address = 5},
          {.time = 22'800, .bytes = -1408, .address = 2}};
}

explain::DecodeFacts facts_of(const trace::Trace& trace) {
  const auto facts = explain::decode_facts(trace::OpTree(trace));
  REQUIRE(facts);
  return *facts;
}

}  // namespace

TEST_CASE("A token's bytes, allocations and time are those of its ops") {
  const explain::DecodeFacts facts = facts_of(written(generation(), blocks(), kMetadata));
  CHECK(facts.cache == "concat");
  CHECK(facts.generations == 1);
  CHECK(facts.tokens == 2);
  CHECK(facts.prefill_us == Approx(9));
  CHECK(facts.first_us == Approx(10));
  CHECK(facts.last_us == Approx(20));
  CHECK(facts.growth() == Approx(2));
  CHECK(facts.slope_us == Approx(10));
  REQUIRE(facts.bytes);
  CHECK(facts.bytes->own == 2 * 128);
  CHECK(facts.bytes->written == 2 * 128 * 11.5);
  CHECK(facts.bytes->least == 2 * 128 * 11.5);
  CHECK(facts.bytes->read == 2 * 128 * (10.5 + 11.5));
  CHECK(facts.cache_allocations == 2.0);
  CHECK(facts.allocations == 2.5);
  CHECK(facts.final_bytes == 24 * 128);
  CHECK(facts.wasted_bytes() == 8 * 128);
  CHECK(facts.peak_bytes == 1408 + 1536 + 1536);
  CHECK_FALSE(facts.on_gpu);
  const std::string text = explain::to_text(facts);
  CHECK_THAT(text, ContainsSubstring("1 generation of 2 tokens, cache: concat"));
  CHECK_THAT(text, ContainsSubstring("2.88 KiB, 11.50 times its own keys and values (256 B)"));
  CHECK_THAT(text, ContainsSubstring("24 tokens in 32 slots, 75.0% of them in use"));
  CHECK_THAT(text, ContainsSubstring("2.00 times, +10.00us with each token"));
}

TEST_CASE(
    "An op outside of the annotation is no part of the cache, another kernel reads the least") {
  std::vector<Written> events = generation();
  std::erase_if(events, [](const Written& event) { return event.name == "cache"; });
  CHECK_FALSE(facts_of(written(events, {}, kMetadata)).bytes);
  events = generation();
  for (Written& event : events) {
    if (event.name == "aten::cat") {
      event.name = "aten::index_copy_";
      event.arguments = R"("Input Dims": [[80, 8], [], [4], [4, 8]])";
    }
    if (event.name.ends_with("attention")) event.name = "attention_kernels::decode";
  }
  const explain::DecodeFacts facts = facts_of(written(events, {}, kMetadata));
  CHECK(facts.bytes->written == facts.bytes->own);
  CHECK(facts.bytes->read == facts.bytes->least);
  CHECK_FALSE(facts.allocations);
}

TEST_CASE("On a GPU a token lasts until its last operation, and the time between is idle") {
  std::vector<Written> events{annotation("ProfilerStep#2", 0, 100'000)};
  const auto launch = [&](std::int64_t at, const std::string& call, std::int64_t id,
                          std::int64_t from, std::int64_t to) {
    events.push_back({.name = call,
                      .category = "cuda_runtime",
                      .start = at,
                      .end = at + 100,
                      .correlation = id});
    events.push_back({.name = "kernel",
                      .category = "kernel",
                      .start = from,
                      .end = to,
                      .thread = "7",
                      .correlation = id,
                      .arguments = R"("device": 0, "stream": 7)"});
  };
  events.push_back(annotation("prefill", 1'000, 2'000));
  launch(1'100, "cudaLaunchKernel", 1, 5'000, 10'000);
  events.push_back(annotation("decode", 2'000, 3'000));
  launch(2'100, "cudaGraphLaunch", 2, 12'000, 14'000);
  events.push_back({.name = "kernel",
                    .category = "kernel",
                    .start = 14'000,
                    .end = 16'000,
                    .thread = "7",
                    .correlation = 2,
                    .arguments = R"("device": 0, "stream": 7)"});
  events.push_back(annotation("decode", 3'000, 4'000));
  launch(3'100, "cudaGraphLaunch", 3, 18'000, 20'000);
  const explain::DecodeFacts facts = facts_of(written(events, {}, kMetadata));
  CHECK(facts.on_gpu);
  CHECK(facts.prefill_us == Approx(9));
  CHECK(facts.first_us == Approx(6));
  CHECK(facts.last_us == Approx(4));
  CHECK(facts.gap_us == Approx(2));
  CHECK(facts.idle_share == Approx(2.0 / 8));
  CHECK(facts.graph_launches == 2);
  CHECK(facts.graph_operations == 3);
  CHECK_THAT(explain::to_text(facts), ContainsSubstring("2 kernels from 1 cudaGraphLaunch"));
}

TEST_CASE("Other recordings have no such facts") {
  const auto none = [](const std::vector<Written>& events, const std::string& metadata) {
    const trace::Trace trace = written(events, {}, metadata);
    return !explain::decode_facts(trace::OpTree(trace));
  };
  CHECK(none(generation(), ""));
  CHECK(none({annotation("decode", 1, 2)}, kMetadata));
  CHECK(none({annotation("prefill", 1, 2)}, kMetadata));
}

TEST_CASE("Putting tensors behind each other is a copy, and so is found") {
  std::vector<Written> events = generation();
  events.push_back(op("aten::copy_", 11'200, 11'300, 7, "[[2, 2, 11, 8], [2, 2, 11, 8], []]"));
  const trace::Trace trace = written(events, {}, kMetadata);
  const trace::OpTree tree(trace);
  const explain::Facts facts = explain::facts(tree, "decode");
  REQUIRE(facts.copies.size() == 1);  // not the copy_ that cat itself calls
  CHECK(facts.copies[0].name == "aten::cat");
  CHECK(facts.copies[0].count == 4);
  CHECK_THAT(explain::to_text(explain::copies(facts)),
             ContainsSubstring("a copy, 4 times in 2 forwards: aten::cat"));
}

TEST_CASE("The forwards of a recording of decoding are its tokens") {
  const trace::Trace trace = written(generation(), {}, kMetadata);
  CHECK(explain::forward_label(trace::OpTree(trace)) == "decode");
}

TEST_CASE("Hostile shapes and numbers end in text") {
  std::vector<Written> events = generation();
  const auto survived = [&](const std::string& dims, const std::string& metadata) {
    for (Written& event : events)
      if (event.id != 0) event.arguments = "\"Input Dims\": " + dims;
    const trace::Trace trace = written(events, blocks(), metadata);
    const std::string text = explain::to_text(facts_of(trace));
    CHECK_THAT(text, !ContainsSubstring("nan") && !ContainsSubstring("\x1b"));
  };
  const std::string huge = "9223372036854775807";
  const std::string shape = "[" + huge + ", " + huge + ", " + huge + "]";
  survived("[[" + shape + ", " + shape + "]]", kMetadata);
  survived("[[[[[[1]]]]]]", kMetadata);
  survived("[[[-5, 7]], 3]", kMetadata);
  survived("\"text\"", kMetadata);
  survived(cat_dims(3), R"("cache": "a\u001b[31m", "cache_layers": )" + huge +
                            R"(, "prompt_tokens": -1, "cache_tokens": )" + huge +
                            R"(, "cache_slots": 1e99, "held_cache_bytes": )" + huge +
                            R"(, "shape": "2_4kv2_10_8", "dtype": "fp32")");
}

TEST_CASE("The questions are answered from the tokens") {
  const trace::Trace trace = written(generation(), blocks(), kMetadata);
  const trace::OpTree tree(trace);
  const explain::Facts facts = explain::facts(tree, "decode");
  const auto questions = explain::questions("06_kv_cache", false);
  REQUIRE(questions.size() == 4);
  CHECK(explain::questions("06_kv_cache", true).size() == 5);
  const auto right = [&](std::size_t i, const char* guess) {
    return explain::grade(questions[i], tree, facts, guess).right;
  };
  CHECK(right(0, "2") == true);
  CHECK(right(0, "3") == false);
  CHECK(right(1, "11") == true);
  CHECK(right(1, "1") == false);
  CHECK(right(2, "yes") == true);
  CHECK(right(3, "1.5") == true);
  CHECK(right(3, "1") == false);
  const trace::Trace without = written(generation(), {}, kMetadata);
  const trace::OpTree no_memory(without);
  CHECK_FALSE(explain::grade(questions[0], no_memory, facts, "2").right);
}
