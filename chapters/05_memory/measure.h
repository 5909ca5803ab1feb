// SPDX-License-Identifier: Apache-2.0
//
// A model with all that a step takes, and how much memory a step takes beyond that.
//
//   memory::Setup setup(options, attention, /*layers=*/2, memory::Mode::training);
//   const memory::Measured measured = memory::measure(options, setup, step);
//   std::cout << measured.held.total() + measured.peak << " bytes\n";
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "adam.h"
#include "layers.h"

namespace memory {

// What is there before a step and after it, in bytes.
struct Held {
  std::int64_t weights = 0, inputs = 0, optimizer_state = 0;
  [[nodiscard]] std::int64_t total() const { return weights + inputs + optimizer_state; }
};

struct Setup {
  Setup(const chapter::Options& options, const Attention& attention, std::int64_t layers,
        Mode mode);

  [[nodiscard]] Held held() const;

  Model model;
  at::Tensor x, target;      // [B, S, E]; no target for inference
  std::optional<Adam> adam;  // none for inference
};

using Step = std::function<void(Setup&)>;

// What LibTorch's allocator for CUDA says about a step that is warm.
struct AllocatorFacts {
  std::int64_t allocated = 0;       // bytes of blocks at the peak
  std::int64_t requested = 0;       // bytes asked for at their peak: blocks are rounded up
  std::int64_t reserved = 0;        // bytes taken from the driver at the peak
  std::int64_t inactive = 0;        // bytes that are free inside of split segments, afterwards
  std::int64_t device_mallocs = 0;  // calls to cudaMalloc during the step
  std::int64_t retries = 0;         // of an allocation after the cache was flushed, in this process
  std::int64_t failures = 0;
};

struct Measured {
  Held held;
  std::int64_t peak = 0;                      // of a step, beyond what is held
  std::int64_t forward_peak = 0;              // of its forward alone
  std::optional<AllocatorFacts> allocator{};  // CUDA alone: a CPU has malloc
};

// Warms up with a step, then measures one. Throws what LibTorch throws where memory runs out.
[[nodiscard]] Measured measure(const chapter::Options& options, Setup& setup, const Step& step);

// One line per fact, each with its end; says what a CPU does not have.
[[nodiscard]] std::string to_text(const Measured& measured);

// The sentence where memory ran out: what was asked for and what to try. nullopt for any other
// error.
[[nodiscard]] std::optional<std::string> out_of_memory_text(const std::exception& error,
                                                            Variant variant, Mode mode,
                                                            std::int64_t layers,
                                                            const chapter::Options& options);

}  // namespace memory
