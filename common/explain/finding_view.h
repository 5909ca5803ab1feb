// SPDX-License-Identifier: Apache-2.0
//
// What every finding looks at, and the functions of the table in finding.cpp. Private to common/
// explain: others ask findings() (finding.h).
//
//   std::vector<Finding> mask_built_in_the_forward(const View& view) {
//     if (nothing to see) return {};
//     return {{.title = "...", .evidence = {"..."}, .share = {0.1, kCudaTime}}};
//   }
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "explain/about.h"
#include "explain/facts.h"
#include "explain/finding.h"
#include "explain/forwards.h"
#include "explain/kernel_name.h"
#include "trace/tree.h"

namespace explain {

class View {
 public:
  View(const trace::OpTree& of, const Facts& facts_of)
      : tree(of), facts(facts_of), forwards(of, facts_of.label) {}

  const trace::OpTree& tree;
  const Facts& facts;
  const Forwards forwards;

  [[nodiscard]] const trace::Event& event(std::uint32_t index) const {
    return tree.trace().events[index];
  }
  // What the name of a GPU operation tells, worked out once per name.
  [[nodiscard]] const KernelName& kernel(std::uint32_t gpu_operation) const;
  [[nodiscard]] double elapsed(std::span<const std::uint32_t> events) const;  // us, their sum
  // Of a CPU event without what it called, in us.
  [[nodiscard]] double own_time(std::uint32_t event) const;
  // `us` in all forwards as a part of the CUDA time, of the CPU time where no GPU took part.
  [[nodiscard]] Share share(double us) const;
  [[nodiscard]] Share cpu_share(double us) const;
  // `count` of all forwards as "2 per forward", "7 in 3 forwards" where they differ.
  [[nodiscard]] std::string per_forward(std::size_t count) const;
  // The GPU operations that the forwards launched from inside `ops`, in order.
  [[nodiscard]] std::vector<std::uint32_t> launched_in(std::span<const std::uint32_t> ops) const;

 private:
  mutable std::unordered_map<std::uint32_t, KernelName> kernels_;  // by the name's id
};

// Whether a forward ever held a whole tensor of scores beside its output: told by the peak of
// memory. nullopt where the file has none.
[[nodiscard]] std::optional<bool> holds_scores(const Facts& facts, const Sizes& sizes);

// A GPU operation's name, short enough for a sentence.
[[nodiscard]] std::string gpu_name(const View& view, std::uint32_t gpu_operation);

// "FillFunctor 3 times, 2.4us; triu_tril_kernel, 4.5us": one part per name, times on average.
[[nodiscard]] std::string list_text(const View& view, std::span<const std::uint32_t> operations);

// finding_kernels.cpp
std::vector<Finding> matmuls_on_cuda_cores(const View& view);
std::vector<Finding> one_fused_kernel(const View& view);
std::vector<Finding> low_occupancy_on_purpose(const View& view);
// finding_ops.cpp
std::vector<Finding> one_fused_op(const View& view);
std::vector<Finding> mask_built_in_the_forward(const View& view);
std::vector<Finding> safe_softmax(const View& view);
// finding_time.cpp
std::vector<Finding> gpu_waits(const View& view);
std::vector<Finding> library_plans(const View& view);
std::vector<Finding> annotation_wider_than_kernels(const View& view);
std::vector<Finding> cold_first_forward(const View& view);

}  // namespace explain
