// SPDX-License-Identifier: Apache-2.0
//
// Which runtime call launched which GPU operation, told by the correlation id that both carry.
// Events are named by their index in Trace::events.
//
//   explain::Launches launches(trace);
//   std::uint32_t call = launches.call_of(kernel);           // trace::kNoEvent: not in the file
//   for (std::uint32_t operation : launches.operations(call)) ...
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

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
  const trace::Trace* trace_;
  std::unordered_map<std::int64_t, std::uint32_t> call_of_;  // by correlation
  std::vector<std::uint32_t> operations_;                    // by correlation, then start
};

// True for a call into the CUDA (or HIP) runtime or driver.
[[nodiscard]] bool is_call(trace::Category category);

}  // namespace explain
