// SPDX-License-Identifier: Apache-2.0
#include "explain/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "explain/steps.h"
#include "trace/numbers.h"
#include "trace/wrapping.h"

namespace explain {
namespace {

using trace::Category;
using trace::kNoEvent;
using trace::MemoryRecord;
using trace::wrapping_add;
using trace::wrapping_subtract;

std::size_t index(MemoryCategory category) {
  return static_cast<std::size_t>(category);
}

// Allocated before the recording began.
bool is_older(const MemoryBlock& block) {
  return block.from_ns == MemoryBlock{}.from_ns;
}

// Allocations and frees of one device, in order of time.
std::vector<MemoryRecord> records_of_device(const trace::Trace& trace) {
  if (!has_memory(trace)) {
    throw RangeError(
        "the trace has no memory records: record it with profile_memory (--profile-memory)");
  }
  const auto is_of_device = [](const MemoryRecord& record) { return record.device_type != 0; };
  std::vector<MemoryRecord> records;
  for (const MemoryRecord& record : trace.memory)
    if (!record.out_of_memory) records.push_back(record);
  const auto first = std::find_if(records.begin(), records.end(), is_of_device);
  const MemoryRecord shown = first == records.end() ? records.front() : *first;
  std::erase_if(records, [&](const MemoryRecord& record) {
    return record.device_type != shown.device_type ||
           (shown.device_type != 0 && record.device_index != shown.device_index);
  });
  std::stable_sort(
      records.begin(), records.end(),
      [](const MemoryRecord& a, const MemoryRecord& b) { return a.time_ns < b.time_ns; });
  return records;
}

// For each record the innermost CPU event of its thread that was open at its time.
std::vector<std::uint32_t> events_around(const trace::OpTree& tree,
                                         const std::vector<MemoryRecord>& records) {
  const trace::Trace& trace = tree.trace();
  std::vector<std::uint32_t> events, order(records.size()), around(records.size(), kNoEvent);
  for (const std::uint32_t event : tree.order())
    if (!trace::is_device(trace.events[event].category)) events.push_back(event);
  std::stable_sort(events.begin(), events.end(), [&](std::uint32_t a, std::uint32_t b) {
    return trace.events[a].thread < trace.events[b].thread;
  });
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return records[a].thread < records[b].thread;
  });
  std::vector<std::uint32_t> open;
  auto next = events.begin();
  for (const std::uint32_t place : order) {
    const MemoryRecord& record = records[place];
    const auto is_before = [&](const trace::Event& event) {
      return std::tie(event.thread, event.start_ns) <= std::tie(record.thread, record.time_ns);
    };
    const auto is_over = [&](const trace::Event& event) {
      return event.thread != record.thread || end_ns(event) < record.time_ns;
    };
    for (; next != events.end() && is_before(trace.events[*next]); ++next) {
      while (!open.empty() && (trace.events[open.back()].thread != trace.events[*next].thread ||
                               end_ns(trace.events[open.back()]) <= trace.events[*next].start_ns))
        open.pop_back();
      open.push_back(*next);
    }
    while (!open.empty() && is_over(trace.events[open.back()])) open.pop_back();
    if (!open.empty()) around[place] = open.back();
  }
  return around;
}

// Joins each free with the last allocation at its address.
void pair_blocks(MemoryTimeline& memory, const std::vector<MemoryRecord>& records,
                 const std::vector<std::uint32_t>& around) {
  std::unordered_map<std::int64_t, std::size_t> open;  // by address: index into blocks
  for (std::size_t i = 0; i < records.size(); ++i) {
    const MemoryRecord& record = records[i];
    if (record.bytes == 0) continue;
    if (record.address == 0) {
      ++memory.unpaired;
      continue;
    }
    const auto found = open.find(record.address);
    if (record.bytes > 0) {
      if (found != open.end()) {  // its free is not in the file: it was gone by now at the latest
        memory.blocks[found->second].to_ns = record.time_ns;
        ++memory.unpaired;
      }
      open[record.address] = memory.blocks.size();
      memory.blocks.push_back(
          {.bytes = record.bytes, .from_ns = record.time_ns, .allocated_in = around[i]});
    } else if (found != open.end()) {
      memory.blocks[found->second].to_ns = record.time_ns;
      memory.blocks[found->second].freed_in = around[i];
      open.erase(found);
    } else {  // allocated before the recording began
      memory.blocks.push_back({.bytes = wrapping_subtract(0, record.bytes),
                               .to_ns = record.time_ns,
                               .freed_in = around[i]});
    }
  }
  std::stable_sort(
      memory.blocks.begin(), memory.blocks.end(),
      [](const MemoryBlock& a, const MemoryBlock& b) { return a.from_ns < b.from_ns; });
}

