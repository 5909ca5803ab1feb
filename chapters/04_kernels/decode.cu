// SPDX-License-Identifier: Apache-2.0
//
// decode: the new token of each sequence against its key-value cache, for sm_80 and newer.
//
// The idea: every key is used for one query row, or for the few heads that share a key head, so the
// time is that of reading K and V once, if nothing else gets into the way:
//   pack       the query heads of one key head are rows of one tile, and K and V are read once for
//              all of them. mma.sync multiplies tiles of 16 rows; that most of them may be empty
//              does no harm, one row by hand would take more instructions than all 16 by mma.
//   share out  with one block for each sequence and key head, a small batch would keep a few of the
//              132 multiprocessors busy. A sequence's keys are shared out to several blocks; each
//              has a softmax of its own keys, and a second kernel (decode_merge.cuh) merges them.
//   own rings  memory is fast if much is asked of it at a time: 64 KB and more per multiprocessor.
//              Each warp has a ring of places for 16 keys and values, and asks for the next as soon
//              as it is done with one. Warps meet only at the end.
//
// Look for in the profiler: two kernels per call, `attend` and a short `merge`, which begins before
// the other has ended; K and V over the time of `attend` is the memory's bandwidth. In the SASS:
// LDGSTS, LDSM, HMMA.
// Expect: 4.2 to 4.6 TB/s on an H200 from 500 MB of K and V on, as fast as cuDNN; 6 us for what is
// too short to fill it.
#include "decode_merge.cuh"

namespace kernels {
namespace {

// Places in a warp's ring, of kKeys keys and values each: 24 KB, so that two blocks fit onto a
// multiprocessor.
template <int D>
constexpr int kPlaces = D == 128 ? 3 : 6;

// Which page of sequence b holds a key, as the table says; without pages, which sequence.
template <bool kPaged>
__device__ int page_of(const Decode& call, int b, int key, int end) {
  if constexpr (!kPaged) return b;
  const int shift = __ffs(call.page_size) - 1;  // a power of two
  return key < end ? call.table[b * call.table_stride + (key >> shift)] : 0;
}

// Starts the copy of kKeys keys and values; those from `end` on become zeros. A step lies within
// one page, since pages are a multiple of it.
template <typename T, int D, bool kPaged>
__device__ void start_copy(const Decode& call, uint32_t tile, int page, int h, int key, int end) {
  constexpr int kChunks = D / 8, kAtOnce = 32 / kChunks;  // rows that a warp copies at once
  const int lane = threadIdx.x % 32, row = lane / kChunks, chunk = lane % kChunks;
  int first = key;
  if constexpr (kPaged) {
    page = clamped(page, call.pages - 1);
    first = key & (call.page_size - 1);
  }
  const auto copy = [&](const void* from, const Strides& stride, uint32_t to) {
    const T* source = head_of<T>(from, stride, page, h) + (first + row) * stride.row + chunk * 8;
#pragma unroll
    for (int i = 0; i < kKeys; i += kAtOnce) {
      cp_async(to + swizzled<D>(row + i, chunk), source + i * stride.row, key + row + i < end);
    }
  };
  copy(call.k, call.k_stride, tile);
  copy(call.v, call.v_stride, tile + kKeys * D * 2);
}

// The tile's query rows as left operands of mma, straight from global memory; zeros where there is
// no row.
template <typename T, int D>
__device__ void load_q(uint32_t (&q)[D / 16][4], const Decode& call, const Rows& rows) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = lane / 4 + 8 * half;
    const Row row = rows[min(i, rows.count - 1)];
    const T* source = head_of<T>(call.q, call.q_stride, row.b, row.h) + row.s * call.q_stride.row +
                      2 * (lane % 4);
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      const auto two = *reinterpret_cast<const uint32_t*>(source + 8 * n);
      q[n / 2][half + n % 2 * 2] = i < rows.count ? two : 0;
    }
  }
}

// s[16 rows x 16 keys] += Q K^T.
template <typename T, int D>
__device__ void multiply_qk(float (&s)[8], const uint32_t (&q)[D / 16][4], uint32_t k) {
#pragma unroll
  for (int step = 0; step < D / 16; ++step) {
    uint32_t b[4];
    ldmatrix(b, k ^ 32 * step);
    mma<T>(s, q[step], b[0], b[1]);
    mma<T>(s + 4, q[step], b[2], b[3]);
  }
}

// o[16 rows x D] += P V.
template <typename T, int D>
__device__ void multiply_pv(float (&o)[D / 2], const uint32_t (&p)[4], uint32_t v) {
#pragma unroll
  for (int n = 0; n < D / 16; ++n) {
    uint32_t b[4];
    ldmatrix_transposed(b, v ^ 32 * n);
    mma<T>(o + 8 * n, p, b[0], b[1]);
    mma<T>(o + 8 * n + 4, p, b[2], b[3]);
  }
}

