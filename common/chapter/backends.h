// SPDX-License-Identifier: Apache-2.0
//
// scaled_dot_product_attention is one op with several implementations behind it, its *backends*.
// They are chosen through switches that hold for the whole process; these few functions set them,
// put them back, and ask LibTorch why a backend is not to be had.
//
//   const chapter::Pinned pinned(chapter::Backend::math);           // until the end of the scope
//   at::scaled_dot_product_attention(q, k, v);                      // runs math
//   chapter::why_not(chapter::Backend::cudnn, options);             // "it runs on CUDA devices
//   only"
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "chapter/options.h"

namespace chapter {

enum class Backend { math, efficient, flash, cudnn };
inline constexpr std::array kBackends{Backend::math, Backend::efficient, Backend::flash,
                                      Backend::cudnn};

// As the command line spells it: "math", "efficient", "flash", "cudnn".
[[nodiscard]] std::string name_of(Backend backend);
[[nodiscard]] std::optional<Backend> backend_of(std::string_view name);

// What LibTorch takes for these options with the switches as they are.
[[nodiscard]] Backend chosen_backend(const Options& options);

// Why this backend cannot run this shape, dtype and device, in LibTorch's own words; "" where it
// can.
[[nodiscard]] std::string why_not(Backend backend, const Options& options);

// Leaves one backend switched on for as long as it lives, then restores what was there before.
class Pinned {
 public:
  explicit Pinned(Backend backend);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  std::array<bool, kBackends.size()> before_;
};

}  // namespace chapter
