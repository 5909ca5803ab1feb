// SPDX-License-Identifier: Apache-2.0
//
// v5: a producer and its consumers.
//
// The idea: in v4 all warps did the same thing at the same time, so the tensor cores waited while
// softmax was computed. Here the warps have roles. One warpgroup, the producer, only asks the copy
// engine for K and V tiles, as far ahead as there are places for them. Three others, the
// consumers, own 64 query rows each and meet no common __syncthreads any more: they drift apart,
// and while one computes softmax another's product keeps the tensor cores busy. Two barriers per
// place tie the roles together: `full` (the bytes have come) and `empty` (all consumers have read
// them). A producer needs few registers: it hands its own back (setmaxnreg), and the consumers take
// them.
//
// Look for in the profiler: 512 threads per block with 128 registers each as the launch counts them
// (in truth 160 for consumers and 32 for the producer) and 25 % occupancy. Nothing is computed
// differently, and the time falls by a quarter all the same.
// Expect: up to 700 TFLOP/s at D = 128 and 540 at D = 64 for long sequences, 1.4 times v4; little
// more than v4 where tiles are short, as with S = 1024 under a causal mask.
#include "hopper.cuh"

namespace kernels {
namespace {

constexpr int kConsumers = 3;  // warpgroups
constexpr int kThreads = 128 * (kConsumers + 1);
constexpr int kRows = 64 * kConsumers;  // query rows per block
constexpr int kKeys = 128;              // keys per step
constexpr int kStages = 2;              // places for K, and as many for V

// Shared memory: Q [kRows, D], K [kStages, kKeys, D], V [kStages, kKeys, D], then the barriers.
template <int D>
struct Layout {
  static constexpr int kQBytes = kRows * D * 2;
  static constexpr int kTileBytes = kKeys * D * 2;
  static constexpr int kBarriers = kQBytes + 2 * kStages * kTileBytes;
  static constexpr int kBytes = kBarriers + 8 * (1 + 4 * kStages) + 1024;  // 1024 to align
};

// Addresses of one block's shared memory.
template <int D>
struct Shared {
  using L = Layout<D>;
  uint32_t q, k, v, q_full, k_full, k_empty, v_full, v_empty;

  __device__ explicit Shared(const void* start) {
    q = (shared_address(start) + 1023) / 1024 * 1024;
    k = q + L::kQBytes;
    v = k + kStages * L::kTileBytes;
    q_full = q + L::kBarriers;
    k_full = q_full + 8;
    k_empty = k_full + 8 * kStages;
    v_full = k_empty + 8 * kStages;
    v_empty = v_full + 8 * kStages;
  }

  // By one thread. A tile is full when the one thread that asked for it has arrived and its bytes
  // have come, and empty when each warp of each consumer has arrived.
  __device__ void init_barriers() const {
    barrier_init(q_full, 1);
    for (int i = 0; i < kStages; ++i) {
      barrier_init(k_full + 8 * i, 1);
      barrier_init(v_full + 8 * i, 1);
      barrier_init(k_empty + 8 * i, 4 * kConsumers);
      barrier_init(v_empty + 8 * i, 4 * kConsumers);
    }
    barrier_init_fence();
  }
};

// Places that are taken in turn: which one is at hand, and the parity of its barriers' phase, which
// changes each time round.
struct Ring {
  int turn = 0;

