// SPDX-License-Identifier: Apache-2.0
#include "explain/forwards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "explain/steps.h"
#include "trace/printable.h"

namespace explain {
namespace {

using trace::Category;
using trace::kNoEvent;

constexpr std::string_view kStep = "ProfilerStep*";

bool is_annotation(const trace::OpTree& tree, std::uint32_t event) {
  return tree.trace().events[event].category == Category::user_annotation;
}

bool is_step(const trace::OpTree& tree, std::uint32_t event) {
  return is_annotation(tree, event) && tree.name(event) == kStep;
}

}  // namespace

Busy busy(const trace::Trace& trace, std::span<const std::uint32_t> operations) {
  constexpr double kNsPerUs = 1000;
  Busy result;
  const auto is_timed = [&](std::uint32_t operation) { return trace.events[operation].is_timed; };
  const auto front = std::find_if(operations.begin(), operations.end(), is_timed);
  if (front == operations.end()) return result;
  const std::int64_t first = trace.events[*front].start_ns;
  std::int64_t end = first;
  std::int64_t busy_ns = 0;
  for (const std::uint32_t operation : operations) {
    const trace::Event& event = trace.events[operation];
    if (!event.is_timed) continue;
    if (event.start_ns > end) result.gaps.push_back({end, event.start_ns, operation});
    const std::int64_t stop = end_ns(event);
    busy_ns += std::max<std::int64_t>(0, stop - std::max(event.start_ns, end));
    end = std::max(end, stop);
  }
  result.busy_us = static_cast<double>(busy_ns) / kNsPerUs;
  result.whole_us = static_cast<double>(end - first) / kNsPerUs;
  return result;
}

Forwards::Forwards(const trace::OpTree& tree, std::string_view label)
    : tree_(tree), label_(label), launches_(tree.trace()) {
  const std::vector<trace::Event>& events = tree.trace().events;
  std::unordered_map<std::uint32_t, std::size_t> place;  // of a forward, by its annotation
  std::vector<std::uint32_t> steps;                      // in order of start
  for (const std::uint32_t event : tree.order()) {
    if (is_step(tree, event)) steps.push_back(event);
    if (!is_forward(event)) continue;
    place.emplace(event, forwards_.size());
    forwards_.push_back({.annotation = event, .ops = {}, .gpu_operations = {}});
  }
  const auto in_step = [&](std::int64_t time_ns) {
    const auto next = std::partition_point(steps.begin(), steps.end(), [&](std::uint32_t step) {
      return events[step].start_ns <= time_ns;
    });
    return next != steps.begin() && time_ns < end_ns(events[*(next - 1)]);
  };
  for (const std::uint32_t event : tree.order()) {
    const Category category = events[event].category;
    const bool on_gpu = trace::is_gpu_operation(category);
    if (!on_gpu && category != Category::cpu_op) continue;
    Forward* forward = nullptr;
    for (std::uint32_t up = place_of(event); up != kNoEvent && forward == nullptr;
         up = tree.parent(up)) {
      const auto found = place.find(up);
      if (found != place.end()) forward = &forwards_[found->second];
    }
    if (forward != nullptr) (on_gpu ? forward->gpu_operations : forward->ops).push_back(event);
    if (!on_gpu || call_of(event) == kNoEvent) continue;
    if (steps.empty() ? forward != nullptr : in_step(events[call_of(event)].start_ns)) {
      active_.push_back(event);
    }
  }
}

bool Forwards::is_forward(std::uint32_t event) const {
  return is_annotation(tree_, event) && tree_.name(event) == label_;
}

// Where in the CPU's tree an event belongs: the call that launched it, or what it was called by.
std::uint32_t Forwards::place_of(std::uint32_t event) const {
  const bool on_gpu = trace::is_gpu_operation(tree_.trace().events[event].category);
  const std::uint32_t call = on_gpu ? call_of(event) : event;
  return call == kNoEvent ? kNoEvent : tree_.parent(call);
}

std::vector<std::uint32_t> Forwards::ops_around(std::uint32_t event) const {
  std::vector<std::uint32_t> ops;
  for (std::uint32_t up = place_of(event); up != kNoEvent; up = tree_.parent(up)) {
    if (is_forward(up)) break;
    if (tree_.trace().events[up].category == Category::cpu_op) ops.push_back(up);
  }
  return ops;
}

std::string Forwards::chain(std::uint32_t event) const {
  std::string text;
  for (const std::uint32_t op : ops_around(event)) {
    if (!text.empty()) text += " < ";
    text += tree_.name(op);
  }
  return text.empty() ? "no op" : text;
}

std::string forward_label(const trace::OpTree& tree) {
  struct Seen {
    int count = 0;
    bool holds_another = false;
  };
  std::map<std::string_view, Seen> in_steps, anywhere;
  int steps = 0;
  for (const std::uint32_t event : tree.order()) {
    if (!is_annotation(tree, event)) continue;
    if (is_step(tree, event)) {
      ++steps;
      continue;
    }
    const std::string_view name = tree.name(event);
    bool in_step = false;
    for (std::uint32_t up = tree.parent(event); up != kNoEvent; up = tree.parent(up)) {
      in_step |= is_step(tree, up);
      if (!is_annotation(tree, up) || is_step(tree, up)) continue;
      anywhere[tree.name(up)].holds_another = in_steps[tree.name(up)].holds_another = true;
    }
    ++anywhere[name].count;
    if (in_step) ++in_steps[name].count;
  }
  const auto& counts = steps > 0 ? in_steps : anywhere;
  // A token is marked as decode, and what it holds repeats more often yet.
  if (counts.contains("prefill") && counts.contains("decode")) return "decode";
  std::vector<std::string_view> labels;
  // One step is all that active=1 records: there, once is as often as it gets.
  const int often = steps == 1 ? 1 : 2;
  for (const auto& [name, seen] : counts) {
    if (seen.holds_another || seen.count < often) continue;
    labels.push_back(name);
  }
  // The other phases of a step of training repeat as forward does.
  if (std::find(labels.begin(), labels.end(), "forward") != labels.end()) return "forward";
  return labels.size() == 1 ? std::string(labels.front()) : "";
}

std::string no_forward_text(const trace::OpTree& tree, std::string_view label) {
  constexpr std::size_t kNames = 8;
  std::map<std::string_view, std::size_t> counts;
  for (const std::uint32_t event : tree.order()) {
    if (is_annotation(tree, event)) ++counts[tree.name(event)];
  }
  std::vector<std::pair<std::size_t, std::string_view>> names;
  for (const auto& [name, count] : counts) names.emplace_back(count, name);
  std::sort(names.rbegin(), names.rend());
  const std::size_t all = names.size();
  if (all > kNames) names.resize(kNames);
  std::vector<std::string> texts;
  for (const auto& [count, name] : names) texts.push_back(fmt::format("{} ({})", name, count));
  const std::string what = label.empty() ? "no annotation that clearly marks the forwards"
                                         : fmt::format("no annotation {}", label);
  if (texts.empty()) {
    return fmt::format("the trace has {}, nor any other: record the forward under one", what);
  }
  return trace::printable(fmt::format("the trace has {}: choose one by --label: {}{}", what,
                                      fmt::join(texts, ", "), all > kNames ? ", ..." : ""));
}

}  // namespace explain
