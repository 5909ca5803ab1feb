// SPDX-License-Identifier: Apache-2.0
#include "explain/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "explain/forwards.h"
#include "explain/occupancy.h"
#include "explain/text.h"

namespace explain {
namespace {

using trace::Category;
using trace::kNoEvent;

std::string unquoted(std::string_view json) {
  const bool is_string = json.size() >= 2 && json.front() == '"' && json.back() == '"';
  return std::string(is_string ? json.substr(1, json.size() - 2) : json);
}

bool is_copying(std::string_view op) {
  return op == "aten::copy_" || op == "aten::cat";
}

double total_us(const Copy& copy) {
  return copy.time_us * static_cast<double>(copy.count);
}

// Works the facts out from the forwards, one after the other.
class Collector {
 public:
  Collector(const trace::OpTree& tree, std::string_view label)
      : tree_(tree), trace_(tree.trace()), forwards_(tree, label) {
    facts_.label = label;
    facts_.forwards = static_cast<std::int64_t>(forwards_.all().size());
    for (const Forward& forward : forwards_.all()) add(forward);
    for (const Forward& forward : forwards_.all()) add_copies(forward);
    if (facts_.forwards > 0) {
      facts_.cpu_time_us /= static_cast<double>(facts_.forwards);
      facts_.cuda_time_us /= static_cast<double>(facts_.forwards);
    }
    facts_.unattributed =
        std::count_if(tree_.order().begin(), tree_.order().end(), [this](std::uint32_t event) {
          return trace::is_gpu_operation(trace_.events[event].category) &&
                 forwards_.call_of(event) == kNoEvent;
        });
    facts_.idle_share = idle_share();
    facts_.peak_memory = peak_memory(trace_);
    facts_.occupancy = longest_kernels_occupancy();
    facts_.relative_error = unquoted(trace_.metadata_value("relative_error"));
    finish_copies();
  }

  [[nodiscard]] Facts result() && { return std::move(facts_); }

 private:
  // All launches of one kernel in the forwards.
  struct Kernel {
    std::uint32_t first = kNoEvent;
    double time_us = 0;
  };

  void add(const Forward& forward) {
    facts_.cpu_time_us += tree_.elapsed(forward.annotation);
    facts_.on_gpu |= !forward.gpu_operations.empty();
    std::int64_t kernels = 0, memcpys = 0, memsets = 0;
    for (const std::uint32_t event : forward.gpu_operations) {
      const Category category = trace_.events[event].category;
      kernels += category == Category::kernel ? 1 : 0;
      memcpys += category == Category::gpu_memcpy ? 1 : 0;
      memsets += category == Category::gpu_memset ? 1 : 0;
      facts_.cuda_time_us += tree_.elapsed(event);
      if (category != Category::kernel) continue;
      Kernel& kernel = kernels_.try_emplace(tree_.name_id(event), Kernel{event, 0}).first->second;
      kernel.time_us += tree_.elapsed(event);
    }
    widen(facts_.ops, static_cast<std::int64_t>(forward.ops.size()));
    widen(facts_.gpu_operations, static_cast<std::int64_t>(forward.gpu_operations.size()));
    widen(facts_.kernels, kernels);
    widen(facts_.memcpys, memcpys);
    widen(facts_.memsets, memsets);
    is_first_ = false;
  }

  void widen(PerForward& range, std::int64_t count) const {
    range.least = is_first_ ? count : std::min(range.least, count);
    range.most = std::max(range.most, count);
  }

  // On a device a copy is a memcpy, or a kernel where dtype or layout change or tensors are put
  // behind each other; the op only launches it. Without a device the op is the copy.
  void add_copies(const Forward& forward) {
    for (const std::uint32_t event : facts_.on_gpu ? forward.gpu_operations : forward.ops) {
      const trace::Event& e = trace_.events[event];
      const bool is_memcpy = e.category == Category::gpu_memcpy;
      const bool is_op = e.category == Category::cpu_op;
      if (is_op && !is_copying(tree_.name(event))) continue;
      std::vector<std::string_view> chain;
      for (const std::uint32_t op : forwards_.ops_around(event)) chain.push_back(tree_.name(op));
      const bool by_copy = !chain.empty() && is_copying(chain.front());
      if (is_op && by_copy) continue;  // aten::cat may copy by aten::copy_
      if (!is_memcpy && !is_op && !(e.category == Category::kernel && by_copy)) continue;
      const std::int64_t bytes = is_memcpy ? trace_.launch_of(e).bytes : 0;
      facts_.bytes_copied += bytes;
      Copy& copy = copies_[{tree_.name(event), bytes, std::move(chain)}];
      ++copy.count;
      copy.time_us += tree_.elapsed(event);
    }
  }

