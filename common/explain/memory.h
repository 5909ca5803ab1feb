// SPDX-License-Identifier: Apache-2.0
//
// Where the memory of a step goes, from a recording with profile_memory alone: how many bytes were
// allocated when, what was alive at the peak, which op had allocated it and which one let it go.
//
//   const trace::OpTree tree(trace);
//   const explain::MemoryTimeline memory = explain::memory_timeline(tree, std::nullopt);
//   std::cout << explain::to_text(tree, memory);       // the peak, and what was alive there
//
// A [memory] record is an allocation or a free; a free belongs to the last allocation at its
// address. On a CPU bytes are what was asked for, on CUDA the allocator's blocks, which are larger.
//
// Categories, by the *phase* that a block is made in: the innermost annotation forward, loss,
// backward, recompute (a forward inside of backward), optimizer or Optimizer.step#..., prefill or
// decode of a generation, cache inside of these, else the step. Phases go by time, since a backward
// pass on CUDA has a thread of its own.
//   temporary         gone before its phase ends
//   activation        made in forward, loss or recompute, and alive when that ends
//   gradient          made in backward and alive after it
//   optimizer state   made in the optimizer and alive after it
//   cache             made in cache and alive after it
//   other             outside of all phases, or allocated before the recording
// What a program holds all the while it says in the metadata, in bytes: held_weight_bytes,
// held_input_bytes, held_optimizer_state_bytes and held_cache_bytes. On CUDA the rest of what had
// been allocated before is other; on a CPU the file does not have it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/tree.h"

namespace explain {

// In the order in which a figure stacks them: what stays longest is at the bottom.
enum class MemoryCategory : std::uint8_t {
  weight,
  optimizer_state,
  input,
  cache,
  other,
  activation,
  gradient,
  temporary,
};
inline constexpr std::size_t kMemoryCategories = 8;
[[nodiscard]] std::string_view to_string(MemoryCategory category);

using BytesByCategory = std::array<std::int64_t, kMemoryCategories>;
[[nodiscard]] std::int64_t total(const BytesByCategory& bytes);

// Allocated at from_ns, freed at to_ns; the least and the greatest time there is where that was
// before or after the recording.
struct MemoryBlock {
  std::int64_t bytes = 0;
  std::int64_t from_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t to_ns = std::numeric_limits<std::int64_t>::max();
  std::uint32_t allocated_in = trace::kNoEvent;  // the innermost CPU event around
  std::uint32_t freed_in = trace::kNoEvent;
  MemoryCategory category = MemoryCategory::other;
};

enum class PhaseKind : std::uint8_t { step, forward, backward, optimizer, generation, cache };

struct MemoryPhase {
  std::int64_t from_ns = 0, to_ns = 0;
  std::uint32_t event = trace::kNoEvent;
  PhaseKind kind = PhaseKind::step;
};

// What is allocated from time_ns on.
struct MemoryPoint {
  std::int64_t time_ns = 0;
  BytesByCategory bytes{};
};

struct MemoryTimeline {
  std::string title;                    // "ProfilerStep#2, CPU"
  std::int64_t from_ns = 0, to_ns = 0;  // of the step
  bool is_whole = false;   // also what had been allocated before is in it: known on CUDA, or said
  BytesByCategory held{};  // all the while, not in `blocks`
  std::vector<MemoryBlock> blocks;  // of the whole recording, in order of allocation
  std::vector<MemoryPhase> phases;  // of the step, in order of start; without it and cache
  std::vector<MemoryPoint> curve;   // of the step, in order of time; the first one is its start
  std::size_t peak = 0;             // index into `curve`
  std::optional<std::size_t> peak_block;  // index into `blocks`: the allocation that made the peak
  std::int64_t unpaired = 0;  // records without an address, or whose block is allocated twice
};

// Whether the recording holds allocations or frees.
[[nodiscard]] bool has_memory(const trace::Trace& trace);

// Of ProfilerStep#`step`; by default the first step, or all of a recording without steps. On the
// first device that is no CPU, else on the CPU. Throws RangeError where the trace has no such step
// or no memory records. Time: n log n in events and records.
[[nodiscard]] MemoryTimeline memory_timeline(const trace::OpTree& tree,
                                             std::optional<std::int64_t> step);

// The blocks alive at a time, largest first.
[[nodiscard]] std::vector<std::size_t> alive_at(const MemoryTimeline& memory, std::int64_t time_ns);

// The ops around an event, innermost first, up to the first annotation: "aten::_softmax <
// aten::softmax < forward". "no op" for kNoEvent.
[[nodiscard]] std::string memory_chain(const trace::OpTree& tree, std::uint32_t event);

// The node of the backward graph in which a block was freed, and that had kept it until then:
// "SoftmaxBackward0"; "" where none had.
[[nodiscard]] std::string kept_by(const trace::OpTree& tree, const MemoryBlock& block);

// The peak, the op that made it, and what was alive there by category and by op, a line each with
// its end. Safe for a terminal.
[[nodiscard]] std::string to_text(const trace::OpTree& tree, const MemoryTimeline& memory);

}  // namespace explain
