// SPDX-License-Identifier: Apache-2.0
//
// readtrace kernels TRACE: every GPU operation by name, how full its launch makes the GPU, and what
// its name says.
#include "explain/kernels.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "commands.h"
#include "trace/printable.h"
#include "trace/reader.h"

namespace {

struct Options {
  std::string path;
  std::string order = "total";
  std::int64_t limit = 20;
};

explain::KernelOrder order_of(const std::string& name) {
  if (name == "calls") return explain::KernelOrder::calls;
  if (name == "max") return explain::KernelOrder::max;
  return explain::KernelOrder::total;
}

int run(const Options& options) {
  const trace::Trace trace = trace::read(options.path);
  print_warnings(trace);
  const std::string text =
      to_text(explain::kernels(trace), {.order = order_of(options.order), .limit = options.limit});
  if (text.empty())
    std::cerr << "readtrace: no kernels: " << trace::printable(options.path)
              << " holds nothing that ran on a GPU\n";
  if (!print(text)) return kFailed;
  return done(trace);
}

}  // namespace

void add_kernels(CLI::App& app, std::function<int()>& command) {
  const auto options = std::make_shared<Options>();  // outlives this function in the callback
  CLI::App* kernels = app.add_subcommand(
      "kernels",
      "Print every kernel, copy and memset by name: calls and times, launch, occupancy worked out\n"
      "from it (and Kineto's where that differs), and what the name says.");
  kernels->add_option("TRACE", options->path, "trace file, plain or gzip; - is standard input")
      ->required();
  kernels->add_option("--limit", options->limit, "names to print, -1 for all")
      ->check(CLI::Range(-1, 1'000'000'000))
      ->capture_default_str();
  kernels
      ->add_option("--sort", options->order,
                   "largest first: total (time), calls, or max (of one call)")
      ->check(CLI::IsMember({"total", "calls", "max"}))
      ->capture_default_str();
  kernels->callback([options, &command] { command = [options] { return run(*options); }; });
}
