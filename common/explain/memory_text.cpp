// SPDX-License-Identifier: Apache-2.0
//
// The peak of a step in words.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "explain/memory.h"
#include "explain/text.h"
#include "trace/printable.h"
#include "trace/wrapping.h"

namespace explain {
namespace {

using trace::Category;
using trace::kNoEvent;

constexpr std::string_view kNode = "autograd::engine::evaluate_function: ";

// Blocks of one kind that were alive at the peak.
struct Group {
  std::int64_t bytes = 0;
  std::int64_t count = 0;
  MemoryCategory category = MemoryCategory::other;
  std::string chain, keeper;
};

std::vector<Group> groups_at_peak(const trace::OpTree& tree, const MemoryTimeline& memory) {
  std::map<std::tuple<MemoryCategory, std::string, std::string>, Group> groups;
  for (const std::size_t i : alive_at(memory, memory.curve[memory.peak].time_ns)) {
    const MemoryBlock& block = memory.blocks[i];
    const std::string chain = memory_chain(tree, block.allocated_in);
    const std::string keeper = kept_by(tree, block);
    Group& group = groups[{block.category, chain, keeper}];
    group = {trace::wrapping_add(group.bytes, block.bytes), group.count + 1, block.category, chain,
             keeper};
  }
  std::vector<Group> result;
  for (auto& [key, group] : groups) result.push_back(std::move(group));
  std::stable_sort(result.begin(), result.end(),
                   [](const Group& a, const Group& b) { return a.bytes > b.bytes; });
  return result;
}

std::string group_text(const Group& group) {
  return fmt::format("    {:>12}  {:<15}  {}{}{}\n", size_text(group.bytes),
                     to_string(group.category), trace::printable(group.chain),
                     group.count > 1 ? fmt::format(", {} blocks", group.count) : "",
                     group.keeper.empty() || group.category != MemoryCategory::activation
                         ? ""
                         : "; kept for " + trace::printable(group.keeper));
}

}  // namespace

std::string memory_chain(const trace::OpTree& tree, std::uint32_t event) {
  constexpr int kMostOps = 12;
  std::string text;
  for (int ops = 0; event != kNoEvent && ops < kMostOps; event = tree.parent(event)) {
    const Category category = tree.trace().events[event].category;
    const bool is_annotation = trace::is_annotation(category);
    if (category != Category::cpu_op && !is_annotation) continue;  // a runtime call
    std::string_view name = tree.name(event);
    if (name.starts_with(kNode)) continue;  // the node itself is right below
    text += fmt::format("{}{}", text.empty() ? "" : " < ", name);
    if (is_annotation) break;
    ++ops;
  }
  return text.empty() ? "no op" : text;
}

std::string kept_by(const trace::OpTree& tree, const MemoryBlock& block) {
  for (std::uint32_t event = block.freed_in; event != kNoEvent; event = tree.parent(event)) {
    const std::string_view name = tree.name(event);
    if (name.starts_with(kNode)) return std::string(name.substr(kNode.size()));
  }
  return "";
}

std::string to_text(const trace::OpTree& tree, const MemoryTimeline& memory) {
  constexpr std::size_t kMostGroups = 10;
  const MemoryPoint& peak = memory.curve[memory.peak];
  std::string text = fmt::format("Memory of {}:\n", trace::printable(memory.title));
  text +=
      fmt::format("  {:<28}{}{}\n", "peak", size_text(total(peak.bytes)),
                  memory.is_whole ? "" : ", without what had been allocated before the recording");
  text += fmt::format("  {:<28}{}\n", "reached in",
                      memory.peak_block ? trace::printable(memory_chain(
                                              tree, memory.blocks[*memory.peak_block].allocated_in))
                                        : "no op, it is where the step begins");
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    if (peak.bytes[i] == 0) continue;
    text += fmt::format("  {:<28}{}\n", to_string(static_cast<MemoryCategory>(i)),
                        size_text(peak.bytes[i]));
  }
  const std::vector<Group> groups = groups_at_peak(tree, memory);
  if (!groups.empty()) text += "  alive there, by the op that allocated it:\n";
  std::int64_t rest = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (i < kMostGroups) text += group_text(groups[i]);
    if (i >= kMostGroups) rest = trace::wrapping_add(rest, groups[i].bytes);
  }
  if (groups.size() > kMostGroups)
    text += fmt::format("    {:>12}  of {} smaller ones\n", size_text(rest),
                        groups.size() - kMostGroups);
  if (memory.unpaired > 0) {
    text += fmt::format("  {:<28}{}\n", "records left out",
                        fmt::format("{} without a partner at their address", memory.unpaired));
  }
  return text;
}

}  // namespace explain
