// SPDX-License-Identifier: Apache-2.0
//
// The traces of a job's ranks as one file, which Perfetto, HTA and this project's own tools read.
//
//   const auto report = trace::merge({"rank0.json.gz", "rank1.json.gz"}, "all.json.gz", {});
//   for (const trace::MergedFile& file : report.files) std::cout << file.rank << file.shift_ns;
//   for (const std::string& warning : report.warnings) std::cerr << warning << '\n';
//
// Every event is passed on as it stands but for what tells the ranks apart: a process 1234 becomes
// "rank 0: 1234", and ids that join events (External id, correlation, flows, Python ids, ...) are
// moved so that none of one rank meets one of another. Times are moved onto one base, exact to the
// ns. Files are read twice, in batches: memory is what trace::read needs for the largest one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace trace {

// What makes times of different files comparable.
enum class Align : std::uint8_t {
  clock,       // nothing: all were taken from one clock (ranks on one host)
  start,       // all recordings begin together
  collective,  // a collective ends on all ranks at once: the median over them (other hosts)
  none,        // times as the files write them, whatever their bases
};

struct MergedFile {
  std::string name;  // printable
  std::int64_t rank = 0;
  std::string_view rank_source{};  // "distributedInfo", "its name", "its position"
  std::int64_t shift_ns = 0;       // added to its times since 1970
  std::int64_t id_offset = 0;      // added to its ids
  bool complete = true;            // false: damaged, what could be read was merged
};

struct MergeReport {
  std::vector<MergedFile> files;      // by rank
  std::vector<std::string> warnings;  // one sentence each, safe to print on a terminal

  [[nodiscard]] bool complete() const;
};

// Files that cannot be merged: two of one rank, one that is merged already, no collective to align
// by. what() is one sentence, safe for a terminal, that says what to do. Nothing was written.
class MergeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws MergeError, ReadError (reader.h), WriteError (files.h). `output` is gzip where its name
// ends in .gz; it is written whole or not at all.
MergeReport merge(const std::vector<std::filesystem::path>& inputs,
                  const std::filesystem::path& output, Align align);

}  // namespace trace
