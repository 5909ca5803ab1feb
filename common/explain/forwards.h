// SPDX-License-Identifier: Apache-2.0
//
// The forwards of a trace and what belongs to each: the ops called inside its annotation, and the
// GPU operations that were launched there, wherever the device ran them.
//
//   const explain::Forwards forwards(tree, "attn_fwd");   // keeps a reference to the tree
//   for (const explain::Forward& forward : forwards.all())
//     for (std::uint32_t event : forward.gpu_operations) ... forwards.chain(event) ...
//
// Events are named by their index in Trace::events.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explain/launches.h"
#include "trace/tree.h"

namespace explain {

struct Forward {
  std::uint32_t annotation = trace::kNoEvent;
  std::vector<std::uint32_t> ops;             // cpu_op events, in order of start
  std::vector<std::uint32_t> gpu_operations;  // in order of start on the device
};

// The stretch between the end of all earlier GPU operations and the start of the next one.
struct Gap {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t next = trace::kNoEvent;  // the operation that ends it

  [[nodiscard]] double us() const { return static_cast<double>(end_ns - start_ns) / 1000; }
};

// How a device spent the time from the first start to the last end. Streams overlap, so busy time
// is the union of the operations, not their sum.
struct Busy {
  std::vector<Gap> gaps;  // in order of time
  double busy_us = 0;
  double whole_us = 0;
};
// `operations` in order of start; those without a time are passed over.
[[nodiscard]] Busy busy(const trace::Trace& trace, std::span<const std::uint32_t> operations);

class Forwards {
 public:
  Forwards(const trace::OpTree& tree, std::string_view label);

  [[nodiscard]] std::span<const Forward> all() const { return forwards_; }
  [[nodiscard]] bool empty() const { return forwards_.empty(); }

  // GPU operations launched while a step of the profiler ran, by any thread (a backward pass has
  // its own); in a forward where the file has no steps. What the idle share is about, in order of
  // start.
  [[nodiscard]] std::span<const std::uint32_t> active() const { return active_; }

  // The runtime or driver call that launched a GPU operation; kNoEvent where the file has none.
  [[nodiscard]] std::uint32_t call_of(std::uint32_t gpu_operation) const {
    return launches_.call_of(gpu_operation);
  }

  // The ops around an event (for a GPU operation: around its launch) up to the forward, innermost
  // first. An op's chain does not hold the op itself.
  [[nodiscard]] std::vector<std::uint32_t> ops_around(std::uint32_t event) const;
  // The same as text: "aten::copy_ < aten::clone < aten::masked_fill", "no op" for none.
  [[nodiscard]] std::string chain(std::uint32_t event) const;

 private:
  [[nodiscard]] bool is_forward(std::uint32_t event) const;
  [[nodiscard]] std::uint32_t place_of(std::uint32_t event) const;

  const trace::OpTree& tree_;
  std::string label_;
  Launches launches_;
  std::vector<Forward> forwards_;
  std::vector<std::uint32_t> active_;
};

// The annotation that marks the forwards of a file that does not say so: the innermost one that
// repeats under the profiler's steps; of several the one named forward. "" where none is it.
[[nodiscard]] std::string forward_label(const trace::OpTree& tree);

// Why there is no forward marked `label` ("": none was found), and which annotations could be named
// instead. One sentence, safe for a terminal.
[[nodiscard]] std::string no_forward_text(const trace::OpTree& tree, std::string_view label);

}  // namespace explain
