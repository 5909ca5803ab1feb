// SPDX-License-Identifier: Apache-2.0
//
// The questions of each chapter. Where the answers come from: facts, findings, ops and kernels of
// the file at hand; what only another machine or run could answer is not asked.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "explain/finding_view.h"
#include "explain/quiz.h"
#include "explain/quiz_decode.h"
#include "explain/quiz_memory.h"
#include "explain/text.h"

namespace explain {
namespace {

using trace::kNoEvent;

Answer count_answer(const PerForward& count, std::string look) {
  const std::string text = count.least == count.most
                               ? fmt::format("{}", count.most)
                               : fmt::format("{} to {}", count.least, count.most);
  return {static_cast<double>(count.least), static_cast<double>(count.most), text, std::move(look)};
}

Answer yes_no(bool yes, std::string look) {
  return {0, 0, yes ? "yes" : "no", std::move(look)};
}

// How often `counts` of a forward's events there are, over the forwards.
template <typename Counts>
PerForward per_forward(const View& view, const Counts& counts) {
  PerForward result;
  bool is_first = true;
  for (const Forward& forward : view.forwards.all()) {
    const auto count = static_cast<std::int64_t>(counts(forward));
    result.least = is_first ? count : std::min(result.least, count);
    result.most = std::max(result.most, count);
    is_first = false;
  }
  return result;
}

// The name that has most of something, and the runner-up for the line that proves it.
std::optional<Answer> longest(const std::map<std::string_view, double>& us, std::string_view where,
                              const View& view) {
  if (us.empty()) return std::nullopt;
  std::vector<std::pair<double, std::string_view>> order;
  for (const auto& [name, time] : us) order.emplace_back(time, name);
  std::sort(order.rbegin(), order.rend());
  const auto forwards = static_cast<double>(view.facts.forwards);
  const auto row = [&](std::size_t place) {
    const auto& [time, name] = order[place];
    return fmt::format("{} {} per forward", name, time_text(time / forwards));
  };
  return Answer{
      0, 0, std::string(order.front().second),
      fmt::format("table, {}: {}{}", where, row(0), order.size() > 1 ? ", then " + row(1) : "")};
}

std::optional<Answer> gpu_operations(const View& view) {
  std::vector<std::string> names;
  for (const std::uint32_t operation : view.forwards.all().front().gpu_operations) {
    names.push_back(gpu_name(view, operation));
  }
  return count_answer(view.facts.gpu_operations,
                      fmt::format("facts, GPU operations per forward; the first forward's are {}",
                                  fmt::join(names, ", ")));
}

// Copies of whole tensors are made by aten::clone, whatever asked for them.
std::optional<Answer> clones(const View& view) {
  const std::string_view wanted = "aten::clone";
  std::string who;
  const auto is_cloned = [&](std::uint32_t event) {
    for (const std::uint32_t op : view.forwards.ops_around(event)) {
      if (view.tree.name(op) == wanted) return true;
    }
    return false;
  };
  const PerForward count = per_forward(view, [&](const Forward& forward) {
    const auto& events = view.facts.on_gpu ? forward.gpu_operations : forward.ops;
    return std::count_if(events.begin(), events.end(), [&](std::uint32_t event) {
      const bool is_copy = view.facts.on_gpu || view.tree.name(event) == "aten::copy_";
      const bool counts = is_copy && is_cloned(event);
      if (counts && who.empty()) who = view.forwards.chain(event);
      return counts;
    });
  });
  return count_answer(count, count.most == 0 ? "table: no row aten::clone copies anything"
                                             : fmt::format("finding, a copy: {}", who));
}

// The program's own ops: those that the forward called directly.
std::optional<Answer> longest_op_on_gpu(const View& view) {
  std::map<std::string_view, double> us;
  for (const Forward& forward : view.forwards.all()) {
    for (const std::uint32_t operation : forward.gpu_operations) {
      const std::vector<std::uint32_t> ops = view.forwards.ops_around(operation);
      if (!ops.empty()) us[view.tree.name(ops.back())] += view.tree.elapsed(operation);
    }
  }
  return longest(us, "CUDA total", view);
}

std::optional<Answer> longest_op_on_cpu(const View& view) {
  std::map<std::string_view, double> us;
  for (const Forward& forward : view.forwards.all()) {
    for (const std::uint32_t op : view.tree.children(forward.annotation)) {
      us[view.tree.name(op)] += view.tree.elapsed(op);
    }
  }
  return longest(us, "CPU total", view);
}

std::optional<Answer> longest_own_time(const View& view) {
  std::map<std::string_view, double> us;
  for (const Forward& forward : view.forwards.all()) {
    for (const std::uint32_t op : forward.ops) us[view.tree.name(op)] += view.own_time(op);
  }
  return longest(us, "Self CPU", view);
}

std::optional<Answer> idle(const View& view) {
  constexpr double kTenth = 0.1;
  if (!view.facts.idle_share) return std::nullopt;
  return yes_no(*view.facts.idle_share > kTenth, fmt::format("facts, idle share of the GPU: {}",
                                                             share_text(*view.facts.idle_share)));
}

std::optional<Answer> peak_in_scores(const View& view) {
  const auto shape = sizes(view.tree.trace());
  if (!shape || !view.facts.peak_memory) return std::nullopt;
  const double tensors =
      static_cast<double>(*view.facts.peak_memory) / static_cast<double>(shape->score_bytes());
  const auto rounded = std::llround(tensors);
  return count_answer(
      {rounded, rounded},
      fmt::format("facts, peak memory: {}; one [B, H, S, S] is {}",
                  size_text(*view.facts.peak_memory), size_text(shape->score_bytes())));
}

std::optional<Answer> scores_in_memory(const View& view) {
  const auto shape = sizes(view.tree.trace());
  if (!shape || !view.facts.peak_memory) return std::nullopt;
  return yes_no(*holds_scores(view.facts, *shape),
                fmt::format("facts, peak memory: {}; scores and output together are {}",
                            size_text(*view.facts.peak_memory),
                            size_text(shape->score_bytes() + shape->output_bytes())));
}

std::optional<Answer> matmuls(const View& view) {
  const PerForward count = per_forward(view, [&](const Forward& forward) {
    return std::count_if(forward.ops.begin(), forward.ops.end(),
                         [&](std::uint32_t op) { return view.tree.name(op) == "aten::bmm"; });
  });
  return count_answer(count, count.most == 0 ? "table: it has no row aten::bmm"
                                             : "table, row aten::bmm, calls over the forwards");
}

// Where the kernels differ, the time decides.
std::optional<Answer> cores(const View& view) {
  double tensor_us = 0, cuda_us = 0;
  std::uint32_t tensor = kNoEvent, cuda = kNoEvent;
  for (const Forward& forward : view.forwards.all()) {
    for (const std::uint32_t operation : forward.gpu_operations) {
      const KernelName& kernel = view.kernel(operation);
      const bool multiplies =
          kernel.family == KernelFamily::matmul || kernel.family == KernelFamily::attention;
      if (!multiplies || kernel.tensor_cores == TensorCores::unknown) continue;
      const bool on_tensor_cores = kernel.tensor_cores == TensorCores::yes;
      (on_tensor_cores ? tensor : cuda) = operation;
      (on_tensor_cores ? tensor_us : cuda_us) += view.tree.elapsed(operation);
    }
  }
  if (tensor == kNoEvent && cuda == kNoEvent) return std::nullopt;
  const bool on_tensor_cores = tensor_us >= cuda_us && tensor != kNoEvent;
  const std::uint32_t kernel = on_tensor_cores ? tensor : cuda;
  return Answer{0, 0, on_tensor_cores ? "tensor cores" : "CUDA cores",
                fmt::format("table, the kernel {}: {}", view.tree.name(kernel),
                            view.kernel(kernel).sentence)};
}

std::optional<Answer> occupancy(const View& view) {
  constexpr double kNear = 5;  // to the nearest 10 % is at most this far away
  if (!view.facts.occupancy) return std::nullopt;
  const double percent = 100 * *view.facts.occupancy;
  return Answer{percent - kNear, percent + kNear, fmt::format("{:.0f} %", percent),
                "facts, occupancy, of the kernel that takes most time"};
}

std::optional<Answer> mask_again(const View& view) {
  const std::vector<Finding> mask = mask_built_in_the_forward(view);
  return yes_no(!mask.empty(), mask.empty() ? "table: no row aten::tril, no aten::triu"
                                            : "finding, a mask: " + mask.front().evidence.front());
}

constexpr auto kNumber = QuestionKind::number;
constexpr auto kChoice = QuestionKind::choice;
constexpr auto kYesNo = QuestionKind::yes_no;

constexpr const char* kGpuOperations =
    "How many GPU operations (kernels, memcpys, memsets) does one forward launch?";
constexpr const char* kGpuClones = "How many of them copy a whole tensor?";
constexpr const char* kCpuClones = "How many times does one forward copy a whole tensor?";
constexpr const char* kMatmuls =
    "How many matrix multiplications (aten::bmm) does one forward call?";
constexpr const char* kPeak =
    "How many tensors of scores [B, H, S, S] does a forward hold at its peak, to the nearest whole "
    "number?";
constexpr const char* kIdle = "Is the GPU idle for more than a tenth of the time?";
constexpr const char* kHoldsScores = "Is a whole tensor of scores [B, H, S, S] ever in memory?";
constexpr const char* kMask = "Does the forward build the causal mask again in every call?";
constexpr const char* kCores = "Where do its matrix products run?";
constexpr const char* kOccupancy =
    "What is the occupancy of the kernel that takes most time (warps that are there, in % of those "
    "that fit), to the nearest 10?";

std::vector<Question> plain_ops(bool on_gpu) {
  const std::vector<std::string> ops{"matmul", "mul", "masked_fill", "softmax"};
  if (on_gpu) {
    return {{kGpuOperations, kNumber, {}, gpu_operations},
            {kGpuClones, kNumber, {}, clones},
            {"Which op of the program takes most CUDA time, both matmuls together?", kChoice, ops,
             longest_op_on_gpu},
            {kIdle, kYesNo, {}, idle},
            {kPeak, kNumber, {}, peak_in_scores}};
  }
  return {{kCpuClones, kNumber, {}, clones},
          {kMatmuls, kNumber, {}, matmuls},
          {"Which op of the program takes most CPU time, both matmuls together?", kChoice, ops,
           longest_op_on_cpu},
          {kPeak, kNumber, {}, peak_in_scores}};
}

std::vector<Question> sdpa(bool on_gpu) {
  if (on_gpu) {
    return {{kGpuOperations, kNumber, {}, gpu_operations},
            {kHoldsScores, kYesNo, {}, scores_in_memory},
            {kMask, kYesNo, {}, mask_again},
            {kCores, kChoice, {"tensor cores", "CUDA cores"}, cores},
            {kOccupancy, kNumber, {}, occupancy}};
  }
  return {{kMatmuls, kNumber, {}, matmuls},
          {kHoldsScores, kYesNo, {}, scores_in_memory},
          {kMask, kYesNo, {}, mask_again},
          {"Which op takes most CPU time for itself, without the ops that it calls?",
           kChoice,
           {"_scaled_dot_product_flash_attention_for_cpu", "bmm", "softmax", "copy_", "add"},
           longest_own_time}};
}

std::vector<Question> own_kernels(bool on_gpu) {
  if (on_gpu) {
    return {{kGpuOperations, kNumber, {}, gpu_operations},
            {kHoldsScores, kYesNo, {}, scores_in_memory},
            {kCores, kChoice, {"tensor cores", "CUDA cores"}, cores},
            {kOccupancy, kNumber, {}, occupancy}};
  }
  return {{kMatmuls, kNumber, {}, matmuls},
          {kHoldsScores, kYesNo, {}, scores_in_memory},
          {"Which op takes most CPU time for itself, without the ops that it calls?",
           kChoice,
           {"attention_kernels::attention", "empty", "matmul", "softmax"},
           longest_own_time}};
}

}  // namespace

std::vector<Question> questions(std::string_view chapter, bool on_gpu) {
  if (chapter == "01_naive" || chapter == "02_inplace") return plain_ops(on_gpu);
  if (chapter == "03_sdpa") return sdpa(on_gpu);
  if (chapter == "04_kernels") return own_kernels(on_gpu);
  if (chapter == "05_memory") return memory_questions();
  if (chapter == "06_kv_cache") return decode_questions(on_gpu);
  return {};
}

}  // namespace explain
