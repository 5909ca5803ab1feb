// SPDX-License-Identifier: Apache-2.0
//
// Adam in plain ops, as its paper has it (without weight decay). torch::optim's does the same and
// comes with headers that take longer to compile than this chapter.
//
//   memory::Adam adam(model.weights());
//   loss.backward();
//   adam.step();
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace memory {

class Adam {
 public:
  // Allocates the state, two tensors as large as the weights.
  explicit Adam(std::vector<at::Tensor> weights);
  // Updates the weights and drops their gradients.
  void step();
  [[nodiscard]] std::int64_t state_bytes() const;

 private:
  struct State {
    at::Tensor weight, mean, square;
  };
  std::vector<State> states_;
  std::int64_t steps_ = 0;
};

}  // namespace memory
