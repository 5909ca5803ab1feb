// SPDX-License-Identifier: Apache-2.0
#include "trace/tree.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "trace/printable.h"
#include "trace/wrapping.h"

namespace trace {
namespace {

// Never rows: bookkeeping of record_function and of autograd. Memory records become rows by a rule
// of their own.
constexpr std::array<std::string_view, 8> kSkippedNames = {
    "[memory]",
    "[OutOfMemory]",
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
};

// c10d records a collective as an annotation "backend:name" that whichever thread completes it may
// end. The file says nothing about it but the name.
constexpr std::array<std::string_view, 5> kCollectivePrefixes = {
    "nccl:", "gloo:", "mpi:", "ucc:", "xccl:"};

constexpr std::int64_t kNsPerUs = 1000;

// Every back reference of a mangled name ends in '_'. With so many of them a short name can still
// stand for gigabytes of text; real names in files are demangled already.
constexpr std::ptrdiff_t kMaxBackReferences = 32;

// PyTorch demangles every name of two or more characters, an annotation's as well: `Pi` is printed
// as `int*`.
std::string demangled(std::string_view name) {
  std::string text(name);
  if (text.size() < 2 || std::count(text.begin(), text.end(), '_') > kMaxBackReferences)
    return text;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> result(
      abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && result ? std::string(result.get()) : text;
}

// With capture_overload_names the file says `aten::mul.Tensor`; the table's name is `aten::mul`.
std::string_view without_overload(std::string_view name) {
  return name.starts_with("aten::") ? name.substr(0, name.find('.')) : name;
}

std::string table_name(std::string_view name) {
  const std::string text = demangled(without_overload(name));
  return text.starts_with("ProfilerStep#") ? "ProfilerStep*" : printable(text);
}

bool is_runtime_call(Category category) {
  return category == Category::cuda_runtime || category == Category::cuda_driver;
}

// These refer to an op by `External id`; all others have that id themselves.
bool is_linked(Category category) {
  return is_gpu_operation(category) || category == Category::cuda_sync || is_runtime_call(category);
}

// Events made by PyTorch itself: their thread is the one that they ran on.
bool has_own_thread(Category category) {
  return category == Category::cpu_op || category == Category::user_annotation ||
         category == Category::cpu_instant_event;
}

// What an op is found by. A runtime call without an op has the correlation in its place: a counter
// of its own, which may hit another op's id. PyTorch has this collision, so the table has it, too.
std::int64_t own_id(const Event& event) {
  return is_runtime_call(event.category) ? event.correlation : event.external_id;
}

std::int64_t link(const Event& event) {
  // A sync of no op has its own correlation in the place of an op's id.
  if (event.category == Category::cuda_sync && event.external_id == event.correlation) return 0;
  return is_linked(event.category) ? event.external_id : 0;
}

// Kineto writes an annotation's span on the device 1 ns early and 2 ns too long.
std::int64_t start_ns(const Event& event) {
  return event.start_ns + (event.category == Category::gpu_user_annotation ? 1 : 0);
}
std::int64_t duration_ns(const Event& event) {
  return event.duration_ns - (event.category == Category::gpu_user_annotation ? 2 : 0);
}

double microseconds(std::int64_t ns) {
  return static_cast<double>(ns) / static_cast<double>(kNsPerUs);
}

// Sorts what consists of runs in order. A file does: each thread's events stand together, by start.
// Equal items keep their order.
template <typename Item, typename Less>
void merge_runs(std::vector<Item>& items, const Less& is_less) {
  std::vector<std::size_t> bounds{0};
  for (std::size_t i = 1; i < items.size(); ++i)
    if (is_less(items[i], items[i - 1])) bounds.push_back(i);
  bounds.push_back(items.size());
  const auto at = [&](std::size_t bound) {
    return items.begin() + static_cast<std::ptrdiff_t>(bounds[bound]);
  };
  while (bounds.size() > 2) {
    std::vector<std::size_t> merged;
    for (std::size_t i = 0; i + 1 < bounds.size(); i += 2) {
      merged.push_back(bounds[i]);
      if (i + 2 < bounds.size()) std::inplace_merge(at(i), at(i + 1), at(i + 2), is_less);
    }
    merged.push_back(bounds.back());
    bounds = std::move(merged);
  }
}

bool is_step(std::string_view name) {
  return name.starts_with("ProfilerStep#");
}

// "1234" of "rank 1: 1234", which is how merge.h names the processes of its ranks.
std::string_view bare_pid(std::string_view pid) {
  const std::size_t colon = pid.starts_with("rank ") ? pid.find(": ") : std::string_view::npos;
  return colon == std::string_view::npos ? pid : pid.substr(colon + 2);
}

// The thread that stopped the profiler, for each process. PyTorch puts runtime calls and overhead
// of no op there. The file does not name it: take the one that calls step(), else the main thread
// (on Linux its tid is the pid), else any. Trace::threads.size() where no event has a thread of its
// own.
std::vector<std::uint32_t> profiler_threads(const Trace& trace, const Processes& processes) {
  const std::uint32_t none = static_cast<std::uint32_t>(trace.threads.size());
  struct Choice {
    std::uint32_t stepping, main, any;
  };
  std::vector<Choice> choices(std::max(processes.count(), 1U), {none, none, none});
  const auto choose = [none](std::uint32_t& choice, std::uint32_t thread) {
    if (choice == none) choice = thread;
  };
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (!has_own_thread(event.category) || processes.of(i) == Processes::kUnknown) continue;
    Choice& choice = choices[processes.of(i)];
    const Thread& thread = trace.threads[event.thread];
    if (choice.stepping == none && is_step(trace.name(event))) choice.stepping = event.thread;
    if (trace.text(thread.tid) == bare_pid(trace.text(thread.pid))) {
      choose(choice.main, event.thread);
    }
    choose(choice.any, event.thread);
  }
  std::vector<std::uint32_t> threads;
  for (const Choice& choice : choices) {
    threads.push_back(choice.stepping != none ? choice.stepping
                      : choice.main != none   ? choice.main
                                              : choice.any);
  }
  return threads;
}

bool launches_graph(const Trace& trace, const Event& event) {
  return is_runtime_call(event.category) &&
         trace.name(event).find("GraphLaunch") != std::string_view::npos;
}

// What joins an op with the GPU operations that it launched: an id, within one process and one kind
// of ids.
struct Key {
  std::uint32_t space = 0;
  std::int64_t id = 0;

