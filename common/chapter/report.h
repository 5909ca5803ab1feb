// SPDX-License-Identifier: Apache-2.0
//
// What a chapter prints and writes around its profiled steps: the line of facts about the machine
// above the table, the table, the files, and the facts below it.
//
//   prof::Profiler profiler(chapter::profiler_options(options, error, peak));
//   chapter::show(options, chapter::finish(options, profiler, "attn_fwd", forward));
//   explain::Sweep sweep = chapter::new_sweep(options, "one step", "S");  // of several sizes
//   sweep.quantities = {{"peak", "peak of a step", "bytes", chapter::memory_limit(options)}};
//   sweep.rows.push_back({"naive", 512, {91226112.0}});
//   chapter::show(options, sweep);
//   return chapter::run(argc, argv, kChapter, [](const chapter::Options&) {});
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "chapter/inputs.h"
#include "chapter/options.h"
#include "explain/facts.h"
#include "explain/sweep_file.h"
#include "profiler/profiler.h"
#include "trace/key_averages.h"

namespace chapter {

// Reads the options, prints what machine and shape this is, calls `body`, and turns what it throws
// into one line on stderr and an exit code: 0 done, 1 wrong result or failure, 2 bad usage.
[[nodiscard]] int run(int argc, const char* const* argv, const Info& info,
                      const std::function<void(const Options&)>& body);

// The profiler as the command line asks for it. The error and `peak_memory` (bytes, of one forward)
// go into the trace's metadata, beside shape, dtype and versions, so that the file alone gives all
// facts.
[[nodiscard]] prof::ProfilerOptions profiler_options(const Options& options, const Error& error,
                                                     std::int64_t peak_memory);

// What a profiled run left behind: the files are written, nothing is printed yet.
struct Recording {
  trace::Averages averages;
  std::string table;  // PyTorch's, as the options ask for it
  std::filesystem::path table_file, trace_file;
  std::filesystem::path graph_file;  // "" where --graph was not asked for
  explain::Facts facts;
  std::string findings;
  std::string grades;  // of the guesses, "" where nobody guessed
};

// Stops the profiler, writes trace and table under options.out, and works out the facts about the
// forwards marked `label`. For --graph it calls `forward` once more, when all is recorded.
[[nodiscard]] Recording finish(const Options& options, prof::Profiler& profiler,
                               const std::string& label, const std::function<void()>& forward);

// Prints the table (a short form where the terminal is too narrow), the files' names, facts and
// findings.
void show(const Options& options, const Recording& recording);

// A sweep of this chapter on this machine, still without quantities and rows. `x` is the letter
// that is swept, so the shape is noted without it.
[[nodiscard]] explain::Sweep new_sweep(const Options& options, const std::string& title,
                                       const std::string& x);

// For quantities in bytes; nullopt where the system does not say.
[[nodiscard]] std::optional<explain::SweepLimit> memory_limit(const Options& options);

// Writes the sweep under options.out, and the plot of its first quantity, and prints their names.
void show(const Options& options, const explain::Sweep& sweep);

}  // namespace chapter
