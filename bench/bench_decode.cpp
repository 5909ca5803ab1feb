// SPDX-License-Identifier: Apache-2.0
//
// decode of chapter 04's library beside LibTorch's backends: one new token for each sequence, bf16
// on a GPU, fp32 on a CPU.
//
//   bench_decode build/libattention_kernels.so [--json FILE] [--rounds N]
//
// All of a shape's contenders take turns, and the median counts: of the times, and of decode's
// speed over that of the fastest backend, round by round. Before each call something else is read
// that is several times as large as the L2 cache, because a model does that, too; read and not
// written, or the call would pay for writing it back. The host is ahead of the GPU meanwhile: what
// is timed is the GPU's work, not the launches.
#include <ATen/DeviceAccelerator.h>
#include <ATen/Functions.h>
#include <c10/core/Event.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "chapter/backends.h"
#include "op.h"
#include "profiler/device.h"
#include "versions.h"

namespace {

using at::Tensor;

struct Shape {
  std::int64_t B, H, Hkv, T, D;
};

constexpr Shape kGpuShapes[] = {
    // one key head for each query head
    {1, 32, 32, 1024, 128},
    {1, 32, 32, 4096, 128},
    {1, 32, 32, 16384, 128},
    {16, 32, 32, 4096, 128},
    {64, 32, 32, 8192, 128},
    {1, 16, 16, 4096, 64},
    {16, 16, 16, 4096, 64},
    // groups of 4, 8 and 16 query heads
    {1, 32, 8, 256, 128},
    {1, 32, 8, 1024, 128},
    {1, 32, 8, 4096, 128},
    {1, 32, 8, 16384, 128},
    {1, 32, 8, 32768, 128},
    {8, 32, 8, 4096, 128},
    {8, 32, 8, 16384, 128},
    {12, 32, 8, 4096, 128},
    {64, 32, 8, 1024, 128},
    {64, 32, 8, 4096, 128},
    {1, 64, 8, 8192, 128},
    {32, 64, 8, 8192, 128},
    {16, 32, 4, 8192, 64},
    {1, 32, 2, 16384, 128},
};
constexpr Shape kCpuShapes[] = {{1, 8, 8, 4096, 64}, {4, 8, 8, 4096, 64}, {4, 8, 2, 4096, 64}};

double bytes_of(const Shape& s, bool on_gpu) {
  return 2.0 * static_cast<double>(s.B * s.Hkv * s.T * s.D) * (on_gpu ? 2 : 4);
}

std::string text_of(const Shape& s) {
  return fmt::format("{}, {}/{}, {}, {}", s.B, s.H, s.Hkv, s.T, s.D);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Microseconds of one call.
double time_of(const std::function<void()>& run, bool on_gpu) {
  static const Tensor others =
      at::zeros({std::int64_t{on_gpu ? 256 : 64} << 20},
                on_gpu ? at::TensorOptions().device(at::kCUDA) : at::TensorOptions());
  const Tensor sum = others.sum();
  if (!on_gpu) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
        .count();
  }
  static c10::Event begin(c10::kCUDA, c10::EventFlag::BACKEND_DEFAULT);  // with timing
  static c10::Event end(c10::kCUDA, c10::EventFlag::BACKEND_DEFAULT);
  const c10::Stream stream = at::accelerator::getCurrentStream(at::accelerator::getDeviceIndex());
  begin.record(stream);
  run();
  end.record(stream);
  end.synchronize();
  return begin.elapsedTime(end) * 1e3;
}

using Contenders = std::vector<std::pair<std::string, std::function<void()>>>;

// What a backend cannot do is no contender.
void add_if_it_runs(Contenders& contenders, std::string name, std::function<void()> run) {
  struct Silence : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  } silence;
  const c10::WarningUtils::WarningHandlerGuard guard(&silence);
  try {
    run();
    contenders.emplace_back(std::move(name), std::move(run));
  } catch (const c10::Error&) {
  }
}

constexpr std::int64_t kPageSize = 16;

// The same keys and values [B, Hkv, T, D] in pages [pages, Hkv, page size, D] that lie anywhere,
// and the table [B, T / page size] that says where.
std::pair<std::pair<Tensor, Tensor>, Tensor> paged(const Tensor& k, const Tensor& v) {
  const std::int64_t B = k.size(0), Hkv = k.size(1), per_sequence = k.size(2) / kPageSize;
  const Tensor order = at::randperm(B * per_sequence, k.options().dtype(at::kLong));
  const auto scattered = [&](const Tensor& x) {
    const Tensor in_order = x.view({B, Hkv, per_sequence, kPageSize, x.size(3)}).transpose(1, 2);
    Tensor pages = at::empty({B * per_sequence, Hkv, kPageSize, x.size(3)}, x.options());
    return pages.index_copy_(0, order, in_order.flatten(0, 1));
  };
  return {{scattered(k), scattered(v)}, order.to(at::kInt).view({B, per_sequence})};
}

