// SPDX-License-Identifier: Apache-2.0
#include "trace/input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "trace/printable.h"
#include "trace/reader.h"

namespace trace {

// inflate() and not gzread(), which gives nothing of what it decompressed before it met an error.
struct Input::Gzip {
  Gzip() {
    constexpr int kGzipWindow = 15 + 16;
    if (::inflateInit2(&stream, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() { ::inflateEnd(&stream); }

  z_stream stream{};
  std::array<char, 1 << 17> bytes;  // compressed, of which the stream has seen a part
  bool is_between_members = true;
};

Input Input::open(const std::filesystem::path& path) {
  const bool is_standard_input = path == "-";
  std::string name = is_standard_input ? "standard input" : printable(path.string());
  // A copy of the descriptor, because the end of the input must not close the program's stdin.
  const int descriptor =
      is_standard_input ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    throw ReadError(fmt::format("cannot open {}: {}; check the path and its permissions", name,
                                std::strerror(errno)));
  }
  return Input(descriptor, std::move(name));
}

Input::Input(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(descriptor);
    throw ReadError(fmt::format("{} is a folder; name the trace file in it", name_));
  }
  std::array<char, 2> first;
  head_.assign(first.data(), read_file(first.data(), first.size()));
  if (head_ == "\x1f\x8b") {
    gzip_ = std::make_unique<Gzip>();
    std::copy(head_.begin(), head_.end(), gzip_->bytes.begin());
    gzip_->stream.next_in = reinterpret_cast<Bytef*>(gzip_->bytes.data());
    gzip_->stream.avail_in = static_cast<uInt>(head_.size());
  }
}

Input::Input(std::string_view text) : text_(text) {}

Input::Input(Input&& other) noexcept
    : text_(other.text_),
      head_(std::move(other.head_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      gzip_(std::move(other.gzip_)),
      name_(std::move(other.name_)),
      problem_(std::move(other.problem_)) {}

Input::~Input() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::size_t Input::read(char* buffer, std::size_t size) {
  if (gzip_ != nullptr) return read_gzip(buffer, size);
  std::size_t got = head_.copy(buffer, size);
  head_.erase(0, got);
  if (descriptor_ >= 0) return got + read_file(buffer + got, size - got);
  got = text_.copy(buffer, size);
  text_.remove_prefix(got);
  return got;
}

std::size_t Input::read_file(char* buffer, std::size_t size) {
  std::size_t got = 0;
  while (got < size) {
    const ssize_t count =
        ::read(descriptor_, buffer + got, std::min<std::size_t>(size - got, 1 << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) problem_ = fmt::format("it cannot be read further ({})", std::strerror(errno));
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
  }
  return got;
}

std::size_t Input::read_gzip(char* buffer, std::size_t size) {
  z_stream& stream = gzip_->stream;
  stream.next_out = reinterpret_cast<Bytef*>(buffer);
  stream.avail_out = static_cast<uInt>(size);  // at most twice the largest value
  while (stream.avail_out > 0 && problem_.empty()) {
    if (stream.avail_in == 0) {
      stream.next_in = reinterpret_cast<Bytef*>(gzip_->bytes.data());
      stream.avail_in = static_cast<uInt>(read_file(gzip_->bytes.data(), gzip_->bytes.size()));
      if (stream.avail_in == 0) {
        if (!gzip_->is_between_members && problem_.empty()) {
          problem_ = "the gzip data is cut short";
        }
        break;
      }
    }
    if (gzip_->is_between_members) {
      if (*stream.next_in != 0x1f) break;  // padding behind the last member
      ::inflateReset(&stream);
      gzip_->is_between_members = false;
    }
    const int status = ::inflate(&stream, Z_NO_FLUSH);
    gzip_->is_between_members = status == Z_STREAM_END;
    if (status != Z_OK && status != Z_STREAM_END) {
      problem_ = fmt::format("the gzip data is damaged ({})",
                             stream.msg == nullptr ? "unknown error" : stream.msg);
    }
  }
  return size - stream.avail_out;
}

std::string read_whole(Input& input, std::size_t most) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::string text;
  std::size_t size = 0, got = kPiece;
  while (got == kPiece && size <= most) {
    text.resize(size + kPiece);
    got = input.read(text.data() + size, kPiece);
    size += got;
  }
  text.resize(size);
  if (!input.problem().empty()) {
    throw ReadError(fmt::format("{} cannot be read whole: {}", input.name(), input.problem()));
  }
  if (size > most) {
    throw ReadError(fmt::format("{} is longer than {} bytes, which no such file is: check its name",
                                input.name(), most));
  }
  text.reserve(size + simdjson::SIMDJSON_PADDING);  // else the parser copies it
  return text;
}

}  // namespace trace
