// SPDX-License-Identifier: Apache-2.0
//
// Sizes and times in sentences. (The table has PyTorch's own formats: trace/table.cpp.)
//
//   explain::time_text(129.9);        // "129.9us"
//   explain::size_text(268435456);    // "256.00 MiB"
//   explain::share_text(0.125);       // "12.5%"
//   explain::cut("a long name", 8);   // "a lon..."
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace explain {

[[nodiscard]] std::string time_text(double microseconds);
[[nodiscard]] std::string size_text(std::int64_t bytes);
[[nodiscard]] std::string share_text(double share);

// At most `most` bytes (4 or more), and no half letter of UTF-8 at the end.
[[nodiscard]] std::string cut(std::string_view text, std::size_t most);

}  // namespace explain
