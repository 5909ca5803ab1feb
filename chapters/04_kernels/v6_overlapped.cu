// SPDX-License-Identifier: Apache-2.0
//
// v6: softmax under the products, and persistent blocks.
//
// The idea is two ideas. First, a consumer of v5 waited for its own products. Here it starts the
// scores of the next step *before* it adds the weights of this one, Q K[n+1]^T and then P[n] V[n],
// and computes the softmax of step n + 1 while the second product still runs: the special function
// units and the tensor cores work at the same time. The price is registers: scores, weights and
// output live together.
// Second, one block per multiprocessor stays for the whole kernel and draws tile after tile from a
// counter, the longest first. While the consumers finish one tile, the producer already fetches the
// next one's Q, K and V, and under a causal mask all blocks end at about the same time.
//
// Look for in the profiler: a grid of 132 blocks (one per multiprocessor of an H200) whatever the
// shape; the largest gains over v5 where tiles are short (S = 1024 under a causal mask: a quarter)
// and where softmax weighs most (D = 64).
// Expect: up to 710 TFLOP/s at D = 128 and 570 at D = 64 for long sequences, ahead of cuDNN there
// and a little behind it at S = 1024; 1.8 times PyTorch's flash backend.
#include <atomic>

#include "hopper.cuh"

namespace kernels {
namespace {

constexpr int kKeys = 128;  // keys per step
constexpr int kStages = 2;  // places for K, and as many for V

// Shared memory: Q [kRows, D], O [kRows, D], K and V [kStages, kKeys, D] each, then the barriers.
template <int D>
struct Layout {
  static constexpr int kConsumers = D == 64 ? 3 : 2;  // warpgroups
  static constexpr int kThreads = 128 * (kConsumers + 1);
  static constexpr int kRows = 64 * kConsumers;  // query rows per block
  // What a multiprocessor's 65,536 registers allow each thread of the two roles. Scores, weights
  // and output are 160 registers at D = 128, which leaves room for two consumers, and 128 at D
  // = 64.
  static constexpr int kConsumerRegisters = kConsumers == 2 ? 232 : 160;
  static constexpr int kProducerRegisters = kConsumers == 2 ? 40 : 32;
  static constexpr int kQBytes = kRows * D * 2;
  static constexpr int kTileBytes = kKeys * D * 2;
  static constexpr int kBarriers = 2 * kQBytes + 2 * kStages * kTileBytes;
  static constexpr int kBytes = kBarriers + 8 * (3 + 4 * kStages) + 1024;  // 1024 to align
};

// Addresses of one block's shared memory.
template <int D>
struct Shared {
  using L = Layout<D>;
  uint32_t q, o, k, v, q_full, q_empty, k_full, k_empty, v_full, v_empty;
  uint32_t index;  // the number of the tile that Q belongs to

  __device__ explicit Shared(const void* start) {
    q = (shared_address(start) + 1023) / 1024 * 1024;
    o = q + L::kQBytes;
    k = o + L::kQBytes;
    v = k + kStages * L::kTileBytes;
    q_full = q + L::kBarriers;
    q_empty = q_full + 8;
    k_full = q_empty + 8;
    k_empty = k_full + 8 * kStages;
    v_full = k_empty + 8 * kStages;
    v_empty = v_full + 8 * kStages;
    index = v_empty + 8 * kStages;
  }

  // By one thread. A tile is full when the one thread that asked for it has arrived and its bytes
  // have come, and empty when each warp of each consumer has arrived; Q when every thread has, as
  // they also read the tile's number.
  __device__ void init_barriers() const {
    barrier_init(q_full, 1);
    barrier_init(q_empty, 128 * L::kConsumers);
    for (int i = 0; i < kStages; ++i) {
      barrier_init(k_full + 8 * i, 1);
      barrier_init(v_full + 8 * i, 1);
      barrier_init(k_empty + 8 * i, 4 * L::kConsumers);
      barrier_init(v_empty + 8 * i, 4 * L::kConsumers);
    }
    barrier_init_fence();
  }
};

// Places that are taken in turn: which one is at hand, and the parity of its barriers' phase, which
// changes each time round.
template <int kPlaces>
struct Ring {
  int turn = 0;