  void finish_copies() {
    for (auto& [key, copy] : copies_) {
      const auto& [name, bytes, chain] = key;
      copy.name = name;
      copy.bytes = bytes;
      copy.chain.assign(chain.begin(), chain.end());
      copy.time_us /= static_cast<double>(copy.count);
      facts_.copies.push_back(std::move(copy));
    }
    std::stable_sort(facts_.copies.begin(), facts_.copies.end(),
                     [](const Copy& a, const Copy& b) { return total_us(a) > total_us(b); });
  }

  [[nodiscard]] std::optional<double> idle_share() const {
    const Busy time = busy(trace_, forwards_.active());
    if (time.whole_us <= 0) return std::nullopt;
    return 1.0 - time.busy_us / time.whole_us;
  }

  // Of the kernel that takes most time, by its first launch.
  [[nodiscard]] std::optional<double> longest_kernels_occupancy() const {
    const auto longest = std::max_element(
        kernels_.begin(), kernels_.end(),
        [](const auto& a, const auto& b) { return a.second.time_us < b.second.time_us; });
    if (longest == kernels_.end()) return std::nullopt;
    const trace::Launch& launch = trace_.launch_of(trace_.events[longest->second.first]);
    const auto found = occupancy(launch, device_of(trace_, launch));
    return found ? std::optional(found->theoretical) : std::nullopt;
  }

  const trace::OpTree& tree_;
  const trace::Trace& trace_;
  const Forwards forwards_;
  Facts facts_;
  bool is_first_ = true;
  std::map<std::uint32_t, Kernel> kernels_;  // by the name's id
  std::map<std::tuple<std::string_view, std::int64_t, std::vector<std::string_view>>, Copy> copies_;
};

std::string count_text(const PerForward& count) {
  if (count.least == count.most) return fmt::format("{}", count.most);
  return fmt::format("{} to {}", count.least, count.most);
}

// "7: 5 kernels, 1 memcpy, 1 memset"
std::string gpu_operations_text(const Facts& facts) {
  std::string text = count_text(facts.gpu_operations);
  const char* separator = ": ";
  for (const auto& [count, name] :
       {std::pair(facts.kernels, "kernel"), std::pair(facts.memcpys, "memcpy"),
        std::pair(facts.memsets, "memset")}) {
    if (count.most == 0) continue;
    text +=
        fmt::format("{}{} {}{}", separator, count_text(count), name, count.most == 1 ? "" : "s");
    separator = ", ";
  }
  return text;
}

}  // namespace

std::optional<std::int64_t> peak_memory(const trace::Trace& trace) {
  const std::string_view text = trace.metadata_value("peak_memory_bytes");
  std::int64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return bytes;
}

Facts facts(const trace::OpTree& tree, std::string_view label) {
  return Collector(tree, label).result();
}

std::string to_text(const Facts& facts) {
  std::string text;
  const auto line = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<28}{}\n", name, value);
  };
  text += fmt::format("Facts from the trace, {} forwards ({}):\n", facts.forwards, facts.label);
  if (facts.on_gpu) {
    line("GPU operations per forward", gpu_operations_text(facts));
    line("CUDA time per forward", time_text(facts.cuda_time_us));
    line("bytes copied per forward",
         size_text(facts.bytes_copied / std::max<std::int64_t>(1, facts.forwards)));
  }
  line("ops per forward", count_text(facts.ops));
  line("CPU time per forward", time_text(facts.cpu_time_us));
  if (facts.idle_share) line("idle share of the GPU", share_text(*facts.idle_share));
  if (facts.occupancy) {
    line("occupancy", share_text(*facts.occupancy) + " for the kernel that takes most time");
  }
  if (facts.peak_memory) {
    line("peak memory of a forward", size_text(*facts.peak_memory) + " beyond its inputs");
  }
  if (facts.unattributed > 0) {
    line("launched by none of them", fmt::format("{} GPU operations", facts.unattributed));
  }
  return text;
}

}  // namespace explain
