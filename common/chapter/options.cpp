// SPDX-License-Identifier: Apache-2.0
#include "chapter/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>

#include "trace/key_averages.h"

namespace chapter {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

struct DtypeName {
  const char* name;
  c10::ScalarType dtype;
};
constexpr std::array kDtypes{DtypeName{"fp32", c10::kFloat}, DtypeName{"fp16", c10::kHalf},
                             DtypeName{"bf16", c10::kBFloat16}};

std::string name_of(c10::ScalarType dtype) {
  for (const auto& [name, type] : kDtypes) {
    if (type == dtype) return name;
  }
  return c10::toString(dtype);
}

// What a program may still take of main memory.
double available_main_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    double kilobytes = 0;
    file >> kilobytes >> unit;
    if (key == "MemAvailable:") return kilobytes * 1024.0;
  }
  return 0;  // unknown: let the allocator decide
}

[[noreturn]] void refuse(const Info& info, const std::string& what) {
  throw UsageError(fmt::format("{}: {}; see --help", info.name, what), 2);
}

// What the command line says; 0 and "" where it leaves the choice to the program.
struct Arguments {
  std::string device = "auto";
  std::string dtype;
  Shape shape;
};

c10::Device choose_device(const Info& info, const std::string& text, const prof::Machine& machine) {
  if (text == "cpu") return c10::kCPU;
  std::size_t index = 0;
  if (text == "auto") {
    for (; index < machine.gpus.size(); ++index) {
      if (machine.gpus[index].compute_capability() >= prof::Machine::kMinComputeCapability) {
        return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)};
      }
    }
    return c10::kCPU;
  }
  const std::string digits = text == "cuda" ? "0" : text.starts_with("cuda:") ? text.substr(5) : "";
  if (digits.empty() || digits.size() > 2 ||
      digits.find_first_not_of("0123456789") != digits.npos) {
    refuse(info, fmt::format("--device takes auto, cpu, cuda or cuda:N, not '{}'", text));
  }
  index = std::stoul(digits);
  if (machine.gpus.empty()) {
    const std::string why = machine.why_no_gpu();
    refuse(info, fmt::format("--device {}: {}", text,
                             why.empty() ? "there is no NVIDIA GPU here, use --device cpu" : why));
  }
  if (index >= machine.gpus.size()) {
    refuse(info, fmt::format("--device {}: this machine's GPUs are numbered 0 to {}", text,
                             machine.gpus.size() - 1));
  }
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

// Fills in what the command line left open, and says in one line what was chosen.
void choose_shape(Options& options, const Arguments& given) {
  const prof::Machine::Gpu* gpu =
      options.on_gpu() ? &options.machine.gpus[static_cast<std::size_t>(options.device.index())]
                       : nullptr;
  const Defaults defaults = defaults_for(gpu);
  const auto pick = [](std::int64_t asked, std::int64_t otherwise) {
    return asked > 0 ? asked : otherwise;
  };
  Shape& shape = options.shape;
  shape.batch = pick(given.shape.batch, defaults.shape.batch);
  shape.heads = pick(given.shape.heads, defaults.shape.heads);
  shape.kv_heads = pick(given.shape.kv_heads, shape.heads);
  shape.seq = pick(given.shape.seq, defaults.shape.seq);
  shape.head_dim = pick(given.shape.head_dim, defaults.shape.head_dim);
  if (shape.heads % shape.kv_heads != 0) {
    refuse(options.info,
           fmt::format("--kv-heads {} does not divide --heads {}", shape.kv_heads, shape.heads));
  }
  options.dtype = defaults.dtype;
  for (const auto& [name, type] : kDtypes) {
    if (given.dtype == name) options.dtype = type;
  }
  const bool as_default =
      shape.label() == defaults.shape.label() && options.dtype == defaults.dtype;
  options.choice = as_default ? defaults.reason : "as the command line says";
}

void refuse_what_cannot_fit(const Options& options) {
  const double needed = bytes_needed(options.info, options.shape, options.dtype);
  const double available = available_memory(options);
  if (available > 0 && needed > available) {
    refuse(options.info,
           fmt::format("this shape needs {:.1f} GiB and {} has {:.1f} GiB: try a smaller --seq or "
                       "--batch",
                       needed / kGiB, options.on_gpu() ? "the GPU" : "this machine",
                       available / kGiB));
  }
}

