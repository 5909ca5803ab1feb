// SPDX-License-Identifier: Apache-2.0
#include "choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>

#include "model.h"
#include "versions.h"

namespace kv {
namespace {

constexpr const char* kCache = "--cache";
constexpr const char* kTokens = "--tokens";
constexpr const char* kPrompts = "--lengths";
constexpr const char* kCapacity = "--capacity";
constexpr const char* kAttention = "--attention";
constexpr const char* kGraph = "--cuda-graph";
constexpr const char* kSweep = "--sweep";
constexpr const char* kAll = "all";
constexpr std::int64_t kDefaultTokens = 40;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 20;
constexpr std::size_t kMostSweeps = 64;

std::int64_t number_or(const chapter::Options& options, const char* name, std::int64_t otherwise) {
  return chapter::number_in(options.extra.at(name), kMostTokens).value_or(otherwise);
}

std::vector<std::int64_t> prompts_of(const chapter::Options& options) {
  const chapter::Shape& s = options.shape;
  const std::vector<std::int64_t> alike(static_cast<std::size_t>(s.batch), s.seq);
  return chapter::numbers_in(options.extra.at(kPrompts), s.seq).value_or(alike);
}

std::int64_t longest(const std::vector<std::int64_t>& values) {
  return *std::max_element(values.begin(), values.end());
}

// A power of two, as such limits usually are.
std::int64_t capacity_of(const chapter::Options& options, std::int64_t tokens) {
  const std::int64_t needed = longest(prompts_of(options)) + tokens;
  return number_or(options, kCapacity,
                   static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(needed))));
}

std::string why_no_kernel(const chapter::Options& options) {
  const std::int64_t D = options.shape.head_dim;
  if (!options.on_gpu()) {
    if (options.dtype == c10::kHalf) return "on the CPU the decode kernel takes fp32 and bf16";
    return D > 256 ? "on the CPU the decode kernel takes a --head-dim up to 256" : "";
  }
  if (!kernels::kHaveCuda) return "the decode kernel was not built: there was no fitting nvcc";
  const auto index = static_cast<std::size_t>(options.device.index());
  if (options.machine.gpus[index].compute_capability() < 80)
    return "the decode kernel needs compute capability 8.0";
  if (options.dtype == c10::kFloat) return "on a GPU the decode kernel takes bf16 and fp16";
  return D != 64 && D != 128 ? "on a GPU the decode kernel takes a --head-dim of 64 or 128" : "";
}

bool is_ragged(const chapter::Options& options) {
  const std::vector<std::int64_t> prompts = prompts_of(options);
  return std::adjacent_find(prompts.begin(), prompts.end(), std::not_equal_to<>()) != prompts.end();
}

// Why the kernel cannot read this cache, "" where it can.
std::string why_not_by_kernel(Kind kind, const chapter::Options& options) {
  if (kind == Kind::none) return "without a cache there is nothing for the decode kernel to read";
  if (kind == Kind::concat && is_ragged(options)) {
    return "behind a short prompt the concatenated cache has a gap, of which the decode kernel "
           "knows nothing: SDPA takes a mask";
  }
  return why_no_kernel(options);
}

std::string why_no_graph(Kind kind, const chapter::Options& options) {
  if (kind == Kind::none || kind == Kind::concat) {
    return "each token has tensors of other sizes at other addresses, and a CUDA graph replays the "
           "old ones: it takes preallocated or paged";
  }
  if (!options.on_gpu()) return "a CUDA graph needs an NVIDIA GPU";
  if (options.extra.at(kAttention) == "sdpa") {
    return "SDPA is told the length by the host, which a CUDA graph does not ask again: it takes "
           "--attention kernel";
  }
  return why_not_by_kernel(kind, options);
}

double cache_bytes(const chapter::Options& options, std::int64_t tokens) {
  const chapter::Shape& s = options.shape;
  const auto per_token = static_cast<double>(2 * kLayers * s.kv_heads * s.head_dim) *
                         static_cast<double>(c10::elementSize(options.dtype));
  return per_token * static_cast<double>(s.batch) *
         static_cast<double>(capacity_of(options, tokens));
}

std::string why_no_room(Kind kind, const chapter::Options& options, std::int64_t tokens) {
  const std::int64_t needed = longest(prompts_of(options)) + tokens;
  const std::int64_t capacity = capacity_of(options, tokens);
  if ((kind == Kind::preallocated || kind == Kind::paged) && capacity < needed) {
    return fmt::format(
        "the cache has room for {} tokens of a sequence, and {} + {} are to come: "
        "raise --capacity or lower --tokens",
        capacity, needed - tokens, tokens);
  }
  // Twice, since a concatenated cache is copied.
  const double bytes = 2 * cache_bytes(options, tokens);
  const double available = chapter::available_memory(options);
  if (available <= 0 || bytes <= available) return "";
  return fmt::format(
      "the cache may need {:.1f} GiB and there are {:.1f} GiB: try a smaller "
      "--capacity, --seq or --batch",
      bytes / (1 << 30), available / (1 << 30));
}

