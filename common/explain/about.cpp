// SPDX-License-Identifier: Apache-2.0
#include "explain/about.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "explain/text.h"
#include "trace/printable.h"

namespace explain {
namespace {

// A number above 0 at the start of `text`, which it is removed from.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 1) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  return true;
}

std::optional<std::int64_t> element_bytes(std::string_view dtype) {
  if (dtype == "fp64") return 8;
  if (dtype == "fp32") return 4;
  if (dtype == "fp16" || dtype == "bf16") return 2;
  return std::nullopt;
}

std::string device_text(const trace::Trace& trace) {
  const std::string_view device = metadata_text(trace, "device");
  if (!device.empty() || trace.devices.empty()) return std::string(device);
  const trace::DeviceProperties& gpu = trace.devices.front();
  return fmt::format("{}, compute capability {}.{}, {} multiprocessors, {}", gpu.name,
                     gpu.compute_major, gpu.compute_minor, gpu.multiprocessors,
                     size_text(gpu.total_memory));
}

// 13000 is CUDA 13.0.
std::string cuda_version(std::string_view number) {
  int version = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), version);
  if (error != std::errc() || end != number.data() + number.size()) return "";
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

std::string_view metadata_text(const trace::Trace& trace, std::string_view key) {
  const std::string_view json = trace.metadata_value(key);
  const bool is_string = json.size() >= 2 && json.front() == '"' && json.back() == '"';
  return is_string ? json.substr(1, json.size() - 2) : std::string_view();
}

std::vector<AboutItem> about_items(const trace::Trace& trace) {
  std::vector<AboutItem> items;
  const auto add = [&items](std::string_view name, std::string_view value) {
    constexpr std::size_t kLongest = 200;  // a hostile file's device is as long as it likes
    if (!value.empty()) items.push_back({name, trace::printable(value.substr(0, kLongest))});
  };
  add("Chapter", metadata_text(trace, "chapter"));
  add("Variant", metadata_text(trace, "variant"));
  add("Device", device_text(trace));
  const std::string_view libtorch =
      metadata_text(trace, "libtorch");  // names its CUDA version, too
  add("LibTorch", libtorch);
  if (libtorch.empty()) add("CUDA", cuda_version(trace.metadata_value("cuda_runtime_version")));
  add("Shape", metadata_text(trace, "shape"));
  add("dtype", metadata_text(trace, "dtype"));
  return items;
}

std::string about(const trace::Trace& trace) {
  std::string text;
  for (const AboutItem& item : about_items(trace)) {
    text += fmt::format("{:<10}{}\n", item.name, item.value);
  }
  return text;
}

std::int64_t Sizes::score_bytes() const {
  return batch * heads * seq * seq * element_bytes;
}

std::int64_t Sizes::output_bytes() const {
  return batch * heads * seq * head_dim * element_bytes;
}

std::optional<Sizes> sizes(const trace::Trace& trace) {
  std::string_view text = metadata_text(trace, "shape");
  const auto bytes = element_bytes(metadata_text(trace, "dtype"));
  const auto batch = take_number(text);
  if (!bytes || !batch || !take(text, "_")) return std::nullopt;
  const auto heads = take_number(text);
  const auto kv_heads = take(text, "kv") ? take_number(text) : heads;
  if (!heads || !kv_heads || !take(text, "_")) return std::nullopt;
  const auto seq = take_number(text);
  if (!seq || !take(text, "_")) return std::nullopt;
  const auto head_dim = take_number(text);
  if (!head_dim || !text.empty()) return std::nullopt;
  // A hostile file's sizes must not overflow the products below.
  constexpr double kMost = 1e18;
  const auto real = [](std::int64_t number) { return static_cast<double>(number); };
  const double longest = real(std::max(*seq, *head_dim));
  const double most_heads = real(std::max(*heads, *kv_heads));
  if (real(*batch) * most_heads * real(*seq) * longest * real(*bytes) > kMost) {
    return std::nullopt;
  }
  return Sizes{*batch, *heads, *kv_heads, *seq, *head_dim, *bytes};
}

}  // namespace explain
