// SPDX-License-Identifier: Apache-2.0
#include "explain/text.h"

#include <fmt/format.h>

#include <cmath>

namespace explain {

std::string time_text(double microseconds) {
  const double size = std::abs(microseconds);
  if (size >= 1e6) return fmt::format("{:.3f}s", microseconds / 1e6);
  if (size >= 1e3) return fmt::format("{:.3f}ms", microseconds / 1e3);
  return fmt::format("{:.1f}us", microseconds);
}

std::string size_text(std::int64_t bytes) {
  constexpr double kKiB = 1024;
  const auto size = static_cast<double>(bytes);
  if (std::abs(size) >= kKiB * kKiB * kKiB) {
    return fmt::format("{:.2f} GiB", size / (kKiB * kKiB * kKiB));
  }
  if (std::abs(size) >= kKiB * kKiB) return fmt::format("{:.2f} MiB", size / (kKiB * kKiB));
  if (std::abs(size) >= kKiB) return fmt::format("{:.2f} KiB", size / kKiB);
  return fmt::format("{} B", bytes);
}

std::string share_text(double share) {
  return fmt::format("{:.1f}%", 100 * share);
}

std::string cut(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) --end;  // inside UTF-8
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace explain
