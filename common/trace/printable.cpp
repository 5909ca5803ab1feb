// SPDX-License-Identifier: Apache-2.0
#include "trace/printable.h"

#include <cstddef>

namespace trace {
namespace {

// How many bytes of control character start here: 0 for everything that may be printed.
std::size_t control_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  // U+0080 to U+009F: some terminals take U+009B for the start of an escape sequence.
  if (byte(0) == 0xc2 && text.size() > 1 && byte(1) >= 0x80 && byte(1) <= 0x9f) return 2;
  return 0;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = control_length(text);
    if (length == 0) result += text.front();
    for (const char c : text.substr(0, length)) {
      const auto byte = static_cast<unsigned char>(c);
      result += "\\x";
      result += kDigits[byte >> 4];
      result += kDigits[byte & 15];
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

// Without control characters, two are all that JSON minds.
std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace trace
