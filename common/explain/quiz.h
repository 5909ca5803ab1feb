// SPDX-License-Identifier: Apache-2.0
//
// Guess first, then look: what a chapter asks before it shows anything, and how a guess is graded
// from the trace of the very run. No answer is written down anywhere.
//
//   const std::vector<explain::Question> questions = explain::questions("01_naive", on_gpu);
//   auto guesses = explain::ask(questions, std::cin, std::cout);       // or
//   split_guesses("7,1,...") if (auto wrong = explain::check_guesses(questions, *guesses)) ...  //
//   one sentence std::cout << explain::graded_text(questions, tree, facts, *guesses);
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explain/facts.h"
#include "trace/tree.h"

namespace explain {

enum class QuestionKind : std::uint8_t { number, choice, yes_no };

class View;  // of the trace: private to common/explain

// What the trace says. A question's own matter: callers see it graded.
struct Answer {
  // A number: guesses from least to most are right, which differ where the forwards do, or where
  // the question allows for some distance.
  double least = 0, most = 0;
  std::string text;  // as it is printed; a choice's name, "yes" or "no"
  std::string look;  // the line that shows it
};

struct Question {
  std::string text;
  QuestionKind kind = QuestionKind::number;
  std::vector<std::string> choices;  // of a choice
  // Works the answer out; nullopt where the file does not hold what that takes.
  std::optional<Answer> (*answer)(const View& view) = nullptr;
};

struct Graded {
  std::optional<bool> right;  // nullopt: the file does not say
  std::string answer;         // "7", "masked_fill", "no"
  std::string look;           // the line that shows it, with what stands there
};

// Three to five questions, empty for a chapter that has none. Known before the run: texts only.
[[nodiscard]] std::vector<Question> questions(std::string_view chapter, bool on_gpu);

// "7, masked_fill ,yes" -> {"7", "masked_fill", "yes"}; nothing for blank text.
[[nodiscard]] std::vector<std::string> split_guesses(std::string_view text);

// A sentence if the guess is not of the question's kind: "'many' is no number". A choice is one of
// the names, in any case, with or without aten:: and outer underscores, or its number in the list.
[[nodiscard]] std::optional<std::string> check_guess(const Question& question,
                                                     std::string_view guess);
// The same for all of them and for how many there are.
[[nodiscard]] std::optional<std::string> check_guesses(std::span<const Question> questions,
                                                       std::span<const std::string> guesses);

[[nodiscard]] Graded grade(const Question& question, const trace::OpTree& tree, const Facts& facts,
                           std::string_view guess);

// Asks one question after the other, again where a guess is not of its kind. nullopt where the
// input ends before the last answer.
[[nodiscard]] std::optional<std::vector<std::string>> ask(std::span<const Question> questions,
                                                          std::istream& in, std::ostream& out);

// The questions as a numbered list, with their choices.
[[nodiscard]] std::string to_text(std::span<const Question> questions);

// How the guesses did, one question after the other, and how many were right. The guesses have
// passed check_guesses.
[[nodiscard]] std::string graded_text(std::span<const Question> questions,
                                      const trace::OpTree& tree, const Facts& facts,
                                      std::span<const std::string> guesses);

}  // namespace explain
