// SPDX-License-Identifier: Apache-2.0
#include "trace/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

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

  // These return errno, 0 for success: the caller knows the path that the user asked for.
  [[nodiscard]] int write(std::string_view bytes) {
    checksum_ = checksum(checksum_, bytes);
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return written < 0 ? errno : EIO;
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
  }

  // Some file systems report a full disk only when the data is forced out, and some lose data
  // without a word: what was written is read back.
  [[nodiscard]] int check() const {
    if (::fsync(descriptor_) != 0 && errno != EINVAL) return errno;
    std::vector<char> buffer(1 << 16);
    uLong found = 0;
    off_t offset = 0;
    while (true) {
      const ssize_t got = ::pread(descriptor_, buffer.data(), buffer.size(), offset);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno;
      if (got == 0) return found == checksum_ ? 0 : EIO;
      found = checksum(found, {buffer.data(), static_cast<std::size_t>(got)});
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
  static uLong checksum(uLong before, std::string_view bytes) {
    return ::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  }

  std::string name_;
  int descriptor_;
  uLong checksum_ = 0;
  bool renamed_ = false;
};

// A gzip stream, fed piece by piece.
class Gzip {
 public:
  Gzip() {
    constexpr int kGzipWindow = 15 + 16;
    if (::deflateInit2(&stream_, 6, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() { ::deflateEnd(&stream_); }

  // Appends what has become ready. The last piece, which may be empty, ends the stream.
  void add(std::string_view bytes, bool is_last, std::string& out) {
    constexpr std::size_t kMostPiece = 1u << 30;  // zlib counts in 32 bits
    do {
      const std::string_view piece = bytes.substr(0, kMostPiece);
      bytes.remove_prefix(piece.size());
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
      stream_.avail_in = static_cast<uInt>(piece.size());
      const int flush = is_last && bytes.empty() ? Z_FINISH : Z_NO_FLUSH;
      do {
        const std::size_t before = out.size();
        out.resize(before + kRoom);
        stream_.next_out = reinterpret_cast<Bytef*>(out.data() + before);
        stream_.avail_out = kRoom;
        ::deflate(&stream_, flush);
        out.resize(out.size() - stream_.avail_out);
      } while (stream_.avail_out == 0);
    } while (!bytes.empty());
  }

 private:
  static constexpr uInt kRoom = 1 << 18;
  z_stream stream_{};
};

}  // namespace

struct FileWriter::State {
  explicit State(const std::filesystem::path& target) : path(target), file(target) {}

  void write(std::string_view bytes) {
    if (const int error = file.write(bytes)) fail(path, error);
  }

  std::filesystem::path path;
  TemporaryFile file;
  std::unique_ptr<Gzip> gzip;
  std::string compressed;
};

FileWriter::FileWriter(const std::filesystem::path& path, Compression compression) {
  if (path.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) fail(path, error.value());
  }
  state_ = std::make_unique<State>(path);
  if (compression == Compression::gzip) state_->gzip = std::make_unique<Gzip>();
}

FileWriter::~FileWriter() = default;

void FileWriter::write(std::string_view bytes) {
  if (state_->gzip == nullptr) return state_->write(bytes);
  state_->compressed.clear();
  state_->gzip->add(bytes, false, state_->compressed);
  state_->write(state_->compressed);
}

void FileWriter::finish() {
  if (state_->gzip != nullptr) {
    state_->compressed.clear();
    state_->gzip->add("", true, state_->compressed);
    state_->write(state_->compressed);
  }
  if (const int error = state_->file.check()) fail(state_->path, error);
  if (const int error = state_->file.rename_to(state_->path)) fail(state_->path, error);
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  FileWriter writer(path, Compression::none);
  writer.write(bytes);
  writer.finish();
}

std::string gzip(std::string_view bytes) {
  std::string out;
  Gzip().add(bytes, true, out);
  return out;
}

}  // namespace trace
