// SPDX-License-Identifier: Apache-2.0
//
// One call of attention over a key-value cache, as a language model makes it for each new token:
// one query row per sequence, or a few, against all the keys that the sequence has so far.
//
// How many keys that is stands in `lengths`, in the device's memory: the host does not know it. So
// a CUDA graph is captured once and replayed while the sequences grow. And the host cannot check
// it: lengths and numbers of pages that are out of range are taken as the nearest in it, so that
// nothing outside the cache is read.
//
// The cache of a sequence is one piece, or it is cut into pages that lie anywhere: then a table
// says which page holds its keys 0 .. page_size - 1, which one the next, and so on.
#pragma once

#include "attention.h"

namespace kernels {

struct Decode {
  const void* q;           // [B, H, S, D]
  const void* k;           // [B, Hkv, capacity, D], or pages: [pages, Hkv, page_size, D]
  const void* v;           // as k
  void* o;                 // [B, H, S, D]
  float* lse;              // [B, H, S], contiguous: log(sum(exp(scores)))
  const int32_t* lengths;  // [B]: keys of each sequence, those of its S new tokens among them
  const int32_t* table;    // [B, capacity / page_size]: numbers of pages; null: no pages
  int64_t table_stride;    // from one sequence's row of the table to the next
  Strides q_stride, o_stride;
  Strides k_stride, v_stride;  // `batch`: from one page to the next, where there are pages
  Dtype dtype;                 // of q, k, v and o: bf16 or fp16 on a GPU, bf16 or fp32 on the CPU
  int B, H, Hkv;               // H is a multiple of Hkv: query head h reads key head h / (H / Hkv)
  int S;                       // query rows, the last S tokens: row i sees length - S + 1 + i keys
  int D;                       // 64 or 128; on the CPU 1 to 256
  int capacity;                // keys that a sequence has room for
  int page_size, pages;        // page_size: a power of two, at least 16
  float scale;                 // positive; usually 1 / sqrt(D)
  // On a GPU, from plan():
  int splits;      // blocks that share one sequence, at most
  int fill;        // blocks of one head that fill the GPU
  float* scratch;  // scratch_floats(call) of them, whatever is in them
  CUstream_st* stream;
};

// What blocks leave for the kernel that merges them: each a row of D floats and its log-sum-exp.
inline int64_t scratch_floats(const Decode& call) {
  const int64_t rows = int64_t{1} * call.B * call.H * call.S;
  return call.splits == 1 ? 0 : rows * call.splits * (call.D + 1);
}

}  // namespace kernels
