// SPDX-License-Identifier: Apache-2.0
//
// 05_memory: where attention's memory goes, in a forward alone and in a step of training.
//
// What changed since 04: a whole layer instead of attention alone (projections, attention, output),
// two of them by default, and a step that learns: forward, loss, backward, optimizer. The table has
// memory columns, and below it stands what was alive at the peak and who kept it.
//
// Guess first: by how much does masking in place lower the peak? And checkpointing a single layer?
// Names to look for:
//   Self CPU Mem / Self CUDA Mem   bytes that an op allocated less those that were freed in it
//   aten::_softmax                 the score matrix that each layer keeps until its backward
//   SoftmaxBackward0               the node that kept it, where the minus sign stands
//
// Run:   make 05_memory ARGS="--variant all"     (or --mode checkpoint, --sweep 256,512,1024)
// Page:  docs/05_memory.md
#include <ATen/Functions.h>

#include "chapter/inputs.h"
#include "chapter/report.h"
#include "choose.h"
#include "measure.h"
#include "profiler/profiler.h"
#include "report.h"
#include "sweep.h"

namespace {

const chapter::Info kChapter{
    .name = "05_memory",
    .variant = "naive",
    .summary = "the memory of attention layers in inference, training and checkpointing",
    .score_tensors = 0,
    .is_about_memory = true,
    .extra_options = memory::extra_options(),
    .why_impossible = memory::why_impossible,
};

// [begin attention]
// One step, phase by phase: what one allocates and the next still needs is what fills the memory.
// Each phase is an annotation, so that the trace says which phase a block was made in.
void step(memory::Setup& s) {
  at::Tensor y, loss;
  {
    const prof::record_function phase("forward");
    y = s.model.forward(s.x);  // [B, S, E]
    if (!s.adam) {             // inference: nobody needs anything of it any more
      y.reset();
      return;
    }
  }
  {
    const prof::record_function phase("loss");
    loss = at::mse_loss(y, s.target);
  }
  {
    const prof::record_function phase("backward");
    loss.backward();  // frees what forward kept, node by node
  }
  const prof::record_function phase("optimizer");
  s.adam->step();  // and drops the gradients
}
// [end attention]

void record(const chapter::Options& options, const memory::Attention& attention,
            const memory::Asked& asked) {
  const chapter::Error error = [&] {  // of attention alone; ends a wrong program
    const chapter::Inputs in = chapter::make_inputs(options);
    return chapter::check(options, attention(in.q, in.k, in.v, in.mask), in);
  }();
  memory::Setup setup(options, attention, asked.layers, asked.mode);
  const memory::Measured measured = memory::measure(options, setup, step);

  prof::Profiler profiler(memory::profiler_options(options, error, measured));
  for (std::int64_t i = 0; i < options.steps(); ++i) {
    step(setup);
    profiler.step();
  }
  const auto again = [&] { step(setup); };
  chapter::show(options, chapter::finish(options, profiler, "forward", again));
  memory::show(options, profiler.trace(), measured, again);
}

}  // namespace

int main(int argc, char** argv) {
  return chapter::run(argc, argv, kChapter, [](const chapter::Options& options) {
    const memory::Asked asked = memory::asked(options);
    const c10::AutoGradMode graph(asked.mode != memory::Mode::inference);
    if (asked.is_sweep) return memory::sweep(options, asked, step);
    const memory::Attention attention(asked.variants.front());
    memory::or_say_what_ran_out(
        options, asked, [&] { record(memory::named_after(asked, options), attention, asked); });
  });
}
