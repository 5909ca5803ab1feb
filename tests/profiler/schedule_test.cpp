// SPDX-License-Identifier: Apache-2.0
#include "profiler/schedule.h"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "profiler/error.h"

namespace {

char letter(prof::Action action) {
  switch (action) {
    case prof::Action::none:
      return '.';
    case prof::Action::warmup:
      return 'w';
    case prof::Action::record:
      return 'r';
    case prof::Action::record_and_save:
      return 's';
  }
  return '?';
}

}  // namespace

TEST_CASE("A schedule does, step by step, what torch.profiler.schedule does") {
  std::ifstream file(PROF_TEST_DATA "/schedules.txt");
  int compared = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    prof::Schedule schedule;
    int skip_first_wait = 0;
    std::string colon, expected, actions;
    words >> schedule.skip_first >> schedule.wait >> schedule.warmup >> schedule.active >>
        schedule.repeat >> skip_first_wait >> colon >> expected;
    schedule.skip_first_wait = skip_first_wait != 0;
    for (int step = 0; step < static_cast<int>(expected.size()); ++step) {
      actions += letter(schedule.action_at(step));
    }
    CAPTURE(line);
    CHECK(actions == expected);
    ++compared;
  }
  CHECK(compared == 216);
}

TEST_CASE("A schedule that records nothing is refused with its numbers") {
  CHECK_NOTHROW(prof::Schedule{}.validate());
  CHECK_THROWS_AS((prof::Schedule{.active = 0}.validate()), prof::Error);
  CHECK_THROWS_AS((prof::Schedule{.wait = -1}.validate()), prof::Error);
  CHECK_THROWS_AS((prof::Schedule{.warmup = -1}.validate()), prof::Error);
  CHECK_THROWS_AS((prof::Schedule{.repeat = -1}.validate()), prof::Error);
  CHECK_THROWS_AS((prof::Schedule{.skip_first = -1}.validate()), prof::Error);
}
