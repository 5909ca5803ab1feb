// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace prof {

// What went wrong and what to do about it, in one sentence. Thrown by everything in
// common/profiler.
//
//   try { profiler.stop(); }
//   catch (const prof::Error& error) { std::cerr << error.what() << '\n'; return 1; }
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace prof
