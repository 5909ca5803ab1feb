// SPDX-License-Identifier: Apache-2.0
//
// How many warps of a kernel fit on a multiprocessor (SM) at the same time, worked out from its
// launch, and what keeps it from being more.
//
//   const trace::Launch& launch = trace.launch_of(event);
//   if (auto occupancy = explain::occupancy(launch, explain::device_of(trace, launch)))
//     fmt::print("{:.0f} %, {}\n", 100 * occupancy->theoretical, limit_text(*occupancy));
//
// The rules are NVIDIA's (cuda_occupancy.h of CUDA 13.0), for compute capability 7.0 to 12.x:
// registers are handed out to warps in units of 256, four partitions of an SM hold a quarter of
// them each; from 8.0 on the driver keeps 1 KiB of shared memory per block. Not in a trace, and so
// not in the figure: clusters, named barriers, and a split of L1 cache and shared memory that was
// asked for.
#pragma once

#include <optional>
#include <string>

#include "trace/trace.h"

namespace explain {

struct Occupancy {
  int warps_per_block = 0;
  int blocks_per_multiprocessor = 0;  // that are resident at the same time
  int warps_per_multiprocessor = 0;   // of them
  int most_warps = 0;                 // that the SM can hold
  double theoretical = 0;  // share of the SM's warps, 0 to 1, if there are blocks enough for it
  double reached = 0;      // what this grid comes to, averaged over all SMs; at most `theoretical`
  double waves = 0;        // grid / all resident blocks; 0 where the file has no number of SMs
  double blocks = 0;       // of the grid

  // What allows no further block. Several at once are as possible as none (a full SM).
  bool by_registers = false;
  bool by_shared_memory = false;
  bool by_threads = false;  // the next block's warps would not fit
  bool by_blocks = false;   // the SM holds no more blocks, however small they are
  bool by_grid = false;     // the grid has too few blocks to fill every SM
};

// The device of a launch. One that the file does not describe has no compute capability.
[[nodiscard]] trace::DeviceProperties device_of(const trace::Trace& trace,
                                                const trace::Launch& launch);

// Empty where the file does not say enough (see why_unknown), or describes what no such device
// runs.
[[nodiscard]] std::optional<Occupancy> occupancy(const trace::Launch& launch,
                                                 const trace::DeviceProperties& device);

// "the file does not say how many registers"; "" where occupancy() has a value.
[[nodiscard]] std::string why_unknown(const trace::Launch& launch,
                                      const trace::DeviceProperties& device);

// "registers", "registers, shared memory", "grid", "none".
[[nodiscard]] std::string limit_text(const Occupancy& occupancy);

// The integer per cent that Kineto's formula gives for this launch: NVIDIA's rules with the default
// limit of shared memory (48 KiB per block, whatever the kernel was allowed), and no more blocks
// per SM than the grid has on average.
[[nodiscard]] std::optional<int> kineto_estimate(const trace::Launch& launch,
                                                 const trace::DeviceProperties& device);

// One sentence on why the file's `est. achieved occupancy %` is not the theoretical occupancy; ""
// where the two agree within one per cent, or where one of them is missing.
[[nodiscard]] std::string kineto_difference(const trace::Launch& launch,
                                            const trace::DeviceProperties& device);

}  // namespace explain
