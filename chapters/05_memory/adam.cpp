// SPDX-License-Identifier: Apache-2.0
#include "adam.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <cmath>

namespace memory {

Adam::Adam(std::vector<at::Tensor> weights) {
  for (at::Tensor& weight : weights) {
    const at::Tensor like = weight.detach();
    states_.push_back({std::move(weight), at::zeros_like(like), at::zeros_like(like)});
  }
}

void Adam::step() {
  constexpr double kRate = 1e-3, kMean = 0.9, kSquare = 0.999, kLeast = 1e-8;
  const c10::AutoGradMode without_graph(false);
  ++steps_;
  const auto steps = static_cast<double>(steps_);
  const double rate = kRate / (1 - std::pow(kMean, steps));
  const double correction = 1 - std::pow(kSquare, steps);
  for (State& state : states_) {
    at::Tensor& gradient = state.weight.mutable_grad();
    state.mean.mul_(kMean).add_(gradient, 1 - kMean);
    state.square.mul_(kSquare).addcmul_(gradient, gradient, 1 - kSquare);
    const at::Tensor size = (state.square / correction).sqrt_().add_(kLeast);
    state.weight.addcdiv_(state.mean, size, -rate);
    gradient.reset();
  }
}

std::int64_t Adam::state_bytes() const {
  std::int64_t bytes = 0;
  for (const State& state : states_)
    bytes += static_cast<std::int64_t>(state.mean.nbytes() + state.square.nbytes());
  return bytes;
}

}  // namespace memory
