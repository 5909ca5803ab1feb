// SPDX-License-Identifier: Apache-2.0
#include "choose.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "versions.h"

namespace kernels {
namespace {

constexpr const char* kKernel = "--kernel";
constexpr const char* kAgainst = "--against";
constexpr const char* kLibrary = "--kernel-library";
constexpr const char* kAlign = "--causal-align";
constexpr const char* kKvSeq = "--kv-seq";
constexpr std::int64_t kMostKeys = std::int64_t{1} << 30;

int compute_capability(const chapter::Options& options) {
  if (!options.on_gpu()) return 0;
  return options.machine.gpus[static_cast<std::size_t>(options.device.index())]
      .compute_capability();
}

std::string why_not(const Version& version, const chapter::Options& options) {
  return kernels::why_not(version, compute_capability(options));
}

std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> result;
  std::istringstream stream(list);
  for (std::string word; std::getline(stream, word, ',');) result.push_back(word);
  return result;
}

// Skv; 0 for what is no length.
std::int64_t kv_seq(const chapter::Options& options) {
  const std::string& text = options.extra.at(kKvSeq);
  if (text.empty()) return options.shape.seq;
  return chapter::number_in(text, kMostKeys).value_or(0);
}

bool has_plain_mask(const chapter::Options& options) {
  return kv_seq(options) == options.shape.seq && options.extra.at(kAlign) == "top-left";
}

// What every version asks of its inputs.
std::string why_not_these_inputs(const chapter::Options& options) {
  const std::int64_t D = options.shape.head_dim;
  if (options.on_gpu()) {
    if (options.dtype == c10::kFloat) return "the kernels take bf16 and fp16, not fp32";
    if (D != 64 && D != 128) return fmt::format("--head-dim must be 64 or 128, not {}", D);
  } else {
    if (options.dtype != c10::kFloat) return "on the CPU the kernels take fp32 alone";
    if (D > 256) return fmt::format("--head-dim may be up to 256 on the CPU, not {}", D);
  }
  return "";
}

}  // namespace

std::vector<chapter::ExtraOption> extra_options() {
  chapter::ExtraOption kernel{
      kKernel, "Version; auto is the fastest that the device runs, all compares them", {"auto"}};
  for (const Version& version : kVersions) kernel.values.emplace_back(version.name);
  kernel.values.emplace_back("all");
  return {kernel,
          {kAgainst, "Backends of LibTorch to record beside it: flash,cudnn,efficient,math", {}},
          {kLibrary, "Another library that registers an op of the same signature", {}},
          {kAlign,
           "Whether the first query sees the first key, or the last query the last key",
           {"top-left", "bottom-right"}},
          {kKvSeq, "Skv, length of keys and values (default: S)", {}}};
}

std::string why_impossible(const chapter::Options& options) {
  const std::string& asked = options.extra.at(kKernel);
  const bool is_compared = asked == "all" || !options.extra.at(kAgainst).empty();
  if (is_compared && (options.quiz || !options.guess.empty())) {
    return "the questions are about one kernel: leave --against out, and name one with --kernel";
  }
  if (kv_seq(options) == 0) {
    return fmt::format("--kv-seq takes a length from 1 to {}, not '{}'", kMostKeys,
                       options.extra.at(kKvSeq));
  }
  if (!options.extra.at(kAgainst).empty() && !has_plain_mask(options)) {
    return "--against compares with LibTorch's own mask: leave --kv-seq and --causal-align out";
  }
  for (const std::string& name : words(options.extra.at(kAgainst))) {
    const auto backend = chapter::backend_of(name);
    if (!backend) {
      return fmt::format("--against takes flash, cudnn, efficient and math, not '{}'", name);
    }
    const std::string why = chapter::why_not(*backend, options);
    if (!why.empty()) return fmt::format("--against {}: {}", name, why);
  }
  if (!options.extra.at(kLibrary).empty()) return "";  // what it can do, only it knows
  if (const std::string why = why_not_these_inputs(options); !why.empty()) return why;
  for (const Version& version : kVersions) {
    if (version.name != asked) continue;
    const std::string why = why_not(version, options);
    return why.empty() ? "" : fmt::format("--kernel {}: {}", asked, why);
  }
  return asked_versions(options).empty() ? "no kernel of this chapter runs on this device" : "";
}

