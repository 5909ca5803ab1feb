// SPDX-License-Identifier: Apache-2.0
//
// readtrace plot SWEEP: how a chapter's figures grow with a size, as SVG.
#include "explain/plot.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "commands.h"
#include "explain/sweep_file.h"
#include "trace/files.h"

namespace {

struct Options {
  std::string path;
  std::string output;
  explain::PlotOptions plot;
};

int run(const Options& options) {
  const std::string svg = explain::plot_svg(explain::read_sweep(options.path), options.plot);
  if (options.output.empty()) return print(svg) ? kDone : kFailed;
  trace::write_file(options.output, svg);
  return kDone;
}

}  // namespace

void add_plot(CLI::App& app, std::function<int()>& command) {
  const auto options = std::make_shared<Options>();  // outlives this function in the callback
  CLI::App* plot = app.add_subcommand(
      "plot",
      "Draw a sweep, which a chapter's --sweep writes, as SVG: a line for each variant.\n"
      "Both axes are logarithmic, so that what grows as a power of the size is a straight line.");
  plot->add_option("SWEEP", options->path, "sweep file (.sweep.json); - is standard input")
      ->required();
  plot->add_option("--quantity", options->plot.quantity,
                   "what to draw, by its key in the file; without it the first one");
  plot->add_flag("--linear", options->plot.is_linear, "linear axes from 0 on");
  plot->add_option("--width", options->plot.width, "px")
      ->check(CLI::Range(300, 10'000))
      ->capture_default_str();
  plot->add_option("-o,--output", options->output, "file to write instead of standard output");
  plot->callback([options, &command] { command = [options] { return run(*options); }; });
}
