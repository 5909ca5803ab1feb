// SPDX-License-Identifier: Apache-2.0
//
// Which runtime call launched which GPU operation, told by the correlation id that both carry (in a
// file of several processes: the calls of its own).
// Events are named by their index in Trace::events.
//
//   explain::Launches launches(trace);
//   std::uint32_t call = launches.call_of(kernel);           // trace::kNoEvent: not in the file
//   for (std::uint32_t operation : launches.operations(call)) ...
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "trace/processes.h"
#include "trace/trace.h"

namespace explain {

class Launches {
 public:
  explicit Launches(const trace::Trace& trace);

  // The call that launched a GPU operation.
  [[nodiscard]] std::uint32_t call_of(std::uint32_t operation) const;

  // False for a recording of the GPU alone.
  [[nodiscard]] bool has_calls() const { return !call_of_.empty(); }

  // What a call launched, in order of start. A CUDA graph's launch has many, most calls have none.
  [[nodiscard]] std::span<const std::uint32_t> operations(std::uint32_t call) const;

 private:
  struct Id {
    std::uint32_t process;
    std::int64_t correlation;

    friend auto operator<=>(const Id&, const Id&) = default;
  };
  struct Hash {
    std::size_t operator()(const Id& id) const {
      return std::hash<std::int64_t>()(id.correlation) + id.process;
    }
  };
  [[nodiscard]] Id id_of(std::uint32_t event) const {
    return {processes_.of(event), trace_->events[event].correlation};
  }

  const trace::Trace* trace_;
  trace::Processes processes_;
  std::unordered_map<Id, std::uint32_t, Hash> call_of_;
  std::vector<std::uint32_t> operations_;  // by id, then start
};

// True for a call into the CUDA (or HIP) runtime or driver.
[[nodiscard]] bool is_call(trace::Category category);

}  // namespace explain