  __device__ int place() const { return turn & (kPlaces - 1); }
  __device__ uint32_t parity() const { return turn / kPlaces & 1; }
  __device__ void next() { ++turn; }
};

// Blocks draw their tiles one by one, as they get done: the first by their own number, then from a
// counter. A launch draws exactly as many numbers as there are tiles, and whoever draws the last
// one puts the counter back to zero for a later launch. Launches that may overlap, on other
// streams, use other counters: they are given out in turn. (The limit of this: a launch that waits
// in its stream while 1024 more are made on others may meet one with its own counter.)
constexpr int kCounters = 1024;
__device__ int counters[kCounters];

__device__ inline int draw(int counter, int tiles) {
  const int number = atomicAdd(&counters[counter], 1);
  if (number == tiles - 1) counters[counter] = 0;
  return gridDim.x + number;
}

// How many steps of kKeys keys the rows before `end_row` take: what the last of them sees.
__device__ inline int steps_for(const Attention& call, int end_row) {
  return (visible_keys(call, min(end_row, call.S) - 1) + kKeys - 1) / kKeys;
}

// The producer: one thread. It runs ahead of the consumers, into the next tile if there is room.
template <int D>
__device__ void produce(const Attention& call, const Maps& maps, const Shared<D>& shared,
                        const TileOrder& order, int counter) {
  using L = Layout<D>;
  Ring<1> q_ring;
  Ring<kStages> ring;
  for (int index = blockIdx.x, next;; index = next, q_ring.next()) {
    barrier_wait(shared.q_empty, q_ring.parity() ^ 1);  // passes at once the first time round
    shared_store(shared.index, index);
    if (index >= order.tiles()) {
      barrier_arrive(shared.q_full);  // no Q: the consumers see from the index that this is the end
      return;
    }
    const Tile tile = order(index, call.H);
    const int h_kv = tile.h / (call.H / call.Hkv);
    next = draw(counter, order.tiles());
    barrier_expect(shared.q_full, L::kQBytes);
    tma_load(shared.q, maps.q, shared.q_full, tile.first_row, tile.h, tile.b);
    for (int step = steps_for(call, tile.first_row + L::kRows) - 1; step >= 0;
         --step, ring.next()) {
      const int barrier = 8 * ring.place(), place = ring.place() * L::kTileBytes;
      barrier_wait(shared.k_empty + barrier, ring.parity() ^ 1);
      barrier_expect(shared.k_full + barrier, L::kTileBytes);
      tma_load(shared.k + place, maps.k, shared.k_full + barrier, step * kKeys, h_kv, tile.b);
      barrier_wait(shared.v_empty + barrier, ring.parity() ^ 1);
      barrier_expect(shared.v_full + barrier, L::kTileBytes);
      tma_load(shared.v + place, maps.v, shared.v_full + barrier, step * kKeys, h_kv, tile.b);
    }
  }
}

// A consumer: 128 threads, 64 query rows of each tile.
template <typename T, int D>
struct Consumer {
  using L = Layout<D>;
  const Attention& call;
  const Maps& maps;
  const Shared<D>& shared;
  const float c;  // see online_softmax
  const int warpgroup = warpgroup_index(), thread = threadIdx.x % 128;
  Ring<1> q_ring;
  Ring<kStages> k_ring, v_ring;  // V is one step behind K
  float o[D / 2];                // [64 x D]
  float s[kKeys / 2];            // [64 x kKeys] scores
  uint32_t p[kKeys / 4];         // [64 x kKeys] weights
  RowState state;

  __device__ void start_scores() {
    barrier_wait(shared.k_full + 8 * k_ring.place(), k_ring.parity());
    wgmma_fence();
    multiply_qk<T, D, L::kRows, kKeys>(s, shared.q + warpgroup * 64 * 128,
                                       shared.k + k_ring.place() * L::kTileBytes);
    wgmma_commit();
  }
  __device__ void start_output() {
    barrier_wait(shared.v_full + 8 * v_ring.place(), v_ring.parity());
    wgmma_fence();
    multiply_pv<T, D, kKeys>(o, p, shared.v + v_ring.place() * L::kTileBytes);
    wgmma_commit();
  }
  template <int kPending>
  __device__ void await_scores() {
    wgmma_wait<kPending>();
    hold(s);
    if (thread % 32 == 0) barrier_arrive(shared.k_empty + 8 * k_ring.place());
    k_ring.next();
  }
  __device__ void await_output() {
    wgmma_wait<0>();
    hold(o);
    hold(p);
    if (thread % 32 == 0) barrier_arrive(shared.v_empty + 8 * v_ring.place());
    v_ring.next();
  }

  // A step whose keys none of these 64 rows sees: only tells the producer that they are not needed.
  __device__ void skip() {
    barrier_wait(shared.k_full + 8 * k_ring.place(), k_ring.parity());
    if (thread % 32 == 0) barrier_arrive(shared.k_empty + 8 * k_ring.place());
    k_ring.next();
    barrier_wait(shared.v_full + 8 * v_ring.place(), v_ring.parity());
    if (thread % 32 == 0) barrier_arrive(shared.v_empty + 8 * v_ring.place());
    v_ring.next();
  }

