// SPDX-License-Identifier: Apache-2.0
#include "trace/event_builder.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <tuple>

#include "trace/numbers.h"

namespace trace {
namespace {

using simdjson::ondemand::array;
using simdjson::ondemand::field;
using simdjson::ondemand::object;
using simdjson::ondemand::raw_json_string;
using simdjson::ondemand::value;

// Blocks are larger than the largest threshold (32 MiB) up to which malloc keeps freed memory, so
// moving them into one vector at the end never holds more than one block twice. Untouched pages of
// a block cost nothing. 48 MiB each.
constexpr std::size_t kBlockEvents = 1 << 20;
constexpr std::size_t kEnd = static_cast<std::size_t>(-1);

// 2^62 ns are 146 years: any sum of base, start and duration that passes stays within 64 bits.
constexpr std::int64_t kLatest = std::int64_t{1} << 61;

struct CategoryName {
  std::string_view name;
  Category category;
};
// Names of Kineto since 2021 and of other vendors' builds.
constexpr CategoryName kCategories[] = {
    {"cpu_op", Category::cpu_op},
    {"Operator", Category::cpu_op},
    {"hpu_op", Category::cpu_op},
    {"user_annotation", Category::user_annotation},
    {"gpu_user_annotation", Category::gpu_user_annotation},
    {"cuda_runtime", Category::cuda_runtime},
    {"Runtime", Category::cuda_runtime},
    {"hip_runtime", Category::cuda_runtime},
    {"xpu_runtime", Category::cuda_runtime},
    {"mtia_runtime", Category::cuda_runtime},
    {"glow_runtime", Category::cuda_runtime},
    {"privateuse1_runtime", Category::cuda_runtime},
    {"cuda_driver", Category::cuda_driver},
    {"hip_driver", Category::cuda_driver},
    {"xpu_driver", Category::cuda_driver},
    {"privateuse1_driver", Category::cuda_driver},
    {"kernel", Category::kernel},
    {"Kernel", Category::kernel},
    {"mtia_ccp_events", Category::kernel},
    {"gpu_memcpy", Category::gpu_memcpy},
    {"Memcpy", Category::gpu_memcpy},
    {"gpu_memset", Category::gpu_memset},
    {"Memset", Category::gpu_memset},
    {"cuda_sync", Category::cuda_sync},
    {"xpu_sync", Category::cuda_sync},
    {"overhead", Category::overhead},
    {"cpu_instant_event", Category::cpu_instant_event},
    {"python_function", Category::python_function},
    {"Trace", Category::profiler_span},
};

Category find_category(std::string_view name) {
  for (const CategoryName& known : kCategories) {
    if (known.name == name) return known.category;
  }
  return Category::other;
}

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// The text of a scalar or the first character of an object or array. It ends where the next token
// begins, so white space behind it belongs to it.
std::string_view token_of(value& item) {
  std::string_view token = item.raw_json_token();
  while (!token.empty() && is_space(token.back())) token.remove_suffix(1);
  return token;
}

// What a string says; the token itself where it is a number or a word; "" for null and containers.
// False for a string that JSON does not allow.
bool read_text(value& item, std::string_view& text) {
  text = token_of(item);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
    return std::memchr(text.data(), '\\', text.size()) == nullptr || !item.get_string().get(text);
  }
  if (text == "null" || text.starts_with('{') || text.starts_with('[')) text = {};
  return !text.starts_with('"');
}

// Sets `result` where the value is a number; anything else leaves it as it is.
template <typename Integer>
void read_integer(value& item, Integer& result) {
  std::int64_t number = 0;
  if (!parse_integer(token_of(item), number)) return;
  if (std::in_range<Integer>(number)) result = static_cast<Integer>(number);
}

void read_double(value& item, double& result) {
  const std::string_view token = token_of(item);
  std::from_chars(token.data(), token.data() + token.size(), result);
}

void read_three(value& item, std::array<std::uint32_t, 3>& result) {
  array numbers;
  if (item.get_array().get(numbers)) return;
  std::size_t count = 0;
  for (auto element : numbers) {
    value number;
    if (std::move(element).get(number)) return;
    if (count < result.size()) read_integer(number, result[count++]);
  }
}

// The JSON text of a container as it stands; "" for scalars.
std::string_view raw_text(value& item) {
  array numbers;
  std::string_view text;
  if (item.get_array().get(numbers) || numbers.raw_json().get(text)) return {};
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

// One element of the event list, before it is known what it is: keys come in any order.
struct EventBuilder::Fields {
  std::string_view phase, category, name, pid, tid;
  std::string_view start, duration;
  bool has_start = false;
  std::int64_t external_id = 0, correlation = 0;
  std::string_view input_dims, input_types, concrete_inputs;
  Launch launch;
  MemoryRecord memory;
};

EventBuilder::EventBuilder(Trace& trace) : trace_(trace) {}

bool EventBuilder::add(value element) {
  object parts;
  if (element.get_object().get(parts)) return false;
  Fields fields;
  if (!read_fields(parts, fields) || !store(fields)) return false;
  ++mark_.elements;
  return true;
}

bool EventBuilder::read_fields(object parts, Fields& fields) {
  for (auto part : parts) {
    field current;
    if (std::move(part).get(current)) return false;
    const raw_json_string key = current.key();
    value& item = current.value();
    bool good = true;
    if (key == "ph") {
      good = read_text(item, fields.phase);
    } else if (key == "cat") {
      good = read_text(item, fields.category);
    } else if (key == "name") {
      good = read_text(item, fields.name);
    } else if (key == "pid") {
      good = read_text(item, fields.pid);
    } else if (key == "tid") {
      good = read_text(item, fields.tid);
    } else if (key == "ts") {
      fields.start = token_of(item);
    } else if (key == "dur") {
      fields.duration = token_of(item);
    } else if (key == "args") {
      object args;
      if (!item.get_object().get(args)) read_args(args, fields);
    }
    if (!good) return false;
  }
  return true;
}

void EventBuilder::read_args(object args, Fields& fields) {
  for (auto part : args) {
    field current;
    if (std::move(part).get(current)) return;  // the caller meets the error again
    const raw_json_string key = current.key();
    value& item = current.value();
    if (key == "External id" || key == "external id") {
      read_integer(item, fields.external_id);
    } else if (key == "correlation") {
      read_integer(item, fields.correlation);
    } else if (key == "device") {
      read_integer(item, fields.launch.device);
    } else if (key == "stream") {
      read_integer(item, fields.launch.stream);
    } else if (key == "grid") {
      read_three(item, fields.launch.grid);
    } else if (key == "block") {
      read_three(item, fields.launch.block);
    } else if (key == "registers per thread") {
      read_integer(item, fields.launch.registers_per_thread);
    } else if (key == "shared memory") {
      read_integer(item, fields.launch.shared_memory);
    } else if (key == "bytes") {
      read_integer(item, fields.launch.bytes);
    } else if (key == "est. achieved occupancy %") {
      read_double(item, fields.launch.occupancy_percent);
    } else if (key == "Input Dims") {
      fields.input_dims = raw_text(item);
    } else if (key == "Input type") {
      fields.input_types = raw_text(item);
    } else if (key == "Concrete Inputs") {
      fields.concrete_inputs = raw_text(item);
    } else if (key == "Bytes") {
      read_integer(item, fields.memory.bytes);
    } else if (key == "Total Allocated") {
      read_integer(item, fields.memory.total_allocated);
    } else if (key == "Total Reserved") {
      read_integer(item, fields.memory.total_reserved);
    } else if (key == "Device Type") {
      read_integer(item, fields.memory.device_type);
    } else if (key == "Device Id") {
      read_integer(item, fields.memory.device_index);
    }
  }
}

bool EventBuilder::store(const Fields& fields) {
  const bool is_out_of_memory = fields.name == "[OutOfMemory]";
  const bool is_memory = is_out_of_memory || fields.name == "[memory]";
  const char phase = fields.phase.size() == 1 ? fields.phase.front() : '\0';
  if (!is_memory && phase != 'X' && phase != 'B' && phase != 'E') return true;

  std::int64_t start = 0;
  if (!parse_nanoseconds(fields.start, start) || std::abs(start) > kLatest) return false;
  const std::uint32_t thread = thread_of(fields);
  start += trace_.base_ns;

  if (is_memory) {
    MemoryRecord& record = trace_.memory.emplace_back(fields.memory);
    record.time_ns = start;
    record.thread = thread;
    record.out_of_memory = is_out_of_memory;
    mark_.memory = trace_.memory.size();
    return true;
  }
  if (phase == 'E') {
    brackets_.push_back({start, thread, kEnd});
    mark_.brackets = brackets_.size();
    return true;
  }
  std::int64_t duration = 0;
  // A duration that is missing or no number is 0, like one below 0.
  if (!parse_nanoseconds(fields.duration, duration)) duration = 0;
  const Category category = category_of(fields);
  if (phase == 'B') {
    brackets_.push_back({start, thread, mark_.events});
    mark_.brackets = brackets_.size();
  }
  push({.start_ns = start,
        .duration_ns = std::clamp(duration, std::int64_t{0}, kLatest),
        .external_id = fields.external_id,
        .correlation = fields.correlation,
        .name = trace_.texts.add(fields.name),
        .thread = thread,
        .details = details_of(fields, category),
        .category = category});
  std::int64_t& first =
      category == Category::profiler_span ? mark_.spans_start : mark_.events_start;
  first = std::min(first, start);
  return true;
}

std::uint32_t EventBuilder::thread_of(const Fields& fields) {
  const TextId pid = trace_.texts.add(fields.pid);
  const TextId tid = trace_.texts.add(fields.tid);
  if (pid == last_pid_ && tid == last_tid_ && !trace_.threads.empty()) return last_thread_;
  const auto next = static_cast<std::uint32_t>(trace_.threads.size());
  const auto [found, is_new] = threads_.try_emplace(std::uint64_t{pid} << 32 | tid, next);
  if (is_new) trace_.threads.push_back({pid, tid});
  last_pid_ = pid;
  last_tid_ = tid;
  return last_thread_ = found->second;
}

std::uint32_t EventBuilder::details_of(const Fields& fields, Category category) {
  if (is_device(category)) {
    const Launch& launch = fields.launch;
    std::string key;
    const auto append = [&key](const auto& part) {
      key.append(reinterpret_cast<const char*>(&part), sizeof part);
    };
    append(launch.device);
    append(launch.stream);
    append(launch.grid);
    append(launch.block);
    append(launch.registers_per_thread);
    append(launch.shared_memory);
    append(launch.bytes);
    append(launch.occupancy_percent);
    const auto next = static_cast<std::uint32_t>(trace_.launches.size());
    const auto [found, is_new] = launches_.try_emplace(std::move(key), next);
    if (is_new) trace_.launches.push_back(launch);
    return found->second;
  }
  const bool keeps_values = fields.name == "aten::conv2d";
  if (fields.input_dims.empty() && fields.input_types.empty()) return 0;
  const Arguments arguments{
      .input_dims = trace_.texts.add(fields.input_dims),
      .input_types = trace_.texts.add(fields.input_types),
      .concrete_inputs = keeps_values ? trace_.texts.add(fields.concrete_inputs) : 0};
  const std::array<TextId, 3> key{arguments.input_dims, arguments.input_types,
                                  arguments.concrete_inputs};
  const auto next = static_cast<std::uint32_t>(trace_.arguments.size());
  const auto [found, is_new] = arguments_.try_emplace(key, next);
  if (is_new) trace_.arguments.push_back(arguments);
  return found->second;
}

Category EventBuilder::category_of(const Fields& fields) {
  if (fields.category.empty()) {  // torch without Kineto writes no categories
    if (fields.pid == "CPU functions") return Category::cpu_op;
    if (fields.pid == "CUDA functions") return Category::kernel;
    return Category::other;
  }
  if (fields.category != last_category_name_) {
    const TextId kept = trace_.texts.add(fields.category);  // outlives the batch
    last_category_name_ = trace_.texts[kept];
    last_category_ = find_category(last_category_name_);
  }
  return last_category_;
}

void EventBuilder::push(const Event& event) {
  if (mark_.events == blocks_.size() * kBlockEvents) {
    blocks_.emplace_back().reserve(kBlockEvents);
  }
  blocks_[mark_.events / kBlockEvents].push_back(event);
  ++mark_.events;
}

Event& EventBuilder::event_at(std::size_t index) {
  return blocks_[index / kBlockEvents][index % kBlockEvents];
}

void EventBuilder::rewind(const Mark& mark) {
  mark_ = mark;
  trace_.memory.resize(mark.memory);
  brackets_.resize(mark.brackets);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const std::size_t before = i * kBlockEvents;
    const std::size_t left = mark.events > before ? mark.events - before : 0;
    if (left < blocks_[i].size()) blocks_[i].resize(left);
  }
}

void EventBuilder::finish() {
  pair_brackets();
  trace_.start_ns = std::min(mark_.spans_start, mark_.events_start);
  if (mark_.spans_start != std::numeric_limits<std::int64_t>::max()) {
    trace_.start_ns = mark_.spans_start;
  }
  if (mark_.events == 0) {
    trace_.start_ns = trace_.base_ns;
  } else if (blocks_.size() == 1) {
    trace_.events = std::move(blocks_.front());
    if (trace_.events.size() < kBlockEvents / 16) trace_.events.shrink_to_fit();
  } else {
    trace_.events.reserve(mark_.events);
    for (std::vector<Event>& block : blocks_) {
      trace_.events.insert(trace_.events.end(), block.begin(), block.end());
      std::vector<Event>().swap(block);
    }
  }
  blocks_.clear();
}

// Chrome's rule: on each thread, an E ends the latest B that is still open, in order of time.
void EventBuilder::pair_brackets() {
  std::stable_sort(brackets_.begin(), brackets_.end(),
                   [](const Bracket& a, const Bracket& b) { return a.time_ns < b.time_ns; });
  std::vector<std::vector<std::size_t>> open(brackets_.empty() ? 0 : trace_.threads.size());
  std::size_t unpaired = 0;
  for (const Bracket& bracket : brackets_) {
    std::vector<std::size_t>& stack = open[bracket.thread];
    if (bracket.event != kEnd) {
      stack.push_back(bracket.event);
    } else if (stack.empty()) {
      ++unpaired;
    } else {
      Event& event = event_at(stack.back());
      event.duration_ns = std::min(bracket.time_ns - event.start_ns, kLatest);
      stack.pop_back();
    }
  }
  for (const std::vector<std::size_t>& stack : open) unpaired += stack.size();
  if (unpaired > 0) {
    trace_.report.warnings.push_back(
        std::to_string(unpaired) +
        " begin or end events (ph B, E) have no partner; begins count with duration 0");
  }
}

// Events that came before the key got the base of then, which is 0.
void EventBuilder::move_base(std::int64_t base_ns) {
  const std::int64_t shift = base_ns - trace_.base_ns;
  trace_.base_ns = base_ns;
  for (std::vector<Event>& block : blocks_) {
    for (Event& event : block) event.start_ns += shift;
  }
  for (MemoryRecord& record : trace_.memory) record.time_ns += shift;
  for (Bracket& bracket : brackets_) bracket.time_ns += shift;
  if (mark_.events == 0) return;
  for (std::int64_t* first : {&mark_.spans_start, &mark_.events_start}) {
    if (*first != std::numeric_limits<std::int64_t>::max()) *first += shift;
  }
}

void EventBuilder::add_top_level(std::string_view key, std::string_view json) {
  if (json.empty()) return;
  if (key == "deviceProperties") return read_devices(json);
  if (key == "metadata" && json.front() == '{') return read_metadata(json);
  if (json.front() == '{' || json.front() == '[') return;
  std::int64_t base = 0;
  if (key == "baseTimeNanoseconds" && parse_integer(json, base) && std::abs(base) <= kLatest) {
    move_base(base);
  }
  const auto [found, is_new] = metadata_.try_emplace(std::string(key), trace_.metadata.size());
  if (is_new) trace_.metadata.push_back({std::string(key), ""});
  trace_.metadata[found->second].json = json;
}

void EventBuilder::read_metadata(std::string_view json) {
  const simdjson::padded_string text(json);
  simdjson::ondemand::document document;
  object parts;
  if (parser_.iterate(text).get(document) || document.get_object().get(parts)) return;
  for (auto part : parts) {
    field current;
    std::string_view key;
    if (std::move(part).get(current) || current.unescaped_key().get(key)) return;
    // "metadata" itself would come back here.
    if (key != "metadata" && key != "deviceProperties") {
      add_top_level(key, token_of(current.value()));
    }
  }
}

void EventBuilder::read_devices(std::string_view json) {
  trace_.devices.clear();
  const simdjson::padded_string text(json);
  simdjson::ondemand::document document;
  array devices;
  if (parser_.iterate(text).get(document) || document.get_array().get(devices)) return;
  for (auto element : devices) {
    object parts;
    if (element.get_object().get(parts)) return;
    DeviceProperties device;
    for (auto part : parts) {
      field current;
      if (std::move(part).get(current)) return;
      const raw_json_string key = current.key();
      value& item = current.value();
      std::string_view name;
      if (key == "id") read_integer(item, device.id);
      if (key == "name" && read_text(item, name)) device.name = name;
      if (key == "totalGlobalMem") read_integer(item, device.total_memory);
      if (key == "computeMajor") read_integer(item, device.compute_major);
      if (key == "computeMinor") read_integer(item, device.compute_minor);
      if (key == "numSms") read_integer(item, device.multiprocessors);
      if (key == "maxThreadsPerBlock") read_integer(item, device.max_threads_per_block);
      if (key == "maxThreadsPerMultiprocessor") {
        read_integer(item, device.max_threads_per_multiprocessor);
      }
      if (key == "regsPerBlock") read_integer(item, device.registers_per_block);
      if (key == "regsPerMultiprocessor") {
        read_integer(item, device.registers_per_multiprocessor);
      }
      if (key == "warpSize") read_integer(item, device.warp_size);
      if (key == "sharedMemPerBlock") read_integer(item, device.shared_memory_per_block);
      if (key == "sharedMemPerBlockOptin") {
        read_integer(item, device.shared_memory_per_block_optin);
      }
      if (key == "sharedMemPerMultiprocessor" || key == "maxSharedMemoryPerMultiProcessor") {
        read_integer(item, device.shared_memory_per_multiprocessor);
      }
    }
    trace_.devices.push_back(std::move(device));
  }
}

}  // namespace trace
