// SPDX-License-Identifier: Apache-2.0
//
// readtrace tree TRACE: one step as an indented tree of ops, calls and GPU operations.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "commands.h"
#include "explain/op_tree_text.h"
#include "trace/reader.h"

namespace {

struct Options {
  std::string path;
  explain::TreeTextOptions tree;
};

int run(const Options& options) {
  const trace::Trace trace = trace::read(options.path);
  print_warnings(trace);
  if (!print(explain::op_tree_text(trace::OpTree(trace), options.tree))) return kFailed;
  return done(trace);
}

}  // namespace

void add_tree(CLI::App& app, std::function<int()>& command) {
  const auto options = std::make_shared<Options>();  // outlives this function in the callback
  CLI::App* tree = app.add_subcommand(
      "tree",
      "Print one step as a tree: ops, the calls that they made, what those launched on the GPU.\n"
      "\"x 12\" are twelve alike in a row, with the sums of their times.");
  tree->add_option("TRACE", options->path, "trace file, plain or gzip; - is standard input")
      ->required();
  tree->add_option("--step", options->tree.step,
                   "N of ProfilerStep#N; without it the first step, or all where there are none");
  tree->add_option("--depth", options->tree.depth, "levels to print")
      ->check(CLI::Range(1, explain::kMostLevels))
      ->capture_default_str();
  tree->callback([options, &command] { command = [options] { return run(*options); }; });
}
