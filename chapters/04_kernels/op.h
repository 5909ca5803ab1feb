// SPDX-License-Identifier: Apache-2.0
//
// Attention ops out of a library that is loaded at run time, as a kernel hub delivers them: our own
// libattention_kernels.so, or any other that registers ops of the same signatures.
//
//   const kernels::Op op = kernels::Op::load("build/libattention_kernels.so");
//   const auto [out, lse] = op(q, k, v, "top_left", "auto");        // [B, H, S, D], [B, H, S]
//   const auto decode = kernels::DecodeOp::load("build/libattention_kernels.so");
//   const auto [next, its_lse] = decode(q, k_cache, v_cache, lengths);
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <filesystem>
#include <optional>
#include <string>
#include <tuple>

namespace kernels {

class Op {
 public:
  // (q, k, v, layout, causal, scale, kernel) -> (out, log-sum-exp); see library.cpp
  using Signature = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&,
                                                       const at::Tensor&, std::string_view,
                                                       std::string_view, std::optional<double>,
                                                       std::string_view);

  // Throws std::runtime_error with one sentence: the file cannot be loaded, or registers no op of
  // this signature. A library stays loaded until the program ends.
  [[nodiscard]] static Op load(const std::filesystem::path& library);

  // libattention_kernels.so beside this program.
  [[nodiscard]] static std::filesystem::path own_library();

  [[nodiscard]] std::string name() const;

  // q [B, H, S, D] -> out [B, H, S, D] and the log-sum-exp of its scores [B, H, S]; the arguments
  // are explained in library.cpp.
  std::tuple<at::Tensor, at::Tensor> operator()(const at::Tensor& q, const at::Tensor& k,
                                                const at::Tensor& v, std::string_view causal,
                                                std::string_view kernel,
                                                std::string_view layout = "BHSD",
                                                std::optional<double> scale = {}) const {
    return op_.call(q, k, v, layout, causal, scale, kernel);
  }

 private:
  explicit Op(c10::TypedOperatorHandle<Signature> op) : op_(std::move(op)) {}

  c10::TypedOperatorHandle<Signature> op_;
};

// The new token of each sequence against its key-value cache; see decode_op.cpp.
class DecodeOp {
 public:
  // (q, k, v, lengths, block_table, scale) -> (out, log-sum-exp)
  using Signature = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&,
                                                       const at::Tensor&, const at::Tensor&,
                                                       const std::optional<at::Tensor>&,
                                                       std::optional<double>);

  // As Op::load.
  [[nodiscard]] static DecodeOp load(const std::filesystem::path& library);

  [[nodiscard]] std::string name() const;

  // q [B, H, S, D] and lengths [B] -> out [B, H, S, D] and the log-sum-exp of its scores [B, H, S].
  std::tuple<at::Tensor, at::Tensor> operator()(const at::Tensor& q, const at::Tensor& k,
                                                const at::Tensor& v, const at::Tensor& lengths,
                                                const std::optional<at::Tensor>& block_table = {},
                                                std::optional<double> scale = {}) const {
    return op_.call(q, k, v, lengths, block_table, scale);
  }

 private:
  explicit DecodeOp(c10::TypedOperatorHandle<Signature> op) : op_(std::move(op)) {}

  c10::TypedOperatorHandle<Signature> op_;
};

}  // namespace kernels
