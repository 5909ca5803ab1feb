// SPDX-License-Identifier: Apache-2.0
#include "explain/figure_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "explain/kernel_name.h"
#include "trace/printable.h"

namespace explain {
namespace {

bool starts_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
}

// Bytes of the UTF-8 character at the start of `text`, 0 where there is none that XML may hold.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const std::size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < size) return 0;
  std::uint32_t code = byte(0) & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if (starts_character(text[i])) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  const bool is_character = code != 0xfffe && code != 0xffff && code <= 0x10ffff;
  return code >= kSmallest[size] && !is_surrogate && is_character ? size : 0;
}

}  // namespace

std::string short_name(trace::Category category, std::string_view name) {
  if (category == trace::Category::kernel) return decode(name).short_name;
  // "Memcpy DtoD (Device -> Device)" says the same thing twice.
  if (trace::is_gpu_operation(category)) name = name.substr(0, name.find(" ("));
  return std::string(name);
}

std::size_t length(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

std::string clipped(std::string_view text, std::size_t most) {
  if (length(text) <= most) return std::string(text);
  if (most == 0) return "";
  std::size_t end = 0;
  for (std::size_t left = most; end < text.size(); ++end) {
    if (starts_character(text[end]) && left-- == 1) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::vector<std::string> wrapped(std::string_view text, std::size_t most) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (lines.empty() || length(lines.back()) + 1 + length(word) > most) {
      lines.emplace_back(word);
    } else {
      lines.back().append(" ").append(word);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string xml_text(std::string_view text) {
  const std::string safe = trace::printable(text);
  std::string result;
  for (std::size_t i = 0; i < safe.size();) {
    const std::size_t size = character_size(std::string_view(safe).substr(i));
    switch (safe[i]) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += size > 0 ? safe.substr(i, size)
                           : fmt::format("\\x{:02x}", static_cast<unsigned char>(safe[i]));
    }
    i += std::max<std::size_t>(size, 1);
  }
  return result;
}

}  // namespace explain
