// SPDX-License-Identifier: Apache-2.0
//
// What v4, v5 and v6 share: the maps by which the copy engine (TMA) finds a tile, the two products
// as wgmma takes them, and the way of the output back to memory.
//
// A tile of R rows x D columns lies in shared memory as D / 64 groups, one after the other, of R
// rows of 128 bytes (64 columns of 16 bits) each. Within a group the 16-byte chunks are swizzled as
// in v3: chunk c of row r at chunk c ^ (r % 8). The copy engine writes this layout by itself, and
// wgmma reads it by itself, if both are told the same and the tile starts at a multiple of 1024.
#pragma once

#include "softmax.cuh"

namespace kernels {

struct Maps {
  CUtensorMap q, k, v, o;
};

// A map of [B, H, rows, D] from which boxes of `box_rows` x `box_columns` are copied. Rows past the
// end of a head are read as zeros and never written, since `rows` is a dimension of its own.
template <typename T>
cudaError_t make_map(CUtensorMap& map, const void* base, const Strides& stride, int B, int H,
                     int rows, int D, int box_rows, int box_columns) {
  // The driver's function, asked for at run time: nothing links against the driver.
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                     &found);
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  if (encode == nullptr) return cudaErrorNotSupported;

  // A dimension with one entry is never stepped over; its stride must still be a valid one.
  const auto bytes = [](int64_t elements, int count) {
    return static_cast<cuuint64_t>(count == 1 ? 64 * sizeof(T) : elements * sizeof(T));
  };
  constexpr auto kType =
      std::is_same_v<T, Bf16> ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  const auto size = [](int n) { return static_cast<cuuint64_t>(n); };
  const cuuint64_t sizes[5] = {64, size(rows), size(D / 64), size(H), size(B)};
  const cuuint64_t strides[4] = {bytes(stride.row, rows), 64 * sizeof(T), bytes(stride.head, H),
                                 bytes(stride.batch, B)};  // in bytes, of all but the first
  const cuuint32_t box[5] = {64, static_cast<cuuint32_t>(box_rows),
                             static_cast<cuuint32_t>(box_columns / 64), 1, 1};
  const cuuint32_t every[5] = {1, 1, 1, 1, 1};
  const CUresult result =
      encode(&map, kType, 5, const_cast<void*>(base), sizes, strides, box, every,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

// Q in tiles of `rows`, K and V in tiles of `keys`; the output leaves by 64 x 64, a warpgroup's
// rows.
template <typename T>
cudaError_t make_maps(Maps& maps, const Attention& call, int rows, int keys) {
  cudaError_t error =
      make_map<T>(maps.q, call.q, call.q_stride, call.B, call.H, call.S, call.D, rows, call.D);
  if (error == cudaSuccess) {
    error = make_map<T>(maps.k, call.k, call.k_stride, call.B, call.Hkv, call.Skv, call.D, keys,
                        call.D);
  }
  if (error == cudaSuccess) {
    error = make_map<T>(maps.v, call.v, call.v_stride, call.B, call.Hkv, call.Skv, call.D, keys,
                        call.D);
  }
  if (error == cudaSuccess) {
    error = make_map<T>(maps.o, call.o, call.o_stride, call.B, call.H, call.S, call.D, 64, 64);
  }
  return error;
}

// Starts s[64 x kKeys] = Q K^T for the 64 rows at `q`. Tiles: Q [kRows, D], K [kKeys, D].
template <typename T, int D, int kRows, int kKeys>
__device__ void multiply_qk(float (&s)[kKeys / 2], uint32_t q, uint32_t k) {
  const uint64_t q_matrix = matrix_descriptor(q), k_matrix = matrix_descriptor(k);
#pragma unroll
  for (int step = 0; step < D / 16; ++step) {  // 16 columns are 32 bytes; 64 are a group
    const int group = step / 4, within = step % 4 * 32;
    wgmma<T, kKeys>(s, q_matrix + (group * kRows * 128 + within) / 16,
                    k_matrix + (group * kKeys * 128 + within) / 16, step > 0);
  }
}

// Starts o[64 x D] += P V, with the weights P in registers and V [kKeys, D].
template <typename T, int D, int kKeys>
__device__ void multiply_pv(float (&o)[D / 2], const uint32_t (&p)[kKeys / 4], uint32_t v) {
  const uint64_t v_matrix = matrix_descriptor(v, kKeys * 128);
#pragma unroll
  for (int step = 0; step < kKeys / 16; ++step) {  // 16 keys are 16 rows of 128 bytes
    wgmma<T, D>(o, p + 4 * step, v_matrix + step * 16 * 128 / 16);
  }
}

template <typename T, int R>
__device__ void pack_weights(uint32_t (&p)[R / 2], const float (&s)[R]) {
#pragma unroll
  for (int i = 0; i < R / 8; ++i) pack_operand<T>(p + 4 * i, s + 8 * i);
}

// Writes a warpgroup's 64 x D output to shared memory, in the layout above; `group_bytes` from one
// group of 64 columns to the next.
template <typename T, int D>
__device__ void stage_output(uint32_t target, int group_bytes, const float (&o)[D / 2]) {
  const int lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16;
#pragma unroll
  for (int i = 0; i < D / 16; ++i) {  // 16 columns: two chunks, one for each half of the warp
    const int chunk = (i % 4 * 2 + lane / 16) ^ row % 8;
    uint32_t r[4];
    pack_operand<T>(r, o + 8 * i);
    stmatrix(target + i / 4 * group_bytes + row * 128 + chunk * 16, r);
  }
  async_proxy_fence();  // before the copy engine reads it
}

}  // namespace kernels
