// SPDX-License-Identifier: Apache-2.0
//
// Findings told by the ops: work that a forward does beyond its formula.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "explain/finding_view.h"
#include "explain/text.h"

namespace explain {
namespace {

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::uint32_t> ops_named(const View& view, std::span<const std::string_view> names) {
  std::vector<std::uint32_t> result;
  for (const Forward& forward : view.forwards.all()) {
    for (const std::uint32_t op : forward.ops) {
      if (is_one_of(view.tree.name(op), names)) result.push_back(op);
    }
  }
  return result;
}

// The names in order of first appearance, each once: "aten::ones > aten::tril".
std::string names_text(const View& view, std::span<const std::uint32_t> ops) {
  std::vector<std::string_view> names;
  for (const std::uint32_t op : ops) {
    if (!is_one_of(view.tree.name(op), names)) names.push_back(view.tree.name(op));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// What the ops cost: GPU operations and their names, or CPU time where no GPU took part.
void add_cost(const View& view, std::span<const std::uint32_t> ops,
              std::span<const std::uint32_t> operations, Finding& finding) {
  if (!view.facts.on_gpu) {
    finding.share = view.share(view.elapsed(ops));
    return;
  }
  finding.share = view.share(view.elapsed(operations));
  if (operations.empty()) return;
  finding.evidence.push_back(fmt::format(
      "GPU operations: {}: {}", view.per_forward(operations.size()), list_text(view, operations)));
}

}  // namespace

// On a CPU the fused kernel is an op: its own time is the forward.
std::vector<Finding> one_fused_op(const View& view) {
  constexpr double kMost = 0.5;  // the rest is the dispatcher's, which small shapes see more of
  constexpr std::string_view kFused = "aten::_scaled_dot_product_";
  constexpr std::string_view kParts[] = {"aten::bmm", "aten::_softmax"};
  if (view.facts.on_gpu || !ops_named(view, kParts).empty()) return {};
  std::vector<std::uint32_t> fused;
  double own_us = 0;
  for (const Forward& forward : view.forwards.all()) {
    for (const std::uint32_t op : forward.ops) {
      if (!view.tree.name(op).starts_with(kFused)) continue;
      fused.push_back(op);
      own_us += view.own_time(op);
    }
  }
  const Share share = view.cpu_share(own_us);
  if (fused.empty() || share.value < kMost) return {};
  return {
      {.title = "one fused op does the forward",
       .evidence = {fmt::format("{}, {}, {} of its own each; no aten::bmm and no aten::_softmax",
                                view.tree.name(fused.front()), view.per_forward(fused.size()),
                                time_text(own_us / static_cast<double>(fused.size())))},
       .share = share}};
}

// A causal mask depends on S alone. Built inside the forward it is built again in every call.
std::vector<Finding> mask_built_in_the_forward(const View& view) {
  constexpr std::string_view kTriangles[] = {"aten::tril", "aten::triu"};
  constexpr std::string_view kBuilders[] = {"aten::ones", "aten::full", "aten::tril", "aten::triu",
                                            "aten::scalar_tensor"};
  const std::vector<std::uint32_t> triangles = ops_named(view, kTriangles);
  if (triangles.empty()) return {};
  std::vector<std::uint32_t> ops;
  std::set<std::uint32_t> parents;
  for (const std::uint32_t triangle : triangles) {
    const std::uint32_t parent = view.tree.parent(triangle);  // never none: the annotation is one
    if (!parents.insert(parent).second) continue;
    bool from_scalars = false;
    for (const std::uint32_t op : view.tree.children(parent)) {
      const std::string_view name = view.tree.name(op);
      // A where between two scalars turns true and false into 0 and -inf. Without scalars beside it
      // the where applies a mask to scores, which is no part of building one.
      if (is_one_of(name, kBuilders) || (name == "aten::where" && from_scalars)) ops.push_back(op);
      from_scalars |= name == "aten::scalar_tensor";
    }
  }
  const std::uint32_t parent = *parents.begin();
  Finding finding{
      .title = fmt::format("a mask built on every call, {} times in {} forwards", triangles.size(),
                           view.facts.forwards),
      .evidence = {fmt::format("{}, in {}", names_text(view, ops), view.tree.name(parent))},
      .share = {}};
  add_cost(view, ops, view.launched_in(ops), finding);
  return {std::move(finding)};
}

// Softmax of a row that is masked whole is 0/0. The safe one finds such rows and writes zeros, with
// more passes over the scores than softmax itself takes.
std::vector<Finding> safe_softmax(const View& view) {
  constexpr std::string_view kSafe[] = {"aten::_safe_softmax"};
  const std::vector<std::uint32_t> safe = ops_named(view, kSafe);
  std::vector<std::uint32_t> extra, softmax;
  for (const std::uint32_t op : safe) {
    for (const std::uint32_t child : view.tree.children(op)) {
      const std::string_view name = view.tree.name(child);
      const bool is_softmax = name == "aten::softmax" || name == "aten::_softmax";
      (is_softmax ? softmax : extra).push_back(child);
    }
  }
  const std::vector<std::uint32_t> operations = view.launched_in(extra);
  if (extra.empty() || (view.facts.on_gpu && operations.empty())) return {};
  const double softmax_us =
      view.facts.on_gpu ? view.elapsed(view.launched_in(softmax)) : view.elapsed(softmax);
  const double extra_us = view.facts.on_gpu ? view.elapsed(operations) : view.elapsed(extra);
  const auto forwards = static_cast<double>(view.facts.forwards);
  Finding finding{
      .title = "safe softmax does more than softmax",
      .evidence = {fmt::format("aten::_safe_softmax adds {} to the {} of the softmax in it: {}",
                               time_text(extra_us / forwards), time_text(softmax_us / forwards),
                               names_text(view, extra))},
      .share = {}};
  add_cost(view, extra, operations, finding);
  return {std::move(finding)};
}

}  // namespace explain
