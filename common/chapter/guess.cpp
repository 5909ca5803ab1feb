// SPDX-License-Identifier: Apache-2.0
#include "chapter/guess.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "explain/quiz.h"

namespace chapter {

std::vector<std::string> guesses_for(const Options& options) {
  if (!options.quiz && options.guess.empty()) return {};
  const auto refuse = [&options](const std::string& what) {
    throw UsageError(fmt::format("{}: {}", options.info.name, what), 2);
  };
  const std::vector<explain::Question> questions =
      explain::questions(options.info.name, options.on_gpu());
  if (questions.empty()) refuse("there are no questions to this chapter");
  if (!options.guess.empty()) {
    std::vector<std::string> guesses = explain::split_guesses(options.guess);
    if (const auto wrong = explain::check_guesses(questions, guesses)) refuse("--guess: " + *wrong);
    return guesses;
  }
  if (::isatty(STDIN_FILENO) == 0) {
    refuse(fmt::format(
        "--quiz asks at a terminal, and there is none: answer its {} questions by --guess "
        "with a comma between the answers",
        questions.size()));
  }
  std::optional<std::vector<std::string>> guesses = explain::ask(questions, std::cin, std::cout);
  if (!guesses) refuse("--quiz: the input ended before the last answer");
  std::cout << std::endl;
  return *std::move(guesses);
}

}  // namespace chapter
