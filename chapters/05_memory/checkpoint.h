// SPDX-License-Identifier: Apache-2.0
//
// Activation checkpointing, which LibTorch has for Python alone: a forward that keeps nothing but
// its input, and runs once more when backward gets there.
//
//   at::Tensor y = memory::checkpoint([&](const at::Tensor& x) { return layer(x); }, x, layer.wq);
//
// Random numbers are those of the first time: the generator of x's device is set back to where it
// was for the second run, and afterwards to where backward found it, so gradients are the same to
// the last digit. The second run stands in a trace as the annotation `recompute`.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace memory {

// `tracked` is one of the tensors that `run` uses and that require a gradient. Autograd calls a
// function back only where an argument of it requires one, which the input of the first layer does
// not; and a std::vector of tensors as an argument is not looked into. The gradients of what `run`
// uses are added up where they belong by the backward pass inside of this one.
[[nodiscard]] at::Tensor checkpoint(std::function<at::Tensor(const at::Tensor&)> run,
                                    const at::Tensor& x, const at::Tensor& tracked);

}  // namespace memory
