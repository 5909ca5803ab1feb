// SPDX-License-Identifier: Apache-2.0
//
// What --variant, --mode, --layers and --sweep mean.
//
//   const memory::Asked asked = memory::asked(options);
//   for (const memory::Variant variant : asked.variants) run(variant, asked.mode);
//   if (asked.is_sweep) compare(asked.lengths);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chapter/options.h"
#include "layers.h"

namespace memory {

[[nodiscard]] std::vector<chapter::ExtraOption> extra_options();

// Why these options cannot be run, "" where they can: what chapter::Info wants.
[[nodiscard]] std::string why_impossible(const chapter::Options& options);

struct Asked {
  std::vector<Variant> variants;  // one, or all that can run here
  Mode mode = Mode::training;
  std::int64_t layers = 1;
  bool is_sweep = false;              // a line per variant and length instead of a recording
  std::vector<std::int64_t> lengths;  // of the sweep, in order
  std::string missing;  // why variants of `all` are not in it, a line each with its end
};
// Of options that are not impossible.
[[nodiscard]] Asked asked(const chapter::Options& options);

// The same options with files named after variant, mode and layers.
[[nodiscard]] chapter::Options named_after(const Asked& asked, chapter::Options options);

}  // namespace memory
