// SPDX-License-Identifier: Apache-2.0
#include "choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "explain/text.h"
#include "predict.h"

namespace memory {
namespace {

constexpr const char* kVariant = "--variant";
constexpr const char* kMode = "--mode";
constexpr const char* kLayers = "--layers";
constexpr const char* kSweep = "--sweep";
constexpr const char* kAll = "all";
constexpr std::int64_t kMostLayers = 1000;
constexpr std::int64_t kMostSeq = std::int64_t{1} << 30;
constexpr std::size_t kMostLengths = 64;

// In order of length, each once; nullopt for what is no such list.
std::optional<std::vector<std::int64_t>> lengths(const std::string& list) {
  auto result = chapter::numbers_in(list, kMostSeq);
  if (!result || result->size() > kMostLengths) return std::nullopt;
  std::sort(result->begin(), result->end());
  result->erase(std::unique(result->begin(), result->end()), result->end());
  return result;
}

std::int64_t layers_of(const chapter::Options& options) {
  const std::string& text = options.extra.at(kLayers);
  return text.empty() ? 2 : chapter::number_in(text, kMostLayers).value_or(0);
}

// One recorded step must fit; a sweep says for each size whether it does.
std::string why_too_large(Variant variant, Mode mode, const chapter::Options& options) {
  const double needed = bytes_needed(variant, mode, layers_of(options), options);
  const double available = chapter::available_memory(options);
  if (options.on_gpu() || available <= 0 || needed <= available) return "";
  return fmt::format(
      "this step may need {:.1f} GiB and the machine has {:.1f} GiB: try a smaller --seq or "
      "--batch, or --variant flash",
      needed / (1 << 30), available / (1 << 30));
}

}  // namespace

std::vector<chapter::ExtraOption> extra_options() {
  chapter::ExtraOption variant{kVariant, "How attention is computed; all compares them", {}};
  for (const Variant known : kVariants) variant.values.push_back(name_of(known));
  variant.values.emplace_back(kAll);
  return {variant,
          {kMode,
           "What a step does; checkpoint is training that keeps only each layer's input",
           {"training", "inference", "checkpoint"}},
          {kLayers, "Attention layers, one after the other (default: 2)", {}},
          {kSweep, "Lengths S to compare instead of a recording: 256,512,1024", {}}};
}

std::string why_impossible(const chapter::Options& options) {
  const std::string& name = options.extra.at(kVariant);
  const std::string& sweep = options.extra.at(kSweep);
  if (layers_of(options) == 0) {
    return fmt::format("--layers takes a number from 1 to {}, not '{}'", kMostLayers,
                       options.extra.at(kLayers));
  }
  if (!sweep.empty() && !lengths(sweep)) {
    return fmt::format("--sweep takes up to {} lengths from 1 to {} with commas between, not '{}'",
                       kMostLengths, kMostSeq, sweep);
  }
  if ((name == kAll || !sweep.empty()) && (options.quiz || !options.guess.empty())) {
    return "the questions are about one recording: name one --variant, and leave --sweep out";
  }
  if (name == kAll) return "";
  const Variant variant = *variant_of(name);
  const Mode mode = *mode_of(options.extra.at(kMode));
  if (const std::string why = why_not(variant, mode, options); !why.empty())
    return fmt::format("--variant {}: {}", name, why);
  return sweep.empty() ? why_too_large(variant, mode, options) : "";
}

Asked asked(const chapter::Options& options) {
  Asked asked;
  const std::string& name = options.extra.at(kVariant);
  asked.mode = *mode_of(options.extra.at(kMode));
  asked.layers = layers_of(options);
  for (const Variant variant : kVariants) {
    if (name != kAll && name != name_of(variant)) continue;
    const std::string why = why_not(variant, asked.mode, options);
    if (why.empty()) asked.variants.push_back(variant);
    if (!why.empty()) asked.missing += fmt::format("not {}: {}\n", name_of(variant), why);
  }
  const std::string& sweep = options.extra.at(kSweep);
  asked.is_sweep = name == kAll || !sweep.empty();
  asked.lengths = sweep.empty() ? std::vector{options.shape.seq} : *lengths(sweep);
  return asked;
}

chapter::Options named_after(const Asked& asked, chapter::Options options) {
  options.info.variant =
      fmt::format("{}-{}-{}layer{}", options.extra.at(kVariant), name_of(asked.mode), asked.layers,
                  asked.layers == 1 ? "" : "s");
  return options;
}

}  // namespace memory
