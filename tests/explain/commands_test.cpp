// SPDX-License-Identifier: Apache-2.0
//
// readtrace explain and readtrace quiz as a person meets them, the quiz in a terminal, too.
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

struct Result {
  int exit_code = -1;  // -1 where a signal ended it
  std::string text;    // both outputs
};

Result run(const std::string& command_line) {
  const std::string command = command_line + " 2>&1 </dev/null";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Result result;
  std::array<char, 4096> buffer{};
  while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    result.text.append(buffer.data(), size);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

Result readtrace(const std::string& arguments) {
  return run(READTRACE " " + arguments);
}

// The same in a pseudo-terminal, where `typed` stands ready to be read.
Result in_terminal(const char* command, const char* trace, const std::string& typed) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  REQUIRE(child >= 0);
  if (child == 0) {
    ::execl(READTRACE, "readtrace", command, trace, static_cast<char*>(nullptr));
    ::_exit(127);
  }
  REQUIRE(::write(terminal, typed.data(), typed.size()) == static_cast<ssize_t>(typed.size()));
  Result result;
  std::array<char, 4096> buffer{};
  // At the end of the program Linux answers with an error instead of an end of file.
  for (ssize_t size = 0; (size = ::read(terminal, buffer.data(), buffer.size())) > 0;) {
    result.text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  ::close(terminal);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

constexpr const char* kNaive = PROF_TEST_DATA "/explain/naive.json.gz";
constexpr const char* kWithoutChapter = PROF_TEST_DATA "/pytorch/naive.json.gz";

}  // namespace

TEST_CASE("explain: the run, then facts, then findings") {
  const Result result = readtrace(std::string("explain ") + kNaive);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.text,
             StartsWith("Chapter   01_naive\n") &&
                 ContainsSubstring("\n\nFacts from the trace, 3 forwards (attn_fwd)") &&
                 ContainsSubstring("\n\nFinding: ") &&
                 ContainsSubstring("Finding: a copy, 3 times in 3 forwards"));
}

TEST_CASE("explain: another annotation by --label, and what can be named") {
  const Result steps = readtrace(std::string("explain --label 'ProfilerStep*' ") + kNaive);
  CHECK(steps.exit_code == 0);
  CHECK_THAT(steps.text, ContainsSubstring("3 forwards (ProfilerStep*)"));
  const Result none = readtrace(std::string("explain --label nothing ") + kNaive);
  CHECK(none.exit_code == 2);
  CHECK(none.text ==
        "readtrace: the trace has no annotation nothing: choose one by --label: attn_fwd (3), "
        "ProfilerStep* (3)\n");
}

TEST_CASE("explain: a damaged trace is explained as far as it goes, one that is not there is not") {
  const std::string cut =
      "sh -c 'gunzip -c " + std::string(kNaive) + " | head -c 60000 | " READTRACE;
  const Result part = run(cut + " explain -'");
  CHECK(part.exit_code == 4);
  CHECK_THAT(part.text, ContainsSubstring("Facts from the trace"));
  CHECK(readtrace("explain " PROF_TEST_DATA "/explain/nothing.json").exit_code == 3);
}

TEST_CASE("figure --memory draws what explain says, of a recording that has it") {
  const std::string with = PROF_TEST_DATA "/pytorch/naive_full.json.gz";
  const Result explained = readtrace("explain " + with);
  CHECK(explained.exit_code == 0);
  CHECK_THAT(explained.text, ContainsSubstring("\nMemory of ProfilerStep#") &&
                                 ContainsSubstring("alive there, by the op that allocated it:\n"));
  const Result figure = readtrace("figure --memory " + with);
  CHECK(figure.exit_code == 0);
  const std::string peak = explained.text.substr(explained.text.find("  peak  ") + 30, 10);
  CHECK_THAT(figure.text,
             StartsWith("<svg ") && ContainsSubstring(">peak " + peak.substr(0, peak.find('\n'))));
  const Result without = readtrace(std::string("figure --memory ") + kNaive);
  CHECK(without.exit_code == 2);
  CHECK_THAT(without.text, ContainsSubstring("no memory records"));
  CHECK(readtrace("figure --memory --from 5 " + with).exit_code == 2);
  CHECK_THAT(readtrace(std::string("explain ") + kNaive).text, !ContainsSubstring("Memory of"));
}

