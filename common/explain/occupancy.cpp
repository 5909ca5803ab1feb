// SPDX-License-Identifier: Apache-2.0
#include "explain/occupancy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "explain/text.h"

namespace explain {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr int kWarp = 32;
constexpr int kPartitions = 4;         // of an SM, each with its own registers
constexpr int kRegisterUnit = 256;     // registers are handed out to a warp in such units
constexpr int kMostRegisters = 256;    // per thread
constexpr int kMostThreads = 1024;     // per block
constexpr int kRegisters = 64 * 1024;  // per SM and per block, on all of them
constexpr std::int64_t kDefaultSharedMemory = 48 * kKiB;

// What an SM holds, by compute capability. The file's own figures go first, where it has them.
struct Architecture {
  int compute = 0;  // 10 * major + minor
  int threads = 0;
  int blocks = 0;
  std::int64_t shared_memory = 0;
  std::int64_t shared_memory_per_block = 0;  // that a kernel may ask for ("opt-in")
};

constexpr Architecture kArchitectures[] = {
    {70, 2048, 32, 96 * kKiB, 96 * kKiB},    {72, 2048, 32, 96 * kKiB, 96 * kKiB},
    {75, 1024, 16, 64 * kKiB, 64 * kKiB},    {80, 2048, 32, 164 * kKiB, 163 * kKiB},
    {86, 1536, 16, 100 * kKiB, 99 * kKiB},   {87, 1536, 16, 164 * kKiB, 163 * kKiB},
    {89, 1536, 24, 100 * kKiB, 99 * kKiB},   {90, 2048, 32, 228 * kKiB, 227 * kKiB},
    {100, 2048, 32, 228 * kKiB, 227 * kKiB}, {101, 1536, 24, 228 * kKiB, 227 * kKiB},
    {103, 2048, 32, 228 * kKiB, 227 * kKiB}, {110, 1536, 24, 228 * kKiB, 227 * kKiB},
    {120, 1536, 24, 100 * kKiB, 99 * kKiB},  {121, 1536, 24, 100 * kKiB, 99 * kKiB},
};

const Architecture* architecture_of(const trace::DeviceProperties& device) {
  // In 64 bits: a damaged file may say anything.
  const std::int64_t compute = 10 * std::int64_t{device.compute_major} + device.compute_minor;
  const auto* known = std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                                   [&](const Architecture& a) { return a.compute == compute; });
  return known == std::end(kArchitectures) ? nullptr : known;
}

// An AMD device has a compute capability in the file, too, which means something else.
bool is_nvidia(const trace::DeviceProperties& device) {
  const bool is_warp = device.warp_size == 0 || device.warp_size == kWarp;
  return is_warp && device.name.find("AMD") == std::string::npos &&
         device.name.find("Radeon") == std::string::npos;
}

double product(const std::array<std::uint32_t, 3>& sides) {
  return 1.0 * sides[0] * sides[1] * sides[2];
}

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// What an SM of this device holds, and how many blocks of this launch. 0 blocks: it cannot run.
struct Fit {
  int warps_per_block = 0;
  int most_threads = 0;
  std::int64_t by_registers = 0, by_shared_memory = 0, by_threads = 0, by_blocks = 0;

  [[nodiscard]] int most_warps() const { return most_threads / kWarp; }
  [[nodiscard]] std::int64_t blocks() const {
    return std::min({by_registers, by_shared_memory, by_threads, by_blocks});
  }
};

// No figure of a file is believed above this, so that sums of them stay numbers.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;

template <typename Number>
Number first_known(Number from_file, Number from_table) {
  return from_file > 0 && from_file < kMostBytes ? from_file : from_table;
}

// `is_opted_in`: with as much shared memory per block as the device allows, not the default.
Fit fit(const trace::Launch& launch, const trace::DeviceProperties& device,
        const Architecture& architecture, bool is_opted_in) {
  const auto threads = static_cast<int>(product(launch.block));
  Fit fit;
  fit.most_threads = first_known(device.max_threads_per_multiprocessor, architecture.threads);
  fit.warps_per_block = (threads + kWarp - 1) / kWarp;
  fit.by_threads = fit.most_warps() / fit.warps_per_block;
  fit.by_blocks = architecture.blocks;

  // The launch is refused as if all four partitions had to hold equally many warps of a block.
  const std::int64_t per_warp =
      round_up(std::int64_t{launch.registers_per_thread} * kWarp, kRegisterUnit);
  const int registers = first_known(device.registers_per_multiprocessor, kRegisters);
  const int registers_per_block = first_known(device.registers_per_block, kRegisters);
  const bool is_too_large =
      per_warp * round_up(fit.warps_per_block, kPartitions) > registers_per_block ||
      launch.registers_per_thread > kMostRegisters;
  const std::int64_t warps = registers / kPartitions / per_warp * kPartitions;
  fit.by_registers = is_too_large ? 0 : warps / fit.warps_per_block;

  const bool is_reserving = architecture.compute >= 80;
  const std::int64_t reserved = is_reserving ? kKiB : 0;
  const std::int64_t per_block =
      round_up(launch.shared_memory + reserved, is_reserving ? 128 : 256);
  const std::int64_t opt_in =
      first_known(device.shared_memory_per_block_optin, architecture.shared_memory_per_block);
  const std::int64_t by_default = first_known(device.shared_memory_per_block, kDefaultSharedMemory);
  const std::int64_t shared_memory =
      first_known(device.shared_memory_per_multiprocessor, architecture.shared_memory);
  const std::int64_t allowed = (is_opted_in ? std::max(opt_in, by_default) : by_default) + reserved;
  fit.by_shared_memory = per_block > allowed ? 0
                         : per_block == 0    ? std::numeric_limits<std::int64_t>::max()
                                             : shared_memory / per_block;
  return fit;
}

