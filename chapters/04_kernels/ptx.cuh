// SPDX-License-Identifier: Apache-2.0
//
// The instructions that CUDA C++ has no word for, each as a function. All inline assembly of the
// chapter is here (and `pack` and its two conversions in device.cuh). PTX's manual has a section
// for each name. Addresses in shared memory are 32-bit numbers, as these instructions take them.
#pragma once

#include <cuda.h>

#include "device.cuh"

namespace kernels {

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// From here on the compiler takes `x` for a new value: what is computed from it is computed again,
// not kept in registers around a loop. For when registers are scarcer than instructions.
template <typename T>
__device__ void recompute(T& x) {
  if constexpr (sizeof(T) == 8) {
    asm volatile("" : "+l"(x));
  } else {
    asm volatile("" : "+r"(x));
  }
}

// ---- sm_80: asynchronous copies, matrix loads, tensor cores of one warp ----

// 16 bytes from global to shared memory, past the registers; zeros where `valid` is false.
__device__ inline void cp_async(uint32_t target, const void* source, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source),
               "r"(valid ? 16 : 0)
               : "memory");
}
// What was started since the last commit becomes a group, even if it is nothing.
__device__ inline void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until at most the kPending newest of this thread's groups are under way.
template <int kPending>
__device__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
__device__ inline void cp_async_wait_all() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// Four 8 x 8 matrices of 16-bit elements; lane i gives the address of row i % 8 of matrix i / 8.
__device__ inline void ldmatrix(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ inline void ldmatrix_transposed(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

// d[16 x 8] += a[16 x 16] b[16 x 8], by one warp.
template <typename T>
__device__ void mma(float* d, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#define KERNELS_MMA(TYPE)                                                             \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE                 \
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  if constexpr (std::is_same_v<T, Bf16>) {
    KERNELS_MMA("bf16");
  } else {
    KERNELS_MMA("f16");
  }
#undef KERNELS_MMA
}

// One number in shared memory, for warps that agree by a barrier on when it is valid.
__device__ inline void shared_store(uint32_t address, int value) {
  asm volatile("st.shared.s32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}
__device__ inline int shared_load(uint32_t address) {
  int value;
  asm volatile("ld.shared.s32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}

// ---- sm_90: a kernel that begins before the one in front of it has ended ----

// Lets the stream's next kernel begin, if it was launched so, once all blocks have come here.
__device__ inline void start_next_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// There: waits until the kernel before has ended and its stores can be read.
__device__ inline void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// ---- sm_90: barriers that count bytes, the copy engine (TMA), stores of matrices ----

__device__ inline void barrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// Makes initialised barriers known to the copy engine.
__device__ inline void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Arrives and lets the phase end only when `bytes` more have been copied.
__device__ inline void barrier_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
// Waits until the phase of this parity has ended. A fresh barrier is in phase 0, so waiting for
// parity 1 passes at once: the phase before counts as ended.
__device__ inline void barrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// One box of a tensor map, from global to shared memory; its bytes count on `barrier`. The
// coordinates are those of hopper.cuh's maps: column within 64, row, group of 64, head, batch.
__device__ inline void tma_load(uint32_t target, const CUtensorMap& map, uint32_t barrier, int row,
                                int h, int b) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %3, %5, %6}], [%2];" ::"r"(target),
      "l"(&map), "r"(barrier), "r"(0), "r"(row), "r"(h), "r"(b)
      : "memory");
}
// The way back; rows past the end are left out.
__device__ inline void tma_store(const CUtensorMap& map, uint32_t source, int row, int group, int h,
                                 int b) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group"
      " [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(&map),
      "r"(source), "r"(0), "r"(row), "r"(group), "r"(h), "r"(b)
      : "memory");
}
__device__ inline void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Waits until the stores of this thread have read their shared memory.
__device__ inline void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
__device__ inline void tma_prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Ordinary stores to shared memory come before what the copy engine reads after this.
__device__ inline void async_proxy_fence() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void stmatrix(uint32_t address, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

// __syncthreads for some of the block's warps: barrier `id` (1 to 15) opens once `threads` threads
// have come to it, of which those that only arrive do not wait.
__device__ inline void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// ---- sm_90a: tensor cores of a warpgroup (4 warps) ----

// threadIdx.x / 128, said in a way that lets the compiler know that a warp's threads agree: what
// follows from it, as the matrix descriptors below, then takes no register of each thread.
__device__ inline int warpgroup_index() {
  return __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 128, 0);
}

