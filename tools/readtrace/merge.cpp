// SPDX-License-Identifier: Apache-2.0
//
// readtrace merge A B ... -o OUT: the traces of a job's ranks as one file.
#include "trace/merge.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "trace/numbers.h"

namespace {

struct Options {
  std::vector<std::filesystem::path> inputs;
  std::filesystem::path output;
  trace::Align align = trace::Align::clock;
};

int run(const Options& options) {
  const trace::MergeReport report = trace::merge(options.inputs, options.output, options.align);
  for (const std::string& warning : report.warnings) std::cerr << "readtrace: " << warning << '\n';
  for (const trace::MergedFile& file : report.files) {
    std::cerr << fmt::format("readtrace: rank {} (by {}): {}, times moved by {}us, ids by {}\n",
                             file.rank, file.rank_source, file.name,
                             trace::microseconds_text(file.shift_ns), file.id_offset);
  }
  return report.complete() ? kDone : kReadInPart;
}

}  // namespace

void add_merge(CLI::App& app, std::function<int()>& command) {
  const auto options = std::make_shared<Options>();  // outlives this function in the callback
  CLI::App* merge = app.add_subcommand(
      "merge",
      "Write the traces of a job's ranks into one file: ranks kept apart, times aligned.\n"
      "A file's rank is the one it says (distributedInfo), else the one in its name, else its "
      "place.");
  merge->add_option("TRACE", options->inputs, "trace files, plain or gzip, one for each rank")
      ->required()
      ->expected(2, 100'000);
  merge->add_option("-o,--output", options->output, "file to write, gzip where it ends in .gz")
      ->required();
  merge
      ->add_option("--align", options->align,
                   "clock (times as they were taken), start (recordings begin together), "
                   "collective (collectives end together: ranks on several hosts), none")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, trace::Align>{{"clock", trace::Align::clock},
                                              {"start", trace::Align::start},
                                              {"collective", trace::Align::collective},
                                              {"none", trace::Align::none}}));
  merge->callback([options, &command] { command = [options] { return run(*options); }; });
}