int percent(double share) {
  return static_cast<int>(std::lround(100 * share));
}

}  // namespace

trace::DeviceProperties device_of(const trace::Trace& trace, const trace::Launch& launch) {
  for (const trace::DeviceProperties& device : trace.devices) {
    if (device.id == launch.device) return device;
  }
  return {};
}

std::string why_unknown(const trace::Launch& launch, const trace::DeviceProperties& device) {
  const double threads = product(launch.block);
  if (threads == 0 || product(launch.grid) == 0) return "the file does not say how it was launched";
  if (!is_nvidia(device)) return "the device is none of NVIDIA's";
  if (launch.registers_per_thread <= 0) return "the file does not say how many registers it takes";
  if (device.compute_major == 0) return "the file does not describe the device";
  const Architecture* const architecture = architecture_of(device);
  if (architecture == nullptr) {
    return fmt::format("compute capability {}.{} is not known here", device.compute_major,
                       device.compute_minor);
  }
  if (threads > kMostThreads || launch.shared_memory < 0 || launch.shared_memory > kMostBytes ||
      fit(launch, device, *architecture, true).blocks() <= 0) {
    return "no such device runs a block of this size";
  }
  return "";
}

std::optional<Occupancy> occupancy(const trace::Launch& launch,
                                   const trace::DeviceProperties& device) {
  if (!why_unknown(launch, device).empty()) return std::nullopt;
  const Fit fits = fit(launch, device, *architecture_of(device), true);
  const std::int64_t blocks = fits.blocks();

  Occupancy result;
  result.warps_per_block = fits.warps_per_block;
  result.blocks_per_multiprocessor = static_cast<int>(blocks);
  result.warps_per_multiprocessor = static_cast<int>(blocks) * fits.warps_per_block;
  result.most_warps = fits.most_warps();
  result.theoretical = 1.0 * result.warps_per_multiprocessor / result.most_warps;
  result.reached = result.theoretical;
  result.blocks = product(launch.grid);
  if (device.multiprocessors > 0) {
    result.waves = result.blocks / (1.0 * device.multiprocessors * static_cast<double>(blocks));
    result.reached *= std::min(1.0, result.waves);
    result.by_grid = result.waves < 1;
  }
  if (result.warps_per_multiprocessor == result.most_warps) return result;
  result.by_registers = fits.by_registers == blocks;
  result.by_shared_memory = fits.by_shared_memory == blocks;
  result.by_threads = fits.by_threads == blocks;
  result.by_blocks = fits.by_blocks == blocks;
  return result;
}

std::string limit_text(const Occupancy& occupancy) {
  if (occupancy.by_grid) return "grid";
  std::string text;
  for (const auto& [is_limit, name] : {std::pair(occupancy.by_registers, "registers"),
                                       {occupancy.by_shared_memory, "shared memory"},
                                       {occupancy.by_threads, "threads"},
                                       {occupancy.by_blocks, "blocks"}}) {
    if (is_limit) text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text.empty() ? "none" : text;
}

std::optional<int> kineto_estimate(const trace::Launch& launch,
                                   const trace::DeviceProperties& device) {
  if (!why_unknown(launch, device).empty() || device.multiprocessors <= 0) return std::nullopt;
  const Fit fits = fit(launch, device, *architecture_of(device), false);
  // In float, as Kineto does: what it rounds must be the same.
  float blocks =
      static_cast<float>(product(launch.grid)) / static_cast<float>(device.multiprocessors);
  blocks = std::min(blocks, static_cast<float>(fits.blocks()));
  const float share =
      blocks * static_cast<float>(product(launch.block)) / static_cast<float>(fits.most_threads);
  return static_cast<int>(0.5 + share * 100.0);
}

std::string kineto_difference(const trace::Launch& launch, const trace::DeviceProperties& device) {
  const std::optional<Occupancy> ours = occupancy(launch, device);
  const std::optional<int> estimate = kineto_estimate(launch, device);
  const auto theirs = static_cast<int>(launch.occupancy_percent);
  if (!ours || launch.occupancy_percent < 0 || std::abs(theirs - percent(ours->theoretical)) <= 1) {
    return "";
  }
  const std::string head = fmt::format("Kineto prints {} %: ", theirs);
  const std::int64_t by_default = first_known(device.shared_memory_per_block, kDefaultSharedMemory);
  if (theirs == 0 && launch.shared_memory > by_default) {
    return head + fmt::format(
                      "it asks with the default limit of {} of shared memory per block, "
                      "this kernel takes {}",
                      size_text(by_default), size_text(launch.shared_memory));
  }
  if (ours->by_grid && estimate == theirs) {
    return head + fmt::format("{:.0f} block{} on {} SMs, where {} would fit on each", ours->blocks,
                              ours->blocks == 1 ? "" : "s", device.multiprocessors,
                              ours->blocks_per_multiprocessor);
  }
  // Kineto counts threads, the hardware whole warps.
  if (estimate == theirs) return head + "the last warp of a block is not full";
  return head + "its own formula gives another figure for this launch";
}

}  // namespace explain
