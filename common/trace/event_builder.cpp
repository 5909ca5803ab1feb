// SPDX-License-Identifier: Apache-2.0
#include "trace/event_builder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "trace/framing.h"
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
constexpr std::size_t kFirstEvents = 1 << 12;  // a small trace asks for no block
constexpr std::size_t kNoEvent = static_cast<std::size_t>(-1);

// Times within 2^62 ns (146 years), a base and durations below 2^61: no sum of the three overflows.
constexpr std::int64_t kLatest = std::int64_t{1} << 62;
constexpr std::int64_t kLongest = (std::int64_t{1} << 61) - 1;
constexpr std::int64_t kDay = std::int64_t{24} * 3600 * 1'000'000'000;

// The phases (`ph`) of the elements that the model keeps: whole events, begin, end, instants.
constexpr std::string_view kPhases = "XBEi";

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
    {"cuda_profiler_range", Category::cuda_profiler_range},
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

// What other backends than CUDA (and HIP, which calls itself CUDA) put before their categories.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kDevices = {
    {{"xpu_", "XPU"}, {"mtia_", "MTIA"}, {"hpu_", "HPU"}, {"privateuse1_", "PRIVATEUSE1"}}};

std::string_view device_of(std::string_view category) {
  for (const auto& [prefix, device] : kDevices) {
    if (category.starts_with(prefix)) return device;
  }
  return {};
}

// The text of a scalar or the first character of an object or array. It ends where the next token
// begins, so white space behind it belongs to it.
std::string_view token_of(value& item) {
  std::string_view token = item.raw_json_token();
  while (!token.empty() && is_json_space(token.back())) token.remove_suffix(1);
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

// A duration that is missing or no number is 0. What one is that no event can have, judge_times
// says.
std::int64_t duration_of(std::string_view token) {
  std::int64_t duration = 0;
  if (parse_nanoseconds(token, duration)) return std::clamp(duration, -kLongest, kLongest);
  while (token.starts_with('"')) token.remove_prefix(1);
  const bool is_negative = token.starts_with('-');
  const std::string_view digits = token.substr(is_negative ? 1 : 0);
  const bool is_beyond_64_bits =
      !digits.empty() && digits.find_first_not_of("0123456789.eE+\"") == std::string_view::npos;
  return !is_beyond_64_bits ? 0 : is_negative ? -kLongest : kLongest;
}

// Set `result` where the value is of its kind; anything else leaves it as it is. True if set.
template <typename Integer>
bool read_integer(value& item, Integer& result) {
  std::int64_t number = 0;
  if (!parse_integer(token_of(item), number) || !std::in_range<Integer>(number)) return false;
  result = static_cast<Integer>(number);
  return true;
}

bool read_double(value& item, double& result) {
  const std::string_view token = token_of(item);
  double number = 0;
  const auto parsed = std::from_chars(token.data(), token.data() + token.size(), number);
  if (parsed.ec != std::errc() || !std::isfinite(number)) return false;
  result = number;
  return true;
}

bool read_three(value& item, std::array<std::uint32_t, 3>& result) {
  array numbers;
  if (item.get_array().get(numbers)) return false;
  std::size_t count = 0;
  for (auto element : numbers) {
    value number;
    if (std::move(element).get(number)) return false;
    if (count < result.size()) (void)read_integer(number, result[count++]);
  }
  return count > 0;
}

// The JSON text of a list as it stands.
bool read_list(value& item, std::string_view& result) {
  array list;
  std::string_view text;
  if (item.get_array().get(list) || list.raw_json().get(text)) return false;
  while (!text.empty() && is_json_space(text.back())) text.remove_suffix(1);
  result = text;
  return true;
}

// The id of the bytes of some plain values, which are new where it is the pool's last one.
template <typename... Parts>
TextId id_of(TextPool& keys, const Parts&... parts) {
  std::array<char, (sizeof(Parts) + ...)> bytes;
  char* next = bytes.data();
  ((std::memcpy(next, &parts, sizeof parts), next += sizeof parts), ...);
  return keys.add({bytes.data(), bytes.size()});
}

// `key` points into the padded text of a document, so reading past its end is safe.
inline bool is_key(const char* key, std::string_view name) {
  return std::memcmp(key, name.data(), name.size()) == 0 && key[name.size()] == '"';
}

}  // namespace

EventBuilder::EventBuilder(Trace& trace) : trace_(trace) {}

