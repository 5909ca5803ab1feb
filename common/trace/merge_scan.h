// SPDX-License-Identifier: Apache-2.0
//
// What a merge has to know of a file before it can write the first event. Private to common/trace.
//
//   const RankFile file = scan("rank0.json.gz", 0);
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace trace {

struct RankFile {
  std::filesystem::path path;
  std::string name;          // printable
  std::size_t position = 0;  // on the command line
  std::optional<std::int64_t> rank_in_file, rank_in_name;
  std::int64_t base_ns = 0;                // 0: the file has none
  std::int64_t start_ns = 0;               // of the recording
  std::int64_t first_ns = 0, last_ns = 0;  // first start and last end of an event
  std::int64_t max_id = 0;

  struct Process {
    bool has_name = false, has_labels = false, has_sort_index = false;
  };
  std::map<std::string, Process> processes;                          // by the token of their pid
  std::map<std::string, std::vector<std::int64_t>> collective_ends;  // by name, in order of start
  std::vector<std::pair<std::string, std::string>> top_level;        // keys and JSON, small ones
  std::string devices;                                               // deviceProperties
  std::vector<std::string> warnings;
  bool complete = true;
};

// Throws ReadError, and MergeError (merge.h) for a file that is no rank's.
[[nodiscard]] RankFile scan(const std::filesystem::path& path, std::size_t position);

// "rank0", "rank-0", "rank_0" anywhere in a file's name, or "_0" before its first dot behind it.
[[nodiscard]] std::optional<std::int64_t> rank_in_name(const std::string& file_name);

}  // namespace trace
