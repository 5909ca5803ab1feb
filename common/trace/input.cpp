// SPDX-License-Identifier: Apache-2.0
#include "trace/input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trace/printable.h"
#include "trace/reader.h"

namespace trace {

Input Input::open(const std::filesystem::path& path) {
  Input input;
  const bool is_standard_input = path == "-";
  input.name_ = is_standard_input ? "standard input" : printable(path.string());
  // A copy of the descriptor, because closing the input must not close the program's stdin.
  const int descriptor =
      is_standard_input ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    throw ReadError(fmt::format("cannot open {}: {}; check the path and its permissions",
                                input.name_, std::strerror(errno)));
  }
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(descriptor);
    throw ReadError(fmt::format("{} is a folder; name the trace file in it", input.name_));
  }
  // zlib tells gzip from plain text by the first bytes and reads both, several members too.
  input.file_.reset(::gzdopen(descriptor, "rb"));
  if (input.file_ == nullptr) {
    ::close(descriptor);
    throw std::bad_alloc();
  }
  ::gzbuffer(input.file_.get(), 1 << 17);
  return input;
}

std::size_t Input::read(char* buffer, std::size_t size) {
  if (file_ == nullptr) {
    size = std::min(size, text_.size());
    std::memcpy(buffer, text_.data(), size);
    text_.remove_prefix(size);
    return size;
  }
  std::size_t got = 0;
  while (got < size && problem_.empty()) {
    const std::size_t wanted = std::min<std::size_t>(size - got, 1u << 30);
    const int count = ::gzread(file_.get(), buffer + got, static_cast<unsigned>(wanted));
    if (count > 0) got += static_cast<std::size_t>(count);
    if (count == static_cast<int>(wanted)) continue;
    // Fewer bytes than wanted: the end, or an error behind the bytes that were still good.
    int error = Z_OK;
    const char* message = ::gzerror(file_.get(), &error);
    if (error == Z_BUF_ERROR) {
      problem_ = "the gzip data is cut short";
    } else if (error == Z_ERRNO) {
      problem_ = fmt::format("cannot be read further: {}", std::strerror(errno));
    } else if (error != Z_OK) {
      problem_ = fmt::format("the gzip data is damaged ({})", printable(message));
    }
    break;
  }
  return got;
}

}  // namespace trace