bool EventBuilder::add(value item) {
  object parts;
  if (item.get_object().get(parts)) return false;
  if (has_details_) {
    details_ = {};
    has_details_ = false;
  }
  Element element;
  if (!read(parts, element) || !store(element)) return false;
  ++(element.phase == '\0' ? mark_.others : mark_.elements);
  return true;
}

bool EventBuilder::read(object parts, Element& element) {
  for (auto part : parts) {
    if (part.error()) return false;
    field&& current = std::move(part).value_unsafe();  // no copy: there are millions of fields
    const char* key = current.key().raw();
    value& item = current.value();
    bool good = true;
    switch (*key) {
      case 'a':
        if (object args; is_key(key, "args") && !item.get_object().get(args)) {
          read_args(args, element);
        }
        break;
      case 'c':
        if (is_key(key, "cat")) good = read_text(item, element.category);
        break;
      case 'd':
        if (is_key(key, "dur")) element.duration = token_of(item);
        break;
      case 'n':
        if (is_key(key, "name")) good = read_text(item, element.name);
        break;
      case 'p':
        if (is_key(key, "pid")) good = read_text(item, element.pid);
        if (is_key(key, "ph")) {
          const std::string_view phase = token_of(item);  // with its quotes
          element.phase = phase.size() == 3 ? phase[1] : '\0';
          // The rest of a flow, a counter or metadata is passed over.
          if (kPhases.find(element.phase) == std::string_view::npos) return true;
        }
        break;
      case 't':
        if (is_key(key, "tid")) good = read_text(item, element.tid);
        if (is_key(key, "ts")) element.start = token_of(item);
        break;
      default:
        break;
    }
    if (!good) return false;
  }
  return true;
}

void EventBuilder::read_args(object args, Element& element) {
  for (auto part : args) {
    if (part.error()) return;  // the caller meets the error again
    field&& current = std::move(part).value_unsafe();
    const char* key = current.key().raw();
    value& item = current.value();
    if (is_key(key, "External id") || is_key(key, "external id")) {
      read_integer(item, element.external_id);
    } else if (is_key(key, "correlation")) {
      read_integer(item, element.correlation);
    } else if (is_key(key, "finished")) {
      element.is_finished = token_of(item) != "false";
    } else if (read_detail(key, item)) {
      has_details_ = true;
    }
  }
}

// The first letter keeps this short: args have up to 20 keys, and most are none of these.
bool EventBuilder::read_detail(const char* key, value& item) {
  Launch& launch = details_.launch;
  MemoryRecord& memory = details_.memory;
  switch (*key) {
    case 'A':
      return is_key(key, "Addr") && read_integer(item, memory.address);
    case 'B':
      return is_key(key, "Bytes") && read_integer(item, memory.bytes);
    case 'C':
      return is_key(key, "Concrete Inputs") && read_list(item, details_.concrete_inputs);
    case 'D':
      if (is_key(key, "Device Type")) return read_integer(item, memory.device_type);
      return is_key(key, "Device Id") && read_integer(item, memory.device_index);
    case 'I':
      if (is_key(key, "Input Dims")) return read_list(item, details_.input_dims);
      return is_key(key, "Input type") && read_list(item, details_.input_types);
    case 'T':
      if (is_key(key, "Total Allocated")) return read_integer(item, memory.total_allocated);
      return is_key(key, "Total Reserved") && read_integer(item, memory.total_reserved);
    case 'b':
      if (is_key(key, "block")) return read_three(item, launch.block);
      return is_key(key, "bytes") && read_integer(item, launch.bytes);
    case 'd':
      return is_key(key, "device") && read_integer(item, launch.device);
    case 'e':
      return is_key(key, "est. achieved occupancy %") &&
             read_double(item, launch.occupancy_percent);
    case 'g':
      return is_key(key, "grid") && read_three(item, launch.grid);
    case 'r':
      return is_key(key, "registers per thread") && read_integer(item, launch.registers_per_thread);
    case 's':
      if (is_key(key, "stream")) return read_integer(item, launch.stream);
      return is_key(key, "shared memory") && read_integer(item, launch.shared_memory);
    default:
      return false;
  }
}

