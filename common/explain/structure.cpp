// SPDX-License-Identifier: Apache-2.0
#include "explain/structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "explain/text.h"
#include "explain/text_table.h"
#include "trace/printable.h"
#include "trace/wrapping.h"

namespace explain {
namespace {

constexpr std::size_t kNoNode = static_cast<std::size_t>(-1);

// Chains of ops, one node each, shared by both files: a node is an op inside the node above it. So
// a chain of a million ops costs no more than its last one.
class Chains {
 public:
  struct Node {
    std::string_view name;  // in the tree of one of the files
    std::size_t above = kNoNode;
  };

  std::size_t node(std::size_t above, std::string_view name) {
    const std::size_t id = names_.try_emplace(name, names_.size()).first->second;
    const auto [place, is_new] = ids_.try_emplace({above, id}, nodes_.size());
    if (is_new) nodes_.push_back({name, above});
    return place->second;
  }
  [[nodiscard]] const Node& operator[](std::size_t node) const { return nodes_[node]; }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

  // Innermost first; of a long chain the inner end.
  [[nodiscard]] std::string text(std::size_t node) const {
    constexpr int kMost = 12;
    std::string text;
    for (int i = 0; node != kNoNode; node = nodes_[node].above, ++i) {
      if (i == kMost) return text + " < ...";
      text += (i == 0 ? "" : " < ") + trace::printable(cut(nodes_[node].name, 200));
    }
    return text;
  }

 private:
  std::unordered_map<std::string_view, std::size_t> names_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> ids_;  // by node above and name
  std::vector<Node> nodes_;
};

// A kernel by its name; a memcpy or memset by its bytes, too.
using GpuKey = std::tuple<Kind, std::string, std::int64_t>;

// What one file does in a step.
struct Structure {
  std::size_t periods = 0;
  std::unordered_map<std::size_t, Tally> ops;  // by node
  std::map<GpuKey, Tally> gpu;
  struct Memory {
    Tally allocations, allocated, freed;
  };
  std::map<int, Memory> memory;  // by type of device
  bool has_memory = false;
};

class Collector {
 public:
  Collector(const trace::OpTree& tree, const Periods& periods, Chains& chains)
      : tree_(tree), trace_(tree.trace()), periods_(periods), chains_(chains) {
    result_.periods = periods.count();
    nodes_.assign(trace_.events.size(), kNoNode);
    collect_events();
    collect_memory();
  }

  [[nodiscard]] Structure result() && { return std::move(result_); }

 private:
  struct Placed {
    std::size_t period;
    std::uint32_t index;
  };

  static void sort(std::vector<Placed>& placed) {
    std::stable_sort(placed.begin(), placed.end(),
                     [](const Placed& a, const Placed& b) { return a.period < b.period; });
  }

  void collect_events() {
    std::vector<Placed> placed;
    for (const std::uint32_t event : tree_.order()) {  // parents before their children
      const auto kind = kind_of(trace_.events[event].category);
      if (!kind || *kind == Kind::call || periods_.is_boundary(event)) continue;
      if (!is_on_gpu(*kind)) {
        const std::uint32_t above = tree_.parent(event);
        nodes_[event] =
            chains_.node(above == trace::kNoEvent ? kNoNode : nodes_[above], tree_.name(event));
      }
      if (const auto period = periods_.of(event)) placed.push_back({*period, event});
    }
    sort(placed);
    for (const Placed& one : placed) {
      const trace::Event& event = trace_.events[one.index];
      const Kind kind = *kind_of(event.category);
      if (!is_on_gpu(kind)) {
        result_.ops[nodes_[one.index]].add(one.period, 1);
        continue;
      }
      const std::int64_t bytes = kind == Kind::kernel ? 0 : trace_.launch_of(event).bytes;
      result_.gpu[{kind, std::string(trace_.name(event)), bytes}].add(one.period, 1);
    }
  }

  void collect_memory() {
    std::vector<Placed> placed;
    result_.has_memory = !trace_.memory.empty();
    for (std::uint32_t i = 0; i < trace_.memory.size(); ++i) {
      const auto period = periods_.at(trace_.memory[i].time_ns);
      if (period && !trace_.memory[i].out_of_memory) placed.push_back({*period, i});
    }
    sort(placed);
    for (const Placed& one : placed) {
      const trace::MemoryRecord& record = trace_.memory[one.index];
      Structure::Memory& memory = result_.memory[record.device_type];
      const bool is_free = record.bytes < 0;
      memory.allocations.add(one.period, is_free ? 0 : 1);
      memory.allocated.add(one.period, is_free ? 0 : record.bytes);
      memory.freed.add(one.period, is_free ? trace::wrapping_subtract(0, record.bytes) : 0);
    }
  }

  const trace::OpTree& tree_;
  const trace::Trace& trace_;
  const Periods& periods_;
  Chains& chains_;
  std::vector<std::size_t> nodes_;  // of each op
  Structure result_;
};

bool is_equal(const Amount& a, const Amount& b) {
  return a.least == b.least && a.most == b.most;
}

class Comparison {
 public:
  Comparison(const Chains& chains, const Structure& a, const Structure& b)
      : chains_(chains), a_(a), b_(b) {
    compare_ops();
    compare_gpu();
    if (a.has_memory && b.has_memory) compare_memory();
  }

  [[nodiscard]] std::vector<StructureDifference> result() && { return std::move(result_); }

