// SPDX-License-Identifier: Apache-2.0
//
// What a file is that is no trace: people take one for the other, and the name of what they have
// tells them what to do.
//
//   std::cout << trace::kind_of_bytes("\x80\x04");           // "a Python pickle (...); ..."
//   std::cout << trace::kind_of_object({"schema", "nodes"});  // "an execution trace; ..."
//   assert(trace::kind_of_object({"a"}).empty());             // nothing is known
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trace {

// By the first bytes of a file that begins with neither { nor [; "" where they say nothing.
[[nodiscard]] std::string_view kind_of_bytes(std::string_view head);

// By the keys of a file's top level, or of the first object in its list; "" where they say nothing.
[[nodiscard]] std::string_view kind_of_object(const std::vector<std::string>& keys);

// The keys of the first object in a text that begins in a list, as far as it is JSON. The values
// may be anything.
[[nodiscard]] std::vector<std::string> keys_of_first_object(std::string_view text);

}  // namespace trace
