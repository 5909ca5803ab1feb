// SPDX-License-Identifier: Apache-2.0
//
// Seeded inputs, and the float64 attention that every chapter is checked against before anything is
// timed: a fast wrong kernel is worth nothing.
//
//   const chapter::Inputs in = chapter::make_inputs(options);       // q [B, H, S, D], ...
//   const at::Tensor out = attention(in.q, in.k, in.v, in.mask);    // [B, H, S, D]
//   chapter::check(options, out, in);                               // throws WrongResult
#pragma once

#include <ATen/core/Tensor.h>

#include <stdexcept>

#include "chapter/options.h"

namespace chapter {

struct Inputs {
  at::Tensor q;     // [B, H, S, D], normal, on the chosen device in the chosen dtype
  at::Tensor k, v;  // [B, Hkv, Skv, D]; Skv is S but where a chapter says so
  at::Tensor mask;  // [S, S] bool, true above the diagonal: what a causal query must not see
  // Row i sees the keys up to i + shift: 0 aligns the mask to the top left, Skv - S to the bottom
  // right. A row that sees none has the result 0.
  std::int64_t shift = 0;
};

[[nodiscard]] Inputs make_inputs(const Options& options);

// [B, Hkv, S, D] -> [B, H, S, D]: each key and value head once per query head that shares it.
// Returns its argument where there is nothing to repeat.
[[nodiscard]] at::Tensor repeat_kv(const at::Tensor& x, std::int64_t heads);

// How far a result is from float64 causal attention, computed in slices of less than 64 MB.
struct Error {
  double relative_l2 = 0;  // |out - reference| / |reference|; NaN where the result has one
  double max_abs = 0;      // NaN where the result has one
  double bound = 0;        // what relative_l2 may be in this dtype

  [[nodiscard]] bool acceptable() const { return relative_l2 <= bound; }  // false for NaN
};
[[nodiscard]] Error error_of(const at::Tensor& out, const Inputs& inputs);

// What rounding alone explains of a relative error in this dtype.
[[nodiscard]] double bound_for(c10::ScalarType dtype);

// The float64 attention itself, [B, H, S, D].
[[nodiscard]] at::Tensor reference_attention(const Inputs& inputs);

// The result is not attention: the program exits 1.
class WrongResult : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Prints the error against float64 in one line; throws WrongResult if it is not acceptable.
Error check(const Options& options, const at::Tensor& out, const Inputs& inputs);
// The same for an error that a chapter worked out itself.
Error check(const Options& options, const Error& error);

}  // namespace chapter
