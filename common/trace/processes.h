// SPDX-License-Identifier: Apache-2.0
//
// Which process (rank) an event belongs to, in a file that somebody made of the traces of several.
// Their ids may be the same, so an id joins two events of one process only.
//
//   const trace::Processes processes(trace);
//   if (processes.count() > 1) std::cout << "the traces of several processes in one file";
//   assert(processes.of(0) == processes.of(1));  // then the ids of events 0 and 1 may be compared
//
// A process is a pid under which ops ran. What ran on a GPU has the device for its pid: it belongs
// to the process in whose part of the file it stands, and where the parts are mixed to the only
// process that has its ids.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trace/trace.h"

namespace trace {

class Processes {
 public:
  static constexpr std::uint32_t kUnknown = static_cast<std::uint32_t>(-1);

  explicit Processes(const Trace& trace);

  [[nodiscard]] std::uint32_t count() const { return count_; }

  // 0 to count() - 1; kUnknown for an event that may belong to several. 0 where there is one only.
  [[nodiscard]] std::uint32_t of(std::uint32_t event) const { return of_.empty() ? 0 : of_[event]; }

  // The same for what is on a CPU thread.
  [[nodiscard]] std::uint32_t of(const Thread& thread) const;

 private:
  void by_place();
  void by_ids(const Trace& trace);

  std::uint32_t count_ = 0;
  std::unordered_map<TextId, std::uint32_t> process_of_pid_;
  std::vector<std::uint32_t> of_;  // by event; empty unless there are several processes
};

}  // namespace trace
