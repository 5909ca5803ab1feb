// SPDX-License-Identifier: Apache-2.0
//
// The options that every chapter has, in one place, and what they default to on this machine.
//
//   const chapter::Options options = chapter::parse_options(argc, argv, kChapter);
//   const at::Device device = options.device;
//   const std::string label = options.shape.label();  // "8_16_1024_64"
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "profiler/device.h"
#include "profiler/schedule.h"

namespace chapter {

// An option that only one chapter has: one of a few words, or any text, or a flag.
struct ExtraOption {
  std::string name;  // "--backend"
  std::string help;
  std::vector<std::string> values;  // the first one is the default; none: any text, by default ""
  bool is_flag = false;             // takes no value: "yes" where it is given, else ""
};

// What a chapter says about itself, once, at the top of its main.cpp.
struct Info {
  std::string name;     // "01_naive": the program, its folder under traces/ and its page
  std::string variant;  // "naive": the last part of its files' names
  std::string summary;  // one line for --help
  // Live [B, H, S, S] tensors at the peak: what decides whether a shape fits. 0 = none is made.
  int score_tensors = 0;
  bool is_about_memory = false;  // profile_memory is on; the table is sorted by the device's memory
  std::vector<ExtraOption> extra_options{};
  // Why these options cannot be run on this machine, in one sentence; "" where they can.
  std::function<std::string(const struct Options&)> why_impossible{};
};

// Sizes of one attention call: q is [B, H, S, D], k and v are [B, Hkv, S, D].
struct Shape {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t seq = 0;
  std::int64_t head_dim = 0;

  // "8_16_1024_64", with "kv4" after the heads where Hkv differs: the file names' first part.
  [[nodiscard]] std::string label() const;
};

struct Options {
  Info info;
  prof::Machine machine;
  c10::Device device = c10::kCPU;
  Shape shape;
  c10::ScalarType dtype = c10::kFloat;
  std::string choice;  // one line: what was chosen for this machine, and why

  prof::Schedule schedule{.wait = 1, .warmup = 1, .active = 3, .repeat = 1};
  bool record_shapes = false;
  bool profile_memory = false;
  bool with_flops = false;
  bool graph = false;  // the op graph of one more forward, as an execution trace

  std::string sort_by;  // PyTorch's keys; the device's total time where there is a device
  std::int64_t row_limit = 15;
  bool full_table = false;  // PyTorch's table even where the terminal is too narrow for it
  std::filesystem::path out = "traces";
  std::uint64_t seed = 0;
  std::map<std::string, std::string> extra{};  // by name: extra.at("--backend")
  bool quiz = false;                           // ask the chapter's questions first
  std::string guess;                           // or grade these answers: "7,softmax,yes"
  std::vector<std::string> guesses{};          // what was answered, either way

  // Iterations of the profiled loop: all cycles of the schedule.
  [[nodiscard]] std::int64_t steps() const;
  // traces/01_naive/8_16_1024_64_naive + `extension`
  [[nodiscard]] std::filesystem::path file(const std::string& extension) const;
  [[nodiscard]] bool on_gpu() const { return device.is_cuda(); }
  // The dtype as the command line spells it: fp32, fp16, bf16.
  [[nodiscard]] std::string dtype_name() const;
};

// A bad command line. The message is for stderr, exit_code is 2; --help has exit code 0.
class UsageError : public std::runtime_error {
 public:
  UsageError(const std::string& message, int code) : std::runtime_error(message), exit_code(code) {}
  int exit_code;
};

// Shape and dtype for a device: the blog's where it can hold them, less on smaller ones, and on the
// CPU (`gpu` null) what two cores do in seconds. `reason` says which and why.
struct Defaults {
  Shape shape;
  c10::ScalarType dtype = c10::kFloat;
  std::string reason;
};
[[nodiscard]] Defaults defaults_for(const prof::Machine::Gpu* gpu);

// Bytes that a chapter needs on the device for this shape: inputs, output and score tensors. A
// double, since hostile sizes overflow 64 bits.
[[nodiscard]] double bytes_needed(const Info& info, const Shape& shape, c10::ScalarType dtype);

// Bytes that there are for that: all of a GPU's memory, and what a program may still take of main
// memory; 0 where that is not known.
[[nodiscard]] double available_memory(const Options& options);

// What a chapter's own option holds: a number from 1 to `most`, or several with commas between, in
// their order ("17,400"). nullopt for any other text.
[[nodiscard]] std::optional<std::int64_t> number_in(const std::string& text, std::int64_t most);
[[nodiscard]] std::optional<std::vector<std::int64_t>> numbers_in(const std::string& list,
                                                                  std::int64_t most);

// Reads the command line. Throws UsageError for bad values (nothing is written then), and for
// --help.
[[nodiscard]] Options parse_options(int argc, const char* const* argv, const Info& info);
// The same for a given machine, as the tests do.
[[nodiscard]] Options parse_options(int argc, const char* const* argv, const Info& info,
                                    const prof::Machine& machine);

}  // namespace chapter