chapter::Inputs make_inputs(const chapter::Options& options) {
  chapter::Inputs in = chapter::make_inputs(options);
  const std::int64_t Skv = kv_seq(options), S = options.shape.seq;
  if (Skv != S) {
    const chapter::Shape& s = options.shape;
    in.k = at::randn({s.batch, s.kv_heads, Skv, s.head_dim}, in.k.options());
    in.v = at::randn({s.batch, s.kv_heads, Skv, s.head_dim}, in.v.options());
  }
  in.shift = causal_of(options) == "bottom_right" ? Skv - S : 0;
  return in;
}

std::string causal_of(const chapter::Options& options) {
  return options.extra.at(kAlign) == "top-left" ? "top_left" : "bottom_right";
}

Op load_op(const chapter::Options& options) {
  const std::string& library = options.extra.at(kLibrary);
  Op op = Op::load(library.empty() ? Op::own_library() : std::filesystem::path(library));
  fmt::print("Op        {}, from {}\n", op.name(),
             library.empty() ? "libattention_kernels.so" : library);
  return op;
}

std::vector<std::string> asked_versions(const chapter::Options& options) {
  const std::string& asked = options.extra.at(kKernel);
  if (asked != "all" && asked != "auto") return {asked};
  if (!options.extra.at(kLibrary).empty()) return {"auto"};
  std::vector<std::string> runnable;
  for (const Version& version : kVersions) {
    if (why_not(version, options).empty()) runnable.emplace_back(version.name);
  }
  if (asked == "all" || runnable.empty()) return runnable;
  return {runnable.back()};
}

void say_choice(const chapter::Options& options, const std::string& version) {
  if (options.extra.at(kKernel) != "auto" || version == "auto") return;
  for (const Version& known : kVersions) {
    if (known.name == version) {
      fmt::print("Kernel    {} ({}), the fastest that this device runs\n", version, known.idea);
    } else if (const std::string why = why_not(known, options); !why.empty()) {
      fmt::print("          not {}: {}\n", known.name, why);
    }
  }
}

std::vector<chapter::Compared> record_backends(
    const chapter::Options& options, const chapter::Inputs& in,
    const std::function<chapter::Recording(const chapter::Options&, const chapter::Inputs&,
                                           const std::function<at::Tensor()>&)>& record) {
  std::vector<chapter::Compared> recordings;
  for (const std::string& name : words(options.extra.at(kAgainst))) {
    const chapter::Pinned pinned(*chapter::backend_of(name));
    const auto forward = [&] {
      return at::scaled_dot_product_attention(in.q, in.k, in.v, {}, 0.0, /*is_causal=*/true, {},
                                              /*enable_gqa=*/in.q.size(1) != in.k.size(1));
    };
    recordings.push_back({name, record(named_after(name, options), in, forward).facts});
  }
  return recordings;
}

chapter::Options named_after(const std::string& variant, chapter::Options options) {
  options.info.variant = variant;
  if (!options.extra.at(kKvSeq).empty()) {
    options.info.variant += "-kv" + options.extra.at(kKvSeq);
  }
  if (options.extra.at(kAlign) != "top-left") options.info.variant += "-bottom-right";
  return options;
}

void show_comparison(const chapter::Options& options,
                     const std::vector<chapter::Compared>& recordings) {
  std::string missing;
  for (const Version& version : kVersions) {
    const std::string why = why_not(version, options);
    if (options.extra.at(kKernel) == "all" && !why.empty()) {
      missing += fmt::format("not {}: {}\n", version.name, why);
    }
  }
  chapter::print_comparison(options, recordings, missing);
}

}  // namespace kernels
