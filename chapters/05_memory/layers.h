// SPDX-License-Identifier: Apache-2.0
//
// Multi-head attention layers: projections, attention in one of seven variants, output. Weights
// live in a Model; which of its results a step keeps is what this chapter looks at.
//
//   const memory::Attention attention(memory::Variant::naive);
//   memory::Model model(options, attention, /*layers=*/2, memory::Mode::training);
//   at::Tensor y = model.forward(x);                    // x and y [B, S, E], E = H D
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chapter/options.h"
#include "op.h"

namespace memory {

enum class Variant { naive, inplace, sdpa_math, efficient, flash, cudnn, kernel };
inline constexpr std::array kVariants{Variant::naive,     Variant::inplace, Variant::sdpa_math,
                                      Variant::efficient, Variant::flash,   Variant::cudnn,
                                      Variant::kernel};

// As the command line spells it: "sdpa-math".
[[nodiscard]] std::string name_of(Variant variant);
[[nodiscard]] std::optional<Variant> variant_of(std::string_view name);

enum class Mode { inference, training, checkpoint };
inline constexpr std::array kModes{Mode::inference, Mode::training, Mode::checkpoint};
[[nodiscard]] std::string name_of(Mode mode);
[[nodiscard]] std::optional<Mode> mode_of(std::string_view name);

// Why this variant cannot run this mode, shape, dtype and device, in one sentence; "" where it can.
[[nodiscard]] std::string why_not(Variant variant, Mode mode, const chapter::Options& options);

// [S, S] bool, true above the diagonal, for the variants that take a mask as a tensor; else
// undefined.
[[nodiscard]] at::Tensor mask_for(Variant variant, const chapter::Options& options);

class Attention {
 public:
  // The kernel's library is loaded here: throws std::runtime_error where it is not there.
  explicit Attention(Variant variant);
  // q [B, H, S, D], k and v [B, Hkv, S, D] -> [B, H, S, D]
  [[nodiscard]] at::Tensor operator()(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                      const at::Tensor& mask) const;
  [[nodiscard]] Variant variant() const { return variant_; }

 private:
  Variant variant_;
  std::optional<kernels::Op> op_;
};

// Weights of one layer, as at::linear takes them: [out, in].
struct Layer {
  at::Tensor wq, wk, wv, wo;  // [H D, E], [Hkv D, E], [Hkv D, E], [E, H D]
};

class Model {
 public:
  // Random weights, seeded; they require gradients but for inference.
  Model(const chapter::Options& options, const Attention& attention, std::int64_t layers,
        Mode mode);

  // x [B, S, E] -> [B, S, E], layer by layer. Trained with dropout on each layer's result.
  [[nodiscard]] at::Tensor forward(const at::Tensor& x) const;

  [[nodiscard]] std::vector<at::Tensor> weights() const;
  [[nodiscard]] const at::Tensor& mask() const { return mask_; }
  [[nodiscard]] Mode mode() const { return mode_; }

 private:
  [[nodiscard]] at::Tensor run(const Layer& layer, const at::Tensor& x) const;

  const Attention& attention_;
  Mode mode_;
  std::int64_t head_dim_;
  at::Tensor mask_;
  std::vector<Layer> layers_;
};

}  // namespace memory
