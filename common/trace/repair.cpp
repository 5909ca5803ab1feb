// SPDX-License-Identifier: Apache-2.0
#include "trace/repair.h"

#include <array>
#include <cstdint>
#include <vector>

namespace trace {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::size_t kLongestKey = 256;                   // of the keys that are looked for

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// A UTF-8 sequence at the front of a text: its length, and whether it is one. Of a broken one the
// part that could have become a character counts, which is what one U+FFFD stands for.
struct Sequence {
  std::size_t length;
  bool is_valid;
};

Sequence sequence_at(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return {1, true};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return {1, false};
  // The second byte's range keeps out overlong forms, surrogates and what is beyond U+10FFFF.
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) return {1, false};
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {i, false};
  }
  return {length, true};
}

class Repairer {
 public:
  explicit Repairer(std::string_view text) : text_(text) {}

  Repair run() {
    Framing framing = Framing::needs_more;
    while (framing == Framing::needs_more && next_ < text_.size()) framing = token();
    return {framing, next_, std::move(out_)};
  }

 private:
  enum class Last { nothing, open, comma, colon, key, value };

  // Reads one token; `whole` behind the last one of the value.
  Framing token() {
    const char c = text_[next_];
    if (is_json_space(c)) {
      ++next_;
      return Framing::needs_more;
    }
    if (c == ',' || c == ':') return separator(c);
    if (c == '}' || c == ']') return close(c);
    if (c == '{' || c == '[') {
      if (!begin_value()) return Framing::broken;
      open_.push_back(c);
      out_ += c;
      ++next_;
      last_ = Last::open;
      return Framing::needs_more;
    }
    const bool is_key = expects_key();
    if (!is_key && !begin_value()) return Framing::broken;
    if (is_key && last_ == Last::comma) out_ += ',';
    if (c == '"' || is_key) {
      next_ += c == '"';  // a key may lack it
      if (const Framing end = string(is_key); end != Framing::whole) return end;
    } else {
      while (next_ < text_.size() && !ends_scalar(text_[next_])) out_ += text_[next_++];
      if (next_ == text_.size()) return Framing::needs_more;
    }
    last_ = is_key ? Last::key : Last::value;
    return open_.empty() ? Framing::whole : Framing::needs_more;
  }

  static bool ends_scalar(char c) { return is_json_space(c) || c == ',' || c == '}' || c == ']'; }

  bool in_object() const { return !open_.empty() && open_.back() == '{'; }
  bool expects_key() const { return in_object() && (last_ == Last::open || last_ == Last::comma); }

  // Commas are written when the next member comes, so that superfluous ones vanish.
  bool begin_value() {
    if (open_.empty()) return last_ == Last::nothing;
    if (in_object()) return last_ == Last::colon;
    if (last_ == Last::comma) out_ += ',';
    return last_ == Last::open || last_ == Last::comma;
  }

  Framing separator(char c) {
    if (open_.empty()) return Framing::broken;
    ++next_;
    if (c == ':') {
      if (last_ != Last::key) return Framing::broken;
      out_ += c;
      last_ = Last::colon;
      return Framing::needs_more;
    }
    if (last_ == Last::key) return Framing::broken;
    if (last_ == Last::colon) out_ += "null";
    if (last_ != Last::open) last_ = Last::comma;
    return Framing::needs_more;
  }

  Framing close(char c) {
    if (open_.empty() || (c == '}') != in_object() || last_ == Last::key) return Framing::broken;
    if (last_ == Last::colon) out_ += "null";
    open_.pop_back();
    out_ += c;
    ++next_;
    last_ = Last::value;
    return open_.empty() ? Framing::whole : Framing::needs_more;
  }

  // The rest of a string, behind its first quote.
  Framing string(bool is_key) {
    out_ += '"';
    while (next_ < text_.size()) {
      const char c = text_[next_];
      if (c == '"' && ends_string(is_key)) {
        out_ += '"';
        ++next_;
        return Framing::whole;
      }
      // A string that ran into the next event has lost its end.
      if (c == '{' && is_event_start(text_, next_)) return Framing::broken;
      if (c == '\\') {
        if (escape(is_key)) return Framing::whole;
      } else {
        character();
      }
    }
    return Framing::needs_more;
  }

