// SPDX-License-Identifier: Apache-2.0
#include "chapter/inputs.h"

#include <ATen/Functions.h>
#include <ATen/TensorIndexing.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace chapter {
namespace {

// Causal attention of some rows of one head, in float64. q [R, D], k and v [Skv, D] -> [R, D].
// The first row sees the keys up to `last_key`, each further one a key more.
at::Tensor reference_rows(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          std::int64_t last_key) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(1)));
  at::Tensor scores = at::matmul(q, k.t()).mul_(scale);  // [R, Skv]
  const at::Tensor last = at::arange(last_key, last_key + q.size(0), q.device()).unsqueeze(1);
  const at::Tensor keys = at::arange(k.size(0), q.device()).unsqueeze(0);
  scores.masked_fill_(keys > last, -std::numeric_limits<double>::infinity());
  const at::Tensor out = at::matmul(at::softmax(scores, -1), v);
  return out.masked_fill(last < 0, 0);  // of a row without keys
}

// Some rows of one head.
struct Slice {
  std::int64_t batch, head, row, count;

  // [B, H, S, D] -> [count, D]
  [[nodiscard]] at::Tensor of(const at::Tensor& x) const {
    return x[batch][head].narrow(0, row, count);
  }
};

// Calls `use` with each slice and what it has to be.
template <typename Use>
void for_each_slice(const Inputs& inputs, const Use& use) {
  constexpr std::int64_t kSliceBytes = 16 << 20;  // of scores; four such tensors live at once
  const std::int64_t seq = inputs.q.size(2), kv_seq = inputs.k.size(2);
  const std::int64_t group = inputs.q.size(1) / inputs.k.size(1);
  const std::int64_t rows = std::clamp<std::int64_t>(
      kSliceBytes / static_cast<std::int64_t>(sizeof(double)) / kv_seq, 1, seq);
  for (std::int64_t b = 0; b < inputs.q.size(0); ++b) {
    for (std::int64_t h = 0; h < inputs.q.size(1); ++h) {
      const at::Tensor k = inputs.k[b][h / group].to(c10::kDouble);
      const at::Tensor v = inputs.v[b][h / group].to(c10::kDouble);
      for (std::int64_t row = 0; row < seq; row += rows) {
        const Slice slice{b, h, row, std::min(rows, seq - row)};
        use(slice, reference_rows(slice.of(inputs.q).to(c10::kDouble), k, v, row + inputs.shift));
      }
    }
  }
}

}  // namespace

Inputs make_inputs(const Options& options) {
  const Shape& s = options.shape;
  const auto like = at::TensorOptions().device(options.device).dtype(options.dtype);
  at::Generator generator = at::globalContext().defaultGenerator(options.device);
  generator.set_current_seed(options.seed);
  Inputs inputs;
  inputs.q = at::randn({s.batch, s.heads, s.seq, s.head_dim}, like);
  inputs.k = at::randn({s.batch, s.kv_heads, s.seq, s.head_dim}, like);
  inputs.v = at::randn({s.batch, s.kv_heads, s.seq, s.head_dim}, like);
  inputs.mask = at::triu(at::ones({s.seq, s.seq}, like.dtype(c10::kBool)), 1);
  return inputs;
}

at::Tensor repeat_kv(const at::Tensor& x, std::int64_t heads) {
  return x.size(1) == heads ? x : at::repeat_interleave(x, heads / x.size(1), 1);
}

double bound_for(c10::ScalarType dtype) {
  // The scores, the probabilities and the output are each rounded to the dtype once or twice.
  switch (dtype) {
    case c10::kBFloat16:
      return 2e-2;
    case c10::kHalf:
      return 2.5e-3;
    default:
      return 1e-5;
  }
}

at::Tensor reference_attention(const Inputs& inputs) {
  at::Tensor out = at::empty(inputs.q.sizes(), inputs.q.options().dtype(c10::kDouble));
  for_each_slice(inputs, [&](const Slice& slice, const at::Tensor& expected) {
    slice.of(out).copy_(expected);
  });
  return out;
}

Error error_of(const at::Tensor& out, const Inputs& inputs) {
  double difference = 0, norm = 0;
  Error error{.relative_l2 = 0, .max_abs = 0, .bound = bound_for(out.scalar_type())};
  for_each_slice(inputs, [&](const Slice& slice, const at::Tensor& expected) {
    const at::Tensor delta = slice.of(out).to(c10::kDouble) - expected;
    difference += delta.square().sum().item<double>();
    norm += expected.square().sum().item<double>();
    const double largest = delta.abs().max().item<double>();
    if (std::isnan(largest) || largest > error.max_abs) error.max_abs = largest;  // a NaN stays
  });
  error.relative_l2 = std::sqrt(difference / norm);
  return error;
}

Error check(const Options& options, const at::Tensor& out, const Inputs& inputs) {
  return check(options, error_of(out, inputs));
}

Error check(const Options& options, const Error& error) {
  const std::string text = fmt::format(
      "relative error {:.1e} against float64 attention (at most {:.1e}), largest "
      "difference {:.1e}",
      error.relative_l2, error.bound, error.max_abs);
  if (!error.acceptable()) {
    throw WrongResult(fmt::format("{}: wrong result: {}", options.info.name, text));
  }
  fmt::print("Correct   {}\n", text);
  return error;
}

}  // namespace chapter