  __device__ int place() const { return turn % kStages; }
  __device__ uint32_t parity() const { return turn / kStages % 2; }
  __device__ void next() { ++turn; }
};

// The producer: one thread. K goes first in each step, as the scores need it first.
template <int D>
__device__ void produce(const Maps& maps, const Shared<D>& shared, const Tile& tile, int h_kv,
                        int steps) {
  using L = Layout<D>;
  barrier_expect(shared.q_full, L::kQBytes);
  tma_load(shared.q, maps.q, shared.q_full, tile.first_row, tile.h, tile.b);
  Ring ring;
  for (int step = steps - 1; step >= 0; --step, ring.next()) {
    const int barrier = 8 * ring.place(), place = ring.place() * L::kTileBytes;
    barrier_wait(shared.k_empty + barrier,
                 ring.parity() ^ 1);  // passes at once the first time round
    barrier_expect(shared.k_full + barrier, L::kTileBytes);
    tma_load(shared.k + place, maps.k, shared.k_full + barrier, step * kKeys, h_kv, tile.b);
    barrier_wait(shared.v_empty + barrier, ring.parity() ^ 1);
    barrier_expect(shared.v_full + barrier, L::kTileBytes);
    tma_load(shared.v + place, maps.v, shared.v_full + barrier, step * kKeys, h_kv, tile.b);
  }
}

// A consumer: 128 threads, 64 query rows.
template <typename T, int D>
__device__ void consume(const Attention& call, const Maps& maps, const Shared<D>& shared,
                        const Tile& tile, int steps, float c) {
  using L = Layout<D>;
  const int warpgroup = warpgroup_index(), thread = threadIdx.x % 128;
  const int row = tile.first_row + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  const uint32_t q_rows = shared.q + warpgroup * 64 * 128;  // the rows within a group of columns
  float o[D / 2] = {};
  RowState state;
  Ring ring;
  barrier_wait(shared.q_full, 0);

  const auto attend = [&]<bool kMasked>() {
    const int barrier = 8 * ring.place(), place = ring.place() * L::kTileBytes;
    float s[kKeys / 2];
    barrier_wait(shared.k_full + barrier, ring.parity());
    wgmma_fence();
    multiply_qk<T, D, kRows, kKeys>(s, q_rows, shared.k + place);
    wgmma_commit();
    wgmma_wait<0>();
    hold(s);
    if (thread % 32 == 0) barrier_arrive(shared.k_empty + barrier);

    if constexpr (kMasked) {
      const int first_key = (steps - 1 - ring.turn) * kKeys;
      mask_scores(s, visible_keys(call, row) - first_key, visible_keys(call, row + 8) - first_key);
    }
    float correction[2];
    online_softmax<kMasked>(s, state, correction, c);
    scale_rows(o, correction);
    uint32_t p[kKeys / 4];
    pack_weights<T>(p, s);

    recompute(ring.turn);  // where V lies; kept from K's, it would cost two registers
    barrier_wait(shared.v_full + 8 * ring.place(), ring.parity());
    hold(o);
    wgmma_fence();
    multiply_pv<T, D, kKeys>(o, p, shared.v + ring.place() * L::kTileBytes);
    wgmma_commit();
    wgmma_wait<0>();
    hold(o);
    hold(p);
    if (thread % 32 == 0) barrier_arrive(shared.v_empty + 8 * ring.place());
    ring.next();
  };
  // From the last keys to the first; only the first few steps, with keys that the tile's first row
  // does not see, need a mask.
  while (ring.turn < steps && (steps - ring.turn) * kKeys > visible_keys(call, tile.first_row)) {
    attend.template operator()<true>();
  }
  while (ring.turn < steps) attend.template operator()<false>();

  // The output takes the place of the warpgroup's own rows of Q.
  const RowEnd end = finish(state, call.scale);
  scale_rows(o, end.inverse);
  stage_output<T, D>(q_rows, kRows * 128, o);
  store_lse(call, tile, row, end);
  named_barrier_sync(1 + warpgroup, 128);
  const int first_row = tile.first_row + 64 * warpgroup;
  if (thread == 0 && first_row < call.S) {
    for (int group = 0; group < D / 64; ++group) {
      tma_store(maps.o, q_rows + group * kRows * 128, first_row, group, tile.h, tile.b);
    }
    tma_store_commit();
    tma_store_wait_read();
  }
}

template <typename T, int D>
__global__ void __launch_bounds__(kThreads, 1)
    producer_consumer(const __grid_constant__ Attention call, const __grid_constant__ Maps maps,
                      const TileOrder order, float c) {
  extern __shared__ unsigned char shared_memory[];
  using L = Layout<D>;
  const Shared<D> shared(shared_memory);
  if (threadIdx.x == 0) shared.init_barriers();
  __syncthreads();

  const Tile tile = order(blockIdx.x, call.H);
  const int some = visible_keys(call, min(tile.first_row + kRows, call.S) - 1);
  const int steps = (some + kKeys - 1) / kKeys;
  // 128 * 32 + 3 * 128 * 160 registers are all of the multiprocessor's 65,536.
  if (warpgroup_index() == kConsumers) {
    registers_lower<32>();
    if (threadIdx.x % 128 == 0) {
      produce<D>(maps, shared, tile, tile.h / (call.H / call.Hkv), steps);
    }
  } else {
    registers_raise<160>();
    consume<T, D>(call, maps, shared, tile, steps, c);
  }
}

}  // namespace

cudaError_t v5(const Attention& call) {
  if (const cudaError_t error = check_sizes(call); error != cudaSuccess) return error;
  if (const cudaError_t error = check_alignment(call); error != cudaSuccess) return error;
  return dispatch(call, [&]<typename T, int D>() {
    const auto kernel = producer_consumer<T, D>;
    using L = Layout<D>;
    Maps maps;
    cudaError_t error = make_maps<T>(maps, call, kRows, kKeys);
    if (error != cudaSuccess) return error;
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, L::kBytes);
    if (error != cudaSuccess) return error;
    const TileOrder order(call, kRows);
    kernel<<<order.tiles(), kThreads, L::kBytes, call.stream>>>(call, maps, order,
                                                                exponent_factor(call));
    return cudaGetLastError();
  });
}

}  // namespace kernels
