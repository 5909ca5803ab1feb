// SPDX-License-Identifier: Apache-2.0
//
// Guess first: the chapter's questions before the run, the grades after it.
//
//   options.guesses = chapter::guesses_for(options);  // asks, or reads --guess
//   const bool guessed = !options.guesses.empty();
//   if (!guessed) std::cout << "make 01_naive ARGS=--quiz\n";
#pragma once

#include <string>
#include <vector>

#include "chapter/options.h"

namespace chapter {

// The answers that --quiz asks for at the terminal, or that --guess gives; none where neither is
// there. Throws UsageError for answers that are too few, too many or of the wrong kind, and where
// nobody can be asked.
[[nodiscard]] std::vector<std::string> guesses_for(const Options& options);

}  // namespace chapter
