// SPDX-License-Identifier: Apache-2.0
//
// Tiles of 16-bit elements in shared memory, laid out for ldmatrix: for v3 and decode.
#pragma once

#include "softmax.cuh"

namespace kernels {

// Byte offset of a 16-byte chunk in a tile of rows of D elements.
template <int D>
__device__ int swizzled(int row, int chunk) {
  return row * D * 2 + (chunk ^ row % 8) * 16;
}

// Where this lane reads for ldmatrix. Its four matrices are the quarters of 16 rows x 16 columns,
// in the order in which mma wants them: down first for Q and V, across first for K, so that the two
// registers of a right operand are neighbours and need no moves. The columns 16 * i further on are
// at the address with its bits flipped by 32 * i, which is what the swizzle comes to.
template <int D>
__device__ uint32_t down_first(uint32_t tile, int lane) {
  return tile + swizzled<D>(lane % 16, lane / 16);
}
template <int D>
__device__ uint32_t across_first(uint32_t tile, int lane) {
  return tile + swizzled<D>(lane % 8 + lane / 16 * 8, lane / 8 % 2);
}

}  // namespace kernels
