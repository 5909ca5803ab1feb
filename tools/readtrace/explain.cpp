// SPDX-License-Identifier: Apache-2.0
//
// readtrace explain TRACE: facts and findings, each claim with its evidence from the file.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "commands.h"
#include "explain/about.h"
#include "explain/decode.h"
#include "explain/facts.h"
#include "explain/finding.h"
#include "explain/forwards.h"
#include "explain/memory.h"
#include "trace/printable.h"
#include "trace/reader.h"
#include "trace/tree.h"

namespace {

struct Options {
  std::string path;
  std::string label;
  std::string part = "all";
};

// The parts asked for, with an empty line between them; "" where the trace has none of them.
std::string text_of(const trace::OpTree& tree, const explain::Facts& facts,
                    const std::string& asked) {
  std::string text;
  const auto add = [&](const char* part, const auto& write) {
    if (asked != "all" && asked != part) return;
    if (!text.empty()) text += '\n';
    text += write();
  };
  add("facts", [&] { return explain::about(tree.trace()) + '\n' + explain::to_text(facts); });
  add("findings", [&] { return explain::to_text(explain::findings(tree, facts)); });
  if (const auto decode = explain::decode_facts(tree))
    add("decode", [&] { return explain::to_text(*decode); });
  if (explain::has_memory(tree.trace())) {
    add("memory",
        [&] { return explain::to_text(tree, explain::memory_timeline(tree, std::nullopt)); });
  }
  return text;
}

int run(const Options& options) {
  const trace::Trace trace = trace::read(options.path);
  print_warnings(trace);
  const trace::OpTree tree(trace);
  const std::string label = options.label.empty() ? explain::forward_label(tree) : options.label;
  const explain::Facts facts = explain::facts(tree, label);
  if (facts.forwards == 0) {
    std::cerr << "readtrace: " << explain::no_forward_text(tree, label) << '\n';
    return kBadUsage;
  }
  const std::string text = text_of(tree, facts, options.part);
  if (text.empty()) {
    std::cerr << "readtrace: the trace has nothing for --part " << options.part << '\n';
    return kBadUsage;
  }
  if (!print(text)) return kFailed;
  return done(trace);
}

}  // namespace

void add_explain(CLI::App& app, std::function<int()>& command) {
  const auto options = std::make_shared<Options>();  // outlives this function in the callback
  CLI::App* explain = app.add_subcommand(
      "explain", "Print facts about the forwards of a run and what is worth noticing in them.");
  explain->add_option("TRACE", options->path, "trace file, plain or gzip; - is standard input")
      ->required();
  explain->add_option("--label", options->label,
                      "the annotation (record_function) that marks a forward; without it the "
                      "innermost one that repeats under the profiler's steps");
  explain
      ->add_option("--part", options->part,
                   "facts, findings, decode (of a recording of generations), memory (with "
                   "profile_memory), or all that there is")
      ->check(CLI::IsMember({"all", "facts", "findings", "decode", "memory"}))
      ->capture_default_str();
  explain->callback([options, &command] { command = [options] { return run(*options); }; });
}
