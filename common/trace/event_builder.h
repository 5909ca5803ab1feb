// SPDX-License-Identifier: Apache-2.0
//
// From parsed JSON to the event model. The reader finds and parses the text; this decides what an
// element of the event list means and stores it in a Trace.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/trace.h"

namespace trace {

class EventBuilder {
 public:
  // What a batch that turns out not to be whole is taken back to.
  struct Mark {
    std::size_t elements = 0;  // of any kind
    std::size_t events = 0;
    std::size_t memory = 0;
    std::size_t brackets = 0;
    std::int64_t spans_start = std::numeric_limits<std::int64_t>::max();  // `Trace` events
    std::int64_t events_start = std::numeric_limits<std::int64_t>::max();
  };

  explicit EventBuilder(Trace& trace);

  // Adds one element of the event list, or nothing where it is of a kind that the model leaves out
  // (flows, counters, metadata). False: its text is not JSON, or it is an event without a time.
  [[nodiscard]] bool add(simdjson::ondemand::value element);

  [[nodiscard]] const Mark& mark() const { return mark_; }
  void rewind(const Mark& mark);

  // A top-level key of the file with the text of its value; also keys of its `metadata` object.
  void add_top_level(std::string_view key, std::string_view json);

  // Moves the events into the trace, pairs B and E, works out start_ns.
  void finish();

 private:
  struct Fields;
  struct Bracket {  // one B or E event
    std::int64_t time_ns;
    std::uint32_t thread;
    std::size_t event;  // kEnd for E
  };

  [[nodiscard]] bool read_fields(simdjson::ondemand::object object, Fields& fields);
  static void read_args(simdjson::ondemand::object args, Fields& fields);
  [[nodiscard]] bool store(const Fields& fields);
  [[nodiscard]] std::uint32_t thread_of(const Fields& fields);
  [[nodiscard]] std::uint32_t details_of(const Fields& fields, Category category);
  [[nodiscard]] Category category_of(const Fields& fields);
  [[nodiscard]] Event& event_at(std::size_t index);
  void push(const Event& event);
  void pair_brackets();
  void move_base(std::int64_t base_ns);
  void read_devices(std::string_view json);
  void read_metadata(std::string_view json);

  Trace& trace_;
  Mark mark_;
  std::vector<std::vector<Event>> blocks_;
  std::vector<Bracket> brackets_;

  // What was seen last: most events stand beside one of the same kind and thread.
  std::string_view last_category_name_;
  Category last_category_ = Category::other;
  TextId last_pid_ = 0, last_tid_ = 0;
  std::uint32_t last_thread_ = 0;

  std::unordered_map<std::uint64_t, std::uint32_t> threads_;  // pid << 32 | tid
  std::map<std::array<TextId, 3>, std::uint32_t> arguments_;
  std::map<std::string, std::uint32_t, std::less<>> launches_;  // by the bytes of their fields
  std::map<std::string, std::size_t, std::less<>> metadata_;
  simdjson::ondemand::parser parser_;  // for top-level values; the events have the reader's
};

}  // namespace trace
