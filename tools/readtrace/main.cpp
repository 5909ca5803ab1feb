// SPDX-License-Identifier: Apache-2.0
//
// readtrace COMMAND TRACE [options]: what a trace of PyTorch's profiler says, as text. TRACE is a
// Kineto/Chrome trace, plain or gzip; - is standard input.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>

#include "commands.h"
#include "explain/steps.h"
#include "trace/key_averages.h"
#include "trace/merge.h"
#include "trace/printable.h"
#include "trace/reader.h"

void print_warnings(const trace::Trace& trace) {
  for (const std::string& warning : trace.report.warnings)
    std::cerr << "readtrace: " << warning << '\n';
}

ExitCode done(const trace::Trace& trace) {
  return trace.report.complete() ? kDone : kReadInPart;
}

bool print(std::string_view text) {
  errno = 0;
  const bool is_written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!is_written && errno != EPIPE)
    std::cerr << "readtrace: the output could not be written: " << std::strerror(errno) << '\n';
  return is_written;
}

namespace {

int complain(std::string_view sentence, ExitCode code) {
  std::cerr << "readtrace: " << sentence << '\n';
  return code;
}

int run(int argc, char** argv) {
  CLI::App app("Reads a trace of PyTorch's profiler (Kineto/Chrome JSON, plain or gzip).",
               "readtrace");
  app.set_version_flag("--version", "readtrace " READTRACE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done; 1 a difference, a fault that health found, or output that could not be\n"
      "written; 2 bad usage; 3 not one whole event could be read; 4 read in part, what was saved "
      "is printed.");
  std::function<int()> command;
  add_explain(app, command);
  add_quiz(app, command);
  add_kernels(app, command);
  add_table(app, command);
  add_figure(app, command);
  add_graph(app, command);
  add_plot(app, command);
  add_health(app, command);
  add_tree(app, command);
  add_diff(app, command);
  add_merge(app, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help and --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return complain(trace::printable(error.what()) + "; see readtrace --help", kBadUsage);
  }
  return command();
}

}  // namespace

int main(int argc, char** argv) {
  // `readtrace ... | head` ends like any other failed write, not by a signal.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const trace::TableError& error) {
    return complain(error.what(), kBadUsage);
  } catch (const explain::RangeError& error) {
    return complain(error.what(), kBadUsage);
  } catch (const trace::MergeError& error) {
    return complain(error.what(), kBadUsage);
  } catch (const trace::ReadError& error) {
    return complain(error.what(), kNotRead);
  } catch (const std::bad_alloc&) {
    return complain("not enough memory for this trace", kFailed);
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  }
}
