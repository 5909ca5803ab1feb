// SPDX-License-Identifier: Apache-2.0
#include "explain/quiz_decode.h"

#include <fmt/format.h>

#include <cmath>

#include "explain/decode.h"
#include "explain/finding_view.h"
#include "explain/text.h"

namespace explain {
namespace {

// A guess within `distance` is right.
Answer about(double value, double distance, std::string look) {
  return {value - distance, value + distance, fmt::format("{:.2f}", value), std::move(look)};
}

Answer yes_no(bool yes, std::string look) {
  return {0, 0, yes ? "yes" : "no", std::move(look)};
}

std::optional<Answer> allocations(const View& view) {
  const auto facts = decode_facts(view.tree);
  if (!facts || !facts->cache_allocations) return std::nullopt;
  return about(*facts->cache_allocations, 0.5,
               fmt::format("decoding, allocations per token: {:.2f} for the cache",
                           *facts->cache_allocations));
}

// A tenth more or less is as good.
std::optional<Answer> times_written(const View& view) {
  const auto facts = decode_facts(view.tree);
  if (!facts || !facts->bytes || facts->bytes->own <= 0) return std::nullopt;
  const double times = facts->bytes->written / facts->bytes->own;
  return about(
      times, times / 10,
      fmt::format("decoding, written per token: {:.2f} times its own keys and values", times));
}

std::optional<Answer> grows(const View& view) {
  const auto facts = decode_facts(view.tree);
  if (!facts) return std::nullopt;
  constexpr double kTenth = 1.1;
  return yes_no(facts->growth() > kTenth,
                fmt::format("decoding, time per token: {} in the first quarter, {} in the last",
                            time_text(facts->first_us), time_text(facts->last_us)));
}

std::optional<Answer> peak(const View& view) {
  const auto facts = decode_facts(view.tree);
  if (!facts || facts->peak_bytes <= 0 || facts->final_bytes <= 0) return std::nullopt;
  const double times = facts->peak_bytes / facts->final_bytes;
  return about(
      times, 0.125,
      fmt::format("decoding, cache's peak: {:.2f} times what is in use at the end", times));
}

std::optional<Answer> mostly_idle(const View& view) {
  const auto facts = decode_facts(view.tree);
  if (!facts || !facts->on_gpu) return std::nullopt;
  return yes_no(facts->idle_share > 0.5, fmt::format("decoding, GPU idle while decoding: {}",
                                                     share_text(facts->idle_share)));
}

}  // namespace

std::vector<Question> decode_questions(bool on_gpu) {
  std::vector<Question> questions{
      {"How many allocations for the cache does one token make, in all layers together?",
       QuestionKind::number,
       {},
       allocations},
      {"How many times its own keys and values does a token write into the cache, on average, to "
       "the nearest tenth of the answer?",
       QuestionKind::number,
       {},
       times_written},
      {"Does a token of the last quarter take more than a tenth longer than one of the first?",
       QuestionKind::yes_no,
       {},
       grows},
      {"How many times what is in use at the end does the cache take at its peak, to the nearest "
       "quarter?",
       QuestionKind::number,
       {},
       peak}};
  if (on_gpu) {
    questions.push_back({"Is the GPU idle for more than half of the time while decoding?",
                         QuestionKind::yes_no,
                         {},
                         mostly_idle});
  }
  return questions;
}

}  // namespace explain
