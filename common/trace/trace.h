// SPDX-License-Identifier: Apache-2.0
//
// The event model: what a Kineto/Chrome trace file holds, as plain data.
//
// Everything that prints, compares or explains a trace starts from one `trace::Trace`, and only
// `trace::read` (reader.h) makes one. No header of common/trace includes a torch header, so all of
// it builds in seconds and runs on a machine without LibTorch.
//
//   trace::Trace trace = trace::read("traces/01_naive/8_16_1024_64_naive.json.gz");
//   for (const trace::Event& event : trace.events)
//     if (event.category == trace::Category::kernel) total_ns += event.duration_ns;
//
// Units: times are exact integer nanoseconds, sizes are bytes, ids are as the file gives them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/text_pool.h"

namespace trace {

// PyTorch's words for the kinds of events (`cat` in the file). Names of other versions and vendors
// ("Kernel", "Operator", "hip_runtime", ...) are mapped onto these by the reader.
enum class Category : std::uint8_t {
  cpu_op,
  user_annotation,
  gpu_user_annotation,
  cuda_runtime,
  cuda_driver,
  kernel,
  gpu_memcpy,
  gpu_memset,
  cuda_sync,
  cuda_profiler_range,  // CUPTI's range profiler: spans on the device, of no op
  overhead,
  cpu_instant_event,
  python_function,
  profiler_span,  // `Trace`: the span of the recording itself, never a row
  other,
};

// True for what ran on the device: kernels, copies, memsets, device annotations, stream syncs.
[[nodiscard]] bool is_device(Category category);

// True for a GPU operation: a kernel, a memcpy or a memset.
[[nodiscard]] bool is_gpu_operation(Category category);

// True for what a user named: record_function, ProfilerStep#N and their spans on the device.
[[nodiscard]] bool is_annotation(Category category);

// The name as the file spells it in current PyTorch ("cpu_op", "gpu_memcpy", ...).
[[nodiscard]] std::string_view to_string(Category category);

// One complete event (`ph` X). Kept small because files hold up to 1e7 of them: everything that
// repeats from call to call (names, threads, shapes, launch configurations) is stored once in the
// Trace and referred to by index.
struct Event {
  std::int64_t start_ns = 0;     // baseTimeNanoseconds + ts: since 1970 where the file says so
  std::int64_t duration_ns = 0;  // a negative duration in the file is 0 here
  std::int64_t external_id = 0;  // `External id`: of the op itself, or of the op that launched it
  std::int64_t correlation = 0;  // joins a runtime call with the GPU operation it launched
  TextId name = 0;               // Trace::text(event.name)
  std::uint32_t thread = 0;      // index into Trace::threads
  std::uint32_t details = 0;     // index into Trace::arguments (ops) or Trace::launches (device)
  Category category = Category::other;
  bool is_finished = true;  // false: an op that was still open when the profiler stopped
  bool is_timed = true;     // false: a GPU operation that has no times (ts 0 and dur 0)
};
static_assert(sizeof(Event) <= 48);

// A row of the timeline: a CPU thread or a GPU stream. Ids are opaque text, since files hold
// numbers, negative numbers and words.
struct Thread {
  TextId pid = 0;
  TextId tid = 0;
};

// What an op was called with, as the JSON text that stands in the file (empty where it does not).
struct Arguments {
  TextId input_dims = 0;   // `Input Dims`, e.g. "[[8, 16, 1024, 64], [], []]"
  TextId input_types = 0;  // `Input type`, e.g. "[\"c10::BFloat16\", \"Scalar\"]"
  // `Concrete Inputs`; kept for aten::conv2d alone, whose FLOPs need it
  TextId concrete_inputs = 0;
};

// How a GPU operation was launched. Fields that the file does not give are 0, occupancy is -1.
struct Launch {
  std::int32_t device = 0;
  std::int64_t stream = 0;
  std::array<std::uint32_t, 3> grid{};
  std::array<std::uint32_t, 3> block{};
  std::int32_t registers_per_thread = 0;
  std::int64_t shared_memory = 0;  // bytes per block, static + dynamic
  std::int64_t bytes = 0;          // moved by a memcpy, set by a memset
  double occupancy_percent = -1;   // Kineto's `est. achieved occupancy %`
};

// One `[memory]` or `[OutOfMemory]` record: an allocation (bytes > 0) or a free (bytes < 0).
struct MemoryRecord {
  std::int64_t time_ns = 0;
  std::int64_t bytes = 0;
  std::int64_t address = 0;  // `Addr`: joins a free with its allocation; 0 where there is none
  std::int64_t total_allocated = -1;  // after this record; -1 where the file does not say
  std::int64_t total_reserved = -1;
  std::uint32_t thread = 0;
  std::int16_t device_type = 0;  // c10::DeviceType: 0 CPU, 1 CUDA, 6 HIP, 12 XPU, 20 PrivateUse1
  std::int16_t device_index = -1;
  bool out_of_memory = false;
};

// What the file says about one device (`deviceProperties`). 0 where it does not say.
struct DeviceProperties {
  std::int64_t id = 0;
  std::string name;
  std::int64_t total_memory = 0;  // bytes
  int compute_major = 0, compute_minor = 0;
  int multiprocessors = 0;
  int max_threads_per_block = 0, max_threads_per_multiprocessor = 0;
  int registers_per_block = 0, registers_per_multiprocessor = 0;
  int warp_size = 0;
  std::int64_t shared_memory_per_block = 0;
  std::int64_t shared_memory_per_block_optin = 0;
  std::int64_t shared_memory_per_multiprocessor = 0;
};

// A scalar at the top level of the file, or in its `metadata` object: `with_flops`, `trace_id`,
// what addMetadataJson wrote. `json` is the value's text as it stands (strings with their quotes).
struct Metadata {
  std::string key;
  std::string json;
};

// Events that are odd in one way: how many, and the first of them.
struct Oddity {
  std::int64_t count = 0;
  std::uint32_t first = 0;  // index into Trace::events
};

// What reading cost: a file that was damaged is read as far as it goes, and this says how far.
struct ReadReport {
  std::int64_t bytes = 0;           // of (decompressed) text
  std::int64_t repaired = 0;        // events that a strict parser refuses and that were mended
  std::int64_t dropped = 0;         // events that could not be mended
  std::int64_t dropped_bytes = 0;   // of text that was passed over with them
  std::int64_t first_repaired = 0;  // byte of the text where the first of them begins
  std::int64_t first_dropped = 0;
  std::int64_t damaged_from = -1;  // byte outside the event list behind which keys may be missing
  std::int64_t unread_from = -1;   // byte behind the end of the trace where more text begins
  bool truncated = false;          // the file ends before its event list does
  std::int64_t unpaired = 0;       // begin and end events (ph B, E) without a partner
  Oddity negative_durations;       // below 0 in the file, 0 here
  Oddity absurd_durations;         // a day or more, and beyond the whole recording: 0 here
  std::int64_t longest_absurd_ns = 0;
  Oddity untimed;  // GPU operations with ts 0 and dur 0: no part of any span
  // Decimals of ts and dur were written without their leading zeros (.5 for .005), as Kineto did in
  // early 2024: such times are off by up to 0.9 us.
  bool unpadded_decimals = false;
  std::vector<std::string> warnings;  // one sentence each, safe to print on a terminal

