// SPDX-License-Identifier: Apache-2.0
//
// v3: tensor cores by mma.sync, for sm_80 and newer.
//
// The idea: both products go to the tensor cores, and the scores never leave the registers. A warp
// owns 32 query rows and all the keys of a step, so softmax needs no other warp; what one product
// leaves in the accumulators is what the next takes as its left operand (softmax.cuh). Three things
// feed the tensor cores:
//   ldmatrix  four 8 x 8 matrices per instruction, in the layout that mma takes
//   swizzle   chunk c of row r is stored at chunk c ^ (r % 8): eight rows in eight different banks
//   cp.async  K and V travel to shared memory while the tensor cores work on the other one
//
// Look for in the profiler: 128 threads with 255 registers each, so at most two blocks per
// multiprocessor: 12 % occupancy, and a tenth of v2's time. In the SASS: HMMA, LDSM, LDGSTS.
// Expect: 5 to 20 % ahead of PyTorch's flash backend (FlashAttention-2), 210 to 400 TFLOP/s on an
// H200; mma.sync tops out near 60 % of what Hopper's tensor cores can do.
#include "fragments.cuh"

namespace kernels {
namespace {

constexpr int kThreads = 128, kRows = 128;  // query rows per block: 32 for each warp

// Keys per step: as many as the registers allow beside the output, which takes D floats a thread.
template <int D>
struct Shape {
  static constexpr int kKeys = D == 64 ? 128 : 64;
  static constexpr int kQBytes = kRows * D * 2, kKvBytes = kKeys * D * 2;
  static constexpr int kSharedBytes = kQBytes + 2 * kKvBytes;
};

// Which part of a tile a thread copies: one 16-byte chunk of every kStep-th row.
template <int D>
struct Part {
  static constexpr int kChunks = D / 8, kStep = kThreads / kChunks;
  int row = threadIdx.x / kChunks, chunk = threadIdx.x % kChunks;
};

// Starts the copy of kTileRows rows from `source`, the first chunk of this thread. With kPartial
// only `rows` of them exist, and the others become zeros.
template <bool kPartial, int kTileRows, int D, typename T>
__device__ void start_copy(uint32_t tile, const T* source, int64_t stride, int rows) {
  const Part<D> part;
  tile += swizzled<D>(part.row, part.chunk);
#pragma unroll
  for (int i = 0; i < kTileRows; i += Part<D>::kStep) {
    cp_async(tile + i * D * 2, source, !kPartial || part.row + i < rows);
    if (!kPartial || part.row + i + Part<D>::kStep < rows) source += Part<D>::kStep * stride;
    recompute(source);
  }
}

template <int kTileRows, typename T>
__device__ const T* step_back(const T* source, int64_t stride) {
  recompute(stride);  // or two registers would hold its product with the rows
  return source - kTileRows * stride;
}

// s[2 x 16 rows x kKeys] += Q K^T for the warp's 32 rows.
template <typename T, int D, int R>
__device__ void multiply_qk(float (&s)[2][R], uint32_t q, uint32_t k) {
  recompute(q);
  recompute(k);
#pragma unroll
  for (int step = 0; step < D / 16; ++step) {
    uint32_t a[2][4];
    ldmatrix(a[0], (q ^ 32 * step));
    ldmatrix(a[1], (q ^ 32 * step) + 16 * D * 2);
#pragma unroll
    for (int n = 0; n < R / 8; ++n) {  // 16 keys
      uint32_t b[4];
      ldmatrix(b, (k ^ 32 * step) + n * 16 * D * 2);
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        mma<T>(s[m] + 8 * n, a[m], b[0], b[1]);
        mma<T>(s[m] + 8 * n + 4, a[m], b[2], b[3]);
      }
    }
  }
}

// o[2 x 16 rows x D] += P V.
template <typename T, int D, int R>
__device__ void multiply_pv(float (&o)[2][D / 2], const uint32_t (&p)[2][R][4], uint32_t v) {
  recompute(v);
#pragma unroll
  for (int step = 0; step < R; ++step) {  // 16 keys
#pragma unroll
    for (int n = 0; n < D / 16; ++n) {  // 16 columns
      uint32_t b[4];
      ldmatrix_transposed(b, (v ^ 32 * n) + step * 16 * D * 2);
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        mma<T>(o[m] + 8 * n, p[m][step], b[0], b[1]);
        mma<T>(o[m] + 8 * n + 4, p[m][step], b[2], b[3]);
      }
    }
  }
}

// Writes the warp's 32 rows, through its own part of Q's tile: stores then are 16 bytes wide.
template <typename T, int D>
__device__ void store(const Attention& call, const Tile& tile, float (&o)[2][D / 2],
                      const RowState (&rows)[2][kThreads], unsigned char* staging) {
  const int lane = threadIdx.x % 32;
  const int first_row = tile.first_row + threadIdx.x / 32 * 32;
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    const RowEnd end = finish(rows[m][threadIdx.x], call.scale);
    scale_rows(o[m], end.inverse);
    store_lse(call, tile, first_row + 16 * m + lane / 4, end);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int g = 0; g < D / 8; ++g) {
        const int offset = swizzled<D>(16 * m + 8 * half + lane / 4, g) + lane % 4 * 4;
        *reinterpret_cast<uint32_t*>(staging + offset) =
            pack<T>(o[m][4 * g + 2 * half], o[m][4 * g + 2 * half + 1]);
      }
    }
  }
  __syncwarp();
  T* target = head_of<T>(call.o, call.o_stride, tile.b, tile.h);
  for (int i = lane; i < 32 * D / 8; i += 32) {
    const int row = i / (D / 8), chunk = i % (D / 8);
    if (first_row + row < call.S) {
      *reinterpret_cast<uint4*>(target + (first_row + row) * call.o_stride.row + chunk * 8) =
          *reinterpret_cast<const uint4*>(staging + swizzled<D>(row, chunk));
    }
  }
}

