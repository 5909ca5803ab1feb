// SPDX-License-Identifier: Apache-2.0
#include "explain/launches.h"

#include <algorithm>
#include <tuple>

#include "trace/tree.h"

namespace explain {

bool is_call(trace::Category category) {
  return category == trace::Category::cuda_runtime || category == trace::Category::cuda_driver;
}

Launches::Launches(const trace::Trace& trace) : trace_(&trace), processes_(trace) {
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    const trace::Event& event = trace.events[i];
    if (event.correlation == 0) continue;  // the file gives none
    // A runtime call may make a driver call with the same id: the outer one, written first, counts.
    if (is_call(event.category)) call_of_.try_emplace(id_of(i), i);
    if (trace::is_gpu_operation(event.category)) operations_.push_back(i);
  }
  std::sort(operations_.begin(), operations_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(id_of(a), trace.events[a].start_ns, a) <
           std::tuple(id_of(b), trace.events[b].start_ns, b);
  });
}

std::uint32_t Launches::call_of(std::uint32_t operation) const {
  const auto found = call_of_.find(id_of(operation));
  return found == call_of_.end() ? trace::kNoEvent : found->second;
}

std::span<const std::uint32_t> Launches::operations(std::uint32_t call) const {
  const Id id = id_of(call);
  const auto found = call_of_.find(id);
  if (found == call_of_.end() || found->second != call) return {};
  const auto first = std::partition_point(operations_.begin(), operations_.end(),
                                          [&](std::uint32_t op) { return id_of(op) < id; });
  const auto last = std::partition_point(first, operations_.end(),
                                         [&](std::uint32_t op) { return id_of(op) == id; });
  return {first, last};
}

}  // namespace explain
