// SPDX-License-Identifier: Apache-2.0
#include "choose.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "chapter/comparison.h"

namespace sdpa {
namespace {

constexpr const char* kOption = "--backend";

// Chapter 02's attention: what the backends are measured against, in the same run.
at::Tensor in_place(const chapter::Inputs& in) {
  const at::Tensor k = chapter::repeat_kv(in.k, in.q.size(1));
  const at::Tensor v = chapter::repeat_kv(in.v, in.q.size(1));
  at::Tensor scores = at::matmul(in.q, k.transpose(-2, -1));
  scores = scores * (1.0 / std::sqrt(in.q.size(-1)));
  scores.masked_fill_(in.mask, -INFINITY);
  scores = at::softmax(scores, -1);
  return at::matmul(scores, v);
}

}  // namespace

chapter::ExtraOption backend_option() {
  chapter::ExtraOption option{
      kOption, "Implementation; auto is LibTorch's choice, all compares them", {"auto"}};
  for (const chapter::Backend backend : chapter::kBackends) {
    option.values.push_back(chapter::name_of(backend));
  }
  option.values.emplace_back("all");
  return option;
}

bool all_asked(const chapter::Options& options) {
  return options.extra.at(kOption) == "all";
}

std::string why_impossible(const chapter::Options& options) {
  const std::string& asked = options.extra.at(kOption);
  if (asked == "all" && (options.quiz || !options.guess.empty())) {
    return "the questions are about one backend: name one with --backend";
  }
  const std::optional<chapter::Backend> backend = chapter::backend_of(asked);
  const std::string why = backend ? chapter::why_not(*backend, options) : "";
  return why.empty() ? "" : fmt::format("--backend {}: {}", asked, why);
}

chapter::Backend asked_or_chosen(const chapter::Options& options) {
  if (const auto asked = chapter::backend_of(options.extra.at(kOption))) return *asked;
  const chapter::Backend backend = chapter::chosen_backend(options);
  fmt::print("Backend   {}, LibTorch's choice\n", chapter::name_of(backend));
  for (const chapter::Backend other : chapter::kBackends) {
    if (other == backend) continue;
    const std::string why = chapter::why_not(other, options);
    fmt::print("          not {}: {}\n", chapter::name_of(other),
               why.empty() ? "it could run, LibTorch prefers the other" : why);
  }
  return backend;
}

chapter::Options named_after(chapter::Backend backend, chapter::Options options) {
  options.info.variant = chapter::name_of(backend);
  return options;
}

void compare(const chapter::Options& options, const chapter::Inputs& inputs,
             const std::function<chapter::Recording(const chapter::Options&, const chapter::Inputs&,
                                                    const std::function<at::Tensor()>&)>& record,
             const std::function<chapter::Recording(chapter::Backend)>& record_with) {
  chapter::Options baseline = options;
  baseline.info.variant = "inplace";
  std::vector<chapter::Compared> recordings{
      {"in place", record(baseline, inputs, [&] { return in_place(inputs); }).facts}};
  std::string missing;
  for (const chapter::Backend backend : chapter::kBackends) {
    const std::string why = chapter::why_not(backend, options);
    if (why.empty()) {
      recordings.push_back({chapter::name_of(backend), record_with(backend).facts});
    } else {
      missing += fmt::format("not {}: {}\n", chapter::name_of(backend), why);
    }
  }
  chapter::print_comparison(options, recordings, missing);
}

}  // namespace sdpa
