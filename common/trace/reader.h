// SPDX-License-Identifier: Apache-2.0
//
// Reads a Kineto/Chrome trace, plain or gzip (told by its first bytes), from a file, from standard
// input ("-") or from memory.
//
//   trace::Trace trace = trace::read("trace.json.gz");
//   if (!trace.report.complete())
//     for (const std::string& warning : trace.report.warnings) std::cerr << warning << '\n';
//
// The reader frames event objects itself and hands batches of about 1 MB to simdjson; a batch that
// fails is retried event by event, and a bad event is repaired or dropped and counted. So memory is
// bounded (at most 64 bytes per event + 64 MB), files may be larger than 4 GiB, and a file
// that a strict parser refuses whole gives what can be saved.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string_view>

#include "trace/trace.h"

namespace trace {

// The file cannot be opened, or not one whole event could be read. what() is one sentence that says
// what to do; it holds no control characters.
class ReadError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[nodiscard]] Trace read(const std::filesystem::path& path);
[[nodiscard]] Trace read_text(std::string_view text);

}  // namespace trace