std::optional<PhaseKind> phase_kind(std::string_view name) {
  if (name == "forward" || name == "loss" || name == "recompute") return PhaseKind::forward;
  if (name == "backward") return PhaseKind::backward;
  if (name == "optimizer" || name.starts_with("Optimizer.step#")) return PhaseKind::optimizer;
  if (name == "prefill" || name == "decode") return PhaseKind::generation;
  if (name == "cache") return PhaseKind::cache;
  if (name.starts_with("ProfilerStep#")) return PhaseKind::step;
  return std::nullopt;
}

// Of the whole recording, in order of start, outer ones first.
std::vector<MemoryPhase> phases_of(const trace::Trace& trace) {
  std::vector<MemoryPhase> phases;
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    const trace::Event& event = trace.events[i];
    if (event.category != Category::user_annotation) continue;
    if (const auto kind = phase_kind(trace.name(event)))
      phases.push_back({event.start_ns, end_ns(event), i, *kind});
  }
  std::stable_sort(phases.begin(), phases.end(), [](const MemoryPhase& a, const MemoryPhase& b) {
    return std::tie(a.from_ns, b.to_ns) < std::tie(b.from_ns, a.to_ns);
  });
  return phases;
}

MemoryCategory category_of(const MemoryBlock& block, const MemoryPhase& phase) {
  if (block.to_ns <= phase.to_ns) return MemoryCategory::temporary;
  switch (phase.kind) {
    case PhaseKind::forward:
      return MemoryCategory::activation;
    case PhaseKind::backward:
      return MemoryCategory::gradient;
    case PhaseKind::optimizer:
      return MemoryCategory::optimizer_state;
    case PhaseKind::cache:
      return MemoryCategory::cache;
    case PhaseKind::generation:
    case PhaseKind::step:
      break;
  }
  return MemoryCategory::other;
}

// Blocks and phases are both in order of start: one pass, with the phases that are open.
void categorise(std::vector<MemoryBlock>& blocks, const std::vector<MemoryPhase>& phases) {
  std::vector<const MemoryPhase*> open;
  auto next = phases.begin();
  for (MemoryBlock& block : blocks) {
    if (is_older(block)) continue;
    for (; next != phases.end() && next->from_ns <= block.from_ns; ++next) {
      while (!open.empty() && open.back()->to_ns <= next->from_ns) open.pop_back();
      open.push_back(&*next);
    }
    while (!open.empty() && open.back()->to_ns < block.from_ns) open.pop_back();
    if (!open.empty()) block.category = category_of(block, *open.back());
  }
}

// What the program says it holds, and on CUDA what else had been allocated.
void find_held(MemoryTimeline& memory, const trace::Trace& trace, const MemoryRecord& first) {
  const auto read = [&](MemoryCategory category, std::string_view key) {
    std::int64_t bytes = 0;
    if (!trace::parse_integer(trace.metadata_value(key), bytes)) return;
    memory.held[index(category)] = bytes;
    memory.is_whole = true;
  };
  read(MemoryCategory::weight, "held_weight_bytes");
  read(MemoryCategory::input, "held_input_bytes");
  read(MemoryCategory::optimizer_state, "held_optimizer_state_bytes");
  read(MemoryCategory::cache, "held_cache_bytes");
  if (first.device_type == 0 || first.total_allocated < 0) return;
  std::int64_t rest =
      wrapping_subtract(wrapping_subtract(first.total_allocated, first.bytes), total(memory.held));
  for (const MemoryBlock& block : memory.blocks)
    if (is_older(block)) rest = wrapping_subtract(rest, block.bytes);
  memory.held[index(MemoryCategory::other)] = std::max<std::int64_t>(rest, 0);
  memory.is_whole = true;
}

