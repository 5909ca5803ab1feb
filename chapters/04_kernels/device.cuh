// SPDX-License-Identifier: Apache-2.0
//
// What every version shares and none is about: the two dtypes, which keys a row sees, where a row
// lies in memory, which tile a block takes, and the checks before a launch.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>

#include "gpu.h"

namespace kernels {

using Bf16 = __nv_bfloat16;
using Fp16 = __half;

__device__ inline float to_float(Bf16 x) {
  return __bfloat162float(x);
}
__device__ inline float to_float(Fp16 x) {
  return __half2float(x);
}

template <typename T>
__device__ T from_float(float x) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return __float2bfloat16(x);
  } else {
    return __float2half(x);
  }
}

// Two floats as one 32-bit register, `low` in its low half: what tensor cores and wide stores take.
template <typename T>
__device__ uint32_t pack(float low, float high) {
  uint32_t both;
  if constexpr (std::is_same_v<T, Bf16>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  }
  return both;
}

// Keys 0 .. visible_keys - 1 are the ones that `row` sees. It never falls from one row to the next,
// so a tile's first row tells which keys all of its rows see, and its last row which any does.
__host__ __device__ inline int visible_keys(const Attention& call, int row) {
  if (call.causal == Causal::none) return call.Skv;
  const int shift = call.causal == Causal::top_left ? 0 : call.Skv - call.S;
  const int keys = row + 1 + shift;
  return keys < 0 ? 0 : keys < call.Skv ? keys : call.Skv;
}

// The first element of one head, for rows that are `stride.row` apart.
template <typename T>
__device__ const T* head_of(const void* base, const Strides& stride, int b, int h) {
  return static_cast<const T*>(base) + b * stride.batch + h * stride.head;
}
template <typename T>
__device__ T* head_of(void* base, const Strides& stride, int b, int h) {
  return static_cast<T*>(base) + b * stride.batch + h * stride.head;
}

// The work of one block: `rows` query rows of one head. Tiles are numbered so that the longest come
// first (under a causal mask the last rows see the most keys), because a long tile that starts last
// keeps one multiprocessor busy while all others wait. Heads are taken in groups whose K and V
// fit into the L2 cache together, so that the many tiles of one head read them from there. Large
// groups even out long and short tiles, small ones ask less of the memory at once when they begin:
// without a mask all tiles are alike, and small groups win.
struct Tile {
  int b, h, first_row;
};

struct TileOrder {
  int heads, row_tiles, rows, group;

  TileOrder(const Attention& call, int rows_per_tile)
      : heads(call.B * call.H),
        row_tiles((call.S + rows_per_tile - 1) / rows_per_tile),
        rows(rows_per_tile) {
    const double cache_bytes = call.causal == Causal::none ? 8 << 20 : 32 << 20;
    const double head_bytes = 2.0 * call.Skv * call.D * 2;
    group = static_cast<int>(std::clamp(cache_bytes / head_bytes, 1.0, 1.0 * std::min(heads, 64)));
  }

  __host__ __device__ int tiles() const { return heads * row_tiles; }

  __device__ Tile operator()(int index, int H) const {
    const int first_head = index / (group * row_tiles) * group;
    const int heads_here = min(group, heads - first_head);
    const int within = index - first_head * row_tiles;
    const int head = first_head + within % heads_here;
    return {head / H, head % H, (row_tiles - 1 - within / heads_here) * rows};
  }
};

// What no version can take.
inline cudaError_t check_sizes(const Attention& call) {
  const bool sizes = call.B > 0 && call.H > 0 && call.Hkv > 0 && call.H % call.Hkv == 0 &&
                     call.S > 0 && call.Skv > 0 && (call.D == 64 || call.D == 128);
  const bool countable = 1.0 * call.B * call.H * call.S < 2147483647.0;
  return sizes && countable && call.scale > 0 ? cudaSuccess : cudaErrorInvalidValue;
}

// What wide loads need: every row starts at a multiple of 16 bytes. A stride that is never taken
// (its dimension has one entry) may be anything.
inline bool aligned(const void* base, const Strides& stride, int batch, int heads, int rows) {
  constexpr int kElements = 8;  // 16 bytes
  return reinterpret_cast<uintptr_t>(base) % 16 == 0 &&
         (batch == 1 || stride.batch % kElements == 0) &&
         (heads == 1 || stride.head % kElements == 0) && (rows == 1 || stride.row % kElements == 0);
}

inline cudaError_t check_alignment(const Attention& call) {
  const bool all = aligned(call.q, call.q_stride, call.B, call.H, call.S) &&
                   aligned(call.k, call.k_stride, call.B, call.Hkv, call.Skv) &&
                   aligned(call.v, call.v_stride, call.B, call.Hkv, call.Skv) &&
                   aligned(call.o, call.o_stride, call.B, call.H, call.S);
  return all ? cudaSuccess : cudaErrorMisalignedAddress;
}

// Calls `launch` with the dtype and head dimension of the call as template arguments: four kernels
// are compiled, and one is picked here.
template <typename Call, typename Launch>
cudaError_t dispatch(const Call& call, Launch launch) {
  if (call.dtype == Dtype::bf16) {
    return call.D == 64 ? launch.template operator()<Bf16, 64>()
                        : launch.template operator()<Bf16, 128>();
  }
  return call.D == 64 ? launch.template operator()<Fp16, 64>()
                      : launch.template operator()<Fp16, 128>();
}

}  // namespace kernels
