// SPDX-License-Identifier: Apache-2.0
//
// One token's kernels, captured once and launched together from then on: a CUDA graph.
//
//   kv::TokenGraph graph(x, [&](const at::Tensor& x) { return model.decode(x, attention, cache);
//   }); at::Tensor y = graph(x);   // a copy into the graph's input, a launch y = graph(y); // a
//   launch: the graph's output is its next input
//
// A graph launches the very kernels again, with the same addresses: what changes from token to
// token (lengths, pages, the input) has to be in the device's memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace kv {

class TokenGraph {
 public:
  // Calls `work` twice on a stream of its own: as a warm-up, which runs, and for the capture, which
  // runs nothing. Throws where this LibTorch has no CUDA.
  TokenGraph(const at::Tensor& x, const std::function<at::Tensor(const at::Tensor&)>& work);
  ~TokenGraph();

  // x [B, E] -> [B, E], which the next call overwrites.
  at::Tensor operator()(const at::Tensor& x);

 private:
  struct Graph;
  at::Tensor x_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace kv
