// SPDX-License-Identifier: Apache-2.0
//
// Valid JSON from text that a strict parser refuses: what programs that print JSON by hand get
// wrong. Used only for a value that failed to parse as it stands.
//
//   trace::Repair fixed = trace::repair(R"({"name": "a "b" c", "file": "C:\Me"} ...)");
//   // fixed.text == R"({"name": "a \"b\" c", "file": "C:\\Me"})", fixed.end behind its last brace
//
// Mended: raw control characters, invalid UTF-8 (U+FFFD, as many as Python's "replace" gives), lone
// surrogates, unknown escapes (taken as they stand), quotes inside strings, a key without its first
// quote, missing values, superfluous commas.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "trace/framing.h"

namespace trace {

struct Repair {
  Framing framing = Framing::needs_more;
  std::size_t end = 0;  // as far as the text was understood
  std::string text;     // the mended value, where framing is `whole`
};

// `text` begins with the value.
[[nodiscard]] Repair repair(std::string_view text);

}  // namespace trace
