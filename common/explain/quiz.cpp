// SPDX-License-Identifier: Apache-2.0
#include "explain/quiz.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <istream>
#include <ostream>

#include "explain/finding_view.h"
#include "trace/printable.h"

namespace explain {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// "aten::Softmax_" and "softmax" are the same guess. (Not for yes and no, which have no prefix.)
std::string plain_name(std::string_view name) {
  std::string text(trimmed(name));
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  constexpr std::string_view kPrefix = "aten::";
  if (text.starts_with(kPrefix)) text.erase(0, kPrefix.size());
  const std::size_t first = text.find_first_not_of('_');
  if (first == std::string::npos) return text;
  return text.substr(first, text.find_last_not_of('_') - first + 1);
}

std::optional<double> number_of(std::string_view guess) {
  guess = trimmed(guess);
  if (guess.ends_with('%')) guess = trimmed(guess.substr(0, guess.size() - 1));
  double number = 0;
  const auto [end, error] = std::from_chars(guess.data(), guess.data() + guess.size(), number);
  if (error != std::errc() || end != guess.data() + guess.size() || !std::isfinite(number)) {
    return std::nullopt;
  }
  return number;
}

// The name that a guess stands for: one of the choices, by name or by number. "" for none.
std::string chosen(const Question& question, std::string_view guess) {
  const std::string name = plain_name(guess);
  for (std::size_t i = 0; i < question.choices.size(); ++i) {
    const std::string choice = plain_name(question.choices[i]);
    if (name == choice || name == fmt::format("{}", i + 1)) return choice;
  }
  return "";
}

std::optional<bool> truth_of(std::string_view guess) {
  const std::string name = plain_name(guess);
  if (name == "yes" || name == "y" || name == "true") return true;
  if (name == "no" || name == "n" || name == "false") return false;
  return std::nullopt;
}

bool is_right(const Question& question, const Answer& answer, std::string_view guess) {
  switch (question.kind) {
    case QuestionKind::number: {
      const std::optional<double> number = number_of(guess);
      return number && *number >= answer.least && *number <= answer.most;
    }
    case QuestionKind::choice:
      return chosen(question, guess) == plain_name(answer.text);
    case QuestionKind::yes_no:
      return truth_of(guess) == (answer.text == "yes");
  }
  return false;
}

Graded grade(const Question& question, const View& view, std::string_view guess) {
  const std::optional<Answer> answer = question.answer(view);
  if (!answer) return {std::nullopt, "not known", "the file does not hold what this takes"};
  return {is_right(question, *answer, guess), trace::printable(answer->text),
          trace::printable(answer->look)};
}

std::string question_text(const Question& question, std::size_t number) {
  std::string text = fmt::format("{}. {}\n", number, question.text);
  for (std::size_t i = 0; i < question.choices.size(); ++i) {
    text += fmt::format("   {}{} {}", i == 0 ? "" : " ", i + 1, question.choices[i]);
  }
  if (question.kind == QuestionKind::yes_no) text += "   yes or no";
  if (question.kind == QuestionKind::number) text += "   a number";
  return text + '\n';
}

}  // namespace

std::vector<std::string> split_guesses(std::string_view text) {
  std::vector<std::string> guesses;
  if (trimmed(text).empty()) return guesses;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    guesses.emplace_back(trimmed(text.substr(start, comma - start)));
    start = comma + 1;
  }
  return guesses;
}

std::optional<std::string> check_guess(const Question& question, std::string_view guess) {
  const std::string shown = trace::printable(trimmed(guess));
  switch (question.kind) {
    case QuestionKind::number:
      if (number_of(guess)) return std::nullopt;
      return fmt::format("'{}' is no number", shown);
    case QuestionKind::choice:
      if (!chosen(question, guess).empty()) return std::nullopt;
      return fmt::format("'{}' is none of {}", shown, fmt::join(question.choices, ", "));
    case QuestionKind::yes_no:
      if (truth_of(guess)) return std::nullopt;
      return fmt::format("'{}' is neither yes nor no", shown);
  }
  return std::nullopt;
}

std::optional<std::string> check_guesses(std::span<const Question> questions,
                                         std::span<const std::string> guesses) {
  if (guesses.size() != questions.size()) {
    return fmt::format("{} guesses for {} questions: give one each, with commas between",
                       guesses.size(), questions.size());
  }
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (const auto wrong = check_guess(questions[i], guesses[i])) {
      return fmt::format("guess {}: {} ({})", i + 1, *wrong, questions[i].text);
    }
  }
  return std::nullopt;
}

Graded grade(const Question& question, const trace::OpTree& tree, const Facts& facts,
             std::string_view guess) {
  return grade(question, View(tree, facts), guess);
}

std::optional<std::vector<std::string>> ask(std::span<const Question> questions, std::istream& in,
                                            std::ostream& out) {
  std::vector<std::string> guesses;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    out << question_text(questions[i], i + 1);
    std::string guess;
    for (bool done = false; !done;) {
      out << "   > " << std::flush;
      if (!std::getline(in, guess)) return std::nullopt;
      const std::optional<std::string> wrong = check_guess(questions[i], guess);
      if (wrong) out << "   " << *wrong << '\n';
      done = !wrong;
    }
    guesses.emplace_back(trimmed(guess));
  }
  return guesses;
}

std::string to_text(std::span<const Question> questions) {
  std::string text;
  for (std::size_t i = 0; i < questions.size(); ++i) text += question_text(questions[i], i + 1);
  return text;
}

std::string graded_text(std::span<const Question> questions, const trace::OpTree& tree,
                        const Facts& facts, std::span<const std::string> guesses) {
  const View view(tree, facts);
  std::string text = "Your guesses, graded from this trace:\n";
  std::size_t right = 0, graded = 0;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const Graded result = grade(questions[i], view, guesses[i]);
    text += fmt::format("{}. {}\n", i + 1, questions[i].text);
    const std::string guess = trace::printable(guesses[i]);
    if (!result.right) {
      text += fmt::format("   {}: not graded, {}\n", guess, result.look);
      continue;
    }
    ++graded;
    right += *result.right ? 1 : 0;
    text += *result.right ? fmt::format("   {}: right, {}\n", guess, result.answer)
                          : fmt::format("   {}: no, it is {}\n   Look at: {}\n", guess,
                                        result.answer, result.look);
  }
  return text + fmt::format("{} of {} right\n", right, graded);
}

}  // namespace explain
