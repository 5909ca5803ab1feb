// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a trace, piece by piece: a file or standard input, plain or gzip, or a text in
// memory.
//
//   trace::Input input = trace::Input::open("trace.json.gz");
//   while (const std::size_t got = input.read(buffer, sizeof buffer)) ...
//   if (!input.problem().empty()) ...   // the file is cut or damaged behind what was read
#pragma once

#include <zlib.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace trace {

class Input {
 public:
  // Throws ReadError (reader.h) where there is nothing to read. "-" is standard input.
  static Input open(const std::filesystem::path& path);
  explicit Input(std::string_view text) : text_(text), name_("the text") {}

  // Fills `buffer` as far as there are bytes; less than `size` only at the end.
  std::size_t read(char* buffer, std::size_t size);

  [[nodiscard]] const std::string& name() const { return name_; }  // for messages, printable
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose_r(file); }
  };
  Input() = default;

  std::string_view text_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::string name_, problem_;
};

}  // namespace trace
