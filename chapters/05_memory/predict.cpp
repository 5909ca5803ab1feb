// SPDX-License-Identifier: Apache-2.0
#include "predict.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cmath>

namespace memory {
namespace {

bool makes_scores(Variant variant) {
  return variant == Variant::naive || variant == Variant::inplace || variant == Variant::sdpa_math;
}

}  // namespace

std::int64_t score_matrices(Variant variant, Mode mode, std::int64_t layers, bool on_gpu) {
  if (!makes_scores(variant)) return 0;
  // In backward two gradients of scores, and on CUDA their product with softmax's result, which
  // LibTorch makes before it calls its kernel.
  const std::int64_t backward = on_gpu ? 3 : 2;
  switch (mode) {
    case Mode::inference:
      return 2;  // what softmax reads and what it writes, whether the mask was in place or not
    case Mode::training:
      return layers + backward;  // each layer's softmax beside them
    case Mode::checkpoint:
      return 1 + backward;  // the same for the one layer that was just run again
  }
  return 0;
}

double score_bytes(Variant variant, const chapter::Options& options) {
  const auto size = variant == Variant::sdpa_math
                        ? sizeof(float)
                        : static_cast<std::size_t>(c10::elementSize(options.dtype));
  const chapter::Shape& s = options.shape;
  return static_cast<double>(s.batch) * static_cast<double>(s.heads) * static_cast<double>(s.seq) *
         static_cast<double>(s.seq) * static_cast<double>(size);
}

double bytes_needed(Variant variant, Mode mode, std::int64_t layers,
                    const chapter::Options& options) {
  const chapter::Shape& s = options.shape;
  const auto seq = static_cast<double>(s.seq);
  const double scores =
      static_cast<double>(score_matrices(variant, mode, layers, options.on_gpu())) *
      score_bytes(variant, options);
  const bool trains = mode != Mode::inference;
  // q, k, v, their copies, output, dropout and their gradients: 16 is more than any variant has.
  const double tensors = 16.0 * static_cast<double>(trains ? layers + 1 : 1) *
                         static_cast<double>(s.batch) * static_cast<double>(s.heads) *
                         static_cast<double>(s.head_dim) * seq * sizeof(float);
  const double mask = makes_scores(variant) ? sizeof(float) * seq * seq : 0;
  const double embedding = static_cast<double>(s.heads) * static_cast<double>(s.head_dim);
  // Four weights a layer, in training each with gradient, two tensors of Adam's and one on the way.
  const double weights =
      (trains ? 20.0 : 4.0) * static_cast<double>(layers) * embedding * embedding * sizeof(float);
  return scores + tensors + mask + weights;
}

std::optional<Growth> growth(std::span<const Point> points) {
  if (points.size() < 3) return std::nullopt;
  const auto last = points.last(3);
  const auto seq = [&](std::size_t i) { return static_cast<double>(last[i].seq); };
  const auto slope = [&](std::size_t a, std::size_t b) {  // divided difference
    return static_cast<double>(last[b].bytes - last[a].bytes) / (seq(b) - seq(a));
  };
  Growth growth;
  growth.square = (slope(1, 2) - slope(0, 1)) / (seq(2) - seq(0));
  growth.linear = slope(0, 1) - growth.square * (seq(0) + seq(1));
  growth.constant =
      static_cast<double>(last[0].bytes) - (growth.square * seq(0) + growth.linear) * seq(0);
  const auto is_on_it = [&](const Point& point) {
    const double difference =
        growth.at(static_cast<double>(point.seq)) - static_cast<double>(point.bytes);
    return std::abs(difference) < 0.5;
  };
  while (growth.exact < points.size() && is_on_it(points[points.size() - 1 - growth.exact]))
    ++growth.exact;
  return growth;
}

std::optional<double> exponent(std::span<const Point> points) {
  if (points.size() < 2) return std::nullopt;
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const Point& point : points) {
    if (point.bytes <= 0) return std::nullopt;
    const double log_seq = std::log(static_cast<double>(point.seq));
    const double log_bytes = std::log(static_cast<double>(point.bytes));
    x += log_seq;
    y += log_bytes;
    xx += log_seq * log_seq;
    xy += log_seq * log_bytes;
  }
  const auto n = static_cast<double>(points.size());
  return (n * xy - x * y) / (n * xx - x * x);
}

std::int64_t first_beyond(const Growth& growth, double capacity) {
  std::int64_t fits = 0, beyond = std::int64_t{1} << 40;
  const auto is_beyond = [&](std::int64_t seq) {
    return growth.at(static_cast<double>(seq)) > capacity;
  };
  if (!is_beyond(beyond)) return 0;
  while (beyond - fits > 1) {
    const std::int64_t middle = fits + (beyond - fits) / 2;
    (is_beyond(middle) ? beyond : fits) = middle;
  }
  return beyond;
}

}  // namespace memory