struct Change {
  std::int64_t time_ns;
  bool is_allocation;  // frees first where both have the same time
  std::size_t block;
};

void trace_curve(MemoryTimeline& memory) {
  MemoryPoint now{memory.from_ns, memory.held};
  std::vector<Change> changes;
  for (std::size_t i = 0; i < memory.blocks.size(); ++i) {
    const MemoryBlock& block = memory.blocks[i];
    if (block.to_ns <= memory.from_ns || block.from_ns > memory.to_ns) continue;
    std::int64_t& bytes = now.bytes[index(block.category)];
    if (block.from_ns <= memory.from_ns) bytes = wrapping_add(bytes, block.bytes);
    if (block.from_ns > memory.from_ns) changes.push_back({block.from_ns, true, i});
    if (block.to_ns <= memory.to_ns) changes.push_back({block.to_ns, false, i});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::tie(a.time_ns, a.is_allocation) < std::tie(b.time_ns, b.is_allocation);
  });
  memory.curve.push_back(now);
  std::int64_t most = total(now.bytes);
  for (const Change& change : changes) {
    const MemoryBlock& block = memory.blocks[change.block];
    std::int64_t& bytes = now.bytes[index(block.category)];
    bytes = change.is_allocation ? wrapping_add(bytes, block.bytes)
                                 : wrapping_subtract(bytes, block.bytes);
    now.time_ns = change.time_ns;
    memory.curve.push_back(now);
    if (total(now.bytes) <= most) continue;
    most = total(now.bytes);
    memory.peak = memory.curve.size() - 1;
    memory.peak_block = change.block;
  }
}

// The span of a step, or of the whole recording.
void find_span(MemoryTimeline& memory, const trace::Trace& trace,
               const std::vector<MemoryRecord>& records, std::optional<std::int64_t> step) {
  const MemoryRecord& first = records.front();
  const std::string device =
      first.device_type == 0 ? "CPU" : fmt::format("{} {}", trace.device_kind, first.device_index);
  const auto event = step_event(trace, step);
  memory.from_ns = event ? trace.events[*event].start_ns : first.time_ns;
  memory.to_ns = event ? end_ns(trace.events[*event]) : records.back().time_ns;
  memory.title = fmt::format(
      "{}, {}", event ? trace.name(trace.events[*event]) : "the whole recording", device);
}

}  // namespace

std::string_view to_string(MemoryCategory category) {
  constexpr std::array<std::string_view, kMemoryCategories> kNames = {
      "weight", "optimizer state", "input",    "cache",
      "other",  "activation",      "gradient", "temporary"};
  return kNames[index(category)];
}

std::int64_t total(const BytesByCategory& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}, wrapping_add);
}

bool has_memory(const trace::Trace& trace) {
  return std::any_of(trace.memory.begin(), trace.memory.end(),
                     [](const MemoryRecord& record) { return !record.out_of_memory; });
}

MemoryTimeline memory_timeline(const trace::OpTree& tree, std::optional<std::int64_t> step) {
  const trace::Trace& trace = tree.trace();
  const std::vector<MemoryRecord> records = records_of_device(trace);
  MemoryTimeline memory;
  find_span(memory, trace, records, step);
  pair_blocks(memory, records, events_around(tree, records));
  memory.phases = phases_of(trace);
  categorise(memory.blocks, memory.phases);
  std::erase_if(memory.phases, [&](const MemoryPhase& phase) {
    return phase.kind == PhaseKind::step || phase.kind == PhaseKind::cache ||
           phase.to_ns <= memory.from_ns || phase.from_ns >= memory.to_ns;
  });
  find_held(memory, trace, records.front());
  trace_curve(memory);
  return memory;
}

std::vector<std::size_t> alive_at(const MemoryTimeline& memory, std::int64_t time_ns) {
  std::vector<std::size_t> alive;
  for (std::size_t i = 0; i < memory.blocks.size(); ++i) {
    const MemoryBlock& block = memory.blocks[i];
    if (block.from_ns <= time_ns && block.to_ns > time_ns) alive.push_back(i);
  }
  std::stable_sort(alive.begin(), alive.end(), [&](std::size_t a, std::size_t b) {
    return memory.blocks[a].bytes > memory.blocks[b].bytes;
  });
  return alive;
}

}  // namespace explain
