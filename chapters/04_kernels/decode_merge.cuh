// SPDX-License-Identifier: Apache-2.0
//
// decode's second kernel: one row of the result out of the parts that several blocks have of it.
// Each part is a softmax over its own keys; it counts exp(lse of the part - lse of all).
#pragma once

#include "decode.cuh"

namespace kernels {

constexpr int kMergeWarps = 8, kPartsAtOnce = 4;

// A lane's columns of a row, so far: their sum, not yet divided by the sum of the weights. Weights
// are exp(lse - max).
template <int R>
struct Merged {
  float o[R] = {}, max = -INFINITY, sum = 0;

  // One part has sum 1 and its log-sum-exp for a maximum.
  __device__ void add(const float (&other)[R], float other_max, float other_sum) {
    const float new_max = fmaxf(max, other_max);
    const float base = new_max == -INFINITY ? 0 : new_max;  // -inf - -inf would be no number
    const float mine = __expf(max - base), others = __expf(other_max - base);
#pragma unroll
    for (int i = 0; i < R; ++i) o[i] = o[i] * mine + other[i] * others;
    sum = sum * mine + other_sum * others;
    max = new_max;
  }
};

// One block per row. Its warps take turns at the parts; each lane has D / 32 columns.
template <typename T, int D>
__global__ void __launch_bounds__(32 * kMergeWarps) merge(const __grid_constant__ Decode call) {
  constexpr int R = D / 32;
  __shared__ Merged<R> of_warps[kMergeWarps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Row row{static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.x) / call.S,
                static_cast<int>(blockIdx.x) % call.S};
  const Share share = share_of(call, length_of(call, row.b));
  wait_for_kernel_before();       // all up to here is done while the last blocks are at work
  if (share.blocks == 1) return;  // the only block has written the result itself

  Merged<R> merged;
  for (int first = warp; first < share.blocks; first += kMergeWarps * kPartsAtOnce) {
    // Loads for several parts are under way before the first is used.
    alignas(16) float part[kPartsAtOnce][R];
    float lse[kPartsAtOnce];
#pragma unroll
    for (int i = 0; i < kPartsAtOnce; ++i) {
      const Part<D> from(call, row, min(first + i * kMergeWarps, share.blocks - 1));
      lse[i] = *from.lse;
      using Vector = std::conditional_t<R == 4, float4, float2>;
      *reinterpret_cast<Vector*>(part[i]) = reinterpret_cast<const Vector*>(from.o)[lane];
    }
#pragma unroll
    for (int i = 0; i < kPartsAtOnce; ++i) {
      if (first + i * kMergeWarps < share.blocks) merged.add(part[i], lse[i], 1);
    }
  }
  of_warps[warp][lane] = merged;
  __syncthreads();
  if (warp > 0) return;
  for (int w = 1; w < kMergeWarps; ++w) {
    const Merged<R>& other = of_warps[w][lane];
    merged.add(other.o, other.max, other.sum);
  }
  const bool none = merged.sum == 0;
  const float inverse = none ? 0 : 1 / merged.sum;
#pragma unroll
  for (float& x : merged.o) x *= inverse;
  store<T>(call, row, lane * R, merged.o, none ? -INFINITY : merged.max + logf(merged.sum));
}

template <typename T, int D>
cudaError_t launch_merge(const Decode& call) {
  // It may begin early only if it has the code to wait: not where a newer GPU runs what was
  // compiled for sm_80.
  cudaFuncAttributes code;
  const cudaError_t error = cudaFuncGetAttributes(&code, merge<T, D>);
  if (error != cudaSuccess) return error;
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(call.H * call.S, call.B);
  config.blockDim = 32 * kMergeWarps;
  config.stream = call.stream;
  config.attrs = &early;
  config.numAttrs = code.ptxVersion >= 90 ? 1 : 0;
  return cudaLaunchKernelEx(&config, merge<T, D>, call);
}

}  // namespace kernels
