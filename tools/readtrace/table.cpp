// SPDX-License-Identifier: Apache-2.0
//
// readtrace table TRACE: the table that torch.profiler prints for the recording.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "commands.h"
#include "trace/key_averages.h"
#include "trace/printable.h"
#include "trace/reader.h"
#include "trace/stream_overlaps.h"
#include "trace/table_formats.h"

namespace {

struct Options {
  std::string path;
  std::string format = "torch";
  bool is_limited = false;  // --row-limit was given
  bool clip_overlaps = false;
  trace::AveragesOptions averages;
  std::string name_width = "55";
  std::string shapes_width = "80";
  std::string header;
  trace::TableOptions table;
};

std::optional<int> width(const std::string& text) {
  if (text == "none") return std::nullopt;
  return std::stoi(text);
}

std::string text_of(const trace::Averages& averages, const Options& options) {
  if (options.format == "markdown") return trace::markdown(averages, options.table);
  if (options.format == "torch") return averages.table(options.table);
  // A program wants all rows unless it says otherwise.
  trace::TableOptions table = options.table;
  if (!options.is_limited) table.row_limit = -1;
  return options.format == "csv" ? trace::csv(averages, table) : trace::json(averages, table);
}

int run(Options& options) {
  options.table.max_name_column_width = width(options.name_width);
  options.table.max_shapes_column_width = width(options.shapes_width);
  trace::check(options.table);

  trace::Trace trace = trace::read(options.path);
  if (options.clip_overlaps) trace::clip_overlaps(trace);
  print_warnings(trace);
  const trace::Averages averages = trace::key_averages(trace, options.averages);
  const std::string text = text_of(averages, options);
  if (averages.rows.empty())
    std::cerr << "readtrace: no table: " << trace::printable(options.path)
              << " holds no ops, calls or kernels\n";
  if (!print(text)) return kFailed;
  return done(trace);
}

}  // namespace

void add_table(CLI::App& app, std::function<int()>& command) {
  // Shared with the callback below, which outlives this function.
  const auto options = std::make_shared<Options>();
  CLI::App* table = app.add_subcommand(
      "table",
      "Print the table of torch.profiler 2.11: key_averages().table(), byte for byte.\n"
      "Control characters in names come out as \\xNN.");
  table
      ->add_option("--format", options->format,
                   "torch; markdown: its columns as a GitHub table; csv, json: every attribute "
                   "with its unit in its name, all rows unless --row-limit is given")
      ->check(CLI::IsMember({"torch", "csv", "json", "markdown"}))
      ->capture_default_str();
  const CLI::Validator is_width = CLI::Range(0, 1'000'000) | CLI::IsMember({"none"});
  table->add_option("TRACE", options->path, "trace file, plain or gzip; - is standard input")
      ->required();
  table->add_option("--sort-by", options->table.sort_by,
                    "attribute, largest first, e.g. cuda_time_total, self_cpu_time_total, count; "
                    "without it rows come in order of first appearance");
  CLI::Option* limit =
      table->add_option("--row-limit", options->table.row_limit, "rows to print, -1 for all")
          ->capture_default_str();
  table->add_flag("--group-by-input-shape", options->averages.group_by_input_shape,
                  "one row per name and input shapes");
  table->add_flag("--graph-kernels-to-launch", options->averages.graph_kernels_to_launch,
                  "count a CUDA graph's kernels for the call that launched it and the ops around "
                  "it; torch counts them for nobody");
  table->add_option("--max-name-column-width", options->name_width, "characters, or none")
      ->check(is_width)
      ->capture_default_str();
  table->add_option("--max-shapes-column-width", options->shapes_width, "characters, or none")
      ->check(is_width)
      ->capture_default_str();
  table->add_flag("--top-level-events-only", options->table.top_level_events_only,
                  "only rows whose first call has no op around it");
  table->add_option("--time-unit", options->table.time_unit, "one unit for all times")
      ->check(CLI::IsMember({"s", "ms", "us"}));
  table->add_flag("--clip-overlaps", options->clip_overlaps,
                  "end a GPU operation where the next one on its stream begins: for files whose "
                  "durations are wrong (readtrace health says so)");
  CLI::Option* header = table->add_option("--header", options->header, "a line above the table");
  table->callback([options, table, header, limit, &command] {
    const bool is_for_programs = options->format == "csv" || options->format == "json";
    for (const char* name :
         {"--time-unit", "--header", "--max-name-column-width", "--max-shapes-column-width"}) {
      if (is_for_programs && table->get_option(name)->count() > 0) {
        throw CLI::ValidationError(name, "is for the formats torch and markdown: in " +
                                             options->format +
                                             " times are in us and names are whole");
      }
    }
    options->is_limited = limit->count() > 0;
    if (header->count() > 0) options->table.header = options->header;
    command = [options] { return run(*options); };
  });
}
