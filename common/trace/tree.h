// SPDX-License-Identifier: Apache-2.0
//
// Which op called which, and which op launched which GPU operation: PyTorch's rules, so that self
// times and totals are those of torch.profiler's table. Events are named by their index in
// Trace::events.
//
//   trace::OpTree tree(trace);                      // keeps a reference: the trace must live on
//   for (std::uint32_t event : tree.order())        // table order: start, then longer first
//     if (tree.parent(event) == trace::kNoEvent) std::cout << tree.name(event);  // a root
//
// The rules, in the order in which they apply:
// - Every complete event is in the tree except Python functions, the span of the recording and the
//   few bookkeeping ops that PyTorch leaves out of its tables.
// - On one thread the innermost event that contains another one whole is its parent. An event that
//   overlaps another one only in part is not its child.
// - Runtime calls nest in the op that they belong to by `External id`; those of no op nest on the
//   thread that stopped the profiler. Collectives, which end on other threads, and what had
//   not ended when the profiler stopped are outside the tree.
// - An only child with the name of its parent is merged into it and is no longer in order().
// - In a file of several processes an id joins events of one process only (processes.h).
//
// Time is linear but for one sort; memory is 24 bytes per event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/processes.h"
#include "trace/trace.h"

namespace trace {

inline constexpr std::uint32_t kNoEvent = std::numeric_limits<std::uint32_t>::max();

struct OpTreeOptions {
  // Kernels of a CUDA graph have no `External id`, so in PyTorch's table they are nobody's. True:
  // they count for the call that launched the graph, and so for the ops around it.
  bool graph_kernels_to_launch = false;
};

class OpTree {
 public:
  explicit OpTree(const Trace& trace, OpTreeOptions options = {});
  explicit OpTree(Trace&& trace, OpTreeOptions options = {}) = delete;

  [[nodiscard]] const Trace& trace() const { return *trace_; }

  // The events of the table, CPU and device, in PyTorch's order.
  [[nodiscard]] std::span<const std::uint32_t> order() const { return order_; }

  // The op around a CPU event, kNoEvent for roots, device events and what is not in the tree.
  [[nodiscard]] std::uint32_t parent(std::uint32_t event) const { return parent_[event]; }

  // What an event called directly, in order of start.
  [[nodiscard]] std::span<const std::uint32_t> children(std::uint32_t event) const {
    return {child_list_.data() + child_begin_[event], child_list_.data() + child_begin_[event + 1]};
  }

  // The GPU operations that count for an op itself (its children's are theirs), in order of start.
  [[nodiscard]] std::span<const std::uint32_t> kernels(std::uint32_t event) const {
    return kernels_of_group(kernel_group(event));
  }
  // Ops of one `External id` have the same GPU operations: what is worked out from these needs no
  // more than one pass over the groups. Group 0 is empty.
  [[nodiscard]] std::uint32_t kernel_group(std::uint32_t event) const {
    return kernel_group_[event];
  }
  [[nodiscard]] std::size_t kernel_group_count() const { return group_begin_.size() - 1; }
  [[nodiscard]] std::span<const std::uint32_t> kernels_of_group(std::size_t group) const {
    return {kernel_list_.data() + group_begin_[group],
            kernel_list_.data() + group_begin_[group + 1]};
  }

  // The op that launched a device event, kNoEvent where the file names none (launched before the
  // recording began, by a CUDA graph, or outside every op).
  [[nodiscard]] std::uint32_t launcher(std::uint32_t event) const { return launcher_[event]; }

  // The name as the table prints it: demangled, steps as "ProfilerStep*".
  [[nodiscard]] std::string_view name(std::uint32_t event) const {
    return names_[name_of_[trace_->events[event].name]];
  }
  // The same number for events of the same name; below Trace::texts.size().
  [[nodiscard]] std::uint32_t name_id(std::uint32_t event) const {
    return name_of_[trace_->events[event].name];
  }

  // True for work that ends on another thread: total time but no self time, no parent, no children.
  [[nodiscard]] bool is_async(std::uint32_t event) const;

  // Start, end and duration in us since the start of the recording: the very doubles that PyTorch
  // computes. Its sums carry their rounding, so averages match only if these do.
  [[nodiscard]] double start(std::uint32_t event) const;
  [[nodiscard]] double end(std::uint32_t event) const;
  [[nodiscard]] double elapsed(std::uint32_t event) const { return end(event) - start(event); }

  // A memory record that is a row of its own: an allocation or free inside no event, or a failed
  // allocation, which stands below `parent`.
  struct MemoryRow {
    std::uint32_t record = 0;  // index into Trace::memory
    std::uint32_t parent = kNoEvent;
  };
  // In order of time. In the table each stands behind the events that start with it.
  [[nodiscard]] std::span<const MemoryRow> memory_rows() const { return memory_rows_; }
  [[nodiscard]] double time(const MemoryRow& row) const;

  // Bytes allocated less bytes freed while a CPU event was open, by any thread of its process:
  // PyTorch's rule.
  struct Memory {
    std::int64_t cpu = 0;
    std::int64_t device = 0;

    friend Memory operator+(Memory a, Memory b);
    friend Memory operator-(Memory a, Memory b);
  };
  [[nodiscard]] Memory memory(std::uint32_t event) const;
  [[nodiscard]] static Memory memory(const MemoryRecord& record);

 private:
  void name_events();
  void sort_events();
  void find_memory_rows();
  std::vector<std::uint32_t> attribute(OpTreeOptions options);
  void nest(const std::vector<std::uint32_t>& threads);
  void attribute_overhead();
  void merge_duplicates();
  void list_children();
  [[nodiscard]] std::pair<std::size_t, std::size_t> memory_range(std::uint32_t event) const;

  [[nodiscard]] std::uint32_t process_of(const MemoryRecord& record) const {
    return processes_.of(trace_->threads[record.thread]);
  }

  const Trace* trace_;
  Processes processes_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> parent_;
  std::vector<std::uint32_t> child_begin_, child_list_;
  std::vector<std::uint32_t> kernel_group_, group_begin_, kernel_list_;
  std::vector<std::uint32_t> launcher_;
  std::vector<std::uint32_t> name_of_;  // by TextId
  std::vector<std::string> names_;
  std::vector<MemoryRow> memory_rows_;
  std::vector<std::uint32_t> memory_order_;  // allocations and frees by process, then time
  std::vector<Memory> memory_sums_;          // of the first n of them
};

}  // namespace trace
