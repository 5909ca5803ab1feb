// SPDX-License-Identifier: Apache-2.0
//
// Where JSON values begin and end, without building anything. simdjson parses whole documents only;
// this finds the pieces of a trace that it can be given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace trace {

enum class Framing { whole, needs_more, broken };

// Follows one JSON value through text that arrives in pieces. Strings and numbers are not checked,
// the order of braces, keys, colons and commas is: so damage shows within a few characters, not at
// the end of the file. No recursion: a value may be nested a million levels deep.
//
//   trace::Framer framer;
//   std::size_t position = text.find('{');
//   if (framer.advance(text, position) == trace::Framing::whole) ...   // the value ends there
class Framer {
 public:
  // Goes on at `position` and leaves it behind the value (whole), at the end of the text
  // (needs_more: call again with more), or at the character that cannot stand there (broken).
  Framing advance(std::string_view text, std::size_t& position);

 private:
  enum class State : std::uint8_t {
    value,         // a value must follow
    value_or_end,  // behind [
    key,
    key_or_end,  // behind {
    colon,
    comma_or_end,  // behind a value
    string,
    scalar,  // number, true, NaN, 0x7f: what is none of the others
  };
  [[nodiscard]] bool step(char c);  // false: broken
  [[nodiscard]] bool open_value(char c);
  [[nodiscard]] bool close(bool object);

  State state_ = State::value;
  bool in_key_ = false;
  bool is_escaped_ = false;
  std::vector<bool> is_object_;  // the containers that are open
};

[[nodiscard]] inline bool is_json_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// The first position at or behind `from` that holds no white space; text.size() where none does.
[[nodiscard]] std::size_t skip_space(std::string_view text, std::size_t from);

// A guess: the last comma in `text` that seems to stand between two events, npos where there is
// none. It may stand in a string or in a nested list; what is cut there then fails to parse.
[[nodiscard]] std::size_t find_cut(std::string_view text);

// True where an event seems to begin: a brace, then one of the keys that events have.
[[nodiscard]] bool is_event_start(std::string_view text, std::size_t position);

// The first such position at or behind `from`; npos where there is none.
[[nodiscard]] std::size_t find_event_start(std::string_view text, std::size_t from);

// Where the event list seems to end: a ] behind an event, before another key or the closing brace.
[[nodiscard]] std::size_t find_list_end(std::string_view text, std::size_t from);

}  // namespace trace
