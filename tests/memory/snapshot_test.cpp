// SPDX-License-Identifier: Apache-2.0
#include "snapshot.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "profiler/scratch_folder.h"

using Catch::Matchers::ContainsSubstring;

TEST_CASE("The allocator's snapshot is a pickle with what was allocated") {
  if (!at::hasCUDA()) SKIP("no GPU");
  const prof::ScratchFolder folder;
  const std::filesystem::path path = folder.path() / "a.snapshot.pickle";
  REQUIRE(memory::write_snapshot(path, [] {
    (void)at::empty({1 << 20}, at::TensorOptions().device(at::kCUDA).dtype(at::kByte));
  }));
  std::ifstream file(path, std::ios::binary);
  const std::string pickle{std::istreambuf_iterator<char>(file), {}};
  CHECK(pickle.starts_with("\x80\x02"));  // protocol 2
  for (const char* key : {"segments", "device_traces", "alloc", "free_completed"})
    CHECK_THAT(pickle, ContainsSubstring(key));

  // What is thrown comes through, and nothing is written.
  const std::filesystem::path none = folder.path() / "b.snapshot.pickle";
  CHECK_THROWS_AS(memory::write_snapshot(none, [] { throw std::runtime_error("out"); }),
                  std::runtime_error);
  CHECK_FALSE(std::filesystem::exists(none));
}
