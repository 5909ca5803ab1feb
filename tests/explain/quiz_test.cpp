// SPDX-License-Identifier: Apache-2.0
//
// Answers follow the trace: no test knows an answer that it could not change by changing the trace.
#include "explain/quiz.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sstream>

#include "explain/about.h"
#include "explain/forwards.h"
#include "trace/reader.h"

using Catch::Matchers::ContainsSubstring;
using explain::Graded;
using explain::Question;
using explain::QuestionKind;
using trace::Category;

namespace {

trace::Trace recording(const std::string& name) {
  return trace::read(std::string(PROF_TEST_DATA "/explain/") + name + ".json.gz");
}

explain::Facts facts_of(const trace::OpTree& tree) {
  explain::Facts facts = explain::facts(tree, explain::forward_label(tree));
  return facts;
}

std::vector<Question> questions_of(const trace::Trace& trace) {
  const trace::OpTree tree(trace);
  return explain::questions(explain::metadata_text(trace, "chapter"), facts_of(tree).on_gpu);
}

// The grade of a guess at the first question whose text holds `part`.
Graded grade(const trace::Trace& trace, std::string_view part, std::string_view guess) {
  const trace::OpTree tree(trace);
  for (const Question& question : questions_of(trace)) {
    if (question.text.find(part) == std::string::npos) continue;
    CHECK_FALSE(explain::check_guess(question, guess));
    return explain::grade(question, tree, facts_of(tree), guess);
  }
  FAIL("no such question: " << part);
  return {};
}

std::string answer(const trace::Trace& trace, std::string_view part) {
  const trace::OpTree tree(trace);
  for (const Question& question : questions_of(trace)) {
    if (question.text.find(part) != std::string::npos) {
      return explain::grade(question, tree, facts_of(tree), "").answer;
    }
  }
  return "no such question";
}

bool is(const trace::Trace& trace, const trace::Event& event, std::string_view part) {
  return trace.name(event).find(part) != std::string_view::npos;
}

constexpr std::string_view kGpuOperations = "How many GPU operations";
constexpr std::string_view kCopies = "copy a whole tensor";
constexpr std::string_view kLongest = "Which op";
constexpr std::string_view kIdle = "idle";
constexpr std::string_view kPeak = "at its peak";
constexpr std::string_view kInMemory = "ever in memory";
constexpr std::string_view kMask = "mask again";
constexpr std::string_view kCores = "matrix products run";
constexpr std::string_view kOccupancy = "occupancy";
constexpr std::string_view kMatmuls = "aten::bmm";

}  // namespace

TEST_CASE("Three to five questions for each chapter and device, with choices where they choose") {
  for (const char* chapter : {"01_naive", "02_inplace", "03_sdpa", "04_kernels", "05_memory"}) {
    for (const bool on_gpu : {true, false}) {
      const std::vector<Question> questions = explain::questions(chapter, on_gpu);
      CHECK(questions.size() >= 3);
      CHECK(questions.size() <= 5);
      for (const Question& question : questions) {
        CHECK((question.kind == QuestionKind::choice) == (question.choices.size() >= 2));
        CHECK(question.answer != nullptr);
        if (!on_gpu) CHECK_THAT(question.text, !ContainsSubstring("GPU"));
      }
    }
  }
  CHECK(explain::questions("99_nothing", true).empty());
  CHECK(explain::questions("", false).empty());
}

TEST_CASE("How many GPU operations: a kernel more is one more") {
  trace::Trace trace = recording("naive");
  const std::string before = answer(trace, kGpuOperations);
  CHECK(grade(trace, kGpuOperations, before).right == true);
  std::vector<trace::Event> more;
  for (const trace::Event& event : trace.events) {
    if (event.category == Category::kernel && is(trace, event, "softmax")) more.push_back(event);
  }
  trace.events.insert(trace.events.end(), more.begin(), more.end());
  CHECK(answer(trace, kGpuOperations) == std::to_string(std::stoi(before) + 1));
  const Graded wrong = grade(trace, kGpuOperations, before);
  CHECK(wrong.right == false);
  CHECK_THAT(wrong.look, ContainsSubstring("GPU operations per forward") &&
                             ContainsSubstring("softmax") && ContainsSubstring("memcpy"));
}

TEST_CASE("Forwards that differ: each of their counts is right") {
  trace::Trace trace = recording("naive");
  const int before = std::stoi(answer(trace, kGpuOperations));
  trace.events.erase(std::find_if(trace.events.begin(), trace.events.end(), [](const auto& e) {
    return e.category == Category::gpu_memcpy;
  }));
  CHECK(answer(trace, kGpuOperations) ==
        std::to_string(before - 1) + " to " + std::to_string(before));
  CHECK(grade(trace, kGpuOperations, std::to_string(before)).right == true);
  CHECK(grade(trace, kGpuOperations, std::to_string(before - 1)).right == true);
  CHECK(grade(trace, kGpuOperations, std::to_string(before + 1)).right == false);
}

