// SPDX-License-Identifier: Apache-2.0
//
// What a trace file says about the run that wrote it: its metadata, as far as this project knows
// the keys. Others are not repeated: anybody can write anything there.
//
//   std::cout << explain::about(trace);                    // device, shape, dtype, versions
//   if (explain::metadata_text(trace, "chapter") == "01_naive") ...
//   if (auto sizes = explain::sizes(trace)) sizes->score_bytes();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace explain {

// A string of the metadata without its quotes, "" where there is none. JSON escapes stay as they
// are; use trace::printable on a terminal.
[[nodiscard]] std::string_view metadata_text(const trace::Trace& trace, std::string_view key);

// One thing that is known about the run: "dtype", "bf16". Safe for a terminal.
struct AboutItem {
  std::string_view name;
  std::string value;
};
[[nodiscard]] std::vector<AboutItem> about_items(const trace::Trace& trace);

// One line per thing known, each with a newline: "Device    NVIDIA H200, compute capability 9.0,
// 132 multiprocessors". Safe for a terminal.
[[nodiscard]] std::string about(const trace::Trace& trace);

// Sizes of the attention that the run computed.
struct Sizes {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, seq = 0, head_dim = 0;
  std::int64_t element_bytes = 0;

  [[nodiscard]] std::int64_t score_bytes() const;   // of one tensor of scores [B, H, S, S]
  [[nodiscard]] std::int64_t output_bytes() const;  // [B, H, S, D]
};

// From `shape` ("8_16_1024_64", "2_8kv2_77_32") and `dtype` ("bf16"); nullopt where the file does
// not say.
[[nodiscard]] std::optional<Sizes> sizes(const trace::Trace& trace);

}  // namespace explain
