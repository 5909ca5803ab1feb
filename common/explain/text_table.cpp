// SPDX-License-Identifier: Apache-2.0
#include "explain/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "explain/text.h"

namespace explain {
namespace {

// Letters of UTF-8, not bytes.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;
  }));
}

// Of the letters that both begin with.
std::size_t common_prefix(std::string_view a, std::string_view b) {
  const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(differ.first - a.begin());
}

// Some letters before where it differs from the others, then what fits.
std::string cut_from(std::string_view name, std::size_t differs_at, std::size_t most) {
  std::size_t begin = differs_at - std::min(differs_at, most / 3);
  while (begin > 0 && (static_cast<unsigned char>(name[begin]) & 0xC0U) == 0x80) --begin;
  return "..." + cut(name.substr(begin), most - 3);
}

}  // namespace

TextTable::TextTable(std::vector<std::string> heads, std::vector<std::size_t> text_columns)
    : heads_(std::move(heads)), text_columns_(std::move(text_columns)) {}

void TextTable::add(std::vector<std::string> cells, std::string below) {
  lines_.push_back({std::move(cells), std::move(below)});
}

std::string TextTable::text(std::string_view first_head, bool is_markdown) const {
  if (lines_.empty()) return "";
  std::vector<std::string> heads = heads_;
  heads.front() = first_head;
  return is_markdown ? markdown(heads) : terminal(heads);
}

bool TextTable::is_text(std::size_t column) const {
  return std::find(text_columns_.begin(), text_columns_.end(), column) != text_columns_.end();
}

std::string TextTable::terminal(const std::vector<std::string>& heads) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    std::size_t width = columns(heads[i]);
    for (const Line& line : lines_) width = std::max(width, columns(line.cells[i]));
    widths.push_back(width);
  }
  const auto row = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) text += "  ";
      text += is_text(i) ? fmt::format("{:<{}}", cells[i], widths[i])
                         : fmt::format("{:>{}}", cells[i], widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string text = row(heads);
  for (const Line& line : lines_) {
    text += row(line.cells);
    if (!line.below.empty()) text += fmt::format("    {}\n", line.below);
  }
  return text;
}

std::string TextTable::markdown(const std::vector<std::string>& heads) const {
  const auto row = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += fmt::format(" {} |", markdown_escaped(cell));
    return text + "\n";
  };
  std::string text = row(heads) + "|";
  for (std::size_t i = 0; i < heads.size(); ++i) text += is_text(i) ? ":--|" : "--:|";
  text += "\n";
  for (const Line& line : lines_) text += row(line.cells);
  return text;
}

std::string lines_text(const std::vector<std::string>& lines, bool is_markdown) {
  std::string text;
  for (const std::string& line : lines) {
    text += is_markdown ? fmt::format("- {}\n", markdown_escaped(line)) : line + "\n";
  }
  return text;
}

std::string markdown_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      constexpr std::string_view kMarkup = "\\`*_[]|~#>!";
      if (kMarkup.find(c) != std::string_view::npos) result += '\\';
      result += c;
    }
  }
  return result;
}

std::vector<std::string> distinct_cuts(const std::vector<std::string>& names, std::size_t most) {
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return names[a] < names[b]; });
  std::vector<std::string> cuts(names.size());
  std::size_t before = 0;  // what a name shares with the one sorted before it
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string& name = names[order[i]];
    const std::size_t behind = i + 1 < order.size() ? common_prefix(name, names[order[i + 1]]) : 0;
    const std::size_t shared = std::max(before, behind);
    const bool is_told = name.size() <= most || shared + 4 <= most;
    cuts[order[i]] = is_told ? cut(name, most) : cut_from(name, shared, most);
    before = behind;
  }
  return cuts;
}

}  // namespace explain
