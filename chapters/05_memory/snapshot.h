// SPDX-License-Identifier: Apache-2.0
//
// The CUDA allocator's own record of one step, as https://pytorch.org/memory_viz opens it.
//
//   memory::write_snapshot("traces/05_memory/step.pickle", [&] { step(setup); });
#pragma once

#include <filesystem>
#include <functional>

namespace memory {

// False where this LibTorch has no CUDA: nothing is written then, and `work` is not called.
bool write_snapshot(const std::filesystem::path& path, const std::function<void()>& work);

}  // namespace memory
