// SPDX-License-Identifier: Apache-2.0
//
// Text from a file, made safe for a terminal: control characters (C0, DEL, C1) become \xNN, one
// for each byte, so that no trace can move a cursor, set a title or hide what it says.
//
//   std::cerr << "unknown category " << trace::printable(category) << '\n';
#pragma once

#include <string>
#include <string_view>

namespace trace {

[[nodiscard]] std::string printable(std::string_view text);

// The same as a JSON string, with its quotes.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace trace
