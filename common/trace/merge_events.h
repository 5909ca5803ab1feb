// SPDX-License-Identifier: Apache-2.0
//
// The few places of an event's text that a merge has to change. Private to common/trace.
//
//   EventWalker walker;
//   bool good = walker.walk(array, capacity, [](const EventPlaces& event) { use(event.pid); });
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trace {

struct IdPlace {
  std::string_view token;
  bool zero_is_none = false;  // 0 stands for "no id" and stays 0
  bool is_flow = false;       // an `id` of the event itself: may be any text
};

// Tokens as they stand in the text, strings with their quotes; empty where the event has none.
struct EventPlaces {
  const char* open = nullptr;  // its brace
  bool has_parts = false;
  std::string_view phase, name, pid, time;
  std::string_view args_name, sort_index;  // of a metadata event
  std::vector<IdPlace> ids;

  [[nodiscard]] bool is_metadata(std::string_view quoted_name) const {
    return phase == "\"M\"" && name == quoted_name;
  }
};

class EventWalker {
 public:
  // Calls `visit` for each event of the array; false where it is no array of objects.
  template <typename Visit>
  bool walk(std::string_view array, std::size_t capacity, const Visit& visit) {
    simdjson::ondemand::document document;
    simdjson::ondemand::array events;
    const simdjson::padded_string_view text(array.data(), array.size(), capacity);
    if (parser_.iterate(text).get(document) || document.get_array().get(events)) return false;
    for (auto element : events) {
      simdjson::ondemand::value event;
      if (std::move(element).get(event) || !read(event)) return false;
      visit(places_);
    }
    return true;
  }

 private:
  [[nodiscard]] bool read(simdjson::ondemand::value& event);
  [[nodiscard]] bool read_args(simdjson::ondemand::value& args);

  simdjson::ondemand::parser parser_;
  EventPlaces places_;
};

// The number of an id, in quotes or not; false where it is no whole number from 0 on.
[[nodiscard]] bool parse_id(std::string_view token, std::int64_t& id);

// What one rank's events become.
struct RankChange {
  std::int64_t rank = 0;
  std::int64_t id_offset = 0;
  std::int64_t time_ns = 0;      // added to each ts
  std::int64_t sort_offset = 0;  // added to a process's place in the list
};

// A token of a process id with the rank in front: "\"rank 0: 1234\"".
[[nodiscard]] std::string ranked(std::string_view token, std::int64_t rank);

class EventRewriter {
 public:
  explicit EventRewriter(const RankChange& change) : change_(change) {}

  // Appends the inside of the changed array; false, and `out` as it was, where it is no array of
  // objects.
  [[nodiscard]] bool append(std::string_view array, std::size_t capacity, std::string& out);

 private:
  struct Edit {
    const char* begin;
    std::size_t size;
    std::string text;
  };
  void replace(std::string_view token, std::string text);
  void change(const EventPlaces& event);
  void change_id(const IdPlace& id);

  RankChange change_;
  EventWalker walker_;
  std::vector<Edit> edits_;  // of one event, then of the whole array
};

}  // namespace trace
