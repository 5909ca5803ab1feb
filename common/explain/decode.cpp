// SPDX-License-Identifier: Apache-2.0
#include "explain/decode.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "explain/about.h"
#include "explain/decode_bytes.h"
#include "explain/forwards.h"
#include "explain/memory.h"
#include "explain/steps.h"
#include "trace/numbers.h"
#include "trace/printable.h"
#include "trace/wrapping.h"

namespace explain {
namespace {

using trace::wrapping_subtract;

constexpr std::int64_t kMostCount = std::int64_t{1} << 40;  // of tokens, slots: more is no count

std::int64_t count_of(const trace::Trace& trace, std::string_view key) {
  std::int64_t value = 0;
  if (!trace::parse_integer(trace.metadata_value(key), value)) return 0;
  return std::clamp<std::int64_t>(value, 0, kMostCount);
}

double us(std::int64_t from_ns, std::int64_t to_ns) {
  return static_cast<double>(wrapping_subtract(to_ns, from_ns)) / 1000;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A prefill or a token, and where its work on the GPU lies.
struct Phase {
  const Forward* forward = nullptr;
  bool is_token = false;
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t first_gpu_ns = 0, last_gpu_ns = 0;  // both 0 without a GPU
};

Phase phase_of(const trace::Trace& trace, const Forward& forward, bool is_token) {
  const trace::Event& annotation = trace.events[forward.annotation];
  Phase phase{&forward, is_token, annotation.start_ns, end_ns(annotation)};
  for (const std::uint32_t operation : forward.gpu_operations) {
    const trace::Event& event = trace.events[operation];
    if (!event.is_timed) continue;
    if (phase.last_gpu_ns == 0) phase.first_gpu_ns = event.start_ns;
    phase.last_gpu_ns = std::max(phase.last_gpu_ns, end_ns(event));
  }
  if (phase.last_gpu_ns != 0) phase.end_ns = phase.last_gpu_ns;
  return phase;
}

// From a prefill to the last token before the next one.
using GenerationPhases = std::vector<Phase>;

std::vector<GenerationPhases> generations_of(const trace::Trace& trace, const Forwards& prefills,
                                             const Forwards& decodes) {
  GenerationPhases all;
  for (const Forward& forward : prefills.all()) all.push_back(phase_of(trace, forward, false));
  for (const Forward& forward : decodes.all()) all.push_back(phase_of(trace, forward, true));
  std::stable_sort(all.begin(), all.end(),
                   [](const Phase& a, const Phase& b) { return a.start_ns < b.start_ns; });
  std::vector<GenerationPhases> generations;
  for (const Phase& phase : all) {
    if (!phase.is_token) generations.emplace_back();
    if (!generations.empty()) generations.back().push_back(phase);
  }
  std::erase_if(generations, [](const GenerationPhases& phases) { return phases.size() < 2; });
  return generations;
}

class Collector {
 public:
  explicit Collector(const trace::OpTree& tree)
      : tree_(tree),
        trace_(tree.trace()),
        prefills_(tree, "prefill"),
        decodes_(tree, "decode"),
        generations_(generations_of(trace_, prefills_, decodes_)) {}

  [[nodiscard]] std::optional<DecodeFacts> result() {
    const std::string_view cache = metadata_text(trace_, "cache");
    if (cache.empty() || generations_.empty()) return std::nullopt;
    facts_.cache = trace::printable(cache.substr(0, 40));
    facts_.generations = static_cast<std::int64_t>(generations_.size());
    facts_.tokens = std::numeric_limits<std::int64_t>::max();
    for (const GenerationPhases& phases : generations_) {
      const auto tokens = static_cast<std::int64_t>(phases.size()) - 1;
      facts_.tokens = std::min(facts_.tokens, tokens);
      facts_.all_tokens += tokens;
    }
    find_times();
    find_gpu();
    find_cache();
    return facts_;
  }

 private:
  void find_times() {
    std::vector<double> prefills, tokens, first, last;
    const auto quarter = static_cast<std::size_t>(std::max<std::int64_t>(1, facts_.tokens / 4));
    for (const GenerationPhases& phases : generations_) {
      prefills.push_back(us(phases.front().start_ns, phases.front().end_ns));
      for (std::size_t i = 1; i < phases.size(); ++i) {
        const double time = us(phases[i - 1].end_ns, phases[i].end_ns);
        tokens.push_back(time);
        if (i <= quarter) first.push_back(time);
        if (i + quarter >= phases.size()) last.push_back(time);
      }
    }
    facts_.prefill_us = median(std::move(prefills));
    facts_.token_us = median(std::move(tokens));
    facts_.first_us = median(std::move(first));
    facts_.last_us = median(std::move(last));
    const auto apart = facts_.tokens - static_cast<std::int64_t>(quarter);
    if (apart > 0)
      facts_.slope_us = (facts_.last_us - facts_.first_us) / static_cast<double>(apart);
  }

  void find_gpu() {
    std::vector<double> gaps;
    double busy_us = 0, whole_us = 0;
    for (const GenerationPhases& phases : generations_) {
      std::vector<std::uint32_t> operations;
      for (std::size_t i = 1; i < phases.size(); ++i) {
        const auto& own = phases[i].forward->gpu_operations;
        operations.insert(operations.end(), own.begin(), own.end());
        count_replays(*phases[i].forward);
        if (phases[i].last_gpu_ns == 0 || phases[i - 1].last_gpu_ns == 0) continue;
        gaps.push_back(std::max(0.0, us(phases[i - 1].last_gpu_ns, phases[i].first_gpu_ns)));
      }
      std::stable_sort(operations.begin(), operations.end(), [&](std::uint32_t a, std::uint32_t b) {
        return trace_.events[a].start_ns < trace_.events[b].start_ns;
      });
      const Busy time = busy(trace_, operations);
      busy_us += time.busy_us;
      whole_us += time.whole_us;
    }
    facts_.on_gpu = whole_us > 0;
    facts_.gap_us = median(std::move(gaps));
    if (facts_.on_gpu) facts_.idle_share = 1 - busy_us / whole_us;
  }

  void count_replays(const Forward& token) {
    std::uint32_t last_call = trace::kNoEvent;
    for (const std::uint32_t operation : token.gpu_operations) {
      const std::uint32_t call = decodes_.call_of(operation);
      if (!trace_.name(trace_.events[call]).starts_with("cudaGraphLaunch")) continue;
      ++facts_.graph_operations;
      if (call != last_call) ++facts_.graph_launches;
      last_call = call;
    }
  }

  void find_cache() {
    facts_.cache_tokens = count_of(trace_, "cache_tokens");
    facts_.cache_slots = std::max(count_of(trace_, "cache_slots"), facts_.cache_tokens);
    const auto layers = static_cast<double>(count_of(trace_, "cache_layers"));
    const std::optional<Sizes> shape = sizes(trace_);
    if (!shape || layers == 0) return;
    facts_.slot_bytes = 2 * layers * static_cast<double>(shape->kv_heads) *
                        static_cast<double>(shape->head_dim) *
                        static_cast<double>(shape->element_bytes);
    facts_.final_bytes = facts_.slot_bytes * static_cast<double>(facts_.cache_tokens);
    find_bytes(*shape, layers);
    if (has_memory(trace_)) find_memory();
  }

  void find_bytes(const Sizes& shape, double layers) {
    CacheBytes reader(tree_, static_cast<double>(shape.element_bytes));
    TokenBytes sum;
    bool is_seen = false;
    const auto prompts = static_cast<double>(count_of(trace_, "prompt_tokens"));
    for (const GenerationPhases& phases : generations_) {
      for (std::size_t i = 1; i < phases.size(); ++i) {
        const double tokens = prompts + static_cast<double>(shape.batch) * static_cast<double>(i);
        const double least = facts_.slot_bytes * tokens;
        const CacheBytes::Moved moved = reader.of_token(*phases[i].forward, least / layers);
        is_seen |= moved.written > 0;
        sum.written += moved.written;
        sum.read += moved.read;
        sum.least += least;
      }
    }
    if (!is_seen) return;
    const auto tokens = static_cast<double>(facts_.all_tokens);
    facts_.bytes = {.own = facts_.slot_bytes * static_cast<double>(shape.batch),
                    .written = sum.written / tokens,
                    .read = sum.read / tokens,
                    .least = sum.least / tokens};
  }

  // Allocations by where the time of their record lies: in a token, in what is annotated as cache.
  void find_memory() {
    const MemoryTimeline memory = memory_timeline(tree_, std::nullopt);
    const Stretches in_cache(tree_, "cache"), in_token(tree_, "decode");
    const std::int64_t from_ns = generations_.front().front().start_ns;
    const trace::Event& last = trace_.events[generations_.front().back().forward->annotation];
    std::int64_t all = 0, of_cache = 0;
    std::vector<std::pair<std::int64_t, double>> changes;  // when, bytes
    for (const MemoryBlock& block : memory.blocks) {
      const bool is_cache = in_cache.contains(block.from_ns);
      if (in_token.contains(block.from_ns)) {
        ++all;
        of_cache += is_cache ? 1 : 0;
      }
      if (!is_cache || block.from_ns < from_ns || block.from_ns > end_ns(last)) continue;
      changes.emplace_back(block.from_ns, static_cast<double>(block.bytes));
      changes.emplace_back(block.to_ns, -static_cast<double>(block.bytes));
    }
    std::sort(changes.begin(), changes.end());  // frees first where both have the same time
    double now = static_cast<double>(count_of(trace_, "held_cache_bytes"));
    facts_.peak_bytes = now;
    for (const auto& [time_ns, bytes] : changes)
      facts_.peak_bytes = std::max(facts_.peak_bytes, now += bytes);
    facts_.allocations = static_cast<double>(all) / static_cast<double>(facts_.all_tokens);
    facts_.cache_allocations =
        static_cast<double>(of_cache) / static_cast<double>(facts_.all_tokens);
  }

  const trace::OpTree& tree_;
  const trace::Trace& trace_;
  const Forwards prefills_, decodes_;
  const std::vector<GenerationPhases> generations_;
  DecodeFacts facts_;
};

}  // namespace

std::optional<DecodeFacts> decode_facts(const trace::OpTree& tree) {
  return Collector(tree).result();
}

}  // namespace explain