Contenders contenders_of(const kernels::DecodeOp& decode, const Shape& s, bool on_gpu) {
  const auto like = on_gpu ? at::TensorOptions().device(at::kCUDA).dtype(at::kBFloat16)
                           : at::TensorOptions().dtype(at::kFloat);
  const Tensor q = at::randn({s.B, s.H, 1, s.D}, like);
  const Tensor k = at::randn({s.B, s.Hkv, s.T, s.D}, like), v = at::randn_like(k);
  const Tensor lengths = at::full({s.B}, s.T, like.dtype(at::kInt));
  const bool grouped = s.H != s.Hkv;
  Contenders result;
  for (const chapter::Backend backend : chapter::kBackends) {
    // math makes fp32 copies of all of it.
    if (backend == chapter::Backend::math && bytes_of(s, on_gpu) > 2e9) continue;
    add_if_it_runs(result, chapter::name_of(backend), [=] {
      const chapter::Pinned pinned(backend);
      at::scaled_dot_product_attention(q, k, v, {}, 0.0, false, {}, grouped);
    });
  }
  if (grouped) {
    const auto expanded = [=](const Tensor& x) {
      return x.unsqueeze(2).expand({s.B, s.Hkv, s.H / s.Hkv, s.T, s.D}).flatten(1, 2);
    };
    add_if_it_runs(result, "expanded", [=] {
      const chapter::Pinned pinned(chapter::Backend::flash);
      at::scaled_dot_product_attention(q, expanded(k), expanded(v));
    });
  }
  result.emplace_back("decode", [=] { decode(q, k, v, lengths); });
  const auto [pages, table] = paged(k, v);
  result.emplace_back("paged", [=, pages = pages, table = table] {
    decode(q, pages.first, pages.second, lengths, table);
  });
  for (const auto& [name, run] : result) run();
  return result;
}

constexpr const char* kColumns[] = {"math",  "efficient", "flash", "expanded",
                                    "cudnn", "decode",    "paged"};

struct Row {
  std::map<std::string, double> us;
  double ratio = 0;  // of decode's speed to that of the fastest of the others
  double paged = 0;  // of its speed from pages to that from one piece
  std::string fastest;
};

Row measure(const Contenders& contenders, int rounds, bool on_gpu) {
  std::map<std::string, std::vector<double>> times;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const auto& [name, run] =
          contenders[(i + static_cast<std::size_t>(round)) % contenders.size()];
      times[name].push_back(time_of(run, on_gpu));
    }
  }
  Row row;
  for (const auto& [name, values] : times) {
    row.us[name] = median(values);
    if (name != "decode" && name != "paged" &&
        (row.fastest.empty() || row.us[name] < row.us[row.fastest])) {
      row.fastest = name;
    }
  }
  const auto ratio = [&](const std::string& of, const std::string& to) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < times[of].size(); ++i)
      ratios.push_back(times[to][i] / times[of][i]);
    return median(ratios);
  };
  row.ratio = ratio("decode", row.fastest);
  row.paged = ratio("paged", "decode");
  return row;
}

// Over shapes.
struct Ratios {
  double logs = 0, count = 0, least = std::numeric_limits<double>::infinity();

  void add(double ratio) {
    logs += std::log(ratio);
    count += 1;
    least = std::min(least, ratio);
  }
  [[nodiscard]] double mean() const { return std::exp(logs / count); }
};

struct Options {
  std::string library, json;
  int rounds = 21;
};

std::optional<Options> options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--json" && has_value) {
      options.json = argv[++i];
    } else if (argument == "--rounds" && has_value) {
      const std::string_view value = argv[++i];
      const auto [end, error] =
          std::from_chars(value.data(), value.data() + value.size(), options.rounds);
      if (error != std::errc() || end != value.data() + value.size() || options.rounds < 1)
        return {};
    } else if (options.library.empty() && !argument.starts_with("-")) {
      options.library = argument;
    } else {
      return {};
    }
  }
  if (options.library.empty()) return {};
  return options;
}

