// SPDX-License-Identifier: Apache-2.0
//
// What this machine is, and why LibTorch cannot use its GPU if it cannot. LibTorch itself only says
// "no"; the driver is asked directly, so that the answer names the remedy.
//
//   prof::Machine machine = prof::Machine::here();
//   if (machine.gpus.empty()) std::cerr << machine.why_no_gpu() << '\n';
//   else std::cout << machine.gpus[0].name << '\n';
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace prof {

// CUDA versions are NVIDIA's numbers: 1000 * major + 10 * minor, 13000 for 13.0; 0 = there is none.
struct Machine {
  struct Gpu {
    std::string name;
    int compute_major = 0, compute_minor = 0;  // 9, 0 for sm_90
    std::int64_t total_memory = 0;             // bytes
    int multiprocessors = 0;

    [[nodiscard]] int compute_capability() const { return 10 * compute_major + compute_minor; }
  };

  std::string cpu_name;
  int cpu_threads = 1;               // that LibTorch uses
  std::string libtorch_version;      // "2.11.0"
  int libtorch_cuda = 0;             // the CUDA runtime that LibTorch brings; 0 for a CPU build
  bool has_nvidia_hardware = false;  // on the PCI bus, whether or not a driver is loaded
  std::string driver_version;        // "580.95.05", "" where no driver is loaded
  int driver_cuda = 0;               // the newest CUDA that the driver can run
  std::vector<Gpu> driver_gpus;      // what the driver offers, CUDA_VISIBLE_DEVICES obeyed
  std::vector<Gpu> gpus;             // what LibTorch can use, in its numbering

  [[nodiscard]] static Machine here();

  // One sentence with the remedy where there is an NVIDIA GPU that LibTorch cannot use; "" where it
  // can, and where there is none.
  [[nodiscard]] std::string why_no_gpu() const;

  // The oldest compute capability that the pinned CUDA wheel has code for.
  static constexpr int kMinComputeCapability = 75;
};

}  // namespace prof
