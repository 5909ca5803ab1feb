// SPDX-License-Identifier: Apache-2.0
//
// scaled_dot_product_attention is one op with several implementations behind it, its *backends*.
// They are chosen through switches that hold for the whole process; these few functions set them,
// put them back, and ask LibTorch why a backend is not to be had.
#pragma once

#include <array>
#include <string>

#include "chapter/options.h"

namespace sdpa {

enum class Backend { math, efficient, flash, cudnn };
inline constexpr std::array kBackends{Backend::math, Backend::efficient, Backend::flash,
                                      Backend::cudnn};

// As the command line spells it.
[[nodiscard]] std::string name_of(Backend backend);

// --backend auto|math|efficient|flash|cudnn|all
[[nodiscard]] chapter::ExtraOption backend_option();
[[nodiscard]] bool all_asked(const chapter::Options& options);

// The backend that --backend names; for auto LibTorch's own choice, printed with its reasons
// against the others.
[[nodiscard]] Backend asked_or_chosen(const chapter::Options& options);

// The same options with files named after the backend.
[[nodiscard]] chapter::Options named_after(Backend backend, chapter::Options options);

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

// Why this backend cannot run this shape, dtype and device, in LibTorch's own words; "" where it
// can.
[[nodiscard]] std::string why_not(Backend backend, const chapter::Options& options);

// The same for what --backend asks for: what chapter::Info wants to know.
[[nodiscard]] std::string why_impossible(const chapter::Options& options);

}  // namespace sdpa
