// SPDX-License-Identifier: Apache-2.0
//
// Where LibTorch writes what is to become a result: a folder of our own below TMPDIR, gone at the
// end of the scope whatever happens. (Not one of the public headers.)
//
//   const prof::ScratchFolder scratch;
//   result.save((scratch.path() / "trace.json").string());
//   const bool is_there = std::filesystem::exists(scratch.path() / "trace.json");
#pragma once

#include <filesystem>

namespace prof {

class ScratchFolder {
 public:
  ScratchFolder();  // throws Error
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace prof