  friend auto operator<=>(const Key&, const Key&) = default;
};
enum class IdKind : std::uint32_t { op, graph_launch };

Key key(std::uint32_t process, IdKind kind, std::int64_t id) {
  return {2 * process + static_cast<std::uint32_t>(kind), id};
}

}  // namespace

OpTree::OpTree(const Trace& trace, OpTreeOptions options)
    : trace_(&trace),
      processes_(trace),
      parent_(trace.events.size(), kNoEvent),
      kernel_group_(trace.events.size(), 0),
      launcher_(trace.events.size(), kNoEvent) {
  name_events();
  sort_events();
  find_memory_rows();
  nest(attribute(options));
  attribute_overhead();
  merge_duplicates();
  list_children();
}

bool OpTree::is_async(std::uint32_t event) const {
  const Event& e = trace_->events[event];
  if (!e.is_finished) return true;
  if (e.category != Category::user_annotation) return false;
  const std::string_view name = trace_->name(e);
  return std::any_of(kCollectivePrefixes.begin(), kCollectivePrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

double OpTree::start(std::uint32_t event) const {
  return microseconds(wrapping_subtract(start_ns(trace_->events[event]), trace_->start_ns));
}

double OpTree::end(std::uint32_t event) const {
  const Event& e = trace_->events[event];
  return microseconds(
      wrapping_subtract(wrapping_add(start_ns(e), duration_ns(e)), trace_->start_ns));
}

double OpTree::time(const MemoryRow& row) const {
  return microseconds(wrapping_subtract(trace_->memory[row.record].time_ns, trace_->start_ns));
}

// One name for all that the table prints alike, so that equal names have equal ids.
void OpTree::name_events() {
  std::unordered_map<std::string, std::uint32_t> ids;
  name_of_.reserve(trace_->texts.size());
  for (std::size_t text = 0; text < trace_->texts.size(); ++text) {
    std::string name = table_name(trace_->text(static_cast<TextId>(text)));
    const auto [place, is_new] = ids.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (is_new) names_.push_back(std::move(name));
    name_of_.push_back(place->second);
  }
}

void OpTree::sort_events() {
  std::vector<bool> is_skipped(trace_->texts.size(), false);
  for (const std::string_view name : kSkippedNames) is_skipped[trace_->texts.find(name)] = true;
  is_skipped[0] = false;  // what find() says where there is no such name

  // Sorting the doubles, not the ns they come from, as PyTorch does; equal ones keep file order.
  std::vector<std::pair<double, std::uint32_t>> starts;
  starts.reserve(trace_->events.size());
  for (std::uint32_t i = 0; i < trace_->events.size(); ++i) {
    const Event& event = trace_->events[i];
    if (event.category != Category::python_function && event.category != Category::profiler_span &&
        !is_skipped[event.name])
      starts.emplace_back(start(i), i);
  }
  merge_runs(starts, [this](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : end(a.second) > end(b.second);
  });
  order_.reserve(starts.size());
  for (const auto& [time, event] : starts) order_.push_back(event);
}

// Records the kernels of each op and who launched what. Returns the thread that each event nests
// on: a runtime call's is that of its op.
std::vector<std::uint32_t> OpTree::attribute(OpTreeOptions options) {
  const std::vector<std::uint32_t> stopped_on = profiler_threads(*trace_, processes_);
  std::vector<std::uint32_t> threads(trace_->events.size());
  struct Linked {
    Key key;
    std::uint32_t event;
  };
  std::vector<Linked> linked;
  for (const std::uint32_t i : order_) {
    const Event& event = trace_->events[i];
    const std::uint32_t process = processes_.of(i);
    const bool is_unknown = process == Processes::kUnknown;
    threads[i] = has_own_thread(event.category) || event.external_id != 0 || is_unknown
                     ? event.thread
                     : stopped_on[process];
    if (is_unknown) continue;
    if (link(event) > 0) {
      linked.push_back({key(process, IdKind::op, link(event)), i});
    } else if (options.graph_kernels_to_launch && is_gpu_operation(event.category)) {
      linked.push_back({key(process, IdKind::graph_launch, event.correlation), i});
    }
  }
  std::stable_sort(linked.begin(), linked.end(),
                   [](const Linked& a, const Linked& b) { return a.key < b.key; });

  // Group g holds the GPU operations of one id; group 0 is the empty one of most events.
  std::vector<std::size_t> first_of_group{0};
  group_begin_ = {0, 0};
  for (std::size_t i = 0; i < linked.size(); ++i) {
    if (i == 0 || linked[i].key != linked[i - 1].key) {
      first_of_group.push_back(i);
      group_begin_.push_back(group_begin_.back());
    }
    if (is_device(trace_->events[linked[i].event].category)) {
      kernel_list_.push_back(linked[i].event);
      ++group_begin_.back();
    }
  }

  // Several ops may have one id: the first of them launched the group's kernels, the last one's
  // thread is that of its runtime calls.
  struct Owners {
    std::uint32_t first_op = kNoEvent, last = kNoEvent;
  };
  std::vector<Owners> owners(first_of_group.size());
  for (const std::uint32_t i : order_) {
    const Event& event = trace_->events[i];
    const bool is_graph = options.graph_kernels_to_launch && launches_graph(*trace_, event);
    if (is_device(event.category) || (link(event) != 0 && !is_graph) || is_async(i)) continue;
    const Key own =
        key(processes_.of(i), is_graph ? IdKind::graph_launch : IdKind::op, own_id(event));
    const auto first =
        std::lower_bound(first_of_group.begin() + 1, first_of_group.end(), own,
                         [&](std::size_t place, const Key& k) { return linked[place].key < k; });
    if (first == first_of_group.end() || linked[*first].key != own) continue;
    kernel_group_[i] = static_cast<std::uint32_t>(first - first_of_group.begin());
    Owners& group = owners[kernel_group_[i]];
    if (group.first_op == kNoEvent && !is_runtime_call(event.category)) group.first_op = i;
    group.last = i;
  }
  first_of_group.push_back(linked.size());
  for (std::size_t group = 1; group < owners.size(); ++group) {
    for (std::size_t k = first_of_group[group]; k < first_of_group[group + 1]; ++k) {
      const std::uint32_t event = linked[k].event;
      if (is_device(trace_->events[event].category)) {
        launcher_[event] = owners[group].first_op;
      } else if (owners[group].last != kNoEvent) {
        threads[event] = threads[owners[group].last];
      }
    }
  }
  return threads;
}

OpTree::Memory operator+(OpTree::Memory a, OpTree::Memory b) {
  return {wrapping_add(a.cpu, b.cpu), wrapping_add(a.device, b.device)};
}

OpTree::Memory operator-(OpTree::Memory a, OpTree::Memory b) {
  return {wrapping_subtract(a.cpu, b.cpu), wrapping_subtract(a.device, b.device)};
}

void OpTree::find_memory_rows() {
  const std::vector<MemoryRecord>& records = trace_->memory;
  for (std::uint32_t i = 0; i < records.size(); ++i)
    if (!records[i].out_of_memory) memory_order_.push_back(i);
  const auto by_time = [&](std::uint32_t a, std::uint32_t b) {
    return records[a].time_ns < records[b].time_ns;
  };
  std::stable_sort(memory_order_.begin(), memory_order_.end(),
                   [&](std::uint32_t a, std::uint32_t b) {
                     return std::pair(process_of(records[a]), records[a].time_ns) <
                            std::pair(process_of(records[b]), records[b].time_ns);
                   });
  memory_sums_.resize(memory_order_.size() + 1);
  for (std::size_t i = 0; i < memory_order_.size(); ++i)
    memory_sums_[i + 1] = memory_sums_[i] + memory(records[memory_order_[i]]);

  // +1 where an event begins to hold records and -1 where it ends: a running sum of 0 is outside.
  std::vector<std::int64_t> steps(memory_order_.size() + 1, 0);
  if (!memory_order_.empty()) {
    for (const std::uint32_t event : order_) {
      if (is_device(trace_->events[event].category)) continue;
      const auto [first, last] = memory_range(event);
      ++steps[first];
      --steps[last];
    }
  }
  std::vector<std::uint32_t> alone;
  std::int64_t open = 0;
  for (std::size_t i = 0; i < memory_order_.size(); ++i) {
    open += steps[i];
    if (open == 0) alone.push_back(memory_order_[i]);
  }
  for (std::uint32_t i = 0; i < records.size(); ++i)
    if (records[i].out_of_memory) alone.push_back(i);
  std::stable_sort(alone.begin(), alone.end(), by_time);
  for (const std::uint32_t record : alone) memory_rows_.push_back({record, kNoEvent});
}

// The records between an event's start and end, both inclusive, in exact ns.
std::pair<std::size_t, std::size_t> OpTree::memory_range(std::uint32_t event) const {
  using Place = std::pair<std::uint32_t, std::int64_t>;  // process, time
  const std::uint32_t process = processes_.of(event);
  const std::int64_t from = start_ns(trace_->events[event]);
  const std::int64_t to = wrapping_add(from, duration_ns(trace_->events[event]));
  const auto place_of = [this](std::uint32_t record) {
    return Place(process_of(trace_->memory[record]), trace_->memory[record].time_ns);
  };
  const auto first = std::lower_bound(
      memory_order_.begin(), memory_order_.end(), Place(process, from),
      [&](std::uint32_t record, const Place& place) { return place_of(record) < place; });
  const auto last = std::upper_bound(
      first, memory_order_.end(), Place(process, to),
      [&](const Place& place, std::uint32_t record) { return place < place_of(record); });
  return {first - memory_order_.begin(), last - memory_order_.begin()};
}

OpTree::Memory OpTree::memory(std::uint32_t event) const {
  if (memory_order_.empty() || is_device(trace_->events[event].category)) return {};
  const auto [first, last] = memory_range(event);
  return memory_sums_[last] - memory_sums_[first];
}

OpTree::Memory OpTree::memory(const MemoryRecord& record) {
  if (record.out_of_memory) return {};  // nothing was allocated
  switch (record.device_type) {         // c10::DeviceType
    case 0:                             // CPU
    case 2:                             // MKLDNN
    case 5:                             // IDEEP
      return {.cpu = record.bytes, .device = 0};
    case 1:   // CUDA
    case 6:   // HIP
    case 12:  // XPU
    case 20:  // PrivateUse1
      return {.cpu = 0, .device = record.bytes};
    default:
      return {};
  }
}

// Each thread keeps the events that are open. What starts after one ended, or ends after one ends,
// is not inside it.
void OpTree::nest(const std::vector<std::uint32_t>& threads) {
  struct Open {
    std::uint32_t event;
    double end;
  };
  std::vector<std::vector<Open>> stacks(trace_->threads.size() + 1);
  const auto innermost = [](std::vector<Open>& stack, double start, double end) {
    while (!stack.empty() && (start >= stack.back().end || end > stack.back().end))
      stack.pop_back();
    return stack.empty() ? kNoEvent : stack.back().event;
  };

  auto row = memory_rows_.begin();
  const auto place_rows = [&](double before) {
    for (; row != memory_rows_.end() && time(*row) < before; ++row)
      row->parent = innermost(stacks[trace_->memory[row->record].thread], time(*row), time(*row));
  };
  for (const std::uint32_t event : order_) {
    place_rows(start(event));
    if (is_device(trace_->events[event].category) || is_async(event)) continue;
    std::vector<Open>& stack = stacks[threads[event]];
    parent_[event] = innermost(stack, start(event), end(event));
    stack.push_back({event, end(event)});
  }
  place_rows(std::numeric_limits<double>::infinity());
}

// CUPTI's overhead has the id of the op in which it arose, so that op's kernels are its own, too.
// The file does not hold that id.
void OpTree::attribute_overhead() {
  for (const std::uint32_t event : order_) {
    if (trace_->events[event].category != Category::overhead) continue;
    std::uint32_t op = parent_[event];
    while (op != kNoEvent && trace_->events[op].category != Category::cpu_op) op = parent_[op];
    if (op != kNoEvent) kernel_group_[event] = kernel_group_[op];
  }
}

// PyTorch repeats its search until nothing changes. Parents come before their children here, so one
// pass does.
void OpTree::merge_duplicates() {
  std::vector<std::uint32_t> child_count(trace_->events.size(), 0);
  for (const std::uint32_t event : order_)
    if (parent_[event] != kNoEvent) ++child_count[parent_[event]];
  for (const MemoryRow& row : memory_rows_)
    if (row.parent != kNoEvent) ++child_count[row.parent];

  std::vector<bool> is_merged(trace_->events.size(), false);
  const auto survivor = [&](std::uint32_t event) {
    return event != kNoEvent && is_merged[event] ? parent_[event] : event;
  };
  for (const std::uint32_t event : order_) {
    const std::uint32_t parent = parent_[event] = survivor(parent_[event]);
    if (parent == kNoEvent || child_count[parent] != 1 || name_id(parent) != name_id(event))
      continue;
    is_merged[event] = true;
    child_count[parent] = child_count[event];
    kernel_group_[parent] = kernel_group_[event];  // the parent's own are lost, in PyTorch, too
  }
  for (std::uint32_t& launcher : launcher_) launcher = survivor(launcher);
  for (MemoryRow& row : memory_rows_) row.parent = survivor(row.parent);
  std::erase_if(order_, [&](std::uint32_t event) { return is_merged[event]; });
}

void OpTree::list_children() {
  child_begin_.assign(trace_->events.size() + 1, 0);
  for (const std::uint32_t event : order_)
    if (parent_[event] != kNoEvent) ++child_begin_[parent_[event] + 1];
  std::partial_sum(child_begin_.begin(), child_begin_.end(), child_begin_.begin());
  child_list_.resize(child_begin_.back());
  std::vector<std::uint32_t> next(child_begin_.begin(), child_begin_.end() - 1);
  for (const std::uint32_t event : order_)
    if (parent_[event] != kNoEvent) child_list_[next[parent_[event]]++] = event;
}

}  // namespace trace
