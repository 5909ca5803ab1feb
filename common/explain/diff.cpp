// SPDX-License-Identifier: Apache-2.0
#include "explain/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "explain/forwards.h"
#include "explain/steps.h"

namespace explain {
namespace {

bool is_equal(const Amount& a, const Amount& b) {
  return std::tie(a.mean, a.least, a.most) == std::tie(b.mean, b.least, b.most);
}

// How often an annotation stands in a file.
std::size_t count(const trace::OpTree& tree, const std::string& label) {
  return label.empty() ? 0 : Periods(tree, Basis::forward, label).count();
}

// What a file has to be divided by.
struct Choice {
  std::size_t steps = 0;
  std::string label;
  std::size_t forwards = 0;
};

Choice choice(const trace::OpTree& tree, const std::string& label) {
  Choice result{.steps = steps(tree.trace()).size(),
                .label = label.empty() ? forward_label(tree) : label};
  result.forwards = count(tree, result.label);
  return result;
}

void require(bool has_steps, char file) {
  if (has_steps) return;
  throw RangeError(fmt::format(
      "{} has no steps (ProfilerStep#N): compare --per forward or --per recording", file));
}

void require_forwards(const trace::OpTree& tree, const Choice& choice, char file) {
  if (choice.forwards > 0) return;
  throw RangeError(fmt::format("{}: {}", file, no_forward_text(tree, choice.label)));
}

DiffSide side(const trace::OpTree& tree, const Periods& periods, const PerStep& counted,
              const std::string& label) {
  return {.periods = periods.count(),
          .label = label,
          .about = about_items(tree.trace()),
          .left_out = counted.left_out,
          .without_launch = counted.without_launch};
}

// In A's order, then what B has alone.
std::vector<TotalPair> pair_totals(const std::vector<Total>& a, const std::vector<Total>& b) {
  std::vector<TotalPair> pairs;
  for (const Total& total : a) pairs.push_back({total.name, total.unit, total.amount, {}});
  for (const Total& total : b) {
    const auto found = std::find_if(pairs.begin(), pairs.end(),
                                    [&](const TotalPair& pair) { return pair.name == total.name; });
    if (found == pairs.end()) {
      pairs.push_back({total.name, total.unit, {}, total.amount});
    } else {
      found->b = total.amount;
    }
  }
  return pairs;
}

// Both are sorted by kind and name.
std::vector<RowPair> pair_rows(std::vector<PerStepRow> a, std::vector<PerStepRow> b) {
  std::vector<RowPair> pairs;
  const auto key = [](const PerStepRow& row) { return std::tie(row.kind, row.name); };
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const bool from_a = j == b.size() || (i < a.size() && key(a[i]) <= key(b[j]));
    const bool from_b = i == a.size() || (j < b.size() && key(b[j]) <= key(a[i]));
    const PerStepRow& either = from_a ? a[i] : b[j];
    RowPair pair{.kind = either.kind, .name = either.name, .a = {}, .b = {}};
    if (from_a) pair.a = std::move(a[i++]);
    if (from_b) pair.b = std::move(b[j++]);
    pairs.push_back(std::move(pair));
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const RowPair& x, const RowPair& y) {
    return std::abs(x.time_difference()) > std::abs(y.time_difference());
  });
  return pairs;
}

}  // namespace

bool within_spread(const Amount& a, const Amount& b) {
  const auto holds = [](const Amount& range, double value) {
    return range.least <= value && value <= range.most;
  };
  return holds(a, b.mean) || holds(b, a.mean);
}

bool RowPair::is_same() const {
  return is_equal(a.calls, b.calls) && is_equal(a.bytes, b.bytes) && is_equal(a.time_us, b.time_us);
}

bool RowPair::is_similar() const {
  return is_equal(a.calls, b.calls) && is_equal(a.bytes, b.bytes) &&
         within_spread(a.time_us, b.time_us);
}

bool Diff::is_empty() const {
  return std::all_of(rows.begin(), rows.end(), [](const RowPair& row) { return row.is_same(); }) &&
         std::all_of(totals.begin(), totals.end(), [](const TotalPair& total) {
           return total.a && total.b && is_equal(*total.a, *total.b);
         });
}

DiffBasis diff_basis(const trace::OpTree& a, const trace::OpTree& b, std::optional<Basis> per,
                     const std::string& label) {
  const Choice in_a = choice(a, label), in_b = choice(b, label);
  if (!per && !label.empty()) per = Basis::forward;
  if (!per && in_a.steps > 0 && in_b.steps > 0) per = Basis::step;
  if (!per && in_a.forwards > 0 && in_b.forwards > 0) per = Basis::forward;
  if (!per && (in_a.steps > 0) != (in_b.steps > 0)) {
    throw RangeError(fmt::format(
        "only {} has steps, so there is no basis that both files share: name one by --label, or "
        "compare --per recording",
        in_a.steps > 0 ? "A" : "B"));
  }
  const DiffBasis basis{per.value_or(Basis::recording), in_a.label, in_b.label};
  if (basis.basis == Basis::step) {
    require(in_a.steps > 0, 'A');
    require(in_b.steps > 0, 'B');
  } else if (basis.basis == Basis::forward) {
    require_forwards(a, in_a, 'A');
    require_forwards(b, in_b, 'B');
  }
  return basis;
}

Diff diff(const trace::OpTree& a, const trace::OpTree& b, const DiffBasis& basis) {
  const Periods periods_a(a, basis.basis, basis.label_a);
  const Periods periods_b(b, basis.basis, basis.label_b);
  PerStep in_a = per_step(a, periods_a), in_b = per_step(b, periods_b);
  return {.basis = basis.basis,
          .a = side(a, periods_a, in_a, basis.label_a),
          .b = side(b, periods_b, in_b, basis.label_b),
          .totals = pair_totals(in_a.totals, in_b.totals),
          .rows = pair_rows(std::move(in_a.rows), std::move(in_b.rows))};
}

}  // namespace explain
