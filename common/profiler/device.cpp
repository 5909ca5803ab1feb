// SPDX-License-Identifier: Apache-2.0
#include "profiler/device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

namespace prof {
namespace {

// The first line of a small file of /proc or /sys, "" where it cannot be read.
std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string read_cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) {
      const std::size_t colon = line.find(':');
      if (colon != std::string::npos && colon + 2 < line.size()) return line.substr(colon + 2);
    }
  }
  return "unknown CPU";
}

bool find_nvidia_hardware() {
  std::error_code error;
  for (const auto& device : std::filesystem::directory_iterator("/sys/bus/pci/devices", error)) {
    const bool is_display = first_line(device.path() / "class").starts_with("0x03");
    if (is_display && first_line(device.path() / "vendor") == "0x10de") return true;
  }
  return std::filesystem::exists("/dev/nvidia0", error) ||
         std::filesystem::exists("/dev/dxg", error);  // the GPU as WSL 2 shows it
}

// "580.95.05" out of the driver's own words, which differ between its open and closed flavour.
std::string read_driver_version() {
  const std::string line = first_line("/proc/driver/nvidia/version");
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    const std::string word = line.substr(begin, end - begin);
    if (word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos) {
      return word;
    }
    begin = end + 1;
  }
  return "";
}

// The CUDA driver library, loaded at run time: it exists only where a driver is installed, and its
// answers do not depend on which LibTorch was built. Signatures: CUDA driver API, cuda.h.
class DriverLibrary {
 public:
  DriverLibrary() : handle_(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {}
  ~DriverLibrary() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  DriverLibrary(const DriverLibrary&) = delete;
  DriverLibrary& operator=(const DriverLibrary&) = delete;

  // Calls a function of the library; false where the library, the function or the call fails.
  template <typename... Args>
  bool call(const char* name, Args... args) const {
    if (handle_ == nullptr) return false;
    const auto function = reinterpret_cast<int (*)(Args...)>(::dlsym(handle_, name));
    return function != nullptr && function(args...) == 0;
  }

 private:
  void* handle_;
};

std::vector<Machine::Gpu> list_driver_gpus(const DriverLibrary& driver) {
  constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_*
  int count = 0;
  if (!driver.call("cuInit", 0u) || !driver.call("cuDeviceGetCount", &count)) return {};
  std::vector<Machine::Gpu> gpus;
  for (int device = 0; device < count; ++device) {
    std::array<char, 256> name{};
    std::size_t memory = 0;
    Machine::Gpu& gpu = gpus.emplace_back();
    if (driver.call("cuDeviceGetName", name.data(), static_cast<int>(name.size()), device)) {
      gpu.name = name.data();
    }
    if (driver.call("cuDeviceTotalMem_v2", &memory, device)) {
      gpu.total_memory = static_cast<std::int64_t>(memory);
    }
    driver.call("cuDeviceGetAttribute", &gpu.multiprocessors, kMultiprocessors, device);
    driver.call("cuDeviceGetAttribute", &gpu.compute_major, kMajor, device);
    driver.call("cuDeviceGetAttribute", &gpu.compute_minor, kMinor, device);
  }
  return gpus;
}

std::string cuda_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

Machine Machine::here() {
  Machine machine;
  machine.cpu_name = read_cpu_name();
  machine.cpu_threads = at::get_num_threads();
  machine.libtorch_version =
      fmt::format("{}.{}.{}", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH);
  const at::CUDAHooksInterface& hooks = at::detail::getCUDAHooks();
  if (hooks.hasCUDART()) machine.libtorch_cuda = static_cast<int>(hooks.versionCUDART());
  machine.has_nvidia_hardware = find_nvidia_hardware();
  machine.driver_version = read_driver_version();
  const DriverLibrary driver;
  driver.call("cuDriverGetVersion", &machine.driver_cuda);
  machine.driver_gpus = list_driver_gpus(driver);
  // LibTorch numbers the devices as the driver does; it can only use fewer of them.
  if (hooks.hasCUDA()) {
    machine.gpus = machine.driver_gpus;
    machine.gpus.resize(static_cast<std::size_t>(hooks.getNumGPUs()));
  }
  return machine;
}

std::string Machine::why_no_gpu() const {
  if (!gpus.empty()) {
    for (const Gpu& gpu : gpus) {
      if (gpu.compute_capability() >= kMinComputeCapability) return "";
    }
    return fmt::format(
        "{} has compute capability {}.{}, and this LibTorch has no code for devices below {}.{}: "
        "build with a LibTorch of CUDA 12 by CMAKE_PREFIX_PATH",
        gpus[0].name, gpus[0].compute_major, gpus[0].compute_minor, kMinComputeCapability / 10,
        kMinComputeCapability % 10);
  }
  if (!has_nvidia_hardware && driver_gpus.empty()) return "";
  if (libtorch_cuda == 0) {
    return "this is LibTorch's CPU build: run `make distclean` and then `make run LIBTORCH=cuda`";
  }
  if (driver_cuda == 0) {
    return "no NVIDIA driver is loaded: install driver 580 or newer and try `nvidia-smi`";
  }
  if (driver_cuda / 1000 < libtorch_cuda / 1000) {
    return fmt::format(
        "driver {} runs CUDA up to {}, and this LibTorch brings CUDA {}: update the driver to 580 "
        "or "
        "newer, or give a LibTorch of CUDA {} by CMAKE_PREFIX_PATH",
        driver_version, cuda_text(driver_cuda), cuda_text(libtorch_cuda), driver_cuda / 1000);
  }
  if (driver_gpus.empty()) {
    return "the driver offers no device: look at CUDA_VISIBLE_DEVICES and at `nvidia-smi`";
  }
  return fmt::format(
      "LibTorch cannot start CUDA on {}: try `nvidia-smi`, another program may hold "
      "the device alone",
      driver_gpus[0].name);
}

}  // namespace prof
