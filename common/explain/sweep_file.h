// SPDX-License-Identifier: Apache-2.0
//
// A sweep: what a program measured over a range of sizes, as a small JSON file. plot.h draws it.
//
//   explain::Sweep sweep{.chapter = "05_memory", .title = "one step of training, 2 layers"};
//   sweep.quantities = {{.key = "peak", .title = "peak of a step", .unit = "bytes"}};
//   sweep.rows = {{.line = "naive", .x = 512, .values = {91226112.0}},
//                 {.line = "naive", .x = 65536, .reason = "out of memory"}};
//   trace::write_file("05_memory.sweep.json", explain::to_json(sweep));
//   sweep = explain::read_sweep("05_memory.sweep.json");
//
// Numbers lie between 0 and 1e18. Units: "bytes" and "us" are written with their prefixes (1.5 GiB,
// 20 ms), "ratio" without a unit, and any other as it stands ("TFLOP/s").
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace explain {

struct SweepLimit {
  std::string label;  // "this device"
  double value = 0;   // in the quantity's unit
};

struct SweepQuantity {
  std::string key;    // "peak": its name in the file and on the command line
  std::string title;  // "peak of a step beyond what is held"
  std::string unit;
  std::optional<SweepLimit> limit{};  // beyond it nothing can be
};

// What one line of the plot has at one x.
struct SweepRow {
  std::string line;  // "naive"
  double x = 0;
  std::vector<std::optional<double>> values{};  // in the order of the quantities; fewer: none
  std::string reason{};                         // why one is missing: "out of memory"
};

struct SweepFact {
  std::string name, value;  // "device", "NVIDIA H200": the plot shows the values
};

struct Sweep {
  std::string chapter, title;
  std::string x = "S";  // what x is
  std::vector<SweepFact> facts{};
  std::vector<SweepQuantity> quantities{};
  std::vector<SweepRow> rows{};  // a line and an x at most once
};

// A line of the file for each row. Throws std::invalid_argument with a sentence where the sweep is
// none that could be read back.
[[nodiscard]] std::string to_json(const Sweep& sweep);

// Plain or gzip. Throws trace::ReadError with a sentence where the file is no sweep. Texts are as
// the file has them: xml_text() or trace::printable() before they are shown.
[[nodiscard]] Sweep read_sweep(const std::filesystem::path& path);
[[nodiscard]] Sweep parse_sweep(std::string_view text);

}  // namespace explain
