// SPDX-License-Identifier: Apache-2.0
//
// What one forward did, counted in the trace: the lines that a chapter prints under its table. Each
// is worked out from the events alone, so the same file gives the same facts on any machine.
//
//   trace::OpTree tree(trace);
//   explain::Facts facts = explain::facts(tree, "attn_fwd");
//   std::cout << explain::to_text(facts);
//
// A *forward* is one event of the annotation `label`. A GPU operation belongs to the forward in
// which the CPU launched it, wherever the device ran it. Terms: docs/glossary.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/tree.h"

namespace explain {

// How often something happens per forward. Forwards of one run normally agree; where they do not,
// that is a finding of its own.
struct PerForward {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

// Copies of one kind: same name, size and chain of ops.
struct Copy {
  std::string name;        // "Memcpy DtoD (Device -> Device)", a kernel's; on the CPU the op's
  std::int64_t bytes = 0;  // of one copy; 0 where the file does not say
  double time_us = 0;      // of one copy, on average
  std::int64_t count = 0;  // in all forwards
  std::vector<std::string> chain;  // the ops that it was made in, innermost first
};

struct Facts {
  std::string label;
  std::int64_t forwards = 0;
  bool on_gpu = false;        // the recording holds GPU operations of these forwards
  PerForward ops;             // cpu_op events
  PerForward gpu_operations;  // kernels, memcpys and memsets together
  PerForward kernels, memcpys, memsets;
  double cpu_time_us = 0;            // of one forward, on average, by the annotation's own clock
  double cuda_time_us = 0;           // sum over a forward's GPU operations, on average
  std::optional<double> idle_share;  // 1 - busy / (first start to last end) over the active steps
  std::int64_t bytes_copied = 0;     // by the device's memcpys of all forwards
  std::int64_t unattributed = 0;     // GPU operations launched before the recording, or by no op
  std::optional<std::int64_t> peak_memory;  // bytes, from the file's `peak_memory_bytes`
  std::string relative_error;       // against float64, as the chapter wrote it; "" where it did not
  std::optional<double> occupancy;  // of the kernel that takes most time: resident / possible warps
  std::vector<Copy> copies;         // what takes most time first
};

// The most memory that a forward used beyond its inputs, as the run wrote it into the file.
[[nodiscard]] std::optional<std::int64_t> peak_memory(const trace::Trace& trace);

[[nodiscard]] Facts facts(const trace::OpTree& tree, std::string_view label);

// One fact a line, each with a newline.
[[nodiscard]] std::string to_text(const Facts& facts);

}  // namespace explain
