// SPDX-License-Identifier: Apache-2.0
#include "profiler/scratch_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "profiler/error.h"

namespace prof {

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "libtorch-profile-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw Error(fmt::format("cannot make a temporary folder {}: {}; set TMPDIR to a writable one",
                            name, std::strerror(errno)));
  }
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace prof