 private:
  template <typename Map>
  static Amount amount(const Map& map, const typename Map::key_type& key, std::size_t periods) {
    const auto found = map.find(key);
    return found == map.end() ? Amount{} : found->second.over(periods);
  }

  void add(std::string what, Unit unit, const Amount& a, const Amount& b) {
    if (!is_equal(a, b)) result_.push_back({std::move(what), unit, a, b, 0});
  }

  // Nodes stand behind the node above them. Where that is in one file alone so is all inside it,
  // which is said once.
  void compare_ops() {
    std::vector<std::size_t> said_by(chains_.size(), kNoNode);
    for (std::size_t node = 0; node < chains_.size(); ++node) {
      const std::size_t above = chains_[node].above;
      const Amount in_a = amount(a_.ops, node, a_.periods);
      const Amount in_b = amount(b_.ops, node, b_.periods);
      if (above != kNoNode) said_by[node] = said_by[above];
      if (is_equal(in_a, in_b)) continue;
      if (said_by[node] != kNoNode) {
        ++result_[said_by[node]].below;
        continue;
      }
      if (in_a.most == 0 || in_b.most == 0) said_by[node] = result_.size();
      add("op " + chains_.text(node), Unit::count, in_a, in_b);
    }
  }

  void compare_gpu() {
    std::vector<GpuKey> keys;
    for (const auto& [key, tally] : a_.gpu) keys.push_back(key);
    for (const auto& [key, tally] : b_.gpu) {
      if (!a_.gpu.contains(key)) keys.push_back(key);
    }
    for (const GpuKey& key : keys) {
      const auto& [kind, name, bytes] = key;
      std::string what = fmt::format("{} {}", to_string(kind), trace::printable(name));
      if (kind != Kind::kernel) what += ", " + size_text(bytes);
      add(std::move(what), Unit::count, amount(a_.gpu, key, a_.periods),
          amount(b_.gpu, key, b_.periods));
    }
  }

  void compare_memory() {
    std::map<int, Structure::Memory> types = a_.memory;
    types.insert(b_.memory.begin(), b_.memory.end());
    for (const auto& [type, unused] : types) {
      const auto side = [type = type](const Structure& structure) {
        const auto found = structure.memory.find(type);
        return found == structure.memory.end() ? Structure::Memory{} : found->second;
      };
      const Structure::Memory in_a = side(a_), in_b = side(b_);
      const std::string where =
          type == 0 ? "CPU memory: " : fmt::format("memory of device type {}: ", type);
      const auto compare = [&](const char* what, Unit unit, const Tally& a, const Tally& b) {
        add(where + what, unit, a.over(a_.periods), b.over(b_.periods));
      };
      compare("allocations", Unit::count, in_a.allocations, in_b.allocations);
      compare("allocated", Unit::bytes, in_a.allocated, in_b.allocated);
      compare("freed", Unit::bytes, in_a.freed, in_b.freed);
    }
  }

  const Chains& chains_;
  const Structure& a_;
  const Structure& b_;
  std::vector<StructureDifference> result_;
};

}  // namespace

StructureDiff structure_diff(const trace::OpTree& a, const trace::OpTree& b,
                             const DiffBasis& basis) {
  Chains chains;
  const Periods periods_a(a, basis.basis, basis.label_a);
  const Periods periods_b(b, basis.basis, basis.label_b);
  const Structure in_a = Collector(a, periods_a, chains).result();
  const Structure in_b = Collector(b, periods_b, chains).result();
  return {.basis = basis.basis,
          .periods_a = in_a.periods,
          .periods_b = in_b.periods,
          .memory_in_one = in_a.has_memory != in_b.has_memory,
          .differences = Comparison(chains, in_a, in_b).result()};
}

std::string to_text(const StructureDiff& diff, const DiffTextOptions& options) {
  constexpr std::size_t kColumns = 96;  // of 120, beside the figures
  const bool is_markdown = options.format == DiffFormat::markdown;
  const std::string per = fmt::format("per {}", to_string(diff.basis));
  std::string text = fmt::format("{} in structure {} ({} in A, {} in B)\n",
                                 diff.differences.empty() ? "No difference" : "Differences", per,
                                 diff.periods_a, diff.periods_b);
  if (diff.memory_in_one) text += "Memory is not compared: only one of the files has it recorded\n";
  std::vector<std::string> whats;
  for (const StructureDifference& one : diff.differences) whats.push_back(one.what);
  if (!options.all && !is_markdown) whats = distinct_cuts(whats, kColumns);
  const std::size_t most = options.limit < 0
                               ? whats.size()
                               : std::min(whats.size(), static_cast<std::size_t>(options.limit));
  TextTable table({"", "A", "B"}, {0});
  for (std::size_t i = 0; i < most; ++i) {
    const StructureDifference& one = diff.differences[i];
    const std::string inside = one.below > 0 ? fmt::format("and {} inside it", one.below) : "";
    table.add({is_markdown && !inside.empty() ? whats[i] + ", " + inside : whats[i],
               amount_text(one.unit, one.a), amount_text(one.unit, one.b)},
              inside);
  }
  if (most > 0) text += "\n" + table.text(per, is_markdown);
  if (most < whats.size()) {
    text += fmt::format("\n{} more differences (--limit -1 prints them)\n", whats.size() - most);
  }
  return text;
}

}  // namespace explain
