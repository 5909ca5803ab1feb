// SPDX-License-Identifier: Apache-2.0
#include "chapter/backends.h"

#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <stdexcept>
#include <vector>

namespace chapter {
namespace {

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

}  // namespace

std::string name_of(Backend backend) {
  return kSwitches[static_cast<std::size_t>(backend)].name;
}

std::optional<Backend> backend_of(std::string_view name) {
  for (const Switch& known : kSwitches) {
    if (name == known.name) return known.backend;
  }
  return std::nullopt;
}

// Only shapes and dtypes matter: the tensors are never filled.
Backend chosen_backend(const Options& options) {
  const Shape& s = options.shape;
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

std::string why_not(Backend backend, const Options& options) {
  // The CPU has two of them, and its selector ignores the switches of the others.
  const bool cuda_only = backend == Backend::efficient || backend == Backend::cudnn;
  if (cuda_only && !options.on_gpu()) return "it runs on CUDA devices only";
  const Pinned pinned(backend);
  const ReasonsInsteadOfAnError reasons;
  Listener listener;
  const c10::WarningUtils::WarningHandlerGuard guard(&listener);
  const c10::WarningUtils::WarnAlways always;  // also what was warned about before
  try {
    if (chosen_backend(options) == backend) return "";
  } catch (const c10::Error& error) {
    if (listener.reasons.empty()) listener.reasons = error.what_without_backtrace();
  }
  return listener.reasons.empty() ? "LibTorch gives no reason" : listener.reasons;
}

}  // namespace chapter
