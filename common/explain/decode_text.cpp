// SPDX-License-Identifier: Apache-2.0
//
// What a token costs, in words.
#include <fmt/format.h>

#include <algorithm>

#include "explain/decode.h"
#include "explain/text.h"

namespace explain {
namespace {

std::string bytes_text(double bytes) {
  constexpr double kMost = 9e18;
  return size_text(static_cast<std::int64_t>(std::clamp(bytes, 0.0, kMost)));
}

std::string times_text(double part, double whole) {
  return whole > 0 ? fmt::format("{:.2f}", part / whole) : "-";
}

class Lines {
 public:
  void add(std::string_view name, const std::string& value) {
    text += fmt::format("  {:<28}{}\n", name, value);
  }
  std::string text;
};

void add_times(Lines& lines, const DecodeFacts& f) {
  lines.add("prefill", time_text(f.prefill_us));
  lines.add("time per token",
            fmt::format("{}; in the first quarter {}, in the last {}: {:.2f} times, {:+.2f}us with "
                        "each token",
                        time_text(f.token_us), time_text(f.first_us), time_text(f.last_us),
                        f.growth(), f.slope_us));
}

void add_bytes(Lines& lines, const DecodeFacts& f) {
  if (!f.bytes) return;
  const TokenBytes& b = *f.bytes;
  lines.add("written per token",
            fmt::format("{}, {} times its own keys and values ({})", bytes_text(b.written),
                        times_text(b.written, b.own), bytes_text(b.own)));
  lines.add("cache read per token", fmt::format("{}, {} times the least ({})", bytes_text(b.read),
                                                times_text(b.read, b.least), bytes_text(b.least)));
  const double all = b.written * static_cast<double>(f.tokens);
  lines.add("written in a generation",
            fmt::format("{}, {} times the cache at its end", bytes_text(all),
                        times_text(all, f.final_bytes)));
}

void add_memory(Lines& lines, const DecodeFacts& f) {
  if (f.allocations && f.cache_allocations) {
    lines.add("allocations per token", fmt::format("{:.2f} for the cache, {:.2f} in all",
                                                   *f.cache_allocations, *f.allocations));
  }
  if (f.cache_slots == 0) return;
  lines.add("cache at the end",
            fmt::format("{} tokens in {} slots, {} of them in use", f.cache_tokens, f.cache_slots,
                        share_text(static_cast<double>(f.cache_tokens) /
                                   static_cast<double>(f.cache_slots))));
  if (f.slot_bytes <= 0) return;
  lines.add("cache's bytes", fmt::format("{} in use, {} wasted in slots without a token",
                                         bytes_text(f.final_bytes), bytes_text(f.wasted_bytes())));
  if (f.peak_bytes > 0) {
    lines.add("cache's peak",
              fmt::format("{}, {} times what is in use at the end", bytes_text(f.peak_bytes),
                          times_text(f.peak_bytes, f.final_bytes)));
  }
}

void add_gpu(Lines& lines, const DecodeFacts& f) {
  if (!f.on_gpu) return;
  lines.add("GPU idle while decoding", share_text(f.idle_share));
  lines.add("GPU idle between tokens",
            fmt::format("{} before a token's first operation (median)", time_text(f.gap_us)));
  if (f.graph_launches == 0) return;
  const auto per_token = [&](std::int64_t count) {
    return static_cast<double>(count) / static_cast<double>(f.all_tokens);
  };
  lines.add("graph replays",
            fmt::format("{:.0f} kernels from {:.0f} cudaGraphLaunch per token; its ops ran when it "
                        "was captured: none are here to count bytes from",
                        per_token(f.graph_operations), per_token(f.graph_launches)));
}

}  // namespace

std::string to_text(const DecodeFacts& facts) {
  Lines lines;
  lines.text = fmt::format("Decoding, {} generation{} of {} tokens, cache: {}\n", facts.generations,
                           facts.generations == 1 ? "" : "s", facts.tokens, facts.cache);
  add_times(lines, facts);
  add_bytes(lines, facts);
  add_memory(lines, facts);
  add_gpu(lines, facts);
  return lines.text;
}

}  // namespace explain
