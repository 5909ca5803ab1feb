// SPDX-License-Identifier: Apache-2.0
//
// readtrace quiz TRACE: the questions of the chapter that wrote the trace, asked in a terminal or
// graded from --guess.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "explain/about.h"
#include "explain/facts.h"
#include "explain/forwards.h"
#include "explain/quiz.h"
#include "trace/printable.h"
#include "trace/reader.h"
#include "trace/tree.h"

namespace {

struct Options {
  std::string path;
  std::string label;
  std::string guesses;
  bool has_guesses = false;
};

int complain(const std::string& sentence) {
  std::cerr << "readtrace: " << sentence << '\n';
  return kBadUsage;
}

// Standard input can be asked only if it is a terminal and not the trace itself.
bool can_ask(const Options& options) {
  return options.path != "-" && ::isatty(STDIN_FILENO) != 0;
}

int run(const Options& options) {
  const trace::Trace trace = trace::read(options.path);
  print_warnings(trace);
  const int done_code = done(trace);

  const std::string chapter(explain::metadata_text(trace, "chapter"));
  if (chapter.empty()) {
    return complain("the trace does not say which chapter wrote it, so there is nothing to ask");
  }
  const trace::OpTree tree(trace);
  const std::string label = options.label.empty() ? explain::forward_label(tree) : options.label;
  const explain::Facts facts = explain::facts(tree, label);
  if (facts.forwards == 0) return complain(explain::no_forward_text(tree, label));
  const std::vector<explain::Question> questions = explain::questions(chapter, facts.on_gpu);
  if (questions.empty()) {
    return complain("there are no questions about " + trace::printable(chapter.substr(0, 40)));
  }

  std::vector<std::string> guesses = explain::split_guesses(options.guesses);
  if (!options.has_guesses) {
    if (!can_ask(options)) {
      const std::string text = explain::to_text(questions) +
                               "This is no terminal to ask in: answer with --guess and one answer "
                               "per question, commas between.\n";
      return print(text) ? done_code : kFailed;
    }
    auto answers = explain::ask(questions, std::cin, std::cout);
    if (!answers) return complain("the input ended before the last answer");
    guesses = std::move(*answers);
  }
  if (const auto wrong = explain::check_guesses(questions, guesses)) return complain(*wrong);
  return print(explain::graded_text(questions, tree, facts, guesses)) ? done_code : kFailed;
}

}  // namespace

void add_quiz(CLI::App& app, std::function<int()>& command) {
  const auto options = std::make_shared<Options>();  // outlives this function in the callback
  CLI::App* quiz = app.add_subcommand(
      "quiz", "Guess first: the questions of the trace's chapter, graded from the trace.");
  quiz->add_option("TRACE", options->path, "trace file, plain or gzip; - is standard input")
      ->required();
  CLI::Option* guess =
      quiz->add_option("--guess", options->guesses,
                       "one answer per question, commas between, e.g. 5,0,softmax,no,2");
  quiz->add_option("--label", options->label,
                   "the annotation (record_function) that marks a forward");
  quiz->callback([options, guess, &command] {
    options->has_guesses = guess->count() > 0;
    command = [options] { return run(*options); };
  });
}