const char* default_sort_key(const Options& options) {
  if (options.info.is_about_memory)
    return options.on_gpu() ? "self_cuda_memory_usage" : "self_cpu_memory_usage";
  return options.on_gpu() ? "cuda_time_total" : "cpu_time_total";
}

// Known before the run, so that nobody waits for a result that cannot be kept.
void refuse_unwritable(const Options& options) {
  std::filesystem::path folder = std::filesystem::absolute(options.out / options.info.name);
  std::error_code error;
  while (!std::filesystem::exists(folder, error) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  if (!std::filesystem::is_directory(folder, error) || ::access(folder.c_str(), W_OK) != 0) {
    refuse(options.info, fmt::format("--out {}: {} is not a folder that can be written",
                                     options.out.string(), folder.string()));
  }
}

}  // namespace

std::string Shape::label() const {
  const std::string kv = kv_heads == heads ? "" : fmt::format("kv{}", kv_heads);
  return fmt::format("{}_{}{}_{}_{}", batch, heads, kv, seq, head_dim);
}

std::int64_t Options::steps() const {
  return schedule.skip_first +
         std::int64_t{schedule.repeat} * (schedule.wait + schedule.warmup + schedule.active);
}

std::filesystem::path Options::file(const std::string& extension) const {
  return out / info.name / fmt::format("{}_{}{}", shape.label(), info.variant, extension);
}

std::string Options::dtype_name() const {
  return name_of(dtype);
}

Defaults defaults_for(const prof::Machine::Gpu* gpu) {
  Defaults defaults;
  if (gpu == nullptr) {
    defaults.shape = {.batch = 2, .heads = 8, .kv_heads = 8, .seq = 512, .head_dim = 64};
    defaults.dtype = c10::kFloat;
    defaults.reason =
        "small enough for seconds on two CPU cores; fp32, which every CPU computes natively";
    return defaults;
  }
  defaults.shape = {.batch = 8, .heads = 16, .kv_heads = 16, .seq = 1024, .head_dim = 64};
  const bool has_bf16 = gpu->compute_capability() >= 80;
  defaults.dtype = has_bf16 ? c10::kBFloat16 : c10::kHalf;
  defaults.reason = has_bf16 ? "the blog's shape and dtype"
                             : "the blog's shape; fp16, since bf16 needs compute capability 8.0";
  // A quarter of the card: the desktop, other programs and the CUDA context want theirs as well.
  // Four score tensors is more than any variant keeps alive.
  Info most;
  most.score_tensors = 4;
  while (defaults.shape.batch > 1 && bytes_needed(most, defaults.shape, defaults.dtype) >
                                         static_cast<double>(gpu->total_memory) / 4) {
    defaults.shape.batch /= 2;
  }
  if (defaults.shape.batch < 8) {
    defaults.reason =
        fmt::format("batch {} instead of the blog's 8: the GPU has {:.0f} GiB{}",
                    defaults.shape.batch, static_cast<double>(gpu->total_memory) / kGiB,
                    has_bf16 ? "" : "; fp16, since bf16 needs compute capability 8.0");
  }
  return defaults;
}

