// SPDX-License-Identifier: Apache-2.0
#include "trace/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace trace {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  throw WriteError(fmt::format("cannot write {}: {}; free some space or choose another folder",
                               path.string(), std::strerror(error)));
}

// Owns the temporary file until it has become the real one.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target)
      : name_(target.string() + ".XXXXXX"), descriptor_(::mkstemp(name_.data())) {
    if (descriptor_ < 0) fail(target, errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!renamed_) ::unlink(name_.c_str());
  }

  // Returns errno, 0 for success: the caller knows the path that the user asked for.
  [[nodiscard]] int write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return written < 0 ? errno : EIO;
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    // Some file systems report a full disk only when the data is forced out.
    return ::fsync(descriptor_) == 0 || errno == EINVAL ? 0 : errno;
  }

  [[nodiscard]] int compare(std::string_view bytes) const {
    std::array<char, 1 << 16> buffer;
    off_t offset = 0;
    while (true) {
      const ssize_t got = ::pread(descriptor_, buffer.data(), buffer.size(), offset);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno;
      const std::string_view expected = bytes.substr(0, static_cast<std::size_t>(got));
      if (expected != std::string_view(buffer.data(), static_cast<std::size_t>(got))) return EIO;
      if (got == 0) return bytes.empty() ? 0 : EIO;
      bytes.remove_prefix(static_cast<std::size_t>(got));
      offset += got;
    }
  }

  [[nodiscard]] int rename_to(const std::filesystem::path& target) {
    // mkstemp makes files that only their owner can read; a result is an ordinary file.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(descriptor_, 0666 & ~mask) != 0) return errno;
    if (::rename(name_.c_str(), target.c_str()) != 0) return errno;
    renamed_ = true;
    return 0;
  }

 private:
  std::string name_;
  int descriptor_;
  bool renamed_ = false;
};

}  // namespace

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  if (path.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) fail(path, error.value());
  }
  TemporaryFile file(path);
  if (const int error = file.write(bytes)) fail(path, error);
  if (const int error = file.compare(bytes)) fail(path, error);
  if (const int error = file.rename_to(path)) fail(path, error);
}

std::string gzip(std::string_view bytes) {
  constexpr int kGzipWindow = 15 + 16;
  z_stream stream{};
  if (::deflateInit2(&stream, 6, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string out;
  std::array<char, 1 << 18> buffer;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    if (stream.avail_in == 0 && !bytes.empty()) {  // zlib counts in 32 bits: feed it in pieces
      const std::size_t piece = std::min<std::size_t>(bytes.size(), 1u << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(piece);
      bytes.remove_prefix(piece);
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    status = ::deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  ::deflateEnd(&stream);
  return out;
}

}  // namespace trace
