// SPDX-License-Identifier: Apache-2.0
//
// c2_tiled.cpp is compiled once for each kind of vectors; this takes the widest that the CPU has.
#include "cpu.h"

namespace kernels {

#define KERNELS_DECLARE(isa)                         \
  namespace isa {                                    \
  void c2(const Attention& call, std::int64_t task); \
  }
KERNELS_DECLARE(baseline)
#ifdef __x86_64__
KERNELS_DECLARE(avx2)
KERNELS_DECLARE(avx512)
#endif

void c2(const Attention& call, std::int64_t task) {
#ifdef __x86_64__
  static const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0;
  static const bool has_avx2 =
      __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  if (has_avx512) return avx512::c2(call, task);
  if (has_avx2) return avx2::c2(call, task);
#endif
  baseline::c2(call, task);
}

}  // namespace kernels