std::string why_not(Kind kind, const chapter::Options& options, std::int64_t tokens) {
  if (!options.extra.at(kGraph).empty()) {
    if (std::string why = why_no_graph(kind, options); !why.empty()) return "--cuda-graph: " + why;
  }
  if (options.extra.at(kAttention) == "kernel") {
    if (std::string why = why_not_by_kernel(kind, options); !why.empty())
      return "--attention kernel: " + why;
  }
  return why_no_room(kind, options, tokens);
}

std::vector<std::int64_t> sweep_of(const chapter::Options& options) {
  const std::string& list = options.extra.at(kSweep);
  std::vector<std::int64_t> lengths =
      list.empty() ? std::vector{number_or(options, kTokens, kDefaultTokens)}
                   : chapter::numbers_in(list, kMostTokens).value_or(std::vector<std::int64_t>{});
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths.size() > kMostSweeps ? std::vector<std::int64_t>{} : lengths;
}

// What is no number or no list of numbers, in one sentence.
std::string why_malformed(const chapter::Options& options) {
  for (const char* name : {kTokens, kCapacity}) {
    const std::string& text = options.extra.at(name);
    if (!text.empty() && !chapter::number_in(text, kMostTokens))
      return fmt::format("{} takes a number from 1 to {}, not '{}'", name, kMostTokens, text);
  }
  if (sweep_of(options).empty()) {
    return fmt::format("{} takes up to {} numbers from 1 to {} with commas between, not '{}'",
                       kSweep, kMostSweeps, kMostTokens, options.extra.at(kSweep));
  }
  const std::string& prompts = options.extra.at(kPrompts);
  const auto values = chapter::numbers_in(prompts, options.shape.seq);
  const bool fits = values && static_cast<std::int64_t>(values->size()) == options.shape.batch;
  if (prompts.empty() || fits) return "";
  return fmt::format(
      "{} takes a length from 1 to {} (--seq) for each of the {} sequences (--batch) "
      "with commas between, not '{}'",
      kPrompts, options.shape.seq, options.shape.batch, prompts);
}

}  // namespace

std::vector<chapter::ExtraOption> extra_options() {
  return {{kCache,
           "How keys and values are kept; none computes all again, all compares them",
           {"concat", "preallocated", "paged", "none", kAll}},
          {kTokens, "T, tokens that each sequence writes (default: 40)", {}},
          {kPrompts, "Prompts of different lengths, one per sequence: 17,400", {}},
          {kCapacity, "Tokens that a sequence has room for (default: the next power of two)", {}},
          {kAttention,
           "The decode kernel of 04, or SDPA; auto: the kernel where it can",
           {"auto", "kernel", "sdpa"}},
          {.name = kGraph,
           .help = "Capture a token's kernels once and launch them together",
           .values = {},
           .is_flag = true},
          {kSweep, "Numbers of tokens T to compare instead of a recording: 64,256,1024", {}}};
}

std::string why_impossible(const chapter::Options& options) {
  if (std::string why = why_malformed(options); !why.empty()) return why;
  const std::string& name = options.extra.at(kCache);
  const std::vector<std::int64_t> lengths = sweep_of(options);
  const bool is_sweep = name == kAll || !options.extra.at(kSweep).empty();
  if (is_sweep && (options.quiz || !options.guess.empty()))
    return "the questions are about one recording: name one --cache, and leave --sweep out";
  if (name != kAll) return why_not(*kind_of(name), options, lengths.back());
  const Asked all = asked(options);
  return all.kinds.empty() ? all.missing.substr(0, all.missing.find('\n')) : "";
}

Asked asked(const chapter::Options& options) {
  return asked(options, sweep_of(options).back());
}

Asked asked(const chapter::Options& options, std::int64_t tokens) {
  Asked asked;
  asked.tokens = tokens;
  asked.prompts = prompts_of(options);
  asked.capacity = capacity_of(options, tokens);
  const std::string& name = options.extra.at(kCache);
  for (const Kind kind : kKinds) {
    if (name != kAll && name != name_of(kind)) continue;
    const std::string why = why_not(kind, options, tokens);
    if (why.empty()) asked.kinds.push_back(kind);
    if (!why.empty()) asked.missing += fmt::format("not {}: {}\n", name_of(kind), why);
  }
  asked.cuda_graph = !options.extra.at(kGraph).empty();
  asked.is_sweep = name == kAll || !options.extra.at(kSweep).empty();
  asked.lengths = sweep_of(options);
  return asked;
}

bool by_kernel(Kind kind, const chapter::Options& options) {
  return options.extra.at(kAttention) != "sdpa" && why_not_by_kernel(kind, options).empty();
}

chapter::Options named_after(const Asked& asked, chapter::Options options) {
  const std::string& name = options.extra.at(kCache);
  const Kind kind = asked.kinds.front();
  const bool by_sdpa = name == kAll ? options.extra.at(kAttention) == "sdpa"
                                    : kind != Kind::none && !by_kernel(kind, options);
  options.info.variant =
      fmt::format("{}{}{}{}", name, by_sdpa ? "-sdpa" : "", is_ragged(options) ? "-ragged" : "",
                  asked.cuda_graph ? "-graph" : "");
  return options;
}

}  // namespace kv
