// SPDX-License-Identifier: Apache-2.0
//
// torch.profiler.profile for C++: the same schedule, the same marks and metadata in the trace, the
// same table. What is recorded is written by LibTorch (Kineto) and read back, so that the table of
// a live run is the table of the file.
//
//   prof::Profiler profiler({.schedule = prof::Schedule{.wait = 1, .warmup = 1, .active = 3}});
//   for (int i = 0; i < 5; ++i) { attention(q, k, v); profiler.step(); }
//   std::cout << trace::key_averages(profiler.stop()).table({.sort_by = "cuda_time_total"});
//
// A Profiler records from its construction to stop(), on the thread that made it, and one at a time
// in a process. Ops of other threads appear only where LibTorch carries its thread-local state
// along (at::parallel_for, backward). LibTorch gives C++ programs no Python stacks: there is no
// with_stack. Errors are prof::Error with a sentence that says what to do; the destructor never
// throws.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "profiler/error.h"
#include "profiler/record_function.h"
#include "profiler/schedule.h"
#include "trace/trace.h"

namespace prof {

enum class Activity { cpu, cuda };

class Profiler;

struct ProfilerOptions {
  // Without a schedule everything is recorded, and there are no ProfilerStep#N marks.
  std::optional<Schedule> schedule{};
  // Empty = CPU, and CUDA where LibTorch can use a GPU. Activity::cuda by name is an error without.
  std::set<Activity> activities{};
  bool record_shapes = false;   // `Input Dims` of every op; costs CPU time and holds on to tensors
  bool profile_memory = false;  // [memory] records: allocations and frees
  bool with_flops = false;      // turns record_shapes on: FLOPs are computed from the shapes
  // Called at the end of each cycle; Profiler::trace() then is that cycle's.
  std::function<void(Profiler&)> on_trace_ready{};
  // Goes into the head of each trace file: text or a whole number under a name of your own. Kineto
  // writes no escapes, so quotes, backslashes and control characters become ', / and blanks.
  std::map<std::string, std::variant<std::string, std::int64_t>> metadata{};
};

class Profiler {
 public:
  explicit Profiler(ProfilerOptions options = {});
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Ends the current step and begins the next one: call it at the end of each iteration.
  void step();

  // Ends the recording and returns the last complete cycle, as trace() does. A second call returns
  // the same trace. Throws where the schedule had recorded nothing by then.
  const trace::Trace& stop();

  // The last recorded cycle. Throws where there is none yet.
  [[nodiscard]] const trace::Trace& trace() const;

  // Writes the last recorded cycle: gzip where the name ends in .gz. The file is there whole or not
  // at all. May be called more than once.
  void export_chrome_trace(const std::filesystem::path& path) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace prof
