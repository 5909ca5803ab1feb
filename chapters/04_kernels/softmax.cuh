// SPDX-License-Identifier: Apache-2.0
//
// The online softmax on scores that lie in a tensor core's accumulator registers, for v3 to v6 and
// decode.
//
// mma.sync and wgmma hand out their results alike. A warp holds 16 rows; lane i has row i / 4 and
// row i / 4 + 8, and of each 8 columns the two at 2 * (i % 4). An array s[R] of one thread is then
//
//   s[4g], s[4g + 1]       row i / 4        columns 8g + 2 * (i % 4) and the one after
//   s[4g + 2], s[4g + 3]   row i / 4 + 8    the same columns
//
// so a row lies in four neighbouring lanes (a *quad*): its maximum and sum cost two shuffles, and
// no shared memory. The same layout is what the second product takes as its left operand: the
// weights stay where they are and are only rounded to 16 bits.
#pragma once

#include "ptx.cuh"

namespace kernels {

// Of the two rows of a thread.
struct alignas(16) RowState {
  float max[2] = {-INFINITY, -INFINITY};  // largest score so far, not yet scaled
  float sum[2] = {0, 0};                  // of this thread's columns; the quad adds up at the end
};

// Scores of keys that a row does not see become -inf. `keys`: how many of the tile's keys the row
// sees; may be negative or more than there are.
template <int R>
__device__ void mask_scores(float (&s)[R], int keys_0, int keys_1) {
  const int column = 2 * (threadIdx.x % 4);
#pragma unroll
  for (int i = 0; i < R; ++i) {
    const int keys = i % 4 < 2 ? keys_0 : keys_1;
    if (i / 4 * 8 + i % 2 + column >= keys) s[i] = -INFINITY;
  }
}

__device__ inline float max_over_quad(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}
__device__ inline float sum_over_quad(float x) {
  x += __shfl_xor_sync(0xffffffff, x, 1);
  return x + __shfl_xor_sync(0xffffffff, x, 2);
}

// The exponentials are powers of two, exp(scale * x) = exp2(c * x) with c = scale * log2(e), and
// exp2(s * c - max * c) is one multiply-add and one instruction of the special function unit. The
// kernels take c as an argument: from there it needs no register.
template <typename Call>
float exponent_factor(const Call& call) {
  return call.scale * 1.44269504f;
}

// Scores in, weights exp(scale * (score - max)) out. `correction` is what all that was summed up
// before has to be multiplied by.
template <bool kMasked, int R>
__device__ void online_softmax(float (&s)[R], RowState& state, float (&correction)[2], float c) {
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float even = state.max[row],
          odd = -INFINITY;  // two chains of dependent operations, as below, wait half as long
#pragma unroll
    for (int i = 2 * row; i < R; i += 4) {
      even = fmaxf(even, s[i]);
      odd = fmaxf(odd, s[i + 1]);
    }
    const float max = max_over_quad(fmaxf(even, odd));
    // A row that has seen no key yet would compute -inf - -inf.
    const float base = kMasked && max == -INFINITY ? 0 : max * c;
    correction[row] = exp2_fast(state.max[row] * c - base);
    state.max[row] = max;
    float sum_even = 0, sum_odd = 0;
#pragma unroll
    for (int i = 2 * row; i < R; i += 4) {
      s[i] = exp2_fast(s[i] * c - base);
      s[i + 1] = exp2_fast(s[i + 1] * c - base);
      sum_even += s[i];
      sum_odd += s[i + 1];
    }
    state.sum[row] = state.sum[row] * correction[row] + (sum_even + sum_odd);
  }
}

// Multiplies each of the thread's two rows by its factor.
template <int R>
__device__ void scale_rows(float (&o)[R], const float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < R; ++i) o[i] *= factor[i % 4 / 2];
}

// The end of a row: its sum over the quad, 1 / sum to divide the output by, and the log of the sum
// of exponentials. A row that saw no key gets output 0 and -inf.
struct RowEnd {
  float inverse[2], lse[2];
};
__device__ inline RowEnd finish(const RowState& state, float scale) {
  RowEnd end;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const float sum = sum_over_quad(state.sum[row]);
    end.inverse[row] = sum == 0 ? 0 : 1 / sum;
    end.lse[row] = sum == 0 ? -INFINITY : state.max[row] * scale + logf(sum);
  }
  return end;
}

// The log-sum-exp of the thread's two rows, written by one lane of each quad.
__device__ inline void store_lse(const Attention& call, const Tile& tile, int row,
                                 const RowEnd& end) {
  if (call.lse == nullptr || threadIdx.x % 4 != 0) return;
  float* lse = call.lse + (static_cast<int64_t>(tile.b) * call.H + tile.h) * call.S;
  if (row < call.S) lse[row] = end.lse[0];
  if (row + 8 < call.S) lse[row + 8] = end.lse[1];
}

// Rounds 16 columns of weights to 16 bits: the 16 x 16 left operand of the second product.
template <typename T>
__device__ void pack_operand(uint32_t* a, const float* s) {
  a[0] = pack<T>(s[0], s[1]);
  a[1] = pack<T>(s[2], s[3]);
  a[2] = pack<T>(s[4], s[5]);
  a[3] = pack<T>(s[6], s[7]);
}

}  // namespace kernels
