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
#include <vector>

#include "trace/trace.h"

namespace trace {

class EventBuilder {
 public:
  // What a batch that turns out not to be whole is taken back to.
  struct Mark {
    std::size_t elements = 0;  // that have a phase: events, flows, counters, metadata
    std::size_t others = 0;
    std::size_t events = 0;
    std::size_t memory = 0;
    std::size_t brackets = 0;
  };

  explicit EventBuilder(Trace& trace);

  // Adds one element of the event list, or nothing where it is of a kind that the model leaves out
  // (flows, counters, metadata). False: its text is not JSON, or it is an event without a time.
  [[nodiscard]] bool add(simdjson::ondemand::value element);

  [[nodiscard]] const Mark& mark() const { return mark_; }
  void rewind(const Mark& mark);

  // A top-level key of the file with the text of its value; also keys of its `metadata` object.
  void add_top_level(std::string_view key, std::string_view json);

  // Pairs B and E, judges the times, adds the base to them and moves the events into the trace.
  void finish();

 private:
  struct Bracket {  // one B or E event
    std::int64_t time_ns;
    std::uint32_t thread;
    std::size_t event;  // kNoEvent for E
  };

  // What the args of an element say. Most have few of them, so this is cleared only after use.
  struct Details {
    Launch launch;
    MemoryRecord memory;
    std::string_view input_dims, input_types, concrete_inputs;
  };

  // One element of the event list, before it is known what it is: its keys come in any order.
  struct Element {
    char phase = '\0';
    std::string_view category, name, pid, tid;
    std::string_view start, duration;
    std::int64_t external_id = 0, correlation = 0;
    bool is_finished = true;
  };

  [[nodiscard]] bool read(simdjson::ondemand::object parts, Element& element);
  void read_args(simdjson::ondemand::object args, Element& element);
  [[nodiscard]] bool read_detail(const char* key, simdjson::ondemand::value& item);
  [[nodiscard]] bool store(const Element& element);
  void store_memory(const Element& element, std::int64_t start, std::uint32_t thread);
  [[nodiscard]] std::uint32_t thread_of(const Element& element);
  [[nodiscard]] std::uint32_t launch_index();
  [[nodiscard]] std::uint32_t arguments_index(std::string_view name);
  [[nodiscard]] Category category_of(const Element& element);
  [[nodiscard]] Event& event_at(std::size_t index);
  void push(const Event& event);
  void note_decimals(std::string_view time);
  void pair_brackets();
  void judge_times();
  void read_devices(std::string_view json);
  void read_metadata(std::string_view json);
  void add_metadata(std::string_view key, std::string_view json);

  Trace& trace_;
  Mark mark_;
  Details details_;
  bool has_details_ = false;  // details_ is not what it is at first
  std::vector<std::vector<Event>> blocks_;
  std::vector<Bracket> brackets_;

  // How the decimals of times are written: what they tell is judged in the end.
  bool has_short_decimals_ = false;   // fewer than three digits
  bool has_padded_decimals_ = false;  // a 0 before other digits
  bool has_ending_zero_ = false;      // two or three digits, the last one 0: not a double's

  // What was seen last: most events stand beside one of the same kind and thread.
  std::string_view last_category_name_, last_pid_, last_tid_;  // in the pool
  Category last_category_ = Category::other;
  std::uint32_t last_thread_ = 0;

  // What makes an entry of trace_.threads, .arguments and .launches, as bytes: the id of the bytes
  // is the index of the entry (of a thread, one more).
  TextPool thread_keys_, arguments_keys_, launch_keys_;
  std::map<std::string, std::size_t, std::less<>> metadata_;
  simdjson::ondemand::parser parser_;  // for top-level values; the events have the reader's
};

}  // namespace trace
