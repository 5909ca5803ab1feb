// SPDX-License-Identifier: Apache-2.0
//
// readtrace figure TRACE: the timeline of one step or of a time range, or its memory, as SVG.
#include "explain/figure.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "commands.h"
#include "explain/memory_figure.h"
#include "trace/files.h"
#include "trace/reader.h"
#include "trace/tree.h"

namespace {

struct Options {
  std::string path;
  std::string output;
  bool is_memory = false;
  explain::FigureOptions figure;
};

std::string draw(const trace::Trace& trace, const Options& options) {
  if (!options.is_memory) return explain::figure(trace, options.figure);
  const trace::OpTree tree(trace);
  return explain::memory_figure(tree, explain::memory_timeline(tree, options.figure.step),
                                {.width = options.figure.width});
}

int run(const Options& options) {
  const trace::Trace trace = trace::read(options.path);
  print_warnings(trace);
  const std::string svg = draw(trace, options);
  if (!options.output.empty()) {
    trace::write_file(options.output, svg);
  } else if (!print(svg)) {
    return kFailed;
  }
  return done(trace);
}

}  // namespace

void add_figure(CLI::App& app, std::function<int()>& command) {
  const auto options = std::make_shared<Options>();  // outlives this function in the callback
  CLI::App* figure = app.add_subcommand(
      "figure",
      "Draw a timeline as SVG: CPU threads above GPU streams, an arrow from each launch.\n"
      "Without --step or a range: the first step, or the whole file where it has no steps.");
  figure->add_option("TRACE", options->path, "trace file, plain or gzip; - is standard input")
      ->required();
  CLI::Option* step =
      figure->add_option("--step", options->figure.step, "N of ProfilerStep#N, the step to draw");
  CLI::Option* memory = figure->add_flag(
      "--memory", options->is_memory,
      "draw the allocated bytes of the step instead, of a recording with profile_memory");
  figure
      ->add_option("--from", options->figure.from_us,
                   "draw from here, in us since the start of the recording")
      ->excludes(step)
      ->excludes(memory);
  figure->add_option("--to", options->figure.to_us, "draw up to here, in us")
      ->excludes(step)
      ->excludes(memory);
  figure->add_option("--width", options->figure.width, "px")
      ->check(CLI::Range(300, 10'000))
      ->capture_default_str();
  figure->add_option("-o,--output", options->output, "file to write instead of standard output");
  figure->callback([options, &command] { command = [options] { return run(*options); }; });
}