std::string json_of(const Shape& s, const Row& row, double bytes) {
  std::string us;
  for (const auto& [name, time] : row.us) {
    us += fmt::format("{}\"{}\": {:.2f}", us.empty() ? "" : ", ", name, time);
  }
  return fmt::format(
      "  \"{}_{}_{}_{}_{}\": {{\"bytes\": {:.0f}, \"us\": {{{}}}, \"gb_per_s\": {:.0f}, "
      "\"fastest_backend\": \"{}\", \"speed_to_fastest\": {:.3f}, \"paged_to_one_piece\": {:.3f}}}",
      s.B, s.H, s.Hkv, s.T, s.D, bytes, us, bytes / row.us.at("decode") * 1e-3, row.fastest,
      row.ratio, row.paged);
}

void print_head(const prof::Machine& machine, const std::string& device, int rounds) {
  fmt::print("{}, driver {}, LibTorch {}; median of {} rounds, cold L2 cache; us\n", device,
             machine.driver_version.empty() ? "none" : machine.driver_version,
             machine.libtorch_version, rounds);
  fmt::print("{:<22}{:>8}", "B, H/Hkv, T, D", "MB");
  for (const char* column : kColumns) fmt::print("{:>10}", column);
  fmt::print("{:>8}{:>12}{:>12}\n", "GB/s", "of fastest", "paged");
}

void print_row(const Shape& shape, const Row& row, double bytes) {
  fmt::print("{:<22}{:>8.0f}", text_of(shape), bytes * 1e-6);
  for (const char* column : kColumns) {
    const auto found = row.us.find(column);
    fmt::print("{:>10}", found == row.us.end() ? "-" : fmt::format("{:.1f}", found->second));
  }
  fmt::print("{:>8.0f}{:>12.3f}{:>12.3f}\n", bytes / row.us.at("decode") * 1e-3, row.ratio,
             row.paged);
  std::fflush(stdout);
}

bool written(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (file.flush()) return true;
  fmt::print(stderr, "{} could not be written\n", path);
  return false;
}

int run(const kernels::DecodeOp& decode, const Options& options) {
  const prof::Machine machine = prof::Machine::here();
  const bool on_gpu = kernels::kHaveCuda && !machine.gpus.empty();
  const std::string device = on_gpu ? machine.gpus.front().name : machine.cpu_name;
  std::vector<Shape> shapes(std::begin(kGpuShapes), std::end(kGpuShapes));
  if (!on_gpu) shapes.assign(std::begin(kCpuShapes), std::end(kCpuShapes));

  print_head(machine, device, options.rounds);
  std::string json;
  Ratios to_fastest, paged;
  for (const Shape& shape : shapes) {
    const double bytes = bytes_of(shape, on_gpu);
    const Row row = measure(contenders_of(decode, shape, on_gpu), options.rounds, on_gpu);
    print_row(shape, row, bytes);
    json += (json.empty() ? "" : ",\n") + json_of(shape, row, bytes);
    to_fastest.add(row.ratio);
    paged.add(row.paged);
  }
  fmt::print(
      "\nspeed of decode to that of the fastest backend of each shape: {:.3f} in the geometric "
      "mean, {:.3f} at least\nspeed from pages of {} keys to that from one piece: {:.3f} in the "
      "geometric mean, {:.3f} at least\nexpanded: flash, with K and V copied for each query head "
      "in every call\n",
      to_fastest.mean(), to_fastest.least, kPageSize, paged.mean(), paged.least);
  if (options.json.empty()) return 0;
  const std::string text = fmt::format(
      "{{\"device\": \"{}\", \"libtorch\": \"{}\", \"driver\": \"{}\", \"rounds\": {},\n "
      "\"speed_to_fastest\": {{\"geometric_mean\": {:.3f}, \"least\": {:.3f}}},\n "
      "\"paged_to_one_piece\": {{\"geometric_mean\": {:.3f}, \"least\": {:.3f}}},\n \"shapes\": "
      "{{\n{}\n }}}}\n",
      device, machine.libtorch_version, machine.driver_version, options.rounds, to_fastest.mean(),
      to_fastest.least, paged.mean(), paged.least, json);
  return written(options.json, text) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Options> options = options_of(argc, argv);
  if (!options.has_value()) {
    fmt::print(stderr, "usage: bench_decode libattention_kernels.so [--json FILE] [--rounds N]\n");
    return 2;
  }
  try {
    return run(kernels::DecodeOp::load(options->library), *options);
  } catch (const std::runtime_error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 3;
  }
}
