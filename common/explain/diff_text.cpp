// SPDX-License-Identifier: Apache-2.0
//
// A diff as text or markdown: the same cells, printed in two ways.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "explain/diff.h"
#include "explain/kernel_name.h"
#include "explain/text.h"
#include "explain/text_table.h"
#include "trace/printable.h"

namespace explain {
namespace {

constexpr std::size_t kNameColumns = 46;  // what 120 leave beside the figures
constexpr std::size_t kWholeLine = 116;   // of a name on a line of its own, indented by 4

std::string value_text(Unit unit, double value) {
  switch (unit) {
    case Unit::time:
      return time_text(value);
    case Unit::bytes:
      return size_text(std::llround(std::clamp(value, -9e18, 9e18)));  // within 64 bits
    case Unit::share:
      return share_text(value);
    case Unit::count:
      break;
  }
  return fmt::format("{:.0f}", value);
}

std::string difference_text(Unit unit, double difference) {
  if (unit == Unit::share) return fmt::format("{:+.1f} points", 100 * difference);
  if (unit == Unit::count) {
    return difference == std::trunc(difference) ? fmt::format("{:+.0f}", difference)
                                                : fmt::format("{:+.1f}", difference);
  }
  return (difference < 0 ? "" : "+") + value_text(unit, difference);
}

std::string ratio_text(double a, double b) {
  if (a == b) return "1.00";
  if (a == 0) return "new";
  if (b == 0) return "gone";
  return fmt::format("{:.2f}", b / a);
}

bool is_equal(const Amount& a, const Amount& b) {
  return a.mean == b.mean && a.least == b.least && a.most == b.most;
}

std::string mark(const Amount& a, const Amount& b) {
  return !is_equal(a, b) && within_spread(a, b) ? "~" : "";
}

bool is_shown(const TotalPair& total, bool all) {
  if (total.a && total.b && is_equal(*total.a, *total.b)) return all;
  return total.a || total.b;
}

std::vector<std::string> cells(const TotalPair& total) {
  const auto text = [&](const std::optional<Amount>& amount) {
    return amount ? amount_text(total.unit, *amount) : std::string("-");
  };
  std::vector<std::string> line{total.name, text(total.a), text(total.b), "", "", ""};
  if (!total.a || !total.b) return line;
  line[3] = difference_text(total.unit, total.b->mean - total.a->mean);
  if (total.unit != Unit::share) line[4] = ratio_text(total.a->mean, total.b->mean);
  if (total.unit == Unit::time) line[5] = mark(*total.a, *total.b);
  return line;
}

// What a row is about beside its time: copies of another size.
std::string bytes_note(const RowPair& row) {
  if (is_equal(row.a.bytes, row.b.bytes) || row.a.calls.mean == 0 || row.b.calls.mean == 0) {
    return "";
  }
  return fmt::format(", {} -> {}", amount_text(Unit::bytes, row.a.bytes),
                     amount_text(Unit::bytes, row.b.bytes));
}

std::vector<std::string> cells(const RowPair& row, std::string name) {
  const auto time = [](const PerStepRow& side) {
    return side.calls.most == 0 ? "-" : amount_text(Unit::time, side.time_us);
  };
  return {std::string(to_string(row.kind)),
          amount_text(Unit::count, row.a.calls),
          amount_text(Unit::count, row.b.calls),
          time(row.a),
          time(row.b),
          difference_text(Unit::time, row.time_difference()),
          ratio_text(row.a.time_us.mean, row.b.time_us.mean),
          mark(row.a.time_us, row.b.time_us),
          std::move(name) + bytes_note(row)};
}

std::string plural(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// "A  naive.json.gz: 3 steps"
std::string file_line(const Diff& diff, const DiffSide& side, char letter,
                      const std::string& name) {
  std::string text = fmt::format("{}  {}", letter, trace::printable(name));
  if (diff.basis != Basis::recording) {
    text += ": " + plural(side.periods, to_string(diff.basis));
  }
  if (diff.basis == Basis::forward) text += fmt::format(" ({})", trace::printable(side.label));
  return text;
}

std::string value_of(const DiffSide& side, std::string_view name) {
  for (const AboutItem& item : side.about) {
    if (item.name == name) return item.value;
  }
  return "";
}

// What is known of the runs: once where it is the same in both.
std::vector<std::string> run_lines(const Diff& diff) {
  std::vector<std::string> lines;
  constexpr std::array<std::string_view, 7> kNames = {"Chapter", "Variant", "Device", "LibTorch",
                                                      "CUDA",    "Shape",   "dtype"};
  for (const std::string_view name : kNames) {
    const std::string a = value_of(diff.a, name), b = value_of(diff.b, name);
    if (a.empty() && b.empty()) continue;
    const auto text = [](const std::string& value) { return value.empty() ? "not said" : value; };
    lines.push_back(a == b ? fmt::format("{:<9} {}", name, a)
                           : fmt::format("{:<9} differs: A {}; B {}", name, text(a), text(b)));
  }
  return lines;
}

std::string left_out_line(const DiffSide& side, char letter, std::string_view basis) {
  if (side.left_out == 0) return "";
  std::string text = fmt::format("{}: {} outside the {}s left out", letter,
                                 plural(static_cast<std::size_t>(side.left_out), "event"), basis);
  if (side.without_launch > 0) {
    text +=
        fmt::format(" ({} GPU operations were launched before the recording)", side.without_launch);
  }
  return text;
}

std::vector<std::string> notes(const Diff& diff, bool has_mark) {
  std::vector<std::string> lines;
  const std::string_view basis = to_string(diff.basis);
  if (has_mark) {
    lines.push_back(
        fmt::format("~ within the spread: the mean of one file lies between the least and the "
                    "most {} of the other",
                    basis));
  }
  if (diff.a.periods == 1 || diff.b.periods == 1) {
    lines.push_back(
        fmt::format("one {} has no spread: how far its times wander is not known", basis));
  }
  for (const std::string& line :
       {left_out_line(diff.a, 'A', basis), left_out_line(diff.b, 'B', basis)}) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

// Rows that are printed; how many others differ, and how many do not.
struct Selection {
  std::vector<const RowPair*> rows;
  std::size_t cut = 0, similar = 0;
};

Selection select(const Diff& diff, const DiffTextOptions& options) {
  Selection result;
  for (const RowPair& row : diff.rows) {
    if (!options.all && row.is_similar()) {
      ++result.similar;
    } else if (options.limit < 0 || result.rows.size() < static_cast<std::size_t>(options.limit)) {
      result.rows.push_back(&row);
    } else {
      ++result.cut;
    }
  }
  return result;
}

std::string rest_line(const Selection& selection) {
  std::vector<std::string> parts;
  if (selection.cut > 0) {
    parts.push_back(plural(selection.cut, "more row") + " (--limit -1 prints them)");
  }
  if (selection.similar > 0) {
    parts.push_back(plural(selection.similar, "row") +
                    " with the same calls and bytes and a time within the spread (--all)");
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

// A name in full, or what fits: then a kernel's decoded name stands in its place, and the real one,
// as much as tells it from the others, on the line below.
struct ShownName {
  std::string name, below;
};

std::vector<ShownName> shown_names(const Selection& selection, bool is_whole) {
  std::vector<std::string> long_names;
  for (const RowPair* row : selection.rows) long_names.push_back(trace::printable(row->name));
  const std::vector<std::string> cuts = distinct_cuts(long_names, kWholeLine);
  std::vector<ShownName> shown;
  for (std::size_t i = 0; i < long_names.size(); ++i) {
    const RowPair& row = *selection.rows[i];
    if (is_whole || long_names[i].size() <= kNameColumns) {
      shown.push_back({long_names[i], ""});
    } else if (is_on_gpu(row.kind)) {
      shown.push_back({decode(row.name).short_name, cuts[i]});
    } else {
      shown.push_back({cut(long_names[i], kNameColumns), cuts[i]});
    }
  }
  return shown;
}

const std::vector<std::string> kTotalHeads{"", "A", "B", "B - A", "ratio", ""};
const std::vector<std::string> kRowHeads{"",      "calls A", "calls B", "time A", "time B",
                                         "B - A", "ratio",   "",        "name"};

}  // namespace

// Times wander, so their mean stands for them; what is counted is a range where steps differ.
std::string amount_text(Unit unit, const Amount& amount) {
  if (unit == Unit::time || amount.least == amount.most) return value_text(unit, amount.mean);
  return fmt::format("{} to {}", value_text(unit, amount.least), value_text(unit, amount.most));
}

std::string to_text(const Diff& diff, const DiffTextOptions& options) {
  const bool is_markdown = options.format == DiffFormat::markdown;
  const Selection selection = select(diff, options);
  TextTable totals(kTotalHeads, {0}), rows(kRowHeads, {0, 8});
  bool has_mark = false;
  for (const TotalPair& total : diff.totals) {
    if (!is_shown(total, options.all)) continue;
    totals.add(cells(total));
    has_mark |= cells(total)[5] == "~";
  }
  const std::vector<ShownName> names = shown_names(selection, is_markdown || options.all);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::vector<std::string> line = cells(*selection.rows[i], names[i].name);
    rows.add(line, names[i].below);
    has_mark |= line[7] == "~";
  }

  std::vector<std::string> head{file_line(diff, diff.a, 'A', options.name_a),
                                file_line(diff, diff.b, 'B', options.name_b)};
  for (std::string& line : run_lines(diff)) head.push_back(std::move(line));
  std::string text = lines_text(head, is_markdown) + "\n";
  if (diff.is_empty()) {
    text += "No difference.\n";
    if (!options.all) return text;
    text += "\n";
  }
  const std::string per = fmt::format("per {}", to_string(diff.basis));
  text += totals.text(per, is_markdown) + "\n" + rows.text(per, is_markdown);
  std::vector<std::string> tail = notes(diff, has_mark);
  if (const std::string rest = rest_line(selection); !rest.empty()) tail.insert(tail.begin(), rest);
  if (!tail.empty()) text += "\n" + lines_text(tail, is_markdown);
  return text;
}

}  // namespace explain
