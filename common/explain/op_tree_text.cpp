// SPDX-License-Identifier: Apache-2.0
#include "explain/op_tree_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "explain/figure_text.h"
#include "explain/launches.h"
#include "explain/text.h"
#include "trace/printable.h"

namespace explain {
namespace {

using trace::kNoEvent;

constexpr std::size_t kColumns = 100;
constexpr std::size_t kTimeColumn = 11;
constexpr std::size_t kNameColumn = kColumns - 3 * kTimeColumn;
constexpr std::size_t kMostIndent = 40;  // deeper levels keep room for a name

// One line, and the lines below it.
struct Node {
  std::string name;
  bool is_gpu = false;
  std::int64_t count = 1;
  double total_us = 0, self_us = 0;  // on the CPU
  double cuda_us = 0;                // of all GPU operations below, or its own
  std::vector<Node> below;
};

bool is_same(const Node& a, const Node& b) {
  return a.is_gpu == b.is_gpu && a.name == b.name &&
         std::equal(
             a.below.begin(), a.below.end(), b.below.begin(), b.below.end(),
             [](const Node& x, const Node& y) { return x.count == y.count && is_same(x, y); });
}

void add_times(Node& sum, const Node& node) {
  sum.count += node.count;
  sum.total_us += node.total_us;
  sum.self_us += node.self_us;
  sum.cuda_us += node.cuda_us;
}

// Adds a whole subtree onto an equal one; counts stay those of one of the `count` repetitions.
void add_below(Node& sum, const Node& node) {
  for (std::size_t i = 0; i < sum.below.size(); ++i) {
    const std::int64_t count = sum.below[i].count;
    add_times(sum.below[i], node.below[i]);
    sum.below[i].count = count;
    add_below(sum.below[i], node.below[i]);
  }
}

void append(std::vector<Node>& nodes, Node node) {
  if (nodes.empty() || !is_same(nodes.back(), node)) {
    nodes.push_back(std::move(node));
    return;
  }
  add_times(nodes.back(), node);
  add_below(nodes.back(), node);
}

class TreeText {
 public:
  TreeText(const trace::OpTree& tree, const TreeTextOptions& options)
      : tree_(tree), trace_(tree.trace()), launches_(trace_), depth_(options.depth) {
    step_ = step_event(trace_, options.step).value_or(kNoEvent);
    find_callless();
    sum_cuda_times();
    add_threads();
    add_unlaunched();
    if (text_.empty()) throw RangeError("nothing to print: the trace has no ops, calls or kernels");
  }

  [[nodiscard]] std::string result() const {
    const std::string heading =
        fmt::format("{:<{}}{:>{}}{:>{}}{:>{}}\n", "", kNameColumn, "CPU total", kTimeColumn,
                    "CPU self", kTimeColumn, "CUDA", kTimeColumn);
    return heading + text_ + (is_cut_ ? "Deeper levels are left out.\n" : "");
  }

 private:
  [[nodiscard]] const trace::Event& event(std::uint32_t index) const {
    return trace_.events[index];
  }

  [[nodiscard]] bool is_asked_for(std::uint32_t index) const {
    if (step_ == kNoEvent) return true;
    const std::int64_t start = event(index).start_ns;
    return start >= event(step_).start_ns && start < end_ns(event(step_));
  }

  // Operations of calls that the file does not hold stand below the op itself, or, where that is
  // unknown, too, at the end. Asked of the operations, since any number of ops may claim them.
  void find_callless() {
    for (const std::uint32_t index : tree_.order()) {
      if (!trace::is_gpu_operation(event(index).category)) continue;
      if (launches_.call_of(index) != kNoEvent) continue;
      if (tree_.launcher(index) != kNoEvent) {
        callless_[tree_.launcher(index)].push_back(index);
      } else if (is_asked_for(index)) {
        unlaunched_.push_back(index);
      }
    }
  }

  [[nodiscard]] std::span<const std::uint32_t> callless(std::uint32_t op) const {
    const auto found = callless_.find(op);
    if (found == callless_.end()) return {};
    return found->second;
  }

  // Parents come first in order(): backwards each event is complete before it is added to its own.
  void sum_cuda_times() {
    cuda_us_.assign(trace_.events.size(), 0);
    const auto order = tree_.order();
    for (auto place = order.rbegin(); place != order.rend(); ++place) {
      const std::uint32_t index = *place;
      if (trace::is_device(event(index).category)) continue;
      for (const std::uint32_t kernel : callless(index)) cuda_us_[index] += tree_.elapsed(kernel);
      for (const std::uint32_t kernel : launches_.operations(index))
        cuda_us_[index] += tree_.elapsed(kernel);
      if (tree_.parent(index) != kNoEvent) cuda_us_[tree_.parent(index)] += cuda_us_[index];
    }
  }

