// SPDX-License-Identifier: Apache-2.0
//
// Writing result files whole or not at all. A run that is interrupted, or a disk that fills up,
// leaves either the file of before or the new one, never half of one.
//
//   std::string text = averages.table();
//   trace::write_file("traces/01_naive/table.txt", text);
//   trace::write_file("traces/01_naive/trace.json.gz", trace::gzip(json));
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace trace {

// A file could not be written. what() is one sentence with the path and the system's reason.
class WriteError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Compression : std::uint8_t { none, gzip };

// For what is too large to be one string: the file appears under its name when finish() is called,
// and not at all where it is not. Throws WriteError.
class FileWriter {
 public:
  FileWriter(const std::filesystem::path& path, Compression compression);
  ~FileWriter();

  void write(std::string_view bytes);
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Creates missing folders, writes to a temporary name in the same folder, reads it back, compares,
// and renames it to `path`. Throws WriteError and removes the temporary file if any of it fails.
void write_file(const std::filesystem::path& path, std::string_view bytes);

// `bytes` as one gzip member. The header holds no time, so equal input gives equal output.
[[nodiscard]] std::string gzip(std::string_view bytes);

}  // namespace trace
