// SPDX-License-Identifier: Apache-2.0
//
// How memory grows with S: what the formulas say before a run, and what the measured bytes say
// after it.
//
//   memory::score_matrices(memory::Variant::naive, memory::Mode::training, 4, false);  // 6
//   const auto growth = memory::growth({{256, a}, {512, b}, {1024, c}});
//   std::int64_t S = memory::first_beyond(*growth, bytes_of_device);
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "layers.h"

namespace memory {

// Tensors [B, H, S, S] that are alive at the peak of a step; 0 for variants that never make one.
[[nodiscard]] std::int64_t score_matrices(Variant variant, Mode mode, std::int64_t layers,
                                          bool on_gpu);

// Bytes of one of them. `sdpa-math` computes in fp32 whatever the inputs are.
[[nodiscard]] double score_bytes(Variant variant, const chapter::Options& options);

// More than a step takes of the device beside fixed costs: what is compared with free memory before
// a size is tried. A double, since hostile sizes overflow 64 bits.
[[nodiscard]] double bytes_needed(Variant variant, Mode mode, std::int64_t layers,
                                  const chapter::Options& options);

struct Point {
  std::int64_t seq = 0;
  std::int64_t bytes = 0;
};

// bytes = square S² + linear S + constant, through the last three points.
struct Growth {
  double square = 0, linear = 0, constant = 0;
  std::size_t exact = 3;  // how many points, counted from the last, lie on it to the byte

  [[nodiscard]] double at(double seq) const { return (square * seq + linear) * seq + constant; }
};

// `points` in order of S, each S once; nullopt for fewer than three.
[[nodiscard]] std::optional<Growth> growth(std::span<const Point> points);

// x of bytes ~ S^x: least squares in logarithms. nullopt for fewer than two points or for bytes
// that are not above 0.
[[nodiscard]] std::optional<double> exponent(std::span<const Point> points);

// The smallest S whose bytes are more than `capacity`; 0 where there is none below 2^40.
[[nodiscard]] std::int64_t first_beyond(const Growth& growth, double capacity);

}  // namespace memory
