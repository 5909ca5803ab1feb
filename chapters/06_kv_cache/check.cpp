// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

namespace kv {
namespace {

// The layers in float64, all tokens of one sequence at once. x [N, E] -> [N, E]
at::Tensor reference(const Model& model, std::int64_t head_dim, at::Tensor x) {
  for (const Layer& layer : model.layers()) {
    const auto heads = [&](const at::Tensor& w) {  // -> [1, H or Hkv, N, D]
      return at::mm(x, w.to(c10::kDouble))
          .view({x.size(0), -1, head_dim})
          .transpose(0, 1)
          .unsqueeze(0);
    };
    const at::Tensor out = chapter::reference_attention(
        {.q = heads(layer.wq), .k = heads(layer.wk), .v = heads(layer.wv), .mask = {}});
    const at::Tensor rows = out[0].transpose(0, 1).flatten(1);  // [N, H D]
    x = at::layer_norm(x + at::mm(rows, layer.wo.to(c10::kDouble)), {model.width()});
  }
  return x;
}

}  // namespace

chapter::Error error_of(const chapter::Options& options, Generation& generation,
                        const Generate& generate) {
  std::vector<at::Tensor> outputs;  // the prefill's, then one per token: [B, E]
  generate(generation, [&](const at::Tensor& x) { outputs.push_back(x.to(c10::kDouble)); });
  const at::Tensor written = at::stack(outputs, 1);  // [B, 1 + T, E]
  double difference = 0, norm = 0, largest = 0;
  for (std::size_t i = 0; i < generation.prompts().size(); ++i) {
    const auto b = static_cast<std::int64_t>(i);
    const std::int64_t prompt = generation.prompts()[i], tokens = written.size(1) - 1;
    const at::Tensor fed = at::cat({generation.prompt()[b].narrow(0, 0, prompt).to(c10::kDouble),
                                    written[b].narrow(0, 0, tokens)});
    const at::Tensor expected = reference(generation.model(), options.shape.head_dim, fed)
                                    .narrow(0, prompt - 1, 1 + tokens);
    const at::Tensor delta = written[b] - expected;
    difference += delta.square().sum().item<double>();
    norm += expected.square().sum().item<double>();
    const double most = delta.abs().max().item<double>();
    if (std::isnan(most) || most > largest) largest = most;  // a NaN stays
  }
  return {.relative_l2 = std::sqrt(difference / norm),
          .max_abs = largest,
          .bound = chapter::bound_for(options.dtype)};
}

}  // namespace kv
