// SPDX-License-Identifier: Apache-2.0
//
// v1: one warp per query row, fp32 on the CUDA cores.
//
// The idea: softmax needs the largest score and the sum of all exponentials, which seems to ask for
// all scores at once. The *online* softmax keeps a running maximum and a running sum instead, and
// when a new maximum turns up it shrinks what it has so far by exp(old - new). So no score ever
// leaves a register, and one kernel takes the place of the naive program's matmul, mask,
// softmax and matmul.
//
// Look for in the profiler: one kernel per forward instead of six GPU operations, no S x S buffer
// (peak memory falls), and still a poor time: every warp reads all of K and V for its one row, and
// the tensor cores idle.
// Expect: 3 to 6 TFLOP/s, about a hundredth of what the tensor-core versions reach.
#include "device.cuh"

namespace kernels {
namespace {

constexpr int kWarps = 4;  // four query rows per block; they share nothing but the cache

__device__ float sum_over_warp(float x) {
  for (int distance = 16; distance > 0; distance /= 2) {
    x += __shfl_xor_sync(0xffffffff, x, distance);
  }
  return x;
}

template <typename T, int D>
__global__ void __launch_bounds__(32 * kWarps) warp_per_row(Attention call) {
  const int lane = threadIdx.x % 32;
  // The shuffle says that a warp's threads agree: without it the compiler makes the sums over the
  // warp below function calls, since it can't know that all 32 lanes come to them together.
  const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
  const int index = blockIdx.x * kWarps + warp;  // counts the rows of all heads
  if (index >= call.B * call.H * call.S) return;
  const int row = index % call.S;
  const int h = index / call.S % call.H;
  const int b = index / call.S / call.H;
  const int h_kv = h / (call.H / call.Hkv);

  const T* q = head_of<T>(call.q, call.q_stride, b, h) + row * call.q_stride.row;
  const T* k = head_of<T>(call.k, call.k_stride, b, h_kv);
  const T* v = head_of<T>(call.v, call.v_stride, b, h_kv);
  T* o = head_of<T>(call.o, call.o_stride, b, h) + row * call.o_stride.row;

  // A lane holds the columns lane, lane + 32, ... of the row: neighbouring lanes read neighbouring
  // addresses.
  constexpr int kColumns = D / 32;
  float query[kColumns], output[kColumns] = {};
#pragma unroll
  for (int c = 0; c < kColumns; ++c) query[c] = to_float(q[lane + 32 * c]) * call.scale;

  float max = -INFINITY, sum = 0;
  const int keys = visible_keys(call, row);
  for (int key = 0; key < keys; ++key) {
    float score = 0;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) score += query[c] * to_float(k[lane + 32 * c]);
    score = sum_over_warp(score);

    const float new_max = fmaxf(max, score);
    const float correction = __expf(max - new_max);  // 0 for the first key, as max is -inf
    const float weight = __expf(score - new_max);
    sum = sum * correction + weight;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      output[c] = output[c] * correction + weight * to_float(v[lane + 32 * c]);
    }
    max = new_max;
    k += call.k_stride.row;
    v += call.v_stride.row;
  }

  const float inverse = sum == 0 ? 0 : 1 / sum;  // a row that sees no key gets zeros
#pragma unroll
  for (int c = 0; c < kColumns; ++c) o[lane + 32 * c] = from_float<T>(output[c] * inverse);
  if (call.lse != nullptr && lane == 0) call.lse[index] = max + __logf(sum);
}

}  // namespace

cudaError_t v1(const Attention& call) {
  if (const cudaError_t error = check_sizes(call); error != cudaSuccess) return error;
  return dispatch(call, [&]<typename T, int D>() {
    const int rows = call.B * call.H * call.S;
    const int blocks = (rows + kWarps - 1) / kWarps;
    warp_per_row<T, D><<<blocks, 32 * kWarps, 0, call.stream>>>(call);
    return cudaGetLastError();
  });
}

}  // namespace kernels
