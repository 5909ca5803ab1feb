// SPDX-License-Identifier: Apache-2.0
//
// How fast trace::read is beside the least that simdjson can do with the same file, and what memory
// it takes.
//
//   bench_reader trace.json [rounds]
//
// The peer is what one would write with simdjson alone: load the file, walk over its events with
// simdjson::ondemand, read the same fields (texts as string_view, times as double, ids as integers)
// and keep nothing. trace::read does more: exact nanoseconds, one copy of each text, the model.
// Both load the file within the time, both start from nothing, rounds alternate, the best of each
// counts.
#include <fmt/format.h>
#include <simdjson.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "trace/reader.h"

namespace {

using simdjson::ondemand::array;
using simdjson::ondemand::document;
using simdjson::ondemand::field;
using simdjson::ondemand::object;
using simdjson::ondemand::raw_json_string;
using simdjson::ondemand::value;

// What the walk leaves: enough that nothing of it can be optimised away.
struct Sums {
  std::size_t events = 0;
  std::size_t text_bytes = 0;
  double time = 0;
  std::int64_t ids = 0;
};

void add_text(value& item, Sums& sums) {
  std::string_view text;
  if (!item.get_string().get(text)) sums.text_bytes += text.size();
}

// An id is a number or, in old files, a text.
void add_id(value& item, Sums& sums) {
  std::int64_t id = 0;
  if (!item.get_int64().get(id)) {
    sums.ids += id;
  } else {
    add_text(item, sums);
  }
}

void add_time(value& item, Sums& sums) {
  double time = 0;
  if (!item.get_double().get(time)) sums.time += time;
}

void add_list(value& item, Sums& sums) {
  array list;
  std::string_view text;
  if (!item.get_array().get(list) && !list.raw_json().get(text)) sums.text_bytes += text.size();
}

void walk_args(object args, Sums& sums) {
  for (auto part : args) {
    field current = std::move(part).take_value();
    const raw_json_string key = current.key();
    value& item = current.value();
    if (key == "External id" || key == "correlation" || key == "device" || key == "stream" ||
        key == "registers per thread" || key == "shared memory" || key == "bytes" ||
        key == "Bytes" || key == "Total Allocated" || key == "Total Reserved" ||
        key == "Device Type" || key == "Device Id") {
      add_id(item, sums);
    } else if (key == "est. achieved occupancy %") {
      add_time(item, sums);
    } else if (key == "grid" || key == "block" || key == "Input Dims" || key == "Input type" ||
               key == "Concrete Inputs") {
      add_list(item, sums);
    }
  }
}

void walk_event(object event, Sums& sums) {
  ++sums.events;
  for (auto part : event) {
    field current = std::move(part).take_value();
    const raw_json_string key = current.key();
    value& item = current.value();
    if (key == "ph" || key == "cat" || key == "name") {
      add_text(item, sums);
    } else if (key == "pid" || key == "tid") {
      add_id(item, sums);
    } else if (key == "ts" || key == "dur") {
      add_time(item, sums);
    } else if (key == "args") {
      object args;
      if (!item.get_object().get(args)) walk_args(args, sums);
    }
  }
}

Sums walk(const std::string& path) {
  const simdjson::padded_string text = simdjson::padded_string::load(path);
  simdjson::ondemand::parser parser;
  document root = parser.iterate(text);
  Sums sums;
  for (auto event : root["traceEvents"].get_array()) walk_event(event.get_object(), sums);
  return sums;
}

template <typename Function>
double milliseconds(Function function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

// Peak resident memory of a child process that runs `function`, in bytes. The page cache, through
// which the file passes, is nobody's memory; a copy of the file in the process would count.
template <typename Function>
double peak_memory(Function function) {
  const pid_t child = ::fork();
  if (child == 0) {
    function();
    ::_exit(0);
  }
  rusage usage{};
  int status = 0;
  if (::wait4(child, &status, 0, &usage) != child || status != 0) std::abort();
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_reader TRACE.json [ROUNDS]\n");
    return 2;
  }
  const std::string path = argv[1];
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;

  // First of all, while this process is still small: a child inherits what its parent holds.
  const double before = peak_memory([] {});
  const double walk_memory = peak_memory([&] { (void)walk(path); }) - before;
  const double read_memory = peak_memory([&] { (void)trace::read(path); }) - before;

  double walk_time = std::numeric_limits<double>::infinity(), read_time = walk_time;
  Sums sums;
  std::size_t events = 0;
  double bytes = 0;
  for (int round = 0; round < rounds; ++round) {
    walk_time = std::min(walk_time, milliseconds([&] { sums = walk(path); }));
    read_time = std::min(read_time, milliseconds([&] {
                           const trace::Trace trace = trace::read(path);
                           events = trace.events.size();
                           bytes = static_cast<double>(trace.report.bytes);
                         }));
  }
  const double count = static_cast<double>(events);
  const double limit = 64 * count + 64e6;
  fmt::print("file            {:.1f} MB, {} events, {} with flows and metadata\n", bytes / 1e6,
             events, sums.events);
  fmt::print("simdjson walk   {:.1f} ms, {:.2f} GB/s, peak memory {:.1f} MB\n", walk_time,
             bytes / walk_time / 1e6, walk_memory / 1e6);
  fmt::print("trace::read     {:.1f} ms, {:.2f} GB/s, peak memory {:.1f} MB\n", read_time,
             bytes / read_time / 1e6, read_memory / 1e6);
  fmt::print("speed           {:.2f} of the walk (best of {}), {:.1f} ns per event\n",
             walk_time / read_time, rounds, 1e6 * read_time / count);
  fmt::print(
      "memory          {:.1f} bytes per event, {:.2f} of the limit of 64 bytes per event + 64 MB\n",
      read_memory / count, read_memory / limit);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "bench_reader: {}\n", error.what());
  return 1;
}
