// SPDX-License-Identifier: Apache-2.0
#include "backends.h"

#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <stdexcept>
#include <vector>

namespace sdpa {
namespace {

constexpr const char* kOption = "--backend";

struct Switch {
  Backend backend;
  const char* name;
  at::SDPBackend id;
  bool (at::Context::*is_on)() const;
  void (at::Context::*set)(bool);
};

constexpr std::array kSwitches{
    Switch{Backend::math, "math", at::SDPBackend::math, &at::Context::userEnabledMathSDP,
           &at::Context::setSDPUseMath},
    Switch{Backend::efficient, "efficient", at::SDPBackend::efficient_attention,
           &at::Context::userEnabledMemEfficientSDP, &at::Context::setSDPUseMemEfficient},
    Switch{Backend::flash, "flash", at::SDPBackend::flash_attention,
           &at::Context::userEnabledFlashSDP, &at::Context::setSDPUseFlash},
    Switch{Backend::cudnn, "cudnn", at::SDPBackend::cudnn_attention,
           &at::Context::userEnabledCuDNNSDP, &at::Context::setSDPUseCuDNN},
};
static_assert(kSwitches.size() == kBackends.size());

// LibTorch warns about each condition that a backend misses; here the warnings are the answer.
class Listener : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    std::string text = warning.msg();
    text = text.substr(0, text.find(" (Triggered internally"));
    const bool is_heading = text.ends_with("not used because:");
    const bool is_our_pin = text.find("been runtime disabled") != std::string::npos;
    if (is_heading || is_our_pin) return;      // of the backends that we switched off ourselves
    if (text.ends_with('.')) text.pop_back();  // it becomes part of a sentence
    reasons += (reasons.empty() ? "" : "; ") + text;
  }
  std::string reasons;
};

// LibTorch's selector goes through its list of priorities, and ends with a bare "Invalid backend"
// at the entry for backends from outside before it gets to its reasons. While this lives the list
// names each backend of ours and no other.
class ReasonsInsteadOfAnError {
 public:
  ReasonsInsteadOfAnError() {
    std::vector<std::int64_t> order;
    for (const at::SDPBackend id : at::globalContext().sDPPriorityOrder()) {
      before_.push_back(static_cast<std::int64_t>(id));
      order.push_back(static_cast<std::int64_t>(
          id == at::SDPBackend::overrideable ? at::SDPBackend::math : id));
    }
    at::globalContext().setSDPPriorityOrder(order);
  }
  ~ReasonsInsteadOfAnError() { at::globalContext().setSDPPriorityOrder(before_); }
  ReasonsInsteadOfAnError(const ReasonsInsteadOfAnError&) = delete;
  ReasonsInsteadOfAnError& operator=(const ReasonsInsteadOfAnError&) = delete;

 private:
  std::vector<std::int64_t> before_;
};

// What LibTorch takes with the switches as they are. Only shapes and dtypes matter: the tensors are
// never filled.
Backend chosen(const chapter::Options& options) {
  const chapter::Shape& s = options.shape;
  const auto like = at::TensorOptions().device(options.device).dtype(options.dtype);
  const at::Tensor q = at::empty({s.batch, s.heads, s.seq, s.head_dim}, like);
  const at::Tensor k = at::empty({s.batch, s.kv_heads, s.seq, s.head_dim}, like);
  const std::int64_t id =
      at::_fused_sdp_choice(q, k, k, /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true,
                            /*scale=*/{}, /*enable_gqa=*/s.heads != s.kv_heads);
  for (const Switch& known : kSwitches) {
    if (id == static_cast<std::int64_t>(known.id)) return known.backend;
  }
  throw std::runtime_error("LibTorch chose a backend that this chapter does not know");
}

}  // namespace

std::string name_of(Backend backend) {
  return kSwitches[static_cast<std::size_t>(backend)].name;
}

chapter::ExtraOption backend_option() {
  return {kOption,
          "Implementation; auto is LibTorch's choice, all compares them",
          {"auto", "math", "efficient", "flash", "cudnn", "all"}};
}

bool all_asked(const chapter::Options& options) {
  return options.extra.at(kOption) == "all";
}

chapter::Options named_after(Backend backend, chapter::Options options) {
  options.info.variant = name_of(backend);
  return options;
}

Pinned::Pinned(Backend backend) {
  at::Context& context = at::globalContext();
  for (const Switch& s : kSwitches) {
    before_[static_cast<std::size_t>(s.backend)] = (context.*s.is_on)();
    (context.*s.set)(s.backend == backend);
  }
}

Pinned::~Pinned() {
  at::Context& context = at::globalContext();
  for (const Switch& s : kSwitches) {
    (context.*s.set)(before_[static_cast<std::size_t>(s.backend)]);
  }
}

std::string why_not(Backend backend, const chapter::Options& options) {
  // The CPU has two of them, and its selector ignores the switches of the others.
  const bool cuda_only = backend == Backend::efficient || backend == Backend::cudnn;
  if (cuda_only && !options.on_gpu()) return "it runs on CUDA devices only";
  const Pinned pinned(backend);
  const ReasonsInsteadOfAnError reasons;
  Listener listener;
  const c10::WarningUtils::WarningHandlerGuard guard(&listener);
  const c10::WarningUtils::WarnAlways always;  // also what was warned about before
  try {
    if (chosen(options) == backend) return "";
  } catch (const c10::Error& error) {
    if (listener.reasons.empty()) listener.reasons = error.what_without_backtrace();
  }
  return listener.reasons.empty() ? "LibTorch gives no reason" : listener.reasons;
}

std::string why_impossible(const chapter::Options& options) {
  const std::string& asked = options.extra.at(kOption);
  if (asked == "all" && (options.quiz || !options.guess.empty())) {
    return "the questions are about one backend: name one with --backend";
  }
  for (const Switch& known : kSwitches) {
    if (asked != known.name) continue;
    const std::string why = why_not(known.backend, options);
    return why.empty() ? "" : fmt::format("--backend {}: {}", asked, why);
  }
  return "";  // auto and all always find something
}

Backend asked_or_chosen(const chapter::Options& options) {
  const std::string& asked = options.extra.at(kOption);
  for (const Switch& known : kSwitches) {
    if (asked == known.name) return known.backend;
  }
  const Backend backend = chosen(options);
  fmt::print("Backend   {}, LibTorch's choice\n", name_of(backend));
  for (const Backend other : kBackends) {
    if (other == backend) continue;
    const std::string why = why_not(other, options);
    fmt::print("          not {}: {}\n", name_of(other),
               why.empty() ? "it could run, LibTorch prefers the other" : why);
  }
  return backend;
}

}  // namespace sdpa