bool EventBuilder::store(const Element& element) {
  const bool is_memory = element.name == "[memory]" || element.name == "[OutOfMemory]";
  const bool is_event = element.phase == 'X' || element.phase == 'B' || element.phase == 'E';
  if (!is_event && !(is_memory && element.phase == 'i')) return true;

  std::int64_t start = 0;
  if (!parse_nanoseconds(element.start, start) || std::abs(start) >= kLatest) return false;
  const std::uint32_t thread = thread_of(element);
  if (is_memory) {
    store_memory(element, start, thread);
    return true;
  }
  if (element.phase != 'X') {
    brackets_.push_back({start, thread, element.phase == 'B' ? mark_.events : kNoEvent});
    mark_.brackets = brackets_.size();
    if (element.phase == 'E') return true;
  }
  const std::int64_t duration = duration_of(element.duration);
  note_decimals(element.start);
  note_decimals(element.duration);
  const Category category = category_of(element);
  push({.start_ns = start,
        .duration_ns = duration,
        .external_id = element.external_id,
        .correlation = element.correlation,
        .name = trace_.texts.add(element.name),
        .thread = thread,
        .details = !has_details_         ? 0
                   : is_device(category) ? launch_index()
                                         : arguments_index(element.name),
        .category = category,
        .is_finished = element.is_finished});
  return true;
}

void EventBuilder::note_decimals(std::string_view time) {
  const std::size_t point = time.find('.');
  if (point == std::string_view::npos) return;
  const std::string_view digits = time.substr(point + 1, time.find('"', point) - point - 1);
  has_short_decimals_ |= digits.size() < 3;
  has_padded_decimals_ |= digits.size() > 1 && digits[0] == '0';
  has_ending_zero_ |= digits.size() == 2 && digits[1] == '0';
}

void EventBuilder::store_memory(const Element& element, std::int64_t start, std::uint32_t thread) {
  MemoryRecord& record = trace_.memory.emplace_back(details_.memory);
  record.time_ns = start;
  record.thread = thread;
  record.out_of_memory = element.name == "[OutOfMemory]";
  mark_.memory = trace_.memory.size();
}

std::uint32_t EventBuilder::thread_of(const Element& element) {
  if (element.pid == last_pid_ && element.tid == last_tid_ && !trace_.threads.empty()) {
    return last_thread_;
  }
  const Thread thread{trace_.texts.add(element.pid), trace_.texts.add(element.tid)};
  last_thread_ = id_of(thread_keys_, thread.pid, thread.tid) - 1;
  if (last_thread_ == trace_.threads.size()) trace_.threads.push_back(thread);
  last_pid_ = trace_.texts[thread.pid];
  last_tid_ = trace_.texts[thread.tid];
  return last_thread_;
}

std::uint32_t EventBuilder::launch_index() {
  const Launch& launch = details_.launch;
  const std::uint32_t index = id_of(launch_keys_, launch.device, launch.stream, launch.grid,
                                    launch.block, launch.registers_per_thread, launch.shared_memory,
                                    launch.bytes, launch.occupancy_percent);
  if (index == trace_.launches.size()) trace_.launches.push_back(launch);
  return index;
}

std::uint32_t EventBuilder::arguments_index(std::string_view name) {
  if (details_.input_dims.empty() && details_.input_types.empty()) return 0;
  Arguments arguments{.input_dims = trace_.texts.add(details_.input_dims),
                      .input_types = trace_.texts.add(details_.input_types)};
  if (name == "aten::conv2d") {
    arguments.concrete_inputs = trace_.texts.add(details_.concrete_inputs);
  }
  const std::uint32_t index = id_of(arguments_keys_, arguments.input_dims, arguments.input_types,
                                    arguments.concrete_inputs);
  if (index == trace_.arguments.size()) trace_.arguments.push_back(arguments);
  return index;
}

Category EventBuilder::category_of(const Element& element) {
  if (element.category.empty()) {  // torch without Kineto writes no categories
    if (element.pid == "CPU functions") return Category::cpu_op;
    if (element.pid == "CUDA functions") return Category::kernel;
    return Category::other;
  }
  if (element.category != last_category_name_) {
    last_category_name_ = trace_.texts[trace_.texts.add(element.category)];
    last_category_ = find_category(last_category_name_);
    const std::string_view device = device_of(last_category_name_);
    if (!device.empty()) trace_.device_kind = device;
  }
  return last_category_;
}

void EventBuilder::push(const Event& event) {
  if (mark_.events == blocks_.size() * kBlockEvents) blocks_.emplace_back();
  std::vector<Event>& block = blocks_[mark_.events / kBlockEvents];
  if (block.size() == block.capacity()) {
    block.reserve(mark_.events < kFirstEvents ? kFirstEvents : kBlockEvents);
  }
  block.push_back(event);
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
  judge_times();
  for (std::vector<Event>& block : blocks_) {
    for (Event& event : block) event.start_ns += trace_.base_ns;
  }
  for (MemoryRecord& record : trace_.memory) record.time_ns += trace_.base_ns;

  if (blocks_.size() == 1) {
    trace_.events = std::move(blocks_.front());
    blocks_.clear();
  }
  trace_.events.reserve(mark_.events);
  for (std::vector<Event>& block : blocks_) {
    trace_.events.insert(trace_.events.end(), block.begin(), block.end());
    std::vector<Event>().swap(block);
  }
}

