// SPDX-License-Identifier: Apache-2.0
//
// Attention in float64, LibTorch's own flash kernel, and what lies between them: how far from the
// one a kernel may be is what rounding costs the other.
#pragma once

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

using at::Tensor;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline Tensor mask_of(std::int64_t S, std::int64_t Skv, const std::string& causal,
                      at::Device device) {
  const Tensor rows = at::arange(S, device).unsqueeze(1);
  const Tensor keys = at::arange(Skv, device).unsqueeze(0);
  if (causal == "none") return at::zeros({S, Skv}, at::TensorOptions(device).dtype(at::kBool));
  return keys > rows + (causal == "bottom_right" ? Skv - S : 0);
}

// out [B, H, S, D] and log-sum-exp [B, H, S] in float64. A row that sees no key: 0 and -inf.
inline std::pair<Tensor, Tensor> reference(const Tensor& q, const Tensor& k_in, const Tensor& v_in,
                                           const std::string& causal, double scale) {
  const std::int64_t group = q.size(1) / k_in.size(1);
  const Tensor k = at::repeat_interleave(k_in.to(at::kDouble), group, 1);
  const Tensor v = at::repeat_interleave(v_in.to(at::kDouble), group, 1);
  Tensor scores = at::matmul(q.to(at::kDouble), k.transpose(-2, -1)).mul_(scale);
  scores.masked_fill_(mask_of(q.size(2), k.size(2), causal, q.device()), -kInfinity);
  const Tensor lse = at::logsumexp(scores, {-1});
  const Tensor weights = at::nan_to_num(at::softmax(scores, -1), 0.0);
  return {at::matmul(weights, v), lse};
}

struct Error {
  double relative, largest;
};

inline Error error_of(const Tensor& out, const Tensor& expected) {
  const Tensor delta = out.to(at::kDouble) - expected;
  const double norm = std::max(expected.norm().item<double>(), 1e-30);
  return {delta.norm().item<double>() / norm, delta.abs().max().item<double>()};
}

// LibTorch's own flash kernel with the same mask. On a GPU its causal mask is bottom-right; rows
// that see all keys are taken from a call without one.
inline Tensor flash(const Tensor& q, const Tensor& k, const Tensor& v, const std::string& causal,
                    double scale) {
  const std::int64_t S = q.size(2), Skv = k.size(2), square = std::min(S, Skv);
  if (!q.is_cuda()) {
    const Tensor mask = at::zeros({S, Skv}, q.options())
                            .masked_fill_(mask_of(S, Skv, causal, q.device()), -kInfinity);
    return at::nan_to_num(std::get<0>(
        at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, false, mask, scale)));
  }
  const auto call = [&](const Tensor& rows, const Tensor& keys, const Tensor& values, bool masked) {
    return std::get<0>(
        at::_scaled_dot_product_flash_attention(rows, keys, values, 0.0, masked, false, scale));
  };
  if (causal != "top_left") return call(q, k, v, causal == "bottom_right");
  const Tensor out =
      call(q.slice(2, 0, square), k.slice(2, 0, square), v.slice(2, 0, square), true);
  return S == square ? out : at::cat({out, call(q.slice(2, square), k, v, false)}, 2);
}

// What rounding to this dtype costs it.
inline Error error_of_flash(const Tensor& q, const Tensor& k, const Tensor& v,
                            const std::string& causal, double scale) {
  const std::int64_t group = q.size(1) / k.size(1);
  const Tensor out = flash(q, at::repeat_interleave(k, group, 1),
                           at::repeat_interleave(v, group, 1), causal, scale);
  return error_of(out, reference(q, k, v, causal, scale).first);
}

// A NaN is no pass.
inline bool is_within(const Error& error, const Error& allowed) {
  return error.relative <= 2 * allowed.relative + 1e-5 &&
         error.largest <= 2 * allowed.largest + 1e-5;
}

inline bool is_lse(const Tensor& lse, const Tensor& expected) {
  const Tensor empty = at::isneginf(expected);
  const Tensor finite = expected.masked_fill(empty, 0);
  const Tensor error = (lse.to(at::kDouble).masked_fill(empty, 0) - finite).abs();
  return at::equal(at::isneginf(lse), empty) &&
         error.max().item<double>() <= 1e-3 * std::max(1.0, finite.abs().max().item<double>());
}
