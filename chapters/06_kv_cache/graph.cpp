// SPDX-License-Identifier: Apache-2.0
#include "graph.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/Functions.h>

#include <stdexcept>

#ifdef KERNELS_HAVE_CUDA  // its headers want those of nvcc
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#endif

namespace kv {

#ifdef KERNELS_HAVE_CUDA  // its headers want those of nvcc
struct TokenGraph::Graph {
  at::cuda::CUDAGraph graph;
};

// [begin capture]
TokenGraph::TokenGraph(const at::Tensor& x,
                       const std::function<at::Tensor(const at::Tensor&)>& work)
    : x_(x.clone()), graph_(std::make_unique<Graph>()) {
  at::accelerator::synchronizeDevice(x.device().index());  // the other stream starts from here
  const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
  const c10::StreamGuard guard(cuda.getStreamFromGlobalPool(x.device()));
  (void)work(x_);  // libraries take their workspaces on this stream now, not inside of the graph
  graph_->graph.capture_begin();
  x_.copy_(work(x_));
  graph_->graph.capture_end();
  at::accelerator::synchronizeDevice(x.device().index());
}

at::Tensor TokenGraph::operator()(const at::Tensor& x) {
  if (!x.is_same(x_)) x_.copy_(x);
  graph_->graph.replay();
  return x_;
}
// [end capture]
#else
struct TokenGraph::Graph {};

TokenGraph::TokenGraph(const at::Tensor&, const std::function<at::Tensor(const at::Tensor&)>&) {
  throw std::runtime_error("this program was built without nvcc: leave --cuda-graph out");
}

at::Tensor TokenGraph::operator()(const at::Tensor& x) {
  return x;
}
#endif

TokenGraph::~TokenGraph() = default;

}  // namespace kv