// Where the recording begins, and what no event can have been: shorter than nothing, or longer than
// the recording. Such a time would own every total and every share, so it counts as 0.
void EventBuilder::judge_times() {
  ReadReport& report = trace_.report;
  report.unpadded_decimals = has_short_decimals_ && has_ending_zero_ && !has_padded_decimals_;
  const auto note = [](Oddity& oddity, std::size_t index) {
    if (oddity.count++ == 0) oddity.first = static_cast<std::uint32_t>(index);
  };
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::int64_t spans_start = kNever, spans_end = -kNever;  // of the `Trace` events
  std::int64_t first_start = kNever, last_start = -kNever;
  for (std::size_t i = 0; i < mark_.events; ++i) {
    Event& event = event_at(i);
    if (event.duration_ns < 0) {
      note(report.negative_durations, i);
      event.duration_ns = 0;
    }
    if (is_gpu_operation(event.category) && event.start_ns == 0 && event.duration_ns == 0) {
      note(report.untimed, i);
      event.is_timed = false;
    } else if (event.category == Category::profiler_span) {
      spans_start = std::min(spans_start, event.start_ns);
      spans_end = std::max(spans_end, event.start_ns + event.duration_ns);
    } else {
      first_start = std::min(first_start, event.start_ns);
      last_start = std::max(last_start, event.start_ns);
    }
  }
  const bool has_span = spans_start != kNever;
  const std::int64_t start = has_span ? spans_start : first_start;
  trace_.start_ns = trace_.base_ns + (start == kNever ? 0 : start);
  if (first_start == kNever) return;

  // Generous: real files hold a step of seconds in a span of milliseconds, and what was running at
  // the last start of a file without a span may have run for long.
  const std::int64_t starts = last_start - first_start;  // within 2^63: both are within 2^62
  const std::int64_t span = has_span ? std::max(spans_end - spans_start, starts) : starts;
  const std::int64_t longest = std::max(2 * std::min(span, kLongest), kDay);
  for (std::size_t i = 0; i < mark_.events; ++i) {
    Event& event = event_at(i);
    if (event.category == Category::profiler_span || event.duration_ns <= longest) continue;
    note(report.absurd_durations, i);
    report.longest_absurd_ns = std::max(report.longest_absurd_ns, event.duration_ns);
    event.duration_ns = 0;
  }
}

// Chrome's rule: on each thread, an E ends the latest B that is still open, in order of time.
void EventBuilder::pair_brackets() {
  std::stable_sort(brackets_.begin(), brackets_.end(),
                   [](const Bracket& a, const Bracket& b) { return a.time_ns < b.time_ns; });
  std::vector<std::vector<std::size_t>> open(brackets_.empty() ? 0 : trace_.threads.size());
  std::size_t unpaired = 0;
  for (const Bracket& bracket : brackets_) {
    std::vector<std::size_t>& stack = open[bracket.thread];
    if (bracket.event != kNoEvent) {
      stack.push_back(bracket.event);
    } else if (stack.empty()) {
      ++unpaired;
    } else {
      Event& event = event_at(stack.back());
      const auto elapsed = static_cast<std::uint64_t>(bracket.time_ns) -
                           static_cast<std::uint64_t>(event.start_ns);  // may need all 64 bits
      event.duration_ns = static_cast<std::int64_t>(std::min<std::uint64_t>(elapsed, kLongest));
      stack.pop_back();
    }
  }
  for (const std::vector<std::size_t>& stack : open) unpaired += stack.size();
  trace_.report.unpaired = static_cast<std::int64_t>(unpaired);
}

void EventBuilder::add_top_level(std::string_view key, std::string_view json) {
  std::int64_t base = 0;
  if (key == "deviceProperties") {
    read_devices(json);
  } else if (key == "metadata" && json.starts_with('{')) {
    read_metadata(json);
  } else {
    if (key == "baseTimeNanoseconds" && parse_integer(json, base) && std::abs(base) <= kLongest) {
      trace_.base_ns = base;  // added in the end: events may stand before the key
    }
    add_metadata(key, json);
  }
}

void EventBuilder::add_metadata(std::string_view key, std::string_view json) {
  if (json.starts_with('{') || json.starts_with('[')) return;
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
    add_metadata(key, token_of(current.value()));
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