TEST_CASE("How many copies: none once they are dropped") {
  trace::Trace trace = recording("naive");
  CHECK(grade(trace, kCopies, "1").right == true);
  const Graded wrong = grade(trace, kCopies, "0");
  CHECK(wrong.right == false);
  CHECK_THAT(wrong.look, ContainsSubstring("aten::copy_ < aten::clone < aten::masked_fill"));
  std::erase_if(trace.events, [](const auto& e) { return e.category == Category::gpu_memcpy; });
  CHECK(grade(trace, kCopies, "0").right == true);
  CHECK(grade(trace, kCopies, "1").right == false);
}

TEST_CASE("Which op takes most: swapped durations swap the answer") {
  trace::Trace trace = recording("naive");
  CHECK(answer(trace, kLongest) == "aten::masked_fill");
  CHECK(grade(trace, kLongest, "Masked_Fill").right == true);
  CHECK(grade(trace, kLongest, "aten::masked_fill_").right == true);
  CHECK(grade(trace, kLongest, "3").right == true);  // by its place in the list
  const Graded wrong = grade(trace, kLongest, "softmax");
  CHECK(wrong.right == false);
  CHECK_THAT(wrong.look, ContainsSubstring("CUDA total: aten::masked_fill ") &&
                             ContainsSubstring("then aten::softmax "));
  std::vector<trace::Event*> fills, softmaxes;
  for (trace::Event& event : trace.events) {
    if (event.category == Category::gpu_memcpy) event.duration_ns = 0;
    if (event.category != Category::kernel || event.external_id == 0) continue;
    if (is(trace, event, "masked_fill")) fills.push_back(&event);
    if (is(trace, event, "softmax")) softmaxes.push_back(&event);
  }
  REQUIRE(fills.size() == 3);
  REQUIRE(softmaxes.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    std::swap(fills[i]->duration_ns, softmaxes[i]->duration_ns);
  }
  CHECK(grade(trace, kLongest, "softmax").right == true);
  CHECK(grade(trace, kLongest, "masked_fill").right == false);
}

TEST_CASE("Is the GPU idle: wide gaps make it so") {
  trace::Trace trace = recording("naive");
  CHECK(grade(trace, kIdle, "no").right == true);
  CHECK(grade(trace, kIdle, "YES").right == false);
  CHECK(grade(recording("naive_tiny"), kIdle, "yes").right == true);
  for (trace::Event& event : trace.events) {
    if (event.category == Category::kernel) event.duration_ns /= 2;
  }
  CHECK(grade(trace, kIdle, "yes").right == true);
}

TEST_CASE("How many tensors of scores at the peak: from the metadata of the run") {
  trace::Trace trace = recording("naive");
  CHECK(grade(trace, kPeak, "2").right == true);
  CHECK(grade(trace, kPeak, "3").right == false);
  const auto set = [&](std::string_view key, const std::string& json) {
    std::erase_if(trace.metadata, [&](const auto& entry) { return entry.key == key; });
    if (!json.empty()) trace.metadata.push_back({std::string(key), json});
  };
  set("peak_memory_bytes", std::to_string(3 * 268435456 + 1000));
  CHECK(grade(trace, kPeak, "3").right == true);
  set("shape", "\"8_16_512_64\"");
  CHECK(grade(trace, kPeak, "12").right == true);
  set("shape", "");
  const Graded unknown = grade(trace, kPeak, "2");
  CHECK_FALSE(unknown.right);
  CHECK_THAT(unknown.look, ContainsSubstring("the file does not"));
}

TEST_CASE("03_sdpa on a GPU: the backend in the file decides") {
  struct Known {
    const char* backend;
    const char* operations;
    const char* in_memory;
    const char* mask;
    const char* cores;
  };
  for (const Known& known : {Known{"math", "20", "yes", "yes", "CUDA cores"},
                             Known{"efficient", "1", "no", "no", "tensor cores"},
                             Known{"flash", "1", "no", "no", "tensor cores"},
                             Known{"cudnn", "2", "no", "no", "tensor cores"}}) {
    CAPTURE(known.backend);
    const trace::Trace trace = recording(known.backend);
    CHECK(answer(trace, kGpuOperations) == known.operations);
    CHECK(grade(trace, kInMemory, known.in_memory).right == true);
    CHECK(grade(trace, kMask, known.mask).right == true);
    CHECK(grade(trace, kCores, known.cores).right == true);
  }
}

TEST_CASE("Where matrix products run: a renamed kernel runs elsewhere") {
  trace::Trace trace = recording("flash");
  for (trace::Event& event : trace.events) {
    if (event.category == Category::kernel) event.name = trace.texts.add("ampere_sgemm_64x64_nn");
  }
  const Graded wrong = grade(trace, kCores, "tensor cores");
  CHECK(wrong.right == false);
  CHECK(wrong.answer == "CUDA cores");
  CHECK_THAT(wrong.look, ContainsSubstring("ampere_sgemm_64x64_nn"));
}

TEST_CASE("Occupancy to the nearest ten per cent, from the launch") {
  trace::Trace trace = recording("flash");  // 12.5 %
  CHECK(grade(trace, kOccupancy, "10").right == true);
  CHECK(grade(trace, kOccupancy, "10 %").right == true);
  CHECK(grade(trace, kOccupancy, "20").right == false);
  for (trace::Launch& launch : trace.launches) {
    launch.registers_per_thread = 32;
    launch.shared_memory = 0;
  }
  CHECK(grade(trace, kOccupancy, "100").right == true);
  CHECK(grade(trace, kOccupancy, "10").right == false);
}

