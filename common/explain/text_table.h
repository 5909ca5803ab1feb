// SPDX-License-Identifier: Apache-2.0
//
// A table of cells, printed for a terminal or as GitHub's markdown.
//
//   explain::TextTable table({"", "A", "B"}, {0});   // column 0 is text, the others figures
//   table.add({"kernels", "5", "4"});
//   std::cout << table.text("per step", false);      // the first head is "per step"
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace explain {

class TextTable {
 public:
  // Columns of text are aligned to the left, figures to the right.
  TextTable(std::vector<std::string> heads, std::vector<std::size_t> text_columns);

  // `below`: a line under this one, on a terminal alone.
  void add(std::vector<std::string> cells, std::string below = "");
  // "" without a line.
  [[nodiscard]] std::string text(std::string_view first_head, bool is_markdown) const;

 private:
  [[nodiscard]] bool is_text(std::size_t column) const;
  [[nodiscard]] std::string terminal(const std::vector<std::string>& heads) const;
  [[nodiscard]] std::string markdown(const std::vector<std::string>& heads) const;

  struct Line {
    std::vector<std::string> cells;
    std::string below;
  };
  std::vector<std::string> heads_;
  std::vector<std::size_t> text_columns_;
  std::vector<Line> lines_;
};

// One line each; in markdown one item each.
[[nodiscard]] std::string lines_text(const std::vector<std::string>& lines, bool is_markdown);

// Nothing in the text is markup any more. Control characters are the caller's affair
// (trace::printable).
[[nodiscard]] std::string markdown_escaped(std::string_view text);

// Each name within `most` bytes, so that names that differ look different: a part that many long
// names begin with is left out.
[[nodiscard]] std::vector<std::string> distinct_cuts(const std::vector<std::string>& names,
                                                     std::size_t most);

}  // namespace explain
