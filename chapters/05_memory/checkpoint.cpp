// SPDX-License-Identifier: Apache-2.0
#include "checkpoint.h"

#include <ATen/Context.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <mutex>
#include <utility>

#include "profiler/record_function.h"

namespace memory {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Autograd keeps values between forward and backward as IValues. A capsule is one that holds an
// object of a class that nobody has registered.
struct Run : torch::CustomClassHolder {
  explicit Run(std::function<at::Tensor(const at::Tensor&)> f) : function(std::move(f)) {}
  std::function<at::Tensor(const at::Tensor&)> function;
};

at::Tensor generator_state(const c10::Device& device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(const c10::Device& device, const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace

// Outside of the nameless namespace: its name stands in traces.
struct Checkpoint : torch::autograd::Function<Checkpoint> {
  // Runs without autograd: what `run` computes on its way is gone when it returns.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& /*tracked*/, const c10::intrusive_ptr<Run>& run) {
    context->save_for_backward({x});
    context->saved_data["generator"] = generator_state(x.device());
    context->saved_data["run"] = c10::IValue::make_capsule(run);
    return run->function(x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor saved = context->get_saved_variables().front();
    const auto run =
        c10::static_intrusive_pointer_cast<Run>(context->saved_data["run"].toCapsule());
    // A leaf of its own, so that the backward pass below ends here.
    const at::Tensor x = saved.detach().set_requires_grad(saved.requires_grad());
    const at::Tensor now = generator_state(x.device());
    set_generator_state(x.device(), context->saved_data["generator"].toTensor());
    at::Tensor y;
    {
      const at::AutoGradMode with_graph(true);
      const prof::record_function scope("recompute");
      y = run->function(x);
    }
    set_generator_state(x.device(), now);
    // backward() and not grad(): the weights inside get theirs, too.
    torch::autograd::backward({std::move(y)}, gradients);
    return {x.grad(), at::Tensor(), at::Tensor()};
  }
};

at::Tensor checkpoint(std::function<at::Tensor(const at::Tensor&)> run, const at::Tensor& x,
                      const at::Tensor& tracked) {
  return Checkpoint::apply(x, tracked, c10::make_intrusive<Run>(std::move(run)));
}

}  // namespace memory
