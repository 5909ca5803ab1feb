// SPDX-License-Identifier: Apache-2.0
//
// Text from a trace, made fit for a figure or a tree: short, whole characters, safe in XML.
//
//   explain::short_name(trace::Category::kernel, "ampere_sgemm_128x64_nn");  // "matmul fp32
//   128x64" explain::clipped("aten::masked_fill", 8);   // "aten::m…"
//   explain::xml_text("a<b>\x1b");              // "a&lt;b&gt;\x1b", the escape spelled out
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace explain {

// A kernel's name in a few words, as kernel_name.h decodes it; a copy's without its explanation in
// brackets; everything else as it is.
[[nodiscard]] std::string short_name(trace::Category category, std::string_view name);

// Characters, where every code point counts as one.
[[nodiscard]] std::size_t length(std::string_view text);

// At most `most` characters, the last one "…" where something was cut off.
[[nodiscard]] std::string clipped(std::string_view text, std::size_t most);

// Broken at spaces into lines of at most `most` characters; a longer word gets a line of its own.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t most);

// Well-formed XML text and attribute value whatever the bytes are: control characters and what is
// not UTF-8 come out as \xNN.
[[nodiscard]] std::string xml_text(std::string_view text);

}  // namespace explain