template <typename T, int D>
__global__ void __launch_bounds__(kThreads, 2)
    tensor_cores(const __grid_constant__ Attention call, const TileOrder order, const float c) {
  constexpr int kKeys = Shape<D>::kKeys;
  extern __shared__ __align__(1024) unsigned char shared[];
  const uint32_t q_tile = shared_address(shared);       // [kRows, D]
  const uint32_t k_tile = q_tile + Shape<D>::kQBytes;   // [kKeys, D]
  const uint32_t v_tile = k_tile + Shape<D>::kKvBytes;  // [kKeys, D]
  // 255 registers are all that a thread can have. What it needs only once a step is kept in shared
  // memory, or the compiler would move (spill) something of its own choice to slower memory.
  __shared__ Tile tile;
  __shared__ RowState rows[2][kThreads];
  for (int m = 0; m < 2; ++m) rows[m][threadIdx.x] = RowState();
  if (threadIdx.x == 0) tile = order(blockIdx.x, call.H);
  __syncthreads();

  const int lane = threadIdx.x % 32, warp_rows = threadIdx.x - lane;  // the warp's first row
  const uint32_t q_lane = down_first<D>(q_tile + warp_rows * D * 2, lane);
  const uint32_t k_lane = across_first<D>(k_tile, lane), v_lane = down_first<D>(v_tile, lane);
  float o[2][D / 2] = {};

  const int some = visible_keys(call, min(tile.first_row + kRows, call.S) - 1);
  int step = (some + kKeys - 1) / kKeys - 1;  // from the last to the first: masked steps first

  // The first chunk that this thread copies of Q, and of K and V for the step at hand.
  const Part<D> part;
  const int h_kv = tile.h / (call.H / call.Hkv);
  const T* q = head_of<T>(call.q, call.q_stride, tile.b, tile.h) + part.chunk * 8;
  const T* k = head_of<T>(call.k, call.k_stride, tile.b, h_kv) + part.chunk * 8;
  const T* v = head_of<T>(call.v, call.v_stride, tile.b, h_kv) + part.chunk * 8;
  q += (tile.first_row + part.row) * call.q_stride.row;
  k += (step * kKeys + part.row) * call.k_stride.row;
  v += (step * kKeys + part.row) * call.v_stride.row;
  start_copy<true, kRows, D>(q_tile, q, call.q_stride.row, call.S - tile.first_row);
  const int keys_left = call.Skv - step * kKeys;
  if (step >= 0) start_copy<true, kKeys, D>(k_tile, k, call.k_stride.row, keys_left);

  const auto attend = [&]<bool kMasked>() {
    const int first_key = step * kKeys;
    cp_async_wait_all();
    __syncthreads();  // K is here, and all warps are done with the V before
    start_copy<kMasked, kKeys, D>(v_tile, v, call.v_stride.row, call.Skv - first_key);
    v = step_back<kKeys>(v, call.v_stride.row);
    float s[2][kKeys / 2] = {};
    multiply_qk<T, D>(s, q_lane, k_lane);

    cp_async_wait_all();
    __syncthreads();  // V is here, and all warps are done with K
    k = step_back<kKeys>(k, call.k_stride.row);
    if (step > 0) start_copy<false, kKeys, D>(k_tile, k, call.k_stride.row, kKeys);
    uint32_t p[2][kKeys / 16][4];  // the weights in 16 bits
    const int row = tile.first_row + warp_rows + lane / 4;
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      if constexpr (kMasked) {
        mask_scores(s[m], visible_keys(call, row + 16 * m) - first_key,
                    visible_keys(call, row + 16 * m + 8) - first_key);
      }
      float correction[2];
      RowState state = rows[m][threadIdx.x];
      online_softmax<kMasked>(s[m], state, correction, c);
      rows[m][threadIdx.x] = state;
      scale_rows(o[m], correction);
#pragma unroll
      for (int i = 0; i < kKeys / 16; ++i) pack_operand<T>(p[m][i], s[m] + 8 * i);
    }
    multiply_pv<T, D>(o, p, v_lane);
    --step;
  };
  // A mask is needed while there are keys that the tile's first row does not see.
  while (step >= 0 && (step + 1) * kKeys > visible_keys(call, tile.first_row)) {
    attend.template operator()<true>();
  }
  while (step >= 0) attend.template operator()<false>();

  cp_async_wait_all();
  __syncthreads();  // even where no key was seen, no thread's copy of Q still writes to these rows
  store<T, D>(call, tile, o, rows, shared + warp_rows * D * 2);
}

}  // namespace

cudaError_t v3(const Attention& call) {
  if (const cudaError_t error = check_sizes(call); error != cudaSuccess) return error;
  if (const cudaError_t error = check_alignment(call); error != cudaSuccess) return error;
  return dispatch(call, [&]<typename T, int D>() {
    const auto kernel = tensor_cores<T, D>;
    constexpr int kBytes = Shape<D>::kSharedBytes;
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    if (error != cudaSuccess) return error;
    const TileOrder order(call, kRows);
    const float c = exponent_factor(call);
    kernel<<<order.tiles(), kThreads, kBytes, call.stream>>>(call, order, c);
    return cudaGetLastError();
  });
}

}  // namespace kernels