  [[nodiscard]] bool complete() const { return !truncated && unread_from < 0 && dropped == 0; }
};

struct Trace {
  std::vector<Event> events;  // in the order of the file
  std::vector<MemoryRecord> memory;
  std::vector<Thread> threads;
  std::vector<Arguments> arguments{1};  // [0] stands for "none"
  std::vector<Launch> launches{1};      // [0] stands for "none"
  std::vector<DeviceProperties> devices;
  std::vector<Metadata> metadata;
  TextPool texts;
  std::string device_kind = "CUDA";  // what PyTorch calls the device: also "XPU", "MTIA", "HPU"
  std::int64_t base_ns = 0;          // baseTimeNanoseconds, 0 where there is none
  std::int64_t start_ns = 0;  // of the recording: where the `Trace` span begins, else event one
  ReadReport report;

  [[nodiscard]] std::string_view text(TextId id) const { return texts[id]; }
  [[nodiscard]] std::string_view name(const Event& event) const { return texts[event.name]; }
  [[nodiscard]] const Arguments& arguments_of(const Event& event) const;  // [0] for device events
  [[nodiscard]] const Launch& launch_of(const Event& event) const;        // [0] for CPU events

  // JSON text of a top-level or metadata value, "" where the file has no such key.
  [[nodiscard]] std::string_view metadata_value(std::string_view key) const;
  // True where the value stands as a number other than 0 or as true: `profile_memory`,
  // `with_flops`.
  [[nodiscard]] bool flag(std::string_view key) const;
};

}  // namespace trace