  // One character of a string that is no escape.
  void character() {
    const char c = text_[next_];
    if (c == '"') {
      out_ += "\\\"";
      ++next_;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr char kHex[] = "0123456789abcdef";
      out_ += "\\u00";
      out_ += kHex[c >> 4];
      out_ += kHex[c & 15];
      ++next_;
    } else {
      const Sequence sequence = sequence_at(text_.substr(next_, 4));
      out_ += sequence.is_valid ? text_.substr(next_, sequence.length) : kReplacement;
      next_ += sequence.length;
    }
  }

  // What begins with a backslash. True where it turns out to end the string: "C:\", "next": 1.
  bool escape(bool is_key) {
    const std::string_view rest = text_.substr(next_, 12);
    const char kind = rest.size() > 1 ? rest[1] : '\0';
    if (kind == '"' && !is_key && in_object() && is_member_after(next_ + 2, false)) {
      out_ += "\\\\\"";
      next_ += 2;
      return true;
    }
    std::size_t length = 2;
    std::uint32_t code = 0;
    if (kind == 'u' && hex_at(rest, 2, code)) {
      length = 6;
      std::uint32_t low = 0;
      const bool is_high = code >= 0xD800 && code < 0xDC00;
      const bool is_pair = is_high && rest.substr(6, 2) == "\\u" && hex_at(rest, 8, low) &&
                           low >= 0xDC00 && low < 0xE000;
      if (is_pair) {
        length = 12;
      } else if (code >= 0xD800 && code < 0xE000) {
        out_ += kReplacement;
        next_ += length;
        return false;
      }
    } else if (std::string_view("\"\\/bfnrt").find(kind) == std::string_view::npos) {
      out_ += "\\\\";  // no escape of JSON: a backslash, as in C:\Users
      ++next_;
      return false;
    }
    out_ += rest.substr(0, length);
    next_ += length;
    return false;
  }

  static bool hex_at(std::string_view text, std::size_t from, std::uint32_t& code) {
    if (text.size() < from + 4) return false;
    code = 0;
    for (const char c : text.substr(from, 4)) {
      if (!is_hex(c)) return false;
      code = code << 4 | static_cast<std::uint32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return true;
  }

  // Whether the quote at next_ ends its string: only then does what follows fit the grammar.
  bool ends_string(bool is_key) const {
    const std::size_t after = skip_space(text_, next_ + 1);
    if (after == text_.size()) return true;
    const char c = text_[after];
    if (is_key) return c == ':';
    if (open_.empty()) return c == ',' || c == '}';
    if (in_object()) return c == '}' || is_member_after(next_ + 1, true);
    if (c != ',') return c == ']';
    const std::size_t next = skip_space(text_, after + 1);
    return next == text_.size() ||
           std::string_view("\"{[]-0123456789").find(text_[next]) != std::string_view::npos;
  }

  // Whether a comma and a key with its colon follow. If `lenient`, the key may lack its first quote
  // and what the text does not show is taken to be right.
  bool is_member_after(std::size_t from, bool lenient) const {
    const std::size_t comma = skip_space(text_, from);
    if (comma == text_.size() || text_[comma] != ',') return false;
    std::size_t key = skip_space(text_, comma + 1);
    if (key == text_.size()) return lenient;
    if (text_[key] == '}') return lenient;  // a superfluous comma
    const bool is_quoted = text_[key] == '"';
    if (!is_quoted && !lenient) return false;
    key += is_quoted;
    const std::string_view rest = text_.substr(key, kLongestKey);
    const std::size_t quote = rest.find('"');
    if (quote == std::string_view::npos) return lenient;
    if (!is_quoted && rest.find_first_of(",:{}") < quote) return false;
    const std::size_t colon = skip_space(text_, key + quote + 1);
    return colon < text_.size() && text_[colon] == ':';
  }

  std::string_view text_;
  std::size_t next_ = 0;
  std::string out_;
  std::vector<char> open_;  // the containers that are open, by their first character
  Last last_ = Last::nothing;
};

}  // namespace

Repair repair(std::string_view text) {
  return Repairer(text).run();
}

}  // namespace trace
