// SPDX-License-Identifier: Apache-2.0
#include "explain/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

#include "explain/occupancy.h"
#include "explain/text.h"

namespace explain {
namespace {

using trace::Category;
using trace::kNoEvent;

bool is_runtime(Category category) {
  return category == Category::cuda_runtime || category == Category::cuda_driver;
}

std::string unquoted(std::string_view json) {
  const bool is_string = json.size() >= 2 && json.front() == '"' && json.back() == '"';
  return std::string(is_string ? json.substr(1, json.size() - 2) : json);
}

double total_us(const Copy& copy) {
  return copy.time_us * static_cast<double>(copy.count);
}

// What a single pass over the events finds out about one forward.
struct Forward {
  std::int64_t ops = 0;
  std::int64_t gpu_operations = 0;
  std::int64_t kernels = 0, memcpys = 0, memsets = 0;
};

// All launches of one kernel in the forwards.
struct Kernel {
  std::uint32_t first = kNoEvent;
  double time_us = 0;
};

// From the innermost event around a call up to the annotation, if the call was made inside one.
struct Place {
  std::uint32_t forward = kNoEvent;  // the annotation's event
  bool in_step = false;
  std::vector<std::string_view> chain;  // the ops in between, innermost first
};

class Collector {
 public:
  Collector(const trace::OpTree& tree, std::string_view label)
      : tree_(tree), trace_(tree.trace()), label_(label) {
    facts_.label = label;
    for (const std::uint32_t event : tree_.order()) index(event);
    for (const std::uint32_t event : tree_.order()) {
      const Category category = trace_.events[event].category;
      if (trace::is_gpu_operation(category)) add_gpu_operation(event);
      if (category == Category::cpu_op) add_op(event);
    }
    finish();
  }

  [[nodiscard]] Facts result() && { return std::move(facts_); }

 private:
  void index(std::uint32_t event) {
    const trace::Event& e = trace_.events[event];
    if (is_runtime(e.category)) runtime_of_.try_emplace(e.correlation, event);
    if (e.category != Category::user_annotation) return;
    if (is_forward(event)) {
      forwards_.try_emplace(event);
      facts_.cpu_time_us += tree_.elapsed(event);
    }
    has_steps_ |= is_step(event);
  }

  [[nodiscard]] bool is_forward(std::uint32_t event) const {
    return trace_.events[event].category == Category::user_annotation &&
           tree_.name(event) == label_;
  }
  [[nodiscard]] bool is_step(std::uint32_t event) const {
    return trace_.events[event].category == Category::user_annotation &&
           tree_.name(event) == "ProfilerStep*";
  }

  // `event` itself is not part of the chain.
  [[nodiscard]] Place place_of(std::uint32_t event) const {
    Place place;
    for (std::uint32_t up = tree_.parent(event); up != kNoEvent; up = tree_.parent(up)) {
      place.in_step |= is_step(up);
      if (place.forward != kNoEvent) continue;  // outside of the forward: only steps matter now
      if (is_forward(up)) {
        place.forward = up;
      } else if (trace_.events[up].category == Category::cpu_op) {
        place.chain.push_back(tree_.name(up));
      }
    }
    if (place.forward == kNoEvent) place.chain.clear();
    return place;
  }

  // The correlation leads from a GPU operation to the call that launched it even where no op did: a
  // kernel launched by hand, a CUDA graph.
  void add_gpu_operation(std::uint32_t event) {
    const trace::Event& e = trace_.events[event];
    const auto call = runtime_of_.find(e.correlation);
    if (call == runtime_of_.end()) {
      ++facts_.unattributed;
      return;
    }
    Place place = place_of(call->second);
    if (place.in_step || (!has_steps_ && place.forward != kNoEvent)) {
      busy_.emplace_back(e.start_ns, e.start_ns + e.duration_ns);
    }
    if (place.forward == kNoEvent) return;
    Forward& forward = forwards_[place.forward];
    ++forward.gpu_operations;
    if (e.category == Category::kernel) ++forward.kernels;
    if (e.category == Category::gpu_memset) ++forward.memsets;
    facts_.on_gpu = true;
    facts_.cuda_time_us += tree_.elapsed(event);
    if (e.category == Category::kernel) add_kernel(event);
    if (e.category == Category::gpu_memcpy) {
      ++forward.memcpys;
      const std::int64_t bytes = trace_.launch_of(e).bytes;
      facts_.bytes_copied += bytes;
      add_copy(event, bytes, std::move(place.chain));
    } else if (e.category == Category::kernel && !place.chain.empty() &&
               place.chain.front() == "aten::copy_") {
      add_copy(event, 0, std::move(place.chain));  // another dtype or layout takes a kernel
    }
  }

