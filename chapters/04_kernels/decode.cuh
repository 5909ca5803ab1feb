// SPDX-License-Identifier: Apache-2.0
//
// What decode's two kernels agree on: who has which rows and keys, and where results go.
#pragma once

#include "decode.h"
#include "fragments.cuh"

namespace kernels {

constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kRows = 16;              // of a tile: what mma takes
constexpr int kKeys = 16;              // of one step of one warp
constexpr int kStep = kWarps * kKeys;  // of one step of a block, and the fewest that it gets

// ---- rows: the query heads that share one key head, token by token, cut into tiles ----

__host__ __device__ inline int row_tiles(const Decode& call) {
  return (call.H / call.Hkv * call.S + kRows - 1) / kRows;
}

struct Row {
  int b, h, s;
};

struct Rows {
  int b, h_kv, group, first, count;

  __device__ Rows(const Decode& call, int b_, int tile)
      : b(b_), h_kv(tile / row_tiles(call)), group(call.H / call.Hkv) {
    first = tile % row_tiles(call) * kRows;
    count = min(kRows, group * call.S - first);
  }
  __device__ int token(int i) const { return (first + i) / group; }
  __device__ Row operator[](int i) const {
    return {b, h_kv * group + (first + i) % group, token(i)};
  }
};

// ---- keys: how many blocks share a sequence ----
//
// call.fill blocks are to be at work for each key head. They go to the sequences in proportion to
// their lengths, rounded down, at least one to each and at most call.splits, which is how many the
// grid has. Blocks that are not needed leave at once.

__device__ inline int clamped(int x, int most) {
  return min(max(x, 0), most);
}
__device__ inline int length_of(const Decode& call, int b) {
  return clamped(call.lengths[b], call.capacity);
}

struct Share {
  int blocks, keys;  // of the sequence; of each block
};

// All lanes of a warp call it together.
__device__ inline Share share_of(const Decode& call, int length) {
  int blocks = call.splits;
  if (call.splits > 1 && call.B > 1) {
    float all = 0;
    for (int b = threadIdx.x % 32; b < call.B; b += 32) all += length_of(call, b);
    for (int d = 16; d > 0; d /= 2) all += __shfl_xor_sync(0xffffffff, all, d);
    // A little more, as a quotient may come out below the integer that it is.
    const float wanted = length * (1.0001f * call.fill) / max(all, 1.0f);
    blocks = min(max(static_cast<int>(wanted), 1), blocks);
  }
  const int even = (length + blocks - 1) / blocks;
  const int keys = max(kStep, (even + kStep - 1) / kStep * kStep);
  return {max(1, (length + keys - 1) / keys), keys};
}

// ---- results ----

__device__ inline int64_t index_of(const Decode& call, const Row& row) {
  return (static_cast<int64_t>(row.b) * call.H + row.h) * call.S + row.s;
}

// R neighbouring columns of a row, R even.
template <typename T, int R>
__device__ void store(const Decode& call, const Row& row, int column, const float (&o)[R],
                      float lse) {
  T* target = head_of<T>(call.o, call.o_stride, row.b, row.h) + row.s * call.o_stride.row + column;
#pragma unroll
  for (int i = 0; i < R; i += 2) {
    *reinterpret_cast<uint32_t*>(target + i) = pack<T>(o[i], o[i + 1]);
  }
  if (column == 0) call.lse[index_of(call, row)] = lse;
}

// What one block has of a row of which others have the rest. A row's parts lie side by side: first
// all outputs, behind them all log-sum-exps.
template <int D>
struct Part {
  float *o, *lse;

  __device__ Part(const Decode& call, const Row& row, int split) {
    const int64_t rows = static_cast<int64_t>(call.B) * call.H * call.S;
    const int64_t index = index_of(call, row) * call.splits + split;
    o = call.scratch + index * D;
    lse = call.scratch + rows * call.splits * D + index;
  }
};

}  // namespace kernels
