// SPDX-License-Identifier: Apache-2.0
//
// v2: tiles in shared memory, still fp32 on the CUDA cores.
//
// The idea: v1 fetched one row of K and V for one row of Q. Here 256 threads fetch 64 rows of K
// (then of V) into shared memory once and use them for 64 rows of Q, and each thread works on a
// 4 x 4 patch of scores: 8 values read from shared memory feed 16 multiply-adds.
//
// Look for in the profiler: shared memory per block (85 KB at D = 128) where v1 had none, the
// same single kernel, several times less time. Nsight Compute shows FMA as the busiest pipe and
// the tensor pipe at zero.
// Expect: 25 to 30 TFLOP/s on an H200, whose fp32 peak is 67.
#include "device.cuh"

namespace kernels {
namespace {

constexpr int kRows = 64;      // query rows per block
constexpr int kKeys = 64;      // keys per step
constexpr int kThreads = 256;  // 16 x 16, a 4 x 4 patch of the 64 x 64 scores each

// Rows in shared memory are 4 floats longer than they need be: 16 threads that read the same
// column of 16 rows then hit different banks.
constexpr int kPad = 4;
template <int D>
using Rows = float[kRows][D + kPad];

template <int D>
struct Shared {
  Rows<D> q;
  Rows<D> kv;          // K while the scores are made, V afterwards
  Rows<kKeys> scores;  // the weights exp(score - max), which all threads of a row need
};

// 64 rows of D elements, 16 bytes a thread at a time, widened to fp32. Rows past the end are zero.
template <typename T, int D>
__device__ void load(Rows<D>& tile, const T* source, int64_t stride, int first, int end) {
  constexpr int kChunks = D / 8;
  for (int i = threadIdx.x; i < kRows * kChunks; i += kThreads) {
    const int row = i / kChunks, column = i % kChunks * 8;
    uint4 chunk = {};
    if (first + row < end) {
      chunk = *reinterpret_cast<const uint4*>(source + (first + row) * stride + column);
    }
    const T* values = reinterpret_cast<const T*>(&chunk);
    for (int j = 0; j < 8; ++j) tile[row][column + j] = to_float(values[j]);
  }
}

__device__ float4 four(const float* x) {
  return *reinterpret_cast<const float4*>(x);
}

__device__ float max_over_16(float x) {
  for (int d = 8; d > 0; d /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, d));
  return x;
}
__device__ float sum_over_16(float x) {
  for (int d = 8; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffff, x, d);
  return x;
}

template <typename T, int D>
__global__ void __launch_bounds__(kThreads) shared_tiles(Attention call, TileOrder order) {
  extern __shared__ float4 shared_memory[];
  auto& shared = *reinterpret_cast<Shared<D>*>(shared_memory);
  const auto [b, h, first_row] = order(blockIdx.x, call.H);
  const int h_kv = h / (call.H / call.Hkv);
  const T* k = head_of<T>(call.k, call.k_stride, b, h_kv);
  const T* v = head_of<T>(call.v, call.v_stride, b, h_kv);

  // Thread (x, y) owns rows 4y .. 4y + 3 and keys x, x + 16, x + 32, x + 48; of the output it owns
  // the columns 4x .. 4x + 3 of each 64.
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  float output[4][D / 16] = {};
  float max[4], sum[4] = {};
  int limit[4];
  for (int i = 0; i < 4; ++i) {
    max[i] = -INFINITY;
    limit[i] = visible_keys(call, first_row + 4 * y + i);
  }
  load<T, D>(shared.q, head_of<T>(call.q, call.q_stride, b, h), call.q_stride.row, first_row,
             call.S);

  const int keys = visible_keys(call, min(first_row + kRows, call.S) - 1);
  for (int first_key = 0; first_key < keys; first_key += kKeys) {
    __syncthreads();  // all are done with the V before
    load<T, D>(shared.kv, k, call.k_stride.row, first_key, call.Skv);
    __syncthreads();

    float s[4][4] = {};
    for (int d = 0; d < D; d += 4) {
      float4 key[4];
      for (int j = 0; j < 4; ++j) key[j] = four(&shared.kv[x + 16 * j][d]);
      for (int i = 0; i < 4; ++i) {
        const float4 query = four(&shared.q[4 * y + i][d]);
        for (int j = 0; j < 4; ++j) {
          s[i][j] +=
              query.x * key[j].x + query.y * key[j].y + query.z * key[j].z + query.w * key[j].w;
        }
      }
    }

    for (int i = 0; i < 4; ++i) {
      float new_max = max[i];
      for (int j = 0; j < 4; ++j) {
        const bool visible = first_key + x + 16 * j < limit[i];
        s[i][j] = visible ? s[i][j] * call.scale : -INFINITY;
        new_max = fmaxf(new_max, s[i][j]);
      }
      new_max = max_over_16(new_max);
      // Nothing seen so far: subtract 0, as -inf - -inf would be NaN.
      const float base = new_max == -INFINITY ? 0 : new_max;
      const float correction = __expf(max[i] - base);
      max[i] = new_max;
      sum[i] *= correction;
      for (int c = 0; c < D / 16; ++c) output[i][c] *= correction;
      for (int j = 0; j < 4; ++j) {
        const float weight = __expf(s[i][j] - base);
        sum[i] += weight;
        shared.scores[4 * y + i][x + 16 * j] = weight;
      }
    }
    __syncthreads();  // all are done with K; the weights are written
    load<T, D>(shared.kv, v, call.v_stride.row, first_key, call.Skv);
    __syncthreads();

    for (int key = 0; key < kKeys; key += 4) {
      float4 weight[4];
      for (int i = 0; i < 4; ++i) weight[i] = four(&shared.scores[4 * y + i][key]);
      for (int c = 0; c < D / 64; ++c) {
        float4 value[4];
        for (int j = 0; j < 4; ++j) value[j] = four(&shared.kv[key + j][64 * c + 4 * x]);
        for (int i = 0; i < 4; ++i) {
          const float w[4] = {weight[i].x, weight[i].y, weight[i].z, weight[i].w};
          for (int j = 0; j < 4; ++j) {
            output[i][4 * c + 0] += w[j] * value[j].x;
            output[i][4 * c + 1] += w[j] * value[j].y;
            output[i][4 * c + 2] += w[j] * value[j].z;
            output[i][4 * c + 3] += w[j] * value[j].w;
          }
        }
      }
    }
  }

  for (int i = 0; i < 4; ++i) {
    const int row = first_row + 4 * y + i;
    const float total = sum_over_16(sum[i]);
    if (row >= call.S) continue;
    const float inverse = total == 0 ? 0 : 1 / total;
    T* o = head_of<T>(call.o, call.o_stride, b, h) + row * call.o_stride.row;
    for (int c = 0; c < D / 16; ++c) {
      o[c / 4 * 64 + 4 * x + c % 4] = from_float<T>(output[i][c] * inverse);
    }
    if (call.lse != nullptr && x == 0) {
      call.lse[(b * call.H + h) * call.S + row] = max[i] + __logf(total);
    }
  }
}

}  // namespace

cudaError_t v2(const Attention& call) {
  if (const cudaError_t error = check_sizes(call); error != cudaSuccess) return error;
  if (const cudaError_t error = check_alignment(call); error != cudaSuccess) return error;
  return dispatch(call, [&]<typename T, int D>() {
    const auto kernel = shared_tiles<T, D>;
    constexpr int kBytes = sizeof(Shared<D>);
    // More than 48 KB of shared memory has to be asked for.
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    if (error != cudaSuccess) return error;
    const TileOrder order(call, kRows);
    kernel<<<order.tiles(), kThreads, kBytes, call.stream>>>(call, order);
    return cudaGetLastError();
  });
}

}  // namespace kernels