// What a warp leaves in shared memory at the end: its rows, not yet divided by their sums. Rows are
// 8 floats longer than they need to be, so that they begin in different banks.
template <int D>
struct WarpResult {
  float o[kRows][D + 8], max[kRows], sum[kRows];

  __device__ void put(const float (&values)[D / 2], const RowState& state, int rows) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = lane / 4 + 8 * half;
      const float all = sum_over_quad(state.sum[half]);
      if (row >= rows) continue;
      max[row] = state.max[half];
      sum[row] = all;
#pragma unroll
      for (int g = 0; g < D / 8; ++g) {
        *reinterpret_cast<float2*>(&o[row][8 * g + lane % 4 * 2]) =
            make_float2(values[4 * g + 2 * half], values[4 * g + 2 * half + 1]);
      }
    }
  }
};

// Adds up what the warps have, four columns of a row per thread. Goes to the result if this block
// is the sequence's only one.
template <typename T, int D>
__device__ void finish(const Decode& call, const Rows& rows, const Share& share,
                       const WarpResult<D>* warps, float c) {
  for (int i = threadIdx.x; i < rows.count * (D / 4); i += kThreads) {
    const int row = i / (D / 4), column = i % (D / 4) * 4;
    float max = -INFINITY;
    for (int w = 0; w < kWarps; ++w) max = fmaxf(max, warps[w].max[row]);
    const float base = max == -INFINITY ? 0 : max * c;
    float sum = 0, o[4] = {};
    for (int w = 0; w < kWarps; ++w) {
      const float weight = exp2_fast(warps[w].max[row] * c - base);
      sum += weight * warps[w].sum[row];
      for (int j = 0; j < 4; ++j) o[j] += weight * warps[w].o[row][column + j];
    }
    const float inverse = sum == 0 ? 0 : 1 / sum;
    for (float& x : o) x *= inverse;
    const float lse = sum == 0 ? -INFINITY : max * call.scale + logf(sum);
    const Row at = rows[row];
    if (share.blocks == 1) {
      store<T>(call, at, column, o, lse);
    } else {
      const Part<D> part(call, at, blockIdx.x);
      *reinterpret_cast<float4*>(part.o + column) = make_float4(o[0], o[1], o[2], o[3]);
      if (column == 0) *part.lse = lse;
    }
  }
}

template <typename T, int D, bool kPaged>
__global__ void __launch_bounds__(kThreads, 2)
    attend(const __grid_constant__ Decode call, const float c) {
  start_next_kernel();  // once all blocks run, `merge` may come and wait
  extern __shared__ __align__(1024) unsigned char shared[];
  const int split = blockIdx.x, b = blockIdx.z, length = length_of(call, b);
  const Share share = share_of(call, length);
  if (split >= share.blocks) return;
  const Rows rows(call, b, blockIdx.y);
  const int begin = split * share.keys, end = min(begin + share.keys, length);

  constexpr int kTileBytes = kKeys * D * 2, kPlaceBytes = 2 * kTileBytes;
  const int lane = threadIdx.x % 32, warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
  const uint32_t ring = shared_address(shared) + warp * kPlaces<D> * kPlaceBytes;
  int next = begin + warp * kKeys;  // the warps take turns at the keys
  // A step's page is looked up one step ahead: its copy cannot begin before the page is known.
  int page = page_of<kPaged>(call, b, next, end);
  const auto fetch = [&](int place) {
    const int page_after = page_of<kPaged>(call, b, next + kStep, end);
    if (next < end) {
      start_copy<T, D, kPaged>(call, ring + place * kPlaceBytes, page, rows.h_kv, next, end);
    }
    next += kStep;
    page = page_after;
    cp_async_commit();
  };
#pragma unroll
  for (int place = 0; place < kPlaces<D>; ++place) fetch(place);

  uint32_t q[D / 16][4];
  load_q<T, D>(q, call, rows);
  float o[D / 2] = {};
  RowState state;
  const int all_see = length - call.S + 1;  // the first token's keys; each next sees one more
  int place = 0;
  for (int key = begin + warp * kKeys; key < end; key += kStep) {
    cp_async_wait<kPlaces<D> - 1>();
    __syncwarp();  // what the other lanes copied is here, too
    const uint32_t tile = ring + place * kPlaceBytes;
    float s[8] = {}, correction[2];
    multiply_qk<T, D>(s, q, across_first<D>(tile, lane));
    if (key + kKeys > all_see) {
      mask_scores(s, all_see + rows.token(lane / 4) - key,
                  all_see + rows.token(lane / 4 + 8) - key);
    }
    online_softmax<true>(s, state, correction, c);
    scale_rows(o, correction);
    uint32_t p[4];
    pack_operand<T>(p, s);
    multiply_pv<T, D>(o, p, down_first<D>(tile + kTileBytes, lane));
    __syncwarp();  // all lanes have read this place
    fetch(place);
    place = place + 1 < kPlaces<D> ? place + 1 : 0;
  }

  cp_async_wait_all();
  __syncthreads();  // the rings are done with: the results take their room
  auto* warps = reinterpret_cast<WarpResult<D>*>(shared);
  warps[warp].put(o, state, rows.count);
  __syncthreads();
  finish<T, D>(call, rows, share, warps, c);
}

