// SPDX-License-Identifier: Apache-2.0
#include "chapter/report.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "chapter/guess.h"
#include "chapter/inputs.h"
#include "explain/finding.h"
#include "explain/plot.h"
#include "explain/quiz.h"
#include "explain/text.h"
#include "profiler/graph.h"
#include "trace/files.h"
#include "trace/key_averages.h"

namespace chapter {
namespace {

std::string cuda_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string device_text(const Options& options) {
  const prof::Machine& machine = options.machine;
  if (!options.on_gpu()) {
    return fmt::format("{}, {} threads", machine.cpu_name, machine.cpu_threads);
  }
  const auto& gpu = machine.gpus[static_cast<std::size_t>(options.device.index())];
  return fmt::format("{} (sm_{}{}, {} SMs, {}), driver {}", gpu.name, gpu.compute_major,
                     gpu.compute_minor, gpu.multiprocessors, explain::size_text(gpu.total_memory),
                     machine.driver_version);
}

std::string libtorch_text(const prof::Machine& machine) {
  return machine.libtorch_version + (machine.libtorch_cuda > 0
                                         ? " with CUDA " + cuda_text(machine.libtorch_cuda)
                                         : std::string(", CPU build"));
}

void print_header(const Options& options) {
  const Shape& s = options.shape;
  const prof::Schedule& schedule = options.schedule;
  // The loudest line comes first: whoever has a GPU wants to know that it stands idle.
  const std::string why = options.machine.why_no_gpu();
  if (!options.on_gpu() && !why.empty()) {
    fmt::print(stderr, "\n*** The GPU is not used: {}. ***\n\n", why);
  }
  fmt::print("{}: {}\n", options.info.name, options.info.summary);
  fmt::print("Device    {}\n", device_text(options));
  fmt::print("LibTorch  {}\n", libtorch_text(options.machine));
  const std::string kv = s.kv_heads == s.heads ? "" : fmt::format(", {} KV heads", s.kv_heads);
  fmt::print("Shape     [B={}, H={}, S={}, D={}]{}, {}, causal: {}\n", s.batch, s.heads, s.seq,
             s.head_dim, kv, options.dtype_name(), options.choice);
  fmt::print("Schedule  wait={}, warmup={}, active={}, repeat={}; three forwards before it\n",
             schedule.wait, schedule.warmup, schedule.active, schedule.repeat);
}

// Columns of the terminal, 0 where standard output is none.
std::size_t terminal_width() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0) return 0;
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 80;
}

std::string shortened(const std::string& name, std::size_t width) {
  return name.size() <= width ? name : name.substr(0, width - 3) + "...";
}

// The four columns that most questions need, as wide as the terminal.
std::string short_table(const Options& options, const trace::Averages& averages,
                        std::size_t width) {
  constexpr std::size_t kNumbers = 3 * 12;
  const std::size_t name_width = std::clamp<std::size_t>(width, 60, 100) - kNumbers;
  std::string text = fmt::format("{:<{}}{:>12}{:>12}{:>12}\n", "Name", name_width, "CPU total",
                                 options.on_gpu() ? "CUDA total" : "Self CPU", "# of Calls");
  std::int64_t shown = 0;
  for (const trace::Row* row : averages.sorted(options.sort_by)) {
    if (shown++ == options.row_limit) break;
    const double other = options.on_gpu() ? row->device_time_total : row->self_cpu_time_total;
    text +=
        fmt::format("{:<{}}{:>12}{:>12}{:>12}\n", shortened(row->name, name_width - 1), name_width,
                    explain::time_text(row->cpu_time_total), explain::time_text(other), row->count);
  }
  return text;
}

void print_table(const Options& options, const Recording& recording) {
  const std::size_t width = terminal_width();
  const bool fits = width == 0 || recording.table.find('\n') <= width;
  if (fits || options.full_table) {
    fmt::print("\n{}\n", recording.table);
    return;
  }
  fmt::print("\n{}", short_table(options, recording.averages, width));
  fmt::print("The terminal is too narrow for all columns: see {}, or add --full-table.\n\n",
             recording.table_file.string());
}

}  // namespace

