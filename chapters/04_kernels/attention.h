// SPDX-License-Identifier: Apache-2.0
//
// One call of attention, as every version of the ladder takes it: o = softmax(q k^T * scale) v for
// each batch and head. No torch in here: pointers, sizes and strides are all that a kernel needs.
#pragma once

#include <cstdint>

struct CUstream_st;  // what a cudaStream_t points to: a CPU build has no CUDA headers

namespace kernels {

enum class Dtype { bf16, fp16, fp32 };

// Which keys a query row sees.
//   none          all Skv of them
//   top_left      row i sees keys 0 .. i (scaled_dot_product_attention's is_causal)
//   bottom_right  the last row sees the last key (flash-attn's causal): row i sees keys
//                 0 .. i + Skv - S. With S > Skv the first rows see none: o = 0, lse = -inf.
enum class Causal { none, top_left, bottom_right };

// Distances in elements; the last dimension (D) is contiguous. [B, S, H, D] and [B, H, S, D] differ
// in nothing else.
struct Strides {
  int64_t batch, head, row;
};

struct Attention {
  const void* q;  // [B, H, S, D]
  const void* k;  // [B, Hkv, Skv, D]
  const void* v;  // [B, Hkv, Skv, D]
  void* o;        // [B, H, S, D]
  float* lse;     // [B, H, S], contiguous: log(sum(exp(scores))), or null
  Dtype dtype;    // of q, k, v and o: bf16 or fp16 on a GPU, fp32 on the CPU
  int B, H, Hkv;  // H is a multiple of Hkv: query head h reads key head h / (H / Hkv)
  int S, Skv;     // at least 1
  int D;          // 64 or 128; on the CPU 1 to 256
  Strides q_stride, k_stride, v_stride, o_stride;
  Causal causal;
  float scale;          // positive; usually 1 / sqrt(D)
  CUstream_st* stream;  // on a GPU
};

}  // namespace kernels