TEST_CASE("A mask that is not built any more") {
  trace::Trace trace = recording("math");
  std::erase_if(trace.events, [&](const auto& event) { return is(trace, event, "aten::tril"); });
  CHECK(grade(trace, kMask, "no").right == true);
}

TEST_CASE("On a CPU the questions are about ops") {
  trace::Trace naive = recording("cpu_naive");
  CHECK(grade(naive, kCopies, "1").right == true);
  CHECK(grade(naive, kMatmuls, "2").right == true);
  CHECK(grade(naive, kLongest, "matmul").right == true);
  CHECK_FALSE(grade(naive, kPeak, "2").right);  // no peak in this recording
  for (trace::Event& event : naive.events) {
    if (is(naive, event, "aten::clone")) event.name = naive.texts.add("aten::view");
  }
  CHECK(grade(naive, kCopies, "0").right == true);

  CHECK(grade(recording("cpu_math"), kMatmuls, "2").right == true);
  CHECK(grade(recording("cpu_math"), kMask, "yes").right == true);
  const trace::Trace flash = recording("cpu_flash");
  CHECK(grade(flash, kMatmuls, "0").right == true);
  CHECK(grade(flash, kMask, "no").right == true);
  CHECK(grade(flash, kLongest, "aten::_scaled_dot_product_flash_attention_for_cpu").right == true);
}

TEST_CASE("A guess is of its question's kind, or a sentence says what it is not") {
  const std::vector<Question> questions = explain::questions("01_naive", true);
  const auto wrong = [&](std::size_t question, std::string_view guess) {
    return explain::check_guess(questions[question], guess).value_or("");
  };
  CHECK(wrong(0, "7").empty());
  CHECK(wrong(0, " 7 % ").empty());
  for (const char* bad : {"seven", "", "7 kernels", "nan", "inf", "1e999", "0x7"}) {
    CAPTURE(bad);
    CHECK_THAT(wrong(0, bad), ContainsSubstring("is no number"));
  }
  CHECK(wrong(2, "SOFTMAX").empty());
  CHECK(wrong(2, "5") == "'5' is none of matmul, mul, masked_fill, softmax");
  CHECK(wrong(2, "\x1b[2J") == "'\\x1b[2J' is none of matmul, mul, masked_fill, softmax");
  CHECK(wrong(3, "y").empty());
  CHECK(wrong(3, "maybe") == "'maybe' is neither yes nor no");
}

TEST_CASE("As many guesses as questions") {
  const std::vector<Question> questions = explain::questions("01_naive", true);
  const auto check = [&](std::string_view text) {
    return explain::check_guesses(questions, explain::split_guesses(text)).value_or("");
  };
  CHECK(explain::split_guesses(" 7, 1 ,softmax,no,2") ==
        std::vector<std::string>{"7", "1", "softmax", "no", "2"});
  CHECK(explain::split_guesses("  ").empty());
  CHECK(explain::split_guesses("7,").size() == 2);
  CHECK(check("7,1,softmax,no,2").empty());
  CHECK_THAT(check("7,1,softmax"), ContainsSubstring("3 guesses for 5 questions"));
  CHECK_THAT(check("7,1,softmax,no,2,9"), ContainsSubstring("6 guesses for 5 questions"));
  CHECK_THAT(check("7,1,softmax,no,"), ContainsSubstring("guess 5: '' is no number"));
}

TEST_CASE("Asking goes on until the answer is of the question's kind") {
  const std::vector<Question> questions = explain::questions("01_naive", true);
  std::istringstream in("many\n7\n1\nsoftmax\nno\r\n2\n");
  std::ostringstream out;
  const auto guesses = explain::ask(questions, in, out);
  REQUIRE(guesses);
  CHECK(*guesses == std::vector<std::string>{"7", "1", "softmax", "no", "2"});
  CHECK_THAT(out.str(), ContainsSubstring("'many' is no number") && ContainsSubstring("1 matmul") &&
                            ContainsSubstring("yes or no"));
  std::istringstream cut("7\n1\n");
  CHECK_FALSE(explain::ask(questions, cut, out));
}

TEST_CASE("Grades: what was right, what it is, where to look") {
  const trace::Trace trace = recording("naive");
  const trace::OpTree tree(trace);
  const std::vector<Question> questions = questions_of(trace);
  const std::vector<std::string> guesses{"99", "1", "masked_fill", "no", "2"};
  const std::string text = explain::graded_text(questions, tree, facts_of(tree), guesses);
  CHECK_THAT(text, ContainsSubstring("   99: no, it is " + answer(trace, kGpuOperations) + "\n") &&
                       ContainsSubstring("   Look at: facts, GPU operations") &&
                       ContainsSubstring("   masked_fill: right, aten::masked_fill\n") &&
                       ContainsSubstring("4 of 5 right\n"));
}