TEST_CASE("plot: a sweep as SVG; what is none, a quantity that is not there, a folder as output") {
  const std::string stem =
      (std::filesystem::temp_directory_path() / "prof-plot-").string() + std::to_string(::getpid());
  const std::string sweep = stem + ".sweep.json", svg = stem + ".svg";
  std::ofstream(sweep) << R"({"chapter":"c","title":"t","x":"S","quantities":[)"
                       << R"({"key":"peak","title":"the peak","unit":"bytes"}],"rows":[)"
                       << R"({"line":"a","x":1,"values":{"peak":2}}]})";
  const Result drawn = readtrace("plot " + sweep);
  CHECK(drawn.exit_code == 0);
  CHECK_THAT(drawn.text, StartsWith("<svg ") && ContainsSubstring("c: the peak"));
  const Result other = readtrace("plot --quantity forward " + sweep);
  CHECK(other.exit_code == 2);
  CHECK(
      other.text ==
      "readtrace: the sweep has no quantity forward: choose one by --quantity: peak (the peak)\n");
  CHECK(readtrace("plot --width 3 " + sweep).exit_code == 2);
  const Result trace = readtrace(std::string("plot ") + kNaive);
  CHECK(trace.exit_code == 3);
  CHECK_THAT(trace.text, ContainsSubstring("is no sweep: it has no chapter"));
  CHECK(readtrace("plot nothing.sweep.json").exit_code == 3);
  CHECK(readtrace("plot -o . " + sweep).exit_code == 1);
  CHECK(run("sh -c '" READTRACE " plot - -o " + svg + " <" + sweep + "'").exit_code == 0);
  CHECK(std::filesystem::file_size(svg) == drawn.text.size());
  std::filesystem::remove(sweep);
  std::filesystem::remove(svg);
}

TEST_CASE("quiz: without a terminal the questions, and how to answer") {
  const Result result = readtrace(std::string("quiz ") + kNaive);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.text, StartsWith("1. How many GPU operations") &&
                              ContainsSubstring("answer with --guess") &&
                              !ContainsSubstring("right"));
}

TEST_CASE("quiz: graded by --guess; too few, too many or another kind are bad usage") {
  const std::string quiz = std::string("quiz ") + kNaive;
  const Result graded = readtrace(quiz + " --guess 99,1,masked_fill,no,2");
  CHECK(graded.exit_code == 0);
  CHECK_THAT(graded.text, ContainsSubstring("4 of 5 right\n") && ContainsSubstring("Look at: "));
  for (const char* guesses : {"7,1", "7,1,softmax,no,2,3", "''", "7,1,softmax,no,many"}) {
    CAPTURE(guesses);
    const Result bad = readtrace(quiz + " --guess " + guesses);
    CHECK(bad.exit_code == 2);
    CHECK(std::count(bad.text.begin(), bad.text.end(), '\n') == 1);
  }
}

TEST_CASE("quiz: a trace of no chapter has no questions") {
  const Result result = readtrace(std::string("quiz ") + kWithoutChapter);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.text, ContainsSubstring("does not say which chapter"));
}

TEST_CASE("quiz: asks in a terminal, again where a guess is of another kind") {
  const Result result = in_terminal("quiz", kNaive, "many\n99\n1\nmasked_fill\nno\n2\n");
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.text,
             ContainsSubstring("'many' is no number") && ContainsSubstring("4 of 5 right"));
}

TEST_CASE("quiz: a terminal that is closed before the last answer") {
  const Result result = in_terminal("quiz", kNaive, "7\n\x04");  // Ctrl-D
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.text, ContainsSubstring("the input ended before the last answer"));
}
