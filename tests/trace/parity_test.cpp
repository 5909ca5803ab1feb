// SPDX-License-Identifier: Apache-2.0
//
// The tables that torch.profiler 2.11 itself printed on an H200, from the files that it exported at
// the same time: tests/data/pytorch/<recording>.json.gz and <recording>.<call>.txt.
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "trace/key_averages.h"
#include "trace/reader.h"

namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Call {
  trace::AveragesOptions averages;
  trace::TableOptions table;
};

// What each recording's table was printed with.
Call call_of(const std::string& recording, const std::string& name) {
  const bool on_cpu = recording.starts_with("cpu_");
  if (name == "default") return {};
  if (name == "self_cpu") return {{}, {.sort_by = "self_cpu_time_total"}};
  if (name == "top")
    return {{}, {.sort_by = "count", .row_limit = 10, .top_level_events_only = true}};
  if (name == "mem" && on_cpu) return {{}, {.sort_by = "self_cpu_memory_usage", .row_limit = 20}};
  if (name == "mem")
    return {{},
            {.sort_by = "self_cuda_memory_usage", .row_limit = 20, .max_name_column_width = 25}};
  if (name == "shapes")
    return {{.group_by_input_shape = true},
            {.sort_by = on_cpu ? "cpu_time_total" : "cuda_time_total", .row_limit = 50}};
  REQUIRE(name.ends_with("_time_total"));
  return {{}, {.sort_by = name, .row_limit = 15}};
}

// Compares every pair in a folder; returns how many there were.
int compare(const fs::path& folder) {
  int pairs = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string file = entry.path().filename();
    if (!file.ends_with(".json.gz")) continue;
    const std::string recording = file.substr(0, file.size() - std::string(".json.gz").size());
    const trace::Trace trace = trace::read(entry.path());
    for (const fs::directory_entry& expected : fs::directory_iterator(folder)) {
      const std::string text = expected.path().filename();
      if (!text.starts_with(recording + ".") || !text.ends_with(".txt")) continue;
      const std::string name =
          text.substr(recording.size() + 1, text.size() - recording.size() - 5);
      const Call call = call_of(recording, name);
      INFO(text);
      CHECK(key_averages(trace, call.averages).table(call.table) == read_file(expected.path()));
      ++pairs;
    }
  }
  return pairs;
}

}  // namespace

TEST_CASE("every recorded table comes out identical") {
  CHECK(compare(PROF_TEST_DATA "/pytorch") >= 29);
}

TEST_CASE("tables of a folder of your own") {
  const char* folder = std::getenv("READTRACE_TRACES");
  if (folder == nullptr) SKIP("READTRACE_TRACES names no folder");
  CHECK(compare(folder) > 0);
}
