// SPDX-License-Identifier: Apache-2.0
//
// Somebody else's library: an op of the signature that 04_kernels calls, and one of another.
#include <ATen/Functions.h>
#include <torch/library.h>

#include <tuple>

namespace {

using at::Tensor;

std::tuple<Tensor, Tensor> attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                     std::string_view, std::string_view, std::optional<double>,
                                     std::string_view) {
  return {at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true),
          at::zeros({q.size(0), q.size(1), q.size(2)})};
}

}  // namespace

TORCH_LIBRARY(foreign, library) {
  library.def("another(Tensor q) -> Tensor", [](const Tensor& q) { return q.clone(); });
#ifdef WITH_ATTENTION
  library.def(
      "flash(Tensor q, Tensor k, Tensor v, str layout, str causal, float? scale, str kernel) -> "
      "(Tensor, Tensor)",
      attention);
#else
  (void)attention;
#endif
}
