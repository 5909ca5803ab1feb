// SPDX-License-Identifier: Apache-2.0
//
// readtrace health TRACE: what is odd in the file itself.
#include "explain/health.h"

#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>
#include <string>

#include "commands.h"
#include "trace/reader.h"

namespace {

struct Options {
  std::string path;
  std::size_t examples = 1;
};

// What the reader warns of are findings here, so nothing is said twice.
int run(const Options& options) {
  const trace::Trace trace = trace::read(options.path);
  const explain::Health health = explain::health(trace, options.examples);
  if (!print(explain::to_text(health))) return kFailed;
  if (!trace.report.complete()) return kReadInPart;
  return health.has_fault() ? kFailed : kDone;
}

}  // namespace

void add_health(CLI::App& app, std::function<int()>& command) {
  const auto options = std::make_shared<Options>();  // outlives this function in the callback
  CLI::App* health = app.add_subcommand(
      "health",
      "Print what is odd in the file itself: faults, where figures of the table are wrong or\n"
      "missing (exit code 1), and notes.");
  health->add_option("TRACE", options->path, "trace file, plain or gzip; - is standard input")
      ->required();
  health->add_option("--examples", options->examples, "to show of each finding, the worst first")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  health->callback([options, &command] { command = [options] { return run(*options); }; });
}