template <int kRegisters>
__device__ void registers_raise() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ void registers_lower() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// Where a matrix lies in shared memory, for wgmma: rows of 128 bytes, 8 of them per 1024-byte
// block, 16-byte chunks permuted within the block (the swizzle that the copy engine writes).
// `leading`: bytes from one block of 64 columns to the next, which matters only to a transposed
// operand. Moving the start by x bytes is adding x / 16.
__device__ inline uint64_t matrix_descriptor(uint32_t address, int leading = 16) {
  constexpr uint64_t kSwizzle128 = 1;
  return (address >> 4 & 0x3fff) | static_cast<uint64_t>(leading >> 4) << 16 |
         static_cast<uint64_t>(1024 >> 4) << 32 | kSwizzle128 << 62;
}

// Before the first wgmma after its registers were written.
__device__ inline void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until at most kPending of the committed groups are still running.
template <int kPending>
__device__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// A product runs on while the code goes on, and the compiler does not know: it may move a use of
// the registers across the wait. It cannot move one across this.
template <int R>
__device__ void hold(float (&r)[R]) {
#pragma unroll
  for (int i = 0; i < R; ++i) asm volatile("" : "+f"(r[i])::"memory");
}
template <int R>
__device__ void hold(uint32_t (&r)[R]) {
#pragma unroll
  for (int i = 0; i < R; ++i) asm volatile("" : "+r"(r[i])::"memory");
}

// The operand lists of wgmma: 32 or 64 accumulator registers, which are operands 0 to 31 or 63.
#define KERNELS_OUT_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define KERNELS_OUT_16(d, i) \
  KERNELS_OUT_4(d, i), KERNELS_OUT_4(d, i + 4), KERNELS_OUT_4(d, i + 8), KERNELS_OUT_4(d, i + 12)
#define KERNELS_OUT_32(d) KERNELS_OUT_16(d, 0), KERNELS_OUT_16(d, 16)
#define KERNELS_OUT_64(d) KERNELS_OUT_32(d), KERNELS_OUT_16(d, 32), KERNELS_OUT_16(d, 48)
#define KERNELS_NAMES_32                                                                  \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, " \
  "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define KERNELS_NAMES_64                                                                    \
  KERNELS_NAMES_32                                                                          \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, " \
  "%49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// d[64 x N] (+)= a[64 x 16] b[N x 16]^T, both in shared memory, by one warpgroup.
template <typename T, int N>
__device__ void wgmma(float (&d)[N / 2], uint64_t a, uint64_t b, bool accumulate) {
#define KERNELS_WGMMA(TYPE)                                                              \
  asm volatile(                                                                          \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"                                       \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE " {" KERNELS_NAMES_64 \
      "}, %64, %65, p, 1, 1, 0, 0;\n}\n"                                                 \
      : KERNELS_OUT_64(d)                                                                \
      : "l"(a), "l"(b), "r"(int(accumulate)))
  static_assert(N == 128);
  if constexpr (std::is_same_v<T, Bf16>) {
    KERNELS_WGMMA("bf16");
  } else {
    KERNELS_WGMMA("f16");
  }
#undef KERNELS_WGMMA
}

// d[64 x N] += a[64 x 16] b[16 x N], a in registers, b in shared memory, row by row (transposed).
template <typename T, int N>
__device__ void wgmma(float (&d)[N / 2], const uint32_t* a, uint64_t b) {
#define KERNELS_WGMMA(SHAPE, TYPE, NAMES, OUT, A0, A1, A2, A3, B)                                \
  asm volatile("wgmma.mma_async.sync.aligned." SHAPE ".f32." TYPE "." TYPE " {" NAMES "}, {%" A0 \
               ", %" A1 ", %" A2 ", %" A3 "}, %" B ", 1, 1, 1, 1;"                               \
               : OUT                                                                             \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define KERNELS_WGMMA_64(TYPE)                                                                  \
  KERNELS_WGMMA("m64n64k16", TYPE, KERNELS_NAMES_32, KERNELS_OUT_32(d), "32", "33", "34", "35", \
                "36")
#define KERNELS_WGMMA_128(TYPE)                                                                  \
  KERNELS_WGMMA("m64n128k16", TYPE, KERNELS_NAMES_64, KERNELS_OUT_64(d), "64", "65", "66", "67", \
                "68")
  constexpr bool kBf16 = std::is_same_v<T, Bf16>;
  static_assert(N == 64 || N == 128);
  if constexpr (N == 64 && kBf16) {
    KERNELS_WGMMA_64("bf16");
  } else if constexpr (N == 64) {
    KERNELS_WGMMA_64("f16");
  } else if constexpr (kBf16) {
    KERNELS_WGMMA_128("bf16");
  } else {
    KERNELS_WGMMA_128("f16");
  }
#undef KERNELS_WGMMA_128
#undef KERNELS_WGMMA_64
#undef KERNELS_WGMMA
}

}  // namespace kernels