int run(int argc, const char* const* argv, const Info& info,
        const std::function<void(const Options&)>& body) {
  try {
    Options options = parse_options(argc, argv, info);
    options.guesses = guesses_for(options);  // before anything is shown
    if (options.on_gpu()) at::accelerator::setDeviceIndex(options.device.index());
    print_header(options);
    body(options);
    fmt::print("Next: {}\n", options.guesses.empty()
                                 ? fmt::format("make {} ARGS=--quiz", info.name)
                                 : fmt::format("docs/{}.md explains each line", info.name));
    if (std::fflush(stdout) != 0) throw std::runtime_error("standard output cannot be written");
    return 0;
  } catch (const UsageError& error) {
    const bool is_help = error.exit_code == 0;
    fmt::print(is_help ? stdout : stderr, "{}{}", error.what(), is_help ? "" : "\n");
    return error.exit_code;
  } catch (const c10::OutOfMemoryError& error) {
    fmt::print(stderr, "{}: out of memory on the device: try a smaller --seq or --batch\n",
               info.name);
    return 1;
  } catch (const c10::Error& error) {
    // LibTorch's what() is a page of C++ frames; its first line says what happened.
    const std::string text = error.what_without_backtrace();
    fmt::print(stderr, "{}: {}\n", info.name, text.substr(0, text.find('\n')));
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

prof::ProfilerOptions profiler_options(const Options& options, const Error& error,
                                       std::int64_t peak_memory) {
  prof::ProfilerOptions profiler;
  profiler.schedule = options.schedule;
  profiler.activities = {prof::Activity::cpu};
  if (options.on_gpu()) profiler.activities.insert(prof::Activity::cuda);
  profiler.record_shapes = options.record_shapes;
  profiler.profile_memory = options.profile_memory;
  profiler.with_flops = options.with_flops;
  profiler.metadata = {{"chapter", options.info.name},
                       {"variant", options.info.variant},
                       {"shape", options.shape.label()},
                       {"dtype", options.dtype_name()},
                       {"device", device_text(options)},
                       {"libtorch", libtorch_text(options.machine)},
                       {"relative_error", fmt::format("{:.1e}", error.relative_l2)},
                       {"peak_memory_bytes", peak_memory}};
  return profiler;
}

Recording finish(const Options& options, prof::Profiler& profiler, const std::string& label,
                 const std::function<void()>& forward) {
  const trace::Trace& trace = profiler.stop();
  Recording recording;
  recording.averages = trace::key_averages(trace);
  recording.table =
      recording.averages.table({.sort_by = options.sort_by, .row_limit = options.row_limit});
  recording.table_file = options.file(".txt");
  recording.trace_file = options.file(".json.gz");
  profiler.export_chrome_trace(recording.trace_file);
  trace::write_file(recording.table_file, recording.table);
  if (options.graph) {
    recording.graph_file = options.file(".graph.json");
    prof::record_graph(recording.graph_file, [&] {
      const prof::record_function scope(label);
      forward();
    });
  }
  const trace::OpTree tree(trace);
  recording.facts = explain::facts(tree, label);
  recording.findings = explain::to_text(explain::findings(tree, recording.facts));
  if (!options.guesses.empty()) {
    recording.grades = explain::graded_text(explain::questions(options.info.name, options.on_gpu()),
                                            tree, recording.facts, options.guesses);
  }
  return recording;
}

void show(const Options& options, const Recording& recording) {
  print_table(options, recording);
  fmt::print("Trace     {}  (open it in https://ui.perfetto.dev)\nTable     {}\n",
             recording.trace_file.string(), recording.table_file.string());
  if (!recording.graph_file.empty()) {
    fmt::print("Graph     {0}  (build/readtrace graph {0} -o graph.svg)\n",
               recording.graph_file.string());
  }
  fmt::print("\n");
  fmt::print("{}{}", explain::to_text(recording.facts), recording.findings);
  if (!recording.grades.empty()) fmt::print("\n{}", recording.grades);
}

explain::Sweep new_sweep(const Options& options, const std::string& title, const std::string& x) {
  const Shape& s = options.shape;
  std::string shape;
  const auto add = [&](const char* letter, std::int64_t size) {
    if (x != letter) shape += fmt::format("{}{}={}", shape.empty() ? "" : ", ", letter, size);
  };
  add("B", s.batch);
  add("H", s.heads);
  if (s.kv_heads != s.heads) add("Hkv", s.kv_heads);
  add("S", s.seq);
  add("D", s.head_dim);
  return {.chapter = options.info.name,
          .title = title,
          .x = x,
          .facts = {{"shape", shape},
                    {"dtype", options.dtype_name()},
                    {"device", device_text(options)},
                    {"libtorch", "LibTorch " + libtorch_text(options.machine)}}};
}

std::optional<explain::SweepLimit> memory_limit(const Options& options) {
  const double bytes = available_memory(options);
  if (bytes <= 0) return std::nullopt;
  return explain::SweepLimit{options.on_gpu() ? "this device" : "free memory here", bytes};
}

void show(const Options& options, const explain::Sweep& sweep) {
  const std::filesystem::path file = options.file(".sweep.json"), plot = options.file(".sweep.svg");
  trace::write_file(file, explain::to_json(sweep));
  trace::write_file(plot, explain::plot_svg(sweep, {}));
  fmt::print("Sweep     {0}  (build/readtrace plot {0} --quantity {2})\nPlot      {1}\n",
             file.string(), plot.string(), sweep.quantities.back().key);
}

}  // namespace chapter
