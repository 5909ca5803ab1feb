// SPDX-License-Identifier: Apache-2.0
//
// The fuzz target: the first byte of an input chooses a command of readtrace, the rest is the file.
// Nothing that a file holds may crash, hang, leak or use more memory than the file's size allows.
// What a command refuses with one of its own exceptions is fine.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "explain/about.h"
#include "explain/facts.h"
#include "explain/figure.h"
#include "explain/finding.h"
#include "explain/forwards.h"
#include "explain/kernels.h"
#include "explain/op_tree_text.h"
#include "explain/quiz.h"
#include "explain/steps.h"
#include "trace/batches.h"
#include "trace/key_averages.h"
#include "trace/reader.h"
#include "trace/table_formats.h"
#include "trace/tree.h"

namespace {

void table(std::string_view text) {
  const trace::Averages averages = trace::key_averages(
      trace::read_text(text), {.group_by_input_shape = true, .graph_kernels_to_launch = true});
  (void)averages.table({.sort_by = "cuda_time_total"});
  (void)trace::csv(averages);
  (void)trace::json(averages);
  (void)trace::markdown(averages, {.sort_by = "count", .row_limit = 3});
}

// Batches of a few bytes take every path between two batches.
void small_batches(std::string_view text) {
  (void)trace::key_averages(trace::read_in_batches(trace::Input(text), 61)).table();
}

void kernels(std::string_view text) {
  (void)explain::to_text(explain::kernels(trace::read_text(text)));
}

void tree(std::string_view text) {
  const trace::Trace trace = trace::read_text(text);
  (void)explain::op_tree_text(trace::OpTree(trace), {});
}

void explained(std::string_view text) {
  const trace::Trace trace = trace::read_text(text);
  const trace::OpTree tree(trace);
  const explain::Facts facts = explain::facts(tree, explain::forward_label(tree));
  (void)(explain::about(trace) + explain::to_text(facts) +
         explain::to_text(explain::findings(tree, facts)) + explain::no_forward_text(tree, ""));
}

void quiz(std::string_view text) {
  const trace::Trace trace = trace::read_text(text);
  const trace::OpTree tree(trace);
  const explain::Facts facts = explain::facts(tree, explain::forward_label(tree));
  for (const char* chapter : {"01_naive", "02_inplace", "03_sdpa", "04_kernels"}) {
    for (const explain::Question& question : explain::questions(chapter, facts.on_gpu))
      (void)explain::grade(question, tree, facts, "1");
  }
}

void figure(std::string_view text) {
  const trace::Trace trace = trace::read_text(text);
  (void)explain::figure(trace, {});
  (void)explain::figure(trace, {.from_us = 0, .to_us = 50, .width = 300});
}

using Command = void (*)(std::string_view);
constexpr Command kCommands[] = {table, small_batches, kernels, tree, explained, quiz, figure};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // A copy of its own, so that AddressSanitizer sees every byte read beyond it.
  const std::vector<char> file(data + 1, data + size);
  try {
    kCommands[data[0] % std::size(kCommands)]({file.data(), file.size()});
  } catch (const trace::ReadError&) {
  } catch (const trace::TableError&) {
  } catch (const explain::RangeError&) {
  }
  return 0;
}
