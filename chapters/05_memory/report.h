// SPDX-License-Identifier: Apache-2.0
//
// What this chapter adds to the report of every chapter: the peak and what was alive there, the
// timeline, the allocator.
//
//   prof::Profiler profiler(memory::profiler_options(options, error, measured));
//   memory::show(options, profiler.trace(), measured, [&] { step(setup); });
//   memory::or_say_what_ran_out(options, asked, [&] { record(...); });
#pragma once

#include <functional>

#include "chapter/inputs.h"
#include "choose.h"
#include "measure.h"
#include "profiler/profiler.h"
#include "trace/trace.h"

namespace memory {

// A chapter's, with the bytes that are held all the while in the metadata: a trace alone does not
// have them (explain/memory.h).
[[nodiscard]] prof::ProfilerOptions profiler_options(const chapter::Options& options,
                                                     const chapter::Error& error,
                                                     const Measured& measured);

// Prints the peak of the first recorded step and the allocator's facts, and writes the timeline
// beside the trace; on CUDA the allocator's snapshot of one more `step`, too.
void show(const chapter::Options& options, const trace::Trace& trace, const Measured& measured,
          const std::function<void()>& step);

// Calls `work`. Where memory runs out it throws std::runtime_error with a sentence that says what
// was asked for and what to try.
void or_say_what_ran_out(const chapter::Options& options, const Asked& asked,
                         const std::function<void()>& work);

}  // namespace memory
