// SPDX-License-Identifier: Apache-2.0
//
// What a chapter prints and writes around its profiled steps: the line of facts about the machine
// above the table, the table, the files, and the facts below it.
//
//   return chapter::run(argc, argv, kChapter, [](const chapter::Options& options) { ... });
//   prof::Profiler profiler(chapter::profiler_options(options, peak));
//   const trace::OpTree tree = chapter::report(options, profiler, "attn_fwd");
#pragma once

#include <functional>

#include "chapter/options.h"
#include "explain/facts.h"
#include "profiler/profiler.h"

namespace chapter {

// Reads the options, prints what machine and shape this is, calls `body`, and turns what it throws
// into one line on stderr and an exit code: 0 done, 1 wrong result or failure, 2 bad usage.
[[nodiscard]] int run(int argc, const char* const* argv, const Info& info,
                      const std::function<void(const Options&)>& body);

// The profiler as the command line asks for it. `peak_memory` (bytes, of one forward) goes into the
// trace's metadata, beside shape, dtype and versions, so that the file alone gives all facts.
[[nodiscard]] prof::ProfilerOptions profiler_options(const Options& options,
                                                     std::int64_t peak_memory);

// Stops the profiler, prints the table, writes trace and table under options.out, prints the facts
// about the forwards marked `label`, and returns them for the chapter's own finding.
explain::Facts report(const Options& options, prof::Profiler& profiler, const std::string& label);

}  // namespace chapter
