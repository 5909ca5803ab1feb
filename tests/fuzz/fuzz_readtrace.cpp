// SPDX-License-Identifier: Apache-2.0
//
// The fuzz target: the first byte of an input chooses a command of readtrace, the rest is the file.
// Nothing that a file holds may crash, hang, leak or use more memory than the file's size allows.
// What a command refuses with one of its own exceptions is fine.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/about.h"
#include "explain/diff.h"
#include "explain/execution_trace.h"
#include "explain/facts.h"
#include "explain/figure.h"
#include "explain/finding.h"
#include "explain/forwards.h"
#include "explain/health.h"
#include "explain/kernels.h"
#include "explain/op_graph.h"
#include "explain/op_graph_svg.h"
#include "explain/op_graph_text.h"
#include "explain/op_tree_text.h"
#include "explain/plot.h"
#include "explain/quiz.h"
#include "explain/steps.h"
#include "explain/structure.h"
#include "explain/sweep_file.h"
#include "trace/batches.h"
#include "trace/key_averages.h"
#include "trace/merge.h"
#include "trace/reader.h"
#include "trace/stream_overlaps.h"
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

void health(std::string_view text) {
  (void)explain::to_text(explain::health(trace::read_text(text), 3));
}

void clipped(std::string_view text) {
  trace::Trace trace = trace::read_text(text);
  (void)trace::clip_overlaps(trace);
  (void)trace::key_averages(trace).table();
}

// The file and its second half, which most of the time is a damaged file.
void diff(std::string_view text) {
  const trace::Trace first = trace::read_text(text);
  const trace::Trace second = trace::read_text("[" + std::string(text.substr(text.size() / 2)));
  const trace::OpTree a(first), b(second);
  const explain::DiffBasis basis = explain::diff_basis(a, b, explain::Basis::recording, "");
  (void)to_text(explain::diff(a, b, basis), {.all = true});
  (void)to_text(explain::diff(a, a, explain::diff_basis(a, a, std::nullopt, "")),
                {.format = explain::DiffFormat::markdown});
  (void)to_text(explain::structure_diff(a, b, basis), {});
}

void graph(std::string_view text) {
  const explain::OpGraph graph = explain::op_graph(explain::parse_execution_trace(text), {});
  (void)explain::op_graph_dot(graph);
  (void)explain::op_graph_svg(graph);
}

void plot(std::string_view text) {
  const explain::Sweep sweep = explain::parse_sweep(text);
  for (const explain::SweepQuantity& quantity : sweep.quantities) {
    (void)explain::plot_svg(sweep, {.quantity = quantity.key});
    (void)explain::plot_svg(sweep, {.quantity = quantity.key, .is_linear = true, .width = 300});
  }
  (void)explain::parse_sweep(explain::to_json(sweep));
}

void merge(std::string_view text) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const std::string pid = std::to_string(::getpid());
  const std::filesystem::path a = folder / ("fuzz_rank0_" + pid + ".json"),
                              b = folder / ("fuzz_rank1_" + pid + ".json"),
                              out = folder / ("fuzz_merged_" + pid + ".json");
  std::ofstream(a, std::ios::binary) << text;
  std::ofstream(b, std::ios::binary) << text.substr(text.size() / 3);
  for (const trace::Align align : {trace::Align::clock, trace::Align::collective}) {
    try {
      (void)trace::merge({a, b}, out, align);
      (void)trace::key_averages(trace::read(out)).table();
    } catch (const trace::MergeError&) {
    } catch (const trace::ReadError&) {
    }
  }
}

using Command = void (*)(std::string_view);
constexpr Command kCommands[] = {table,  small_batches, kernels, tree,  explained, quiz, figure,
                                 health, clipped,       diff,    graph, merge,     plot};

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
