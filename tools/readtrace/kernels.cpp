// SPDX-License-Identifier: Apache-2.0
//
// readtrace kernels TRACE: every GPU operation by name, how full its launch makes the GPU, and what
// its name says.
#include "explain/kernels.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "commands.h"
#include "trace/printable.h"
#include "trace/reader.h"

namespace {

struct Options {
  std::string path;
  explain::KernelTextOptions text{.limit = 20};
};

int run(const Options& options) {
  const trace::Trace trace = trace::read(options.path);
  for (const std::string& warning : trace.report.warnings)
    std::cerr << "readtrace: " << warning << '\n';
  const std::string text = to_text(explain::kernels(trace), options.text);
  if (text.empty())
    std::cerr << "readtrace: no kernels: " << trace::printable(options.path)
              << " holds nothing that ran on a GPU\n";
  if (!print(text)) return kFailed;
  return trace.report.complete() ? kDone : kReadInPart;
}

}  // namespace

void add_kernels(CLI::App& app, std::function<int()>& command) {
  using explain::KernelOrder;
  const auto options = std::make_shared<Options>();  // outlives this function in the callback
  CLI::App* kernels = app.add_subcommand(
      "kernels",
      "Print every kernel, copy and memset by name: calls and times, launch, occupancy worked out\n"
      "from it (and Kineto's where that differs), and what the name says.");
  kernels->add_option("TRACE", options->path, "trace file, plain or gzip; - is standard input")
      ->required();
  kernels->add_option("--limit", options->text.limit, "names to print, -1 for all")
      ->check(CLI::Range(-1, 1'000'000'000))
      ->capture_default_str();
  kernels
      ->add_option("--sort", options->text.order,
                   "largest first: total (time), calls, or max (of one call)")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, KernelOrder>{{"total", KernelOrder::total},
                                                                     {"calls", KernelOrder::calls},
                                                                     {"max", KernelOrder::max}}));
  kernels->callback([options, &command] { command = [options] { return run(*options); }; });
}
