// SPDX-License-Identifier: Apache-2.0
//
// readtrace graph FILE: the op graph of one step from an Execution Trace, as DOT or SVG.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "commands.h"
#include "explain/execution_trace.h"
#include "explain/op_graph.h"
#include "explain/op_graph_svg.h"
#include "explain/op_graph_text.h"
#include "trace/files.h"

namespace {

struct Options {
  std::string path;
  std::string format;
  std::string output;
  explain::OpGraphOptions graph;
};

int run(const Options& options) {
  const explain::ExecutionTrace trace = explain::read_execution_trace(options.path);
  if (trace.dropped > 0) {
    std::cerr << "readtrace: " << trace.dropped << (trace.dropped == 1 ? " node is" : " nodes are")
              << " left out: without an id or a name, or with the id of another one\n";
  }
  const explain::OpGraph graph = explain::op_graph(trace, options.graph);
  const bool is_svg =
      options.format.empty() ? options.output.ends_with(".svg") : options.format == "svg";
  const std::string text = is_svg ? explain::op_graph_svg(graph) : explain::op_graph_dot(graph);
  if (!options.output.empty()) {
    trace::write_file(options.output, text);
  } else if (!print(text)) {
    return kFailed;
  }
  return trace.dropped == 0 ? kDone : kReadInPart;
}

}  // namespace

void add_graph(CLI::App& app, std::function<int()>& command) {
  const auto options = std::make_shared<Options>();  // outlives this function in the callback
  CLI::App* graph = app.add_subcommand(
      "graph",
      "Draw the ops of one step and the tensors between them, from an Execution Trace: what a\n"
      "chapter writes with --graph, or torch's ExecutionTraceObserver.");
  graph->add_option("FILE", options->path, "execution trace, plain or gzip; - is standard input")
      ->required();
  graph
      ->add_option("--format", options->format,
                   "dot (Graphviz) or svg; without it svg where the output's name ends so")
      ->check(CLI::IsMember({"dot", "svg"}));
  graph->add_option("--label", options->graph.label,
                    "only what is below the first annotation or op of this name");
  graph->add_option("-o,--output", options->output, "file to write instead of standard output");
  graph->callback([options, &command] { command = [options] { return run(*options); }; });
}