  void add_kernel(std::uint32_t event) {
    Kernel& kernel = kernels_.try_emplace(tree_.name_id(event), Kernel{event, 0}).first->second;
    kernel.time_us += tree_.elapsed(event);
  }

  void add_op(std::uint32_t event) {
    Place place = place_of(event);
    if (place.forward == kNoEvent) return;
    ++forwards_[place.forward].ops;
    if (tree_.name(event) == "aten::copy_") {
      cpu_copies_.emplace_back(event, std::move(place.chain));
    }
  }

  void add_copy(std::uint32_t event, std::int64_t bytes, std::vector<std::string_view> chain) {
    Copy& copy = copies_[{tree_.name(event), bytes, std::move(chain)}];
    ++copy.count;
    copy.time_us += tree_.elapsed(event);
  }

  void finish() {
    facts_.forwards = static_cast<std::int64_t>(forwards_.size());
    facts_.ops = range(&Forward::ops);
    facts_.gpu_operations = range(&Forward::gpu_operations);
    facts_.kernels = range(&Forward::kernels);
    facts_.memcpys = range(&Forward::memcpys);
    facts_.memsets = range(&Forward::memsets);
    if (facts_.forwards > 0) {
      facts_.cpu_time_us /= static_cast<double>(facts_.forwards);
      facts_.cuda_time_us /= static_cast<double>(facts_.forwards);
    }
    facts_.idle_share = idle_share();
    facts_.peak_memory = peak_memory();
    facts_.occupancy = longest_kernels_occupancy();
    facts_.relative_error = unquoted(trace_.metadata_value("relative_error"));
    // With a device, an aten::copy_ only launches the copy; without, it is the copy.
    if (!facts_.on_gpu) {
      for (const auto& [event, chain] : cpu_copies_) add_copy(event, 0, chain);
    }
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

  [[nodiscard]] PerForward range(std::int64_t Forward::*member) const {
    if (forwards_.empty()) return {};
    PerForward range{std::numeric_limits<std::int64_t>::max(), 0};
    for (const auto& [event, forward] : forwards_) {
      range.least = std::min(range.least, forward.*member);
      range.most = std::max(range.most, forward.*member);
    }
    return range;
  }

  // Streams overlap, so busy time is the union of the intervals, not their sum.
  [[nodiscard]] std::optional<double> idle_share() {
    if (busy_.empty()) return std::nullopt;
    std::sort(busy_.begin(), busy_.end());
    const std::int64_t first = busy_.front().first;
    std::int64_t end = first, busy = 0;
    for (const auto& [start, stop] : busy_) {
      busy += std::max<std::int64_t>(0, stop - std::max(start, end));
      end = std::max(end, stop);
    }
    if (end == first) return std::nullopt;
    return 1.0 - static_cast<double>(busy) / static_cast<double>(end - first);
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

  [[nodiscard]] std::optional<std::int64_t> peak_memory() const {
    const std::string_view text = trace_.metadata_value("peak_memory_bytes");
    std::int64_t bytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return bytes;
  }

  const trace::OpTree& tree_;
  const trace::Trace& trace_;
  std::string_view label_;
  Facts facts_;
  bool has_steps_ = false;
  std::unordered_map<std::int64_t, std::uint32_t> runtime_of_;  // by correlation
  std::map<std::uint32_t, Kernel> kernels_;                     // by the name's id
  std::map<std::uint32_t, Forward> forwards_;                   // by the annotation's event
  std::vector<std::pair<std::int64_t, std::int64_t>> busy_;     // [start, end) in ns
  std::vector<std::pair<std::uint32_t, std::vector<std::string_view>>> cpu_copies_;
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
