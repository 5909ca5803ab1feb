// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a trace, piece by piece: a file or standard input, plain or gzip, or a text in
// memory.
//
//   trace::Input input = trace::Input::open("trace.json.gz");
//   while (const std::size_t got = input.read(buffer, sizeof buffer)) ...
//   if (!input.problem().empty()) ...   // the file is cut or damaged behind what was read
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace trace {

class Input {
 public:
  // Throws ReadError (reader.h) where there is nothing to open. "-" is standard input.
  static Input open(const std::filesystem::path& path);
  explicit Input(std::string_view text);
  Input(Input&&) noexcept;
  ~Input();

  // Fills `buffer` as far as there are bytes; less than `size` only at the end.
  std::size_t read(char* buffer, std::size_t size);

  [[nodiscard]] const std::string& name() const { return name_; }  // for messages, printable
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  struct Gzip;
  Input(int descriptor, std::string name);
  [[nodiscard]] std::size_t read_file(char* buffer, std::size_t size);
  [[nodiscard]] std::size_t read_gzip(char* buffer, std::size_t size);

  std::string_view text_;  // where there is no file
  std::string head_;       // the first bytes of a plain file, which were read to tell its kind
  int descriptor_ = -1;
  std::unique_ptr<Gzip> gzip_;
  std::string name_ = "the text", problem_;
};

// All of it, for what is parsed as one text, such as a sweep. Throws ReadError where it is cut,
// damaged or longer than `most` bytes.
[[nodiscard]] std::string read_whole(Input& input, std::size_t most = std::size_t{1} << 40);

}  // namespace trace
