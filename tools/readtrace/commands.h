// SPDX-License-Identifier: Apache-2.0
//
// One function per command: it declares the command's options and what to do when it is asked for.
// The work itself is in common/.
//
//   std::function<int()> command;
//   add_table(app, command);
//   app.parse(argc, argv);
//   return command();  // an exit code
#pragma once

#include <functional>
#include <string_view>

namespace CLI {
class App;
}
namespace trace {
struct Trace;
}

enum ExitCode {
  kDone = 0,
  kFailed = 1,      // a difference, a fault of the file, output that could not be written
  kBadUsage = 2,    // an option or a value that does not exist
  kNotRead = 3,     // not one whole event could be read
  kReadInPart = 4,  // a damaged file: what could be saved was printed
};

void add_explain(CLI::App& app, std::function<int()>& command);
void add_quiz(CLI::App& app, std::function<int()>& command);
void add_kernels(CLI::App& app, std::function<int()>& command);
void add_table(CLI::App& app, std::function<int()>& command);
void add_health(CLI::App& app, std::function<int()>& command);
void add_figure(CLI::App& app, std::function<int()>& command);
void add_graph(CLI::App& app, std::function<int()>& command);
void add_plot(CLI::App& app, std::function<int()>& command);
void add_merge(CLI::App& app, std::function<int()>& command);
void add_diff(CLI::App& app, std::function<int()>& command);
void add_tree(CLI::App& app, std::function<int()>& command);

// What reading a trace cost, one sentence each on standard error; and the exit code that says so.
void print_warnings(const trace::Trace& trace);
[[nodiscard]] ExitCode done(const trace::Trace& trace);

// Writes all of `text` to standard output. False if that failed, after a sentence on standard
// error; silently where the reader of a pipe has seen enough and left.
[[nodiscard]] bool print(std::string_view text);
