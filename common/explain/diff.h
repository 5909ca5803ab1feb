// SPDX-License-Identifier: Apache-2.0
//
// What differs between two recordings per step: GPU operations, ops, runtime calls, bytes, times.
//
//   const trace::Trace before = trace::read("a.json.gz"), after = trace::read("b.json.gz");
//   const trace::OpTree a(before), b(after);
//   std::cout << to_text(explain::diff(a, b, explain::diff_basis(a, b, std::nullopt, "")), {});
//
// Both files are divided on the same basis: by their steps, else by their forwards, else not at
// all. One recording says nothing about significance; the spread over its own steps says how far
// its times wander, and a difference inside that spread is marked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explain/about.h"
#include "explain/per_step.h"
#include "trace/tree.h"

namespace explain {

struct DiffBasis {
  Basis basis = Basis::step;
  std::string label_a, label_b;  // of the forwards
};

// The basis that both files can be compared on: `per`, or the best there is. `label` marks the
// forwards; "": each file's own label is found. Throws RangeError (steps.h) where a file lacks it,
// or where only one of them has steps.
[[nodiscard]] DiffBasis diff_basis(const trace::OpTree& a, const trace::OpTree& b,
                                   std::optional<Basis> per, const std::string& label);

// What one file has. Rows and totals of both stand in the same order; what a file lacks is 0.
struct DiffSide {
  std::size_t periods = 0;
  std::string label;
  std::vector<AboutItem> about;
  std::int64_t left_out = 0, without_launch = 0;
};

struct TotalPair {
  std::string name;
  Unit unit = Unit::count;
  std::optional<Amount> a, b;
};

struct RowPair {
  Kind kind = Kind::op;
  std::string name;
  PerStepRow a, b;

  [[nodiscard]] double time_difference() const { return b.time_us.mean - a.time_us.mean; }
  [[nodiscard]] bool is_same() const;     // in every figure
  [[nodiscard]] bool is_similar() const;  // calls and bytes are the same, times within the spread
};

struct Diff {
  Basis basis = Basis::step;
  DiffSide a, b;
  std::vector<TotalPair> totals;
  std::vector<RowPair> rows;  // the largest difference in time first

  [[nodiscard]] bool is_empty() const;  // not one figure differs
};

[[nodiscard]] Diff diff(const trace::OpTree& a, const trace::OpTree& b, const DiffBasis& basis);

// True where the mean of one file lies between the least and the most of the other's steps.
[[nodiscard]] bool within_spread(const Amount& a, const Amount& b);

// "5", "5 to 6" where steps differ; of a time the mean.
[[nodiscard]] std::string amount_text(Unit unit, const Amount& amount);

enum class DiffFormat : std::uint8_t { text, markdown };

struct DiffTextOptions {
  std::string name_a = "A", name_b = "B";
  DiffFormat format = DiffFormat::text;
  std::int64_t limit = 25;  // rows, -1 for all
  bool all = false;         // rows without a difference, too, and whole names
};

// Text has at most 120 columns but for whole names; markdown is GitHub's, with names escaped.
[[nodiscard]] std::string to_text(const Diff& diff, const DiffTextOptions& options);

}  // namespace explain
