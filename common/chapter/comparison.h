// SPDX-License-Identifier: Apache-2.0
//
// Several recordings of one run, a line for each: operations, time, memory, occupancy, speed,
// error.
//
//   chapter::print_comparison(options, {{"in place", before.facts}, {"flash", after.facts}}, "");
#pragma once

#include <string>
#include <vector>

#include "chapter/options.h"
#include "explain/facts.h"

namespace chapter {

struct Compared {
  std::string name;
  explain::Facts facts;
};

// Speed is the first one's time divided by each one's, so it is the first that the others are
// measured against. `missing`: lines on what could not be recorded, each with its end.
void print_comparison(const Options& options, const std::vector<Compared>& recordings,
                      const std::string& missing);

}  // namespace chapter
