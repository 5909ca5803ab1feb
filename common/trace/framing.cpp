// SPDX-License-Identifier: Apache-2.0
#include "trace/framing.h"

#include <algorithm>

namespace trace {
namespace {

constexpr auto npos = std::string_view::npos;

constexpr std::string_view kEventKeys[] = {"ph",  "cat",  "name", "pid", "tid", "ts",
                                           "dur", "args", "id",   "s",   "bp"};

bool ends_scalar(char c) {
  return is_json_space(c) || c == ',' || c == '}' || c == ']' || c == '"' || c == ':' || c == '{' ||
         c == '[';
}

// The last position before `before` that holds no white space; npos where there is none.
std::size_t skip_space_back(std::string_view text, std::size_t before) {
  while (before > 0 && is_json_space(text[before - 1])) --before;
  return before - 1;  // 0 - 1 is npos
}

}  // namespace

Framing Framer::advance(std::string_view text, std::size_t& position) {
  while (true) {
    if (state_ == State::comma_or_end && is_object_.empty()) return Framing::whole;
    if (position == text.size()) return Framing::needs_more;
    const char c = text[position];
    if (state_ == State::scalar && ends_scalar(c)) {
      state_ = State::comma_or_end;  // `c` belongs to what surrounds the scalar
    } else if (step(c)) {
      ++position;
    } else {
      return Framing::broken;
    }
  }
}

bool Framer::step(char c) {
  if (state_ == State::string) {
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (c == '\\') {
      is_escaped_ = true;
    } else if (c == '"') {
      state_ = in_key_ ? State::colon : State::comma_or_end;
    }
    return true;
  }
  if (state_ == State::scalar || is_json_space(c)) return true;
  switch (state_) {
    case State::value_or_end:
      return c == ']' ? close(false) : open_value(c);
    case State::value:
      return open_value(c);
    case State::key_or_end:
      if (c == '}') return close(true);
      [[fallthrough]];
    case State::key:
      in_key_ = true;
      state_ = State::string;
      return c == '"';
    case State::colon:
      state_ = State::value;
      return c == ':';
    default:  // comma_or_end
      if (c != ',') return (c == '}' || c == ']') && close(c == '}');
      state_ = is_object_.back() ? State::key : State::value;
      return true;
  }
}

bool Framer::open_value(char c) {
  if (c == '{' || c == '[') {
    is_object_.push_back(c == '{');
    state_ = c == '{' ? State::key_or_end : State::value_or_end;
    return true;
  }
  in_key_ = false;
  state_ = c == '"' ? State::string : State::scalar;
  return c == '"' || !ends_scalar(c);
}

bool Framer::close(bool object) {
  if (is_object_.back() != object) return false;
  is_object_.pop_back();
  state_ = State::comma_or_end;
  return true;
}

std::size_t skip_space(std::string_view text, std::size_t from) {
  while (from < text.size() && is_json_space(text[from])) ++from;
  return from;
}

std::size_t find_cut(std::string_view text) {
  for (std::size_t brace = text.rfind('{'); brace != npos && brace > 0;
       brace = text.rfind('{', brace - 1)) {
    const std::size_t comma = skip_space_back(text, brace);
    if (comma == npos || text[comma] != ',') continue;
    const std::size_t end = skip_space_back(text, comma);
    if (end != npos && text[end] == '}') return comma;
  }
  return npos;
}

bool is_event_start(std::string_view text, std::size_t position) {
  if (text[position] != '{') return false;
  const std::size_t before = skip_space_back(text, position);
  if (before != npos && text[before] == ':') return false;  // a value: "args": {"name": ...}
  const std::size_t quote = skip_space(text, position + 1);
  if (quote >= text.size() || text[quote] != '"') return false;
  const std::string_view rest = text.substr(quote + 1);
  return std::any_of(std::begin(kEventKeys), std::end(kEventKeys), [rest](std::string_view key) {
    if (!rest.starts_with(key) || rest.size() == key.size() || rest[key.size()] != '"') {
      return false;
    }
    const std::size_t colon = skip_space(rest, key.size() + 1);
    return colon < rest.size() && rest[colon] == ':';
  });
}

std::size_t find_event_start(std::string_view text, std::size_t from) {
  std::size_t brace = text.find('{', from);
  while (brace != npos && !is_event_start(text, brace)) brace = text.find('{', brace + 1);
  return brace;
}

std::size_t find_list_end(std::string_view text, std::size_t from) {
  std::size_t bracket = text.find(']', from);
  for (; bracket != npos; bracket = text.find(']', bracket + 1)) {
    const std::size_t before = skip_space_back(text, bracket);
    if (before == npos || text[before] != '}') continue;
    const std::size_t after = skip_space(text, bracket + 1);
    if (after == text.size() || text[after] == '}') break;
    const std::size_t key = skip_space(text, after + 1);
    if (text[after] == ',' && key < text.size() && text[key] == '"') break;
  }
  return bracket;
}

}  // namespace trace
