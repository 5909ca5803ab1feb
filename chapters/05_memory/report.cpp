// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <fmt/format.h>

#include <stdexcept>

#include "chapter/report.h"
#include "explain/memory.h"
#include "explain/memory_figure.h"
#include "snapshot.h"
#include "trace/files.h"
#include "trace/tree.h"

namespace memory {

prof::ProfilerOptions profiler_options(const chapter::Options& options, const chapter::Error& error,
                                       const Measured& measured) {
  prof::ProfilerOptions profiler = chapter::profiler_options(options, error, measured.forward_peak);
  profiler.metadata.insert({{"held_weight_bytes", measured.held.weights},
                            {"held_input_bytes", measured.held.inputs},
                            {"held_optimizer_state_bytes", measured.held.optimizer_state}});
  return profiler;
}

void show(const chapter::Options& options, const trace::Trace& trace, const Measured& measured,
          const std::function<void()>& step) {
  const trace::OpTree tree(trace);
  const explain::MemoryTimeline memory = explain::memory_timeline(tree, std::nullopt);
  fmt::print("\n{}\n{}", explain::to_text(tree, memory), to_text(measured));
  const std::filesystem::path figure = options.file(".memory.svg");
  trace::write_file(figure, explain::memory_figure(tree, memory, {}));
  fmt::print("Timeline  {}\n", figure.string());
  const std::filesystem::path snapshot = options.file(".snapshot.pickle");
  if (options.on_gpu() && write_snapshot(snapshot, step)) {
    fmt::print("Snapshot  {}  (open it in https://pytorch.org/memory_viz)\n", snapshot.string());
  }
}

void or_say_what_ran_out(const chapter::Options& options, const Asked& asked,
                         const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    const auto sentence =
        out_of_memory_text(error, asked.variants.front(), asked.mode, asked.layers, options);
    if (!sentence) throw;
    throw std::runtime_error(fmt::format("{}: {}", options.info.name, *sentence));
  }
}

}  // namespace memory
