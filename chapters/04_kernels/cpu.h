// SPDX-License-Identifier: Apache-2.0
//
// The ladder's two versions for the CPU, fp32, and decode. A task is a block of query rows of one
// head; tasks need nothing of each other, so any thread may do any of them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "attention.h"
#include "decode.h"

namespace kernels {

// c2 works on panels of three vectors of rows: with vectors of 4, 8 or 16 floats a task is whole
// panels.
inline constexpr int kRowsPerTask = 96;

inline std::int64_t tasks_per_head(const Attention& call) {
  return (call.S + kRowsPerTask - 1) / kRowsPerTask;
}

inline std::int64_t tasks(const Attention& call) {
  return tasks_per_head(call) * call.B * call.H;
}

// Columns that c2's scratch has room for.
inline constexpr int kMostD = 256;

// The rows of a task, and where its head begins in each tensor, in elements.
struct Rows {
  int begin, end;
  std::int64_t q_offset, k_offset, v_offset, o_offset, lse_offset;
};

inline Rows rows_of(const Attention& call, std::int64_t task) {
  const std::int64_t head_of_all = task / tasks_per_head(call);
  const std::int64_t b = head_of_all / call.H, h = head_of_all % call.H;
  const std::int64_t hkv = h / (call.H / call.Hkv);
  const auto begin = static_cast<int>(task % tasks_per_head(call)) * kRowsPerTask;
  const auto offset = [b](const Strides& strides, std::int64_t head) {
    return b * strides.batch + head * strides.head;
  };
  return {begin,
          std::min(begin + kRowsPerTask, call.S),
          offset(call.q_stride, h),
          offset(call.k_stride, hkv),
          offset(call.v_stride, hkv),
          offset(call.o_stride, h),
          head_of_all * call.S};
}

// How many keys a row sees: always the first ones.
inline int visible_keys(const Attention& call, int row) {
  if (call.causal == Causal::none) return call.Skv;
  const int shift = call.causal == Causal::bottom_right ? call.Skv - call.S : 0;
  return std::clamp(row + shift + 1, 0, call.Skv);
}

void c1(const Attention& call, std::int64_t task);  // row by row
void c2(const Attention& call, std::int64_t task);  // tiles, vectors, exp2; for this CPU's vectors

// Decode: a task is what reads one key head of one sequence, B * Hkv of them. fp32 or bf16.
void decode_cpu(const Decode& call, std::int64_t task);

}  // namespace kernels