std::optional<std::int64_t> number_in(const std::string& text, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && value >= 1 && value <= most ? std::optional(value) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> numbers_in(const std::string& list, std::int64_t most) {
  std::vector<std::int64_t> result;
  std::istringstream stream(list);
  for (std::string word; std::getline(stream, word, ',');) {
    const auto value = number_in(word, most);
    if (!value) return std::nullopt;
    result.push_back(*value);
  }
  return result.empty() || list.ends_with(',') ? std::nullopt : std::optional(result);
}

double available_memory(const Options& options) {
  if (!options.on_gpu()) return available_main_memory();
  const auto index = static_cast<std::size_t>(options.device.index());
  return static_cast<double>(options.machine.gpus[index].total_memory);
}

double bytes_needed(const Info& info, const Shape& shape, c10::ScalarType dtype) {
  const auto size = static_cast<double>(c10::elementSize(dtype));
  const auto rows = static_cast<double>(shape.batch) * static_cast<double>(shape.heads) *
                    static_cast<double>(shape.seq);
  const double tensors = 4 * rows * static_cast<double>(shape.head_dim);  // q, k, v and the output
  const auto scores =
      static_cast<double>(info.score_tensors) * rows * static_cast<double>(shape.seq);
  // What LibTorch itself takes: a CUDA context, cuBLAS's workspace, the reference's slices.
  constexpr double kFixed = 0.6 * kGiB;
  return kFixed + size * (tensors + scores);
}

Options parse_options(int argc, const char* const* argv, const Info& info) {
  return parse_options(argc, argv, info, prof::Machine::here());
}

Options parse_options(int argc, const char* const* argv, const Info& info,
                      const prof::Machine& machine) {
  Options options;
  options.info = info;
  options.machine = machine;
  Arguments given;

  CLI::App app{info.summary, info.name};
  app.get_formatter()->column_width(34);
  const auto size = CLI::Range(std::int64_t{1}, std::int64_t{1} << 40);
  const auto count = CLI::Range(0, 1'000'000);
  app.add_option("--device", given.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--batch", given.shape.batch, "B, sequences in the batch")->check(size);
  app.add_option("--heads", given.shape.heads, "H, query heads")->check(size);
  app.add_option("--kv-heads", given.shape.kv_heads, "Hkv, key and value heads (default: H)")
      ->check(size);
  app.add_option("--seq", given.shape.seq, "S, sequence length")->check(size);
  app.add_option("--head-dim", given.shape.head_dim, "D, numbers per head")->check(size);
  app.add_option("--dtype", given.dtype, "fp32, fp16 or bf16 (default: the device's best)")
      ->check(CLI::IsMember({"fp32", "fp16", "bf16"}));
  app.add_option("--wait", options.schedule.wait, "Steps before the profiler is on")
      ->check(count)
      ->capture_default_str();
  app.add_option("--warmup", options.schedule.warmup, "Steps with the profiler on, not recorded")
      ->check(count)
      ->capture_default_str();
  app.add_option("--active", options.schedule.active, "Steps that are recorded")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--repeat", options.schedule.repeat, "Cycles; the last one is shown")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_flag("--record-shapes", options.record_shapes, "Record the shapes of every op's inputs");
  app.add_flag("--profile-memory", options.profile_memory, "Record allocations and frees");
  app.add_flag("--with-flops", options.with_flops, "Count FLOPs; records shapes, too");
  app.add_flag("--graph", options.graph, "Write the op graph of one more forward, too");
  app.add_option("--sort-by", options.sort_by, "Sort the table by this key of PyTorch's")
      ->check([](const std::string& key) {
        try {
          (void)trace::Averages{}.sorted(key);
          return std::string();
        } catch (const trace::TableError& error) {
          return std::string(error.what());
        }
      });
  app.add_option("--row-limit", options.row_limit, "Rows of the table, -1 for all")
      ->check(CLI::Range(std::int64_t{-1}, std::int64_t{1'000'000}))
      ->capture_default_str();
  app.add_flag("--full-table", options.full_table, "PyTorch's table on a narrow terminal, too");
  app.add_option("--out", options.out, "Folder for trace and table")->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of the random inputs")->capture_default_str();

  CLI::Option* quiz = app.add_flag("--quiz", options.quiz,
                                   "Guess first: ask, run, then grade from this run's trace");
  app.add_option("--guess", options.guess,
                 "The same without a terminal: answers, comma between them")
      ->excludes(quiz);
  for (const auto& [name, help, values, is_flag] : info.extra_options) {
    std::string& value = options.extra[name] = values.empty() ? "" : values.front();
    if (is_flag) {
      app.add_flag_callback(
          name, [&value] { value = "yes"; }, help);
      continue;
    }
    CLI::Option* option = app.add_option(name, value, help);
    if (!values.empty()) option->check(CLI::IsMember(values))->capture_default_str();
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    throw UsageError(app.help(), 0);
  } catch (const CLI::ParseError& error) {
    refuse(info, error.what());
  }

  options.device = choose_device(info, given.device, machine);
  choose_shape(options, given);
  refuse_what_cannot_fit(options);
  refuse_unwritable(options);
  if (info.is_about_memory) options.profile_memory = true;
  if (options.sort_by.empty()) options.sort_by = default_sort_key(options);
  if (info.why_impossible) {
    if (const std::string why = info.why_impossible(options); !why.empty()) refuse(info, why);
  }
  return options;
}

}  // namespace chapter
