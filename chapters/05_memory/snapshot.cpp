// SPDX-License-Identifier: Apache-2.0
#include "snapshot.h"

#include <optional>
#include <string>

#include "trace/files.h"

#ifdef PROF_TORCH_CUDA
#include <torch/csrc/cuda/memory_snapshot.h>
#endif

namespace memory {

#ifdef PROF_TORCH_CUDA
bool write_snapshot(const std::filesystem::path& path, const std::function<void()>& work) {
  constexpr std::size_t kMostEntries = 100'000;
  // As std::optional<std::string>: a plain "all" is a pointer, which would choose the overload that
  // takes a bool and keeps a single entry. "python" stacks: C++ ones take minutes to be named.
  const std::optional<std::string> all = "all";
  torch::cuda::_record_memory_history(all, all, "python", kMostEntries);
  try {
    work();
  } catch (...) {
    torch::cuda::_record_memory_history(std::optional<std::string>());
    throw;
  }
  const std::string pickle = torch::cuda::_memory_snapshot_pickled();
  torch::cuda::_record_memory_history(std::optional<std::string>());
  trace::write_file(path, pickle);
  return true;
}
#else
bool write_snapshot(const std::filesystem::path&, const std::function<void()>&) {
  return false;
}
#endif

}  // namespace memory
