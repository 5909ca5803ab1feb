// SPDX-License-Identifier: Apache-2.0
//
// Places for the files of a test.
#pragma once

#include <sys/mount.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

// A folder of the test's own, gone at its end.
struct TemporaryFolder {
  std::filesystem::path path;
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "prof-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::recursive_directory_iterator(path),
                      std::filesystem::recursive_directory_iterator()));
  }
};

// A disk of 64 kB, for as long as it lives.
struct TinyDisk {
  TemporaryFolder folder;
  bool mounted = false;
  TinyDisk() { mounted = ::mount("tmpfs", folder.path.c_str(), "tmpfs", 0, "size=64k") == 0; }
  ~TinyDisk() {
    if (mounted) ::umount(folder.path.c_str());
  }
};
