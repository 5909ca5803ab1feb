// SPDX-License-Identifier: Apache-2.0
//
// The ladder as a list: what each version is called, what it is about, and what it needs. The
// library that holds the kernels and the chapter that calls it both look here.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace kernels {

struct Version {
  std::string_view name;
  std::string_view idea;
  int compute_capability;  // 10 * major + minor, at least; 0: it runs on the CPU
  bool exactly = false;    // that one and no newer: wgmma is an instruction of sm_90a alone
};

// Slowest first; `auto` takes the last one that the device can run.
inline constexpr std::array kVersions{
    Version{"c1", "one query row after the other", 0},
    Version{"c2", "tiles in registers and caches, vector exp2", 0},
    Version{"v1", "one warp per query row, CUDA cores", 80},
    Version{"v2", "tiles in shared memory", 80},
    Version{"v3", "tensor cores by mma.sync", 80},
    Version{"v4", "Hopper: wgmma and TMA", 90, true},
    Version{"v5", "a producer warp and its consumers", 90, true},
    Version{"v6", "softmax under the products, persistent blocks", 90, true},
};

// Whether nvcc built the versions for GPUs into the library.
#ifdef KERNELS_HAVE_CUDA
inline constexpr bool kHaveCuda = true;
#else
inline constexpr bool kHaveCuda = false;
#endif

// Why a device cannot run a version, "" where it can. `compute_capability`: the device's, 0 for the
// CPU.
[[nodiscard]] inline std::string why_not(const Version& version, int compute_capability) {
  const auto sm = [](int capability) { return "sm_" + std::to_string(capability); };
  if (version.compute_capability == 0) {
    return compute_capability == 0 ? "" : "it runs on the CPU: add --device cpu";
  }
  if (compute_capability == 0) return "it needs an NVIDIA GPU";
  if (!kHaveCuda) return "it was not built: there was no fitting nvcc";
  if (compute_capability < version.compute_capability) {
    return "it needs " + sm(version.compute_capability) + ", not " + sm(compute_capability);
  }
  if (version.exactly && compute_capability != version.compute_capability) {
    return "it is for " + sm(version.compute_capability) + " alone, this is " +
           sm(compute_capability);
  }
  return "";
}

}  // namespace kernels