  // The thread of the step, then every other one that did something in its time: backward runs on
  // a thread of its own.
  void add_threads() {
    std::vector<std::vector<std::uint32_t>> roots(trace_.threads.size());
    for (const std::uint32_t index : tree_.order()) {
      if (trace::is_device(event(index).category) || index == step_) continue;
      if (tree_.parent(index) == kNoEvent && is_asked_for(index))
        roots[event(index).thread].push_back(index);
    }
    if (step_ != kNoEvent) {
      std::vector<std::uint32_t>& first = roots[event(step_).thread];
      first.insert(first.begin(), step_);
      add_thread(event(step_).thread, first);
      first.clear();
    }
    for (std::uint32_t thread = 0; thread < roots.size(); ++thread)
      add_thread(thread, roots[thread]);
  }

  void add_thread(std::uint32_t thread, const std::vector<std::uint32_t>& roots) {
    if (roots.empty()) return;
    text_ += fmt::format("thread {}\n",
                         name_text(trace_.text(trace_.threads[thread].tid), kColumns - 7));
    std::vector<Node> nodes;
    for (const std::uint32_t root : roots) append(nodes, node_of(root, 1));
    for (const Node& node : nodes) print(node, 1);
  }

  void add_unlaunched() {
    if (unlaunched_.empty()) return;
    std::vector<Node> nodes;
    for (const std::uint32_t index : unlaunched_) append(nodes, gpu_node(index));
    text_ += "launched by nothing in this file\n";
    for (const Node& node : nodes) print(node, 1);
  }

  [[nodiscard]] Node gpu_node(std::uint32_t index) {
    const trace::Event& e = event(index);
    Node node;
    node.is_gpu = true;
    // Decoding takes longer than all else here, and the same kernels come again and again.
    const auto [name, is_new] = short_names_.try_emplace(e.name);
    if (is_new) name->second = short_name(e.category, trace_.name(e));
    node.name = name->second;
    const std::int64_t bytes = trace_.launch_of(e).bytes;
    if (bytes > 0) node.name += ", " + size_text(bytes);
    node.cuda_us = tree_.elapsed(index);
    return node;
  }

  [[nodiscard]] Node node_of(std::uint32_t index, int level) {
    Node node;
    node.name = index == step_ ? trace_.name(event(index)) : tree_.name(index);
    node.total_us = node.self_us = tree_.elapsed(index);
    node.cuda_us = cuda_us_[index];
    const bool is_last = level >= depth_;
    for (const std::uint32_t child : tree_.children(index)) {
      node.self_us -= tree_.elapsed(child);
      if (!is_last) append(node.below, node_of(child, level + 1));
    }
    is_cut_ |= is_last && !tree_.children(index).empty();
    for (const auto launched : {callless(index), launches_.operations(index)}) {
      for (const std::uint32_t kernel : launched) {
        if (!is_last) append(node.below, gpu_node(kernel));
      }
      is_cut_ |= is_last && !launched.empty();
    }
    return node;
  }

  [[nodiscard]] static std::string name_text(std::string_view name, std::size_t room) {
    return clipped(trace::printable(name), room);
  }

  void print(const Node& node, std::size_t level) {
    const std::string count = node.count > 1 ? fmt::format(" x {}", node.count) : "";
    std::string line(std::min(2 * level, kMostIndent), ' ');
    if (node.is_gpu) line += "-> ";
    line += name_text(node.name, kNameColumn - line.size() - count.size() - 1) + count;
    // By hand: fmt counts the columns of a character that one version or another thinks it has.
    line.append(kNameColumn - std::min(kNameColumn, length(line)), ' ');
    const auto time = [](double us, bool is_shown) { return is_shown ? time_text(us) : ""; };
    const std::string times =
        fmt::format("{:>{}}{:>{}}{:>{}}", time(node.total_us, !node.is_gpu), kTimeColumn,
                    time(node.self_us, !node.is_gpu), kTimeColumn,
                    time(node.cuda_us, node.cuda_us > 0), kTimeColumn);
    line += times;
    text_ += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
    for (const Node& below : node.below) print(below, level + 1);
  }

  const trace::OpTree& tree_;
  const trace::Trace& trace_;
  const Launches launches_;
  const int depth_;
  std::uint32_t step_ = kNoEvent;
  std::vector<double> cuda_us_;  // by event, of all GPU operations launched in it
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> callless_;  // by op
  std::vector<std::uint32_t> unlaunched_;
  std::unordered_map<trace::TextId, std::string> short_names_;
  bool is_cut_ = false;
  std::string text_;
};

}  // namespace

std::string op_tree_text(const trace::OpTree& tree, const TreeTextOptions& options) {
  return TreeText(tree, options).result();
}

}  // namespace explain
