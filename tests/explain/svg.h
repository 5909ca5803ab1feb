// SPDX-License-Identifier: Apache-2.0
//
// What tests of drawings ask of any SVG.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace svg {

inline std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ++found;
  return found;
}

// Every tag is closed in order, every attribute is quoted, every & begins an entity that we write,
// and there is no character that XML forbids.
inline bool is_well_formed(std::string_view xml) {
  std::vector<std::string> open;
  for (std::size_t i = 0; i < xml.size(); ++i) {
    if (static_cast<unsigned char>(xml[i]) < 0x20 && xml[i] != '\n') return false;
    if (xml[i] == '&') {
      const std::string_view entity = xml.substr(i, xml.find(';', i) - i + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;")
        return false;
    }
    if (xml[i] != '<') continue;
    const std::size_t end = xml.find('>', i);
    if (end == std::string_view::npos) return false;
    const std::string_view tag = xml.substr(i + 1, end - i - 1);
    if (tag.find('<') != std::string_view::npos || count(tag, "\"") % 2 != 0) return false;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.emplace_back(tag.substr(0, tag.find(' ')));
    }
    i = end;
  }
  return open.empty();
}

}  // namespace svg
