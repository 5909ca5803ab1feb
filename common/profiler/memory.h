// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/DeviceType.h>

#include <cstdint>
#include <functional>

namespace prof {

// The most bytes that `work` holds at once on devices of this type, beyond what was allocated
// before it began. Counted from LibTorch's own allocation reports, so it is exact, the same on
// every run, and works on the CPU, whose allocator keeps no peak of its own.
//
//   const std::int64_t bytes =
//       prof::peak_memory(at::kCPU, [&] { attention(q, k, v, mask); });
//   std::cout << bytes << " bytes\n";
//
// Counts this thread, and threads that LibTorch carries its state to. Call it outside of a
// recording: LibTorch has one place for whoever listens to allocations.
std::int64_t peak_memory(c10::DeviceType device_type, const std::function<void()>& work);

}  // namespace prof
