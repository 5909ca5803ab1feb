// SPDX-License-Identifier: Apache-2.0
//
// readtrace diff A B: what differs between two traces per step.
#include "explain/diff.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "commands.h"
#include "explain/structure.h"
#include "trace/printable.h"
#include "trace/reader.h"
#include "trace/tree.h"

namespace {

struct Options {
  std::string path_a, path_b;
  std::string per, label;
  bool structure = false;
  explain::DiffTextOptions text;
};

std::optional<explain::Basis> basis_of(const std::string& name) {
  if (name == "step") return explain::Basis::step;
  if (name == "forward") return explain::Basis::forward;
  if (name == "recording") return explain::Basis::recording;
  return std::nullopt;
}

trace::Trace read(const std::string& path) {
  trace::Trace trace = trace::read(path);
  for (const std::string& warning : trace.report.warnings)
    std::cerr << "readtrace: " << trace::printable(path) << ": " << warning << '\n';
  return trace;
}

int run(const Options& options) {
  if (options.path_a == "-" && options.path_b == "-") {
    std::cerr << "readtrace: standard input is one trace: name a file for the other\n";
    return kBadUsage;
  }
  const trace::Trace trace_a = read(options.path_a), trace_b = read(options.path_b);
  const int done = trace_a.report.complete() && trace_b.report.complete() ? kDone : kReadInPart;
  const trace::OpTree a(trace_a), b(trace_b);
  const explain::DiffBasis basis = explain::diff_basis(a, b, basis_of(options.per), options.label);
  if (!options.structure) {
    const std::string text = to_text(explain::diff(a, b, basis), options.text);
    return print(text) ? done : kFailed;
  }
  const explain::StructureDiff diff = explain::structure_diff(a, b, basis);
  if (!print(to_text(diff, options.text))) return kFailed;
  return diff.differences.empty() ? done : kFailed;
}

}  // namespace

void add_diff(CLI::App& app, std::function<int()>& command) {
  const auto options = std::make_shared<Options>();  // outlives this function in the callback
  CLI::App* diff = app.add_subcommand(
      "diff",
      "Print what differs between two traces per step: calls, times and bytes by name.\n"
      "With --structure counts and bytes alone: exit code 1 where they differ.");
  diff->add_option("A", options->path_a, "trace file, plain or gzip; - is standard input")
      ->required();
  diff->add_option("B", options->path_b, "the trace to compare it with")->required();
  diff->add_option("--per", options->per,
                   "what to divide by: step, forward or recording; without it the steps where both "
                   "have them, else the forwards, else nothing")
      ->check(CLI::IsMember({"step", "forward", "recording"}));
  diff->add_option("--label", options->label,
                   "the annotation (record_function) that marks a forward");
  diff->add_flag(
      "--structure", options->structure,
      "compare ops and their nesting, kernels, sizes of copies and allocations, no times");
  diff->add_option("--format", options->text.format, "text or markdown (GitHub's tables)")
      ->transform(CLI::CheckedTransformer(std::map<std::string, explain::DiffFormat>{
          {"text", explain::DiffFormat::text}, {"markdown", explain::DiffFormat::markdown}}));
  CLI::Option* limit = diff->add_option("--limit", options->text.limit, "rows to print, -1 for all")
                           ->check(CLI::Range(-1, 1'000'000'000))
                           ->capture_default_str();
  diff->add_flag("--all", options->text.all, "every row, also what does not differ; whole names");
  diff->callback([options, limit, &command] {
    options->text.name_a = options->path_a;
    options->text.name_b = options->path_b;
    if (options->text.all && limit->count() == 0) options->text.limit = -1;
    command = [options] { return run(*options); };
  });
}
