// SPDX-License-Identifier: Apache-2.0
//
// v4: Hopper's own tensor-core instruction and copy engine, wgmma and TMA (sm_90a).
//
// The idea: v3's warps spent many of their instructions on feeding: ldmatrix for every operand, an
// address for every 16 bytes copied. Here one thread asks the copy engine for a whole tile, and a
// *warpgroup* (4 warps) multiplies 64 rows by operands that wgmma fetches from shared memory
// itself. Both run on by themselves: a barrier in shared memory counts the bytes that arrive, and
// wgmma_wait waits for the products. Each pair of K and V tiles has two places, so one pair travels
// while the other is worked on.
//
// Look for in the profiler: 256 threads per block, one block per multiprocessor, 160 KB of shared
// memory (D = 128); in the SASS HGMMA and UTMALDG where v3 had HMMA, LDSM and LDGSTS.
// Expect: up to 540 TFLOP/s at D = 128 and 375 at D = 64, 1.1 to 1.6 times v3. All warps wait for
// the product, then all compute softmax, and __syncthreads keeps them together: the tensor cores
// rest in between.
#include "hopper.cuh"

namespace kernels {
namespace {

constexpr int kWarpgroups = 2;
constexpr int kThreads = 128 * kWarpgroups;
constexpr int kRows = 64 * kWarpgroups;  // query rows per block
constexpr int kKeys = 128;               // keys per step
constexpr int kStages = 2;               // places for a pair of K and V

// Shared memory: Q [kRows, D], K [kStages, kKeys, D], V [kStages, kKeys, D], then the barriers.
template <int D>
struct Layout {
  static constexpr int kQBytes = kRows * D * 2;
  static constexpr int kKvBytes = kKeys * D * 2;
  static constexpr int kBarriers = kQBytes + 2 * kStages * kKvBytes;
  static constexpr int kBytes = kBarriers + 8 * (1 + kStages) + 1024;  // 1024 to align the start
};

template <typename T, int D>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_tma(const __grid_constant__ Attention call, const __grid_constant__ Maps maps,
              const TileOrder order, float c) {
  extern __shared__ unsigned char shared[];
  using L = Layout<D>;
  const uint32_t q_tile = (shared_address(shared) + 1023) / 1024 * 1024;
  const uint32_t k_tiles = q_tile + L::kQBytes, v_tiles = k_tiles + kStages * L::kKvBytes;
  const uint32_t q_full = q_tile + L::kBarriers, kv_full = q_full + 8;

  const Tile tile = order(blockIdx.x, call.H);
  const int h_kv = tile.h / (call.H / call.Hkv);
  const int warpgroup = warpgroup_index();
  const bool elected = threadIdx.x == 0;  // the thread that talks to the copy engine

  const auto load_pair = [&](int step, int stage) {
    barrier_expect(kv_full + 8 * stage, 2 * L::kKvBytes);
    tma_load(k_tiles + stage * L::kKvBytes, maps.k, kv_full + 8 * stage, step * kKeys, h_kv,
             tile.b);
    tma_load(v_tiles + stage * L::kKvBytes, maps.v, kv_full + 8 * stage, step * kKeys, h_kv,
             tile.b);
  };

  // From the last keys to the first, as in v3.
  const int some = visible_keys(call, min(tile.first_row + kRows, call.S) - 1);
  const int all = visible_keys(call, tile.first_row);
  const int steps = (some + kKeys - 1) / kKeys;
  if (elected) {
    for (int i = 0; i <= kStages; ++i) barrier_init(q_full + 8 * i, 1);
    barrier_init_fence();
    barrier_expect(q_full, L::kQBytes);
    tma_load(q_tile, maps.q, q_full, tile.first_row, tile.h, tile.b);
    for (int i = 0; i < kStages && i < steps; ++i) load_pair(steps - 1 - i, i);
  }
  __syncthreads();  // the barriers exist

  float o[D / 2] = {};
  RowState state;
  const int row = tile.first_row + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  const uint32_t q_rows = q_tile + warpgroup * 64 * 128;  // the warpgroup's rows within a group
  barrier_wait(q_full, 0);

  const auto attend = [&]<bool kMasked>(int i) {
    const int step = steps - 1 - i, stage = i % kStages;
    barrier_wait(kv_full + 8 * stage, i / kStages % 2);
    float s[kKeys / 2];
    wgmma_fence();
    multiply_qk<T, D, kRows, kKeys>(s, q_rows, k_tiles + stage * L::kKvBytes);
    wgmma_commit();
    wgmma_wait<0>();
    hold(s);

    if constexpr (kMasked) {
      mask_scores(s, visible_keys(call, row) - step * kKeys,
                  visible_keys(call, row + 8) - step * kKeys);
    }
    float correction[2];
    online_softmax<kMasked>(s, state, correction, c);
    scale_rows(o, correction);
    uint32_t p[kKeys / 4];
    pack_weights<T>(p, s);

    hold(o);
    wgmma_fence();
    multiply_pv<T, D, kKeys>(o, p, v_tiles + stage * L::kKvBytes);
    wgmma_commit();
    wgmma_wait<0>();
    hold(o);
    hold(p);
    __syncthreads();  // both warpgroups are done with this pair
    if (elected && step >= kStages) load_pair(step - kStages, stage);
  };
  int i = 0;
  for (; i < steps && (steps - i) * kKeys > all; ++i) attend.template operator()<true>(i);
  for (; i < steps; ++i) attend.template operator()<false>(i);

  // The output takes the place of the warpgroup's rows of Q, and from there the copy engine.
  const RowEnd end = finish(state, call.scale);
  scale_rows(o, end.inverse);
  stage_output<T, D>(q_rows, kRows * 128, o);
  store_lse(call, tile, row, end);
  named_barrier_sync(1 + warpgroup, 128);
  if (threadIdx.x % 128 == 0) {
    for (int group = 0; group < D / 64; ++group) {
      tma_store(maps.o, q_rows + group * kRows * 128, tile.first_row + 64 * warpgroup, group,
                tile.h, tile.b);
    }
    tma_store_commit();
    tma_store_wait_read();
  }
}

}  // namespace

cudaError_t v4(const Attention& call) {
  if (const cudaError_t error = check_sizes(call); error != cudaSuccess) return error;
  if (const cudaError_t error = check_alignment(call); error != cudaSuccess) return error;
  return dispatch(call, [&]<typename T, int D>() {
    const auto kernel = wgmma_tma<T, D>;
    constexpr int kBytes = Layout<D>::kBytes;
    Maps maps;
    cudaError_t error = make_maps<T>(maps, call, kRows, kKeys);
    if (error != cudaSuccess) return error;
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    if (error != cudaSuccess) return error;
    const TileOrder order(call, kRows);
    kernel<<<order.tiles(), kThreads, kBytes, call.stream>>>(call, maps, order,
                                                             exponent_factor(call));
    return cudaGetLastError();
  });
}

}  // namespace kernels
