// SPDX-License-Identifier: Apache-2.0
#include "explain/quiz_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "explain/about.h"
#include "explain/finding_view.h"
#include "explain/memory.h"
#include "explain/text.h"

namespace explain {
namespace {

std::optional<MemoryTimeline> timeline(const View& view) {
  if (!has_memory(view.tree.trace())) return std::nullopt;
  return memory_timeline(view.tree, std::nullopt);
}

std::string peak_text(const View& view, const MemoryTimeline& memory) {
  const std::string op =
      memory.peak_block ? memory_chain(view.tree, memory.blocks[*memory.peak_block].allocated_in)
                        : "no op";
  return fmt::format("memory, peak: {}, reached in {}",
                     size_text(total(memory.curve[memory.peak].bytes)), op);
}

// The outermost phase around the peak.
std::optional<Answer> phase_of_peak(const View& view) {
  const auto memory = timeline(view);
  if (!memory) return std::nullopt;
  const std::int64_t peak_ns = memory->curve[memory->peak].time_ns;
  for (const MemoryPhase& phase : memory->phases) {
    if (phase.from_ns > peak_ns || phase.to_ns < peak_ns) continue;
    const std::string_view name = view.tree.name(phase.event);
    return Answer{0, 0, std::string(name), peak_text(view, *memory)};
  }
  return std::nullopt;
}

// On CUDA a block is up to 2 MiB larger than what it holds.
std::optional<Answer> scores_at_peak(const View& view) {
  const auto memory = timeline(view);
  const auto shape = sizes(view.tree.trace());
  if (!memory || !shape) return std::nullopt;
  const auto alive = alive_at(*memory, memory->curve[memory->peak].time_ns);
  const auto count =
      static_cast<double>(std::count_if(alive.begin(), alive.end(), [&](std::size_t block) {
        return memory->blocks[block].bytes >= shape->score_bytes();
      }));
  return Answer{count, count, fmt::format("{}", count),
                fmt::format("memory, alive there: blocks of {} or more; {}",
                            size_text(shape->score_bytes()), peak_text(view, *memory))};
}

std::optional<Answer> largest_category(const View& view) {
  const auto memory = timeline(view);
  if (!memory) return std::nullopt;
  const BytesByCategory& bytes = memory->curve[memory->peak].bytes;
  const auto most = std::max_element(bytes.begin(), bytes.end());
  const auto category = static_cast<MemoryCategory>(most - bytes.begin());
  return Answer{0, 0, std::string(to_string(category)),
                fmt::format("memory, {}: {} of {}", to_string(category), size_text(*most),
                            size_text(total(bytes)))};
}

// What a step adds to what the program holds anyway.
std::optional<Answer> times_held(const View& view) {
  const auto memory = timeline(view);
  if (!memory || total(memory->held) <= 0) return std::nullopt;
  const std::int64_t peak = total(memory->curve[memory->peak].bytes);
  const double times =
      std::round(static_cast<double>(peak) / static_cast<double>(total(memory->held)));
  return Answer{times, times, fmt::format("{}", times),
                fmt::format("memory, peak: {}; held all the while: {}", size_text(peak),
                            size_text(total(memory->held)))};
}

}  // namespace

std::vector<Question> memory_questions() {
  return {{"In which phase of the step is most memory allocated?",
           QuestionKind::choice,
           {"forward", "loss", "backward", "optimizer"},
           phase_of_peak},
          {"How many tensors of scores [B, H, S, S] are alive at that moment?",
           QuestionKind::number,
           {},
           scores_at_peak},
          {"What takes most of the memory at that moment?",
           QuestionKind::choice,
           {"weight", "optimizer state", "input", "activation", "gradient", "temporary"},
           largest_category},
          {"How many times as much as between two steps (weights, inputs, optimizer state) is "
           "allocated at that moment, to the nearest whole number?",
           QuestionKind::number,
           {},
           times_held}};
}

}  // namespace explain