// Two blocks fit onto a multiprocessor. Where not all blocks of a grid are needed, those that are
// may come to lie two by two on some multiprocessors, with none on others. A block that asks for
// half of the shared memory has its multiprocessor alone.
cudaError_t shared_bytes(const Decode& call, int& bytes) {
  if (call.splits == 1 || call.B == 1) return cudaSuccess;  // all are needed
  int device, all, most;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  bytes = std::max(bytes, std::min(all / 2, most));
  return error;
}

template <typename T, int D, bool kPaged>
cudaError_t launch(const Decode& call) {
  constexpr int kRings = kWarps * kPlaces<D> * 2 * kKeys * D * 2;
  int bytes = std::max<int>(kRings, kWarps * sizeof(WarpResult<D>));
  const auto kernel = attend<T, D, kPaged>;
  cudaError_t error = shared_bytes(call, bytes);
  if (error != cudaSuccess) return error;
  error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  // The splits of one sequence are neighbours, so that those that are needed and those that are not
  // alternate: blocks that begin together come to lie on neighbouring multiprocessors, which share
  // their way to the memory.
  const dim3 grid(call.splits, call.Hkv * row_tiles(call), call.B);
  kernel<<<grid, kThreads, bytes, call.stream>>>(call, exponent_factor(call));
  error = cudaGetLastError();
  return error == cudaSuccess && call.splits > 1 ? launch_merge<T, D>(call) : error;
}

cudaError_t check(const Decode& call) {
  const bool sizes = call.B > 0 && call.H > 0 && call.Hkv > 0 && call.H % call.Hkv == 0 &&
                     call.S > 0 && (call.D == 64 || call.D == 128) && call.capacity > 0 &&
                     call.capacity < 1 << 30 && call.splits > 0 && call.fill >= 0 && call.scale > 0;
  const bool paged = call.table != nullptr;
  const bool pages = !paged || (call.page_size >= kKeys &&
                                (call.page_size & (call.page_size - 1)) == 0 && call.pages > 0);
  // A grid has 65535 blocks in its second and third direction.
  const bool countable =
      call.B < 65536 && 1.0 * call.H * call.S < 1 << 30 && 1.0 * call.Hkv * row_tiles(call) < 65536;
  if (!sizes || !pages || !countable) return cudaErrorInvalidValue;
  const int pieces = paged ? call.pages : call.B, rows = paged ? call.page_size : call.capacity;
  const bool all = aligned(call.q, call.q_stride, call.B, call.H, call.S) &&
                   aligned(call.k, call.k_stride, pieces, call.Hkv, rows) &&
                   aligned(call.v, call.v_stride, pieces, call.Hkv, rows) &&
                   aligned(call.o, call.o_stride, call.B, call.H, call.S);
  return all ? cudaSuccess : cudaErrorMisalignedAddress;
}

}  // namespace

void plan(Decode& call, int multiprocessors) {
  // One block for each multiprocessor: two would leave twice as many parts to merge.
  call.fill = multiprocessors / (call.Hkv * row_tiles(call));
  const int alike = call.fill / call.B;  // for each of B sequences of one length
  // Where lengths differ, a long sequence may have twice that. For more, most blocks of a grid
  // would have nothing to do; and a batch that fills the GPU by itself needs none.
  const int wanted = alike * (call.B > 1 ? 2 : 1);
  const int most = (call.capacity + kStep - 1) / kStep;
  call.splits = std::clamp(wanted, 1, most);
}

cudaError_t decode(const Decode& call) {
  if (const cudaError_t error = check(call); error != cudaSuccess) return error;
  return dispatch(call, [&]<typename T, int D>() {
    return call.table != nullptr ? launch<T, D, true>(call) : launch<T, D, false>(call);
  });
}

}  // namespace kernels