  __device__ void mask(int row, int step) {
    mask_scores(s, visible_keys(call, row) - step * kKeys,
                visible_keys(call, row + 8) - step * kKeys);
  }

  // One step of all but the first: the scores of this one, the output of the one before.
  template <bool kMasked>
  __device__ void attend(int row, int step) {
    start_scores();
    start_output();
    await_scores<1>();
    if constexpr (kMasked) mask(row, step);
    float correction[2];
    online_softmax<kMasked>(s, state, correction, c);
    await_output();
    scale_rows(o, correction);
    hold(o);
    pack_weights<T>(p, s);
  }

  __device__ void store(const Tile& tile, int row) {
    const RowEnd end = finish(state, call.scale);
    scale_rows(o, end.inverse);
    store_lse(call, tile, row, end);
    const uint32_t o_rows = shared.o + warpgroup * 64 * 128;
    if (thread == 0) tma_store_wait_read();  // the tile before has left
    named_barrier_sync(1 + warpgroup, 128);
    stage_output<T, D>(o_rows, L::kRows * 128, o);
    named_barrier_sync(1 + warpgroup, 128);
    const int first_row = tile.first_row + 64 * warpgroup;
    if (thread == 0 && first_row < call.S) {
      for (int group = 0; group < D / 64; ++group) {
        tma_store(maps.o, o_rows + group * L::kRows * 128, first_row, group, tile.h, tile.b);
      }
      tma_store_commit();
    }
  }

  __device__ void run(const Tile& tile) {
    const int row = tile.first_row + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    const int first_row = tile.first_row + 64 * warpgroup;
    const int all = visible_keys(call, first_row);
    const int own_steps = first_row < call.S ? steps_for(call, first_row + 64) : 0;
#pragma unroll
    for (int i = 0; i < D / 2; ++i) o[i] = 0;
    state = RowState();
    int step = steps_for(call, tile.first_row + L::kRows) - 1;
    for (; step >= own_steps; --step) skip();
    if (step >= 0) {
      start_scores();
      await_scores<0>();
      mask(row, step);
      float unused[2];
      online_softmax<true>(s, state, unused, c);
      pack_weights<T>(p, s);
      for (--step; step >= 0 && (step + 1) * kKeys > all; --step) attend<true>(row, step);
      for (; step >= 0; --step) attend<false>(row, step);
    }
    barrier_arrive(shared.q_empty);
    if (own_steps > 0) {
      start_output();
      await_output();
    }
    store(tile, row);
  }

  __device__ void run_all(const TileOrder& order) {
    for (;; q_ring.next()) {
      barrier_wait(shared.q_full, q_ring.parity());
      const int index = shared_load(shared.index);
      if (index >= order.tiles()) break;
      run(order(index, call.H));
    }
    if (thread == 0) tma_store_wait_read();
  }
};

template <typename T, int D>
__global__ void __launch_bounds__(Layout<D>::kThreads, 1)
    overlapped(const __grid_constant__ Attention call, const __grid_constant__ Maps maps,
               const TileOrder order, int counter, float c) {
  extern __shared__ unsigned char shared_memory[];
  using L = Layout<D>;
  const Shared<D> shared(shared_memory);
  if (threadIdx.x == 0) shared.init_barriers();
  __syncthreads();

  if (warpgroup_index() == L::kConsumers) {
    registers_lower<L::kProducerRegisters>();
    if (threadIdx.x % 128 == 0) produce<D>(call, maps, shared, order, counter);
  } else {
    registers_raise<L::kConsumerRegisters>();
    Consumer<T, D> consumer{call, maps, shared, c};
    consumer.run_all(order);
  }
}

}  // namespace

cudaError_t v6(const Attention& call) {
  if (const cudaError_t error = check_sizes(call); error != cudaSuccess) return error;
  if (const cudaError_t error = check_alignment(call); error != cudaSuccess) return error;
  static std::atomic<unsigned> launches = 0;
  const int counter = launches++ % kCounters;
  return dispatch(call, [&]<typename T, int D>() {
    const auto kernel = overlapped<T, D>;
    using L = Layout<D>;
    Maps maps;
    cudaError_t error = make_maps<T>(maps, call, L::kRows, kKeys);
    if (error != cudaSuccess) return error;
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, L::kBytes);
    if (error != cudaSuccess) return error;
    int device, multiprocessors;
    if (error = cudaGetDevice(&device); error != cudaSuccess) return error;
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return error;
    const TileOrder order(call, L::kRows);
    const int blocks = std::min(order.tiles(), multiprocessors);
    kernel<<<blocks, L::kThreads, L::kBytes, call.stream>>>(call, maps, order, counter,
                                                            exponent_factor(call));
    return cudaGetLastError();
  });
}

}  // namespace kernels
