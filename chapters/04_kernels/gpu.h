// SPDX-License-Identifier: Apache-2.0
//
// The versions for GPUs. Each launches its kernel on the call's stream and returns at once:
// cudaSuccess, cudaErrorInvalidValue for a size that it cannot take, cudaErrorMisalignedAddress for
// a pointer or stride that is no multiple of 16 bytes (all but v1), or what the launch itself said.
#pragma once

#include <cuda_runtime.h>

#include <string_view>
#include <utility>

#include "attention.h"
#include "decode.h"

namespace kernels {

cudaError_t v1(const Attention& call);  // one warp per query row
cudaError_t v2(const Attention& call);  // tiles in shared memory
cudaError_t v3(const Attention& call);  // tensor cores by mma.sync
cudaError_t v4(const Attention& call);  // wgmma and TMA
cudaError_t v5(const Attention& call);  // a producer and its consumers
cudaError_t v6(const Attention& call);  // softmax under the products, persistent blocks

// Over a key-value cache. plan() sets call.splits and call.fill from the sizes alone; scratch comes
// after it.
void plan(Decode& call, int multiprocessors);
cudaError_t decode(const Decode& call);

using Launcher = cudaError_t (*)(const Attention&);

// Null for a name that is none of these.
inline Launcher launcher_of(std::string_view name) {
  constexpr std::pair<std::string_view, Launcher> kLaunchers[] = {
      {"v1", v1}, {"v2", v2}, {"v3", v3}, {"v4", v4}, {"v5", v5}, {"v6", v6}};
  for (const auto& [known, launcher] : kLaunchers) {
    if (known == name) return launcher;
  }
  return nullptr;
}

}  // namespace kernels
