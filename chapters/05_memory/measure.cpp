// SPDX-License-Identifier: Apache-2.0
#include "measure.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <sstream>

#include "explain/text.h"
#include "profiler/memory.h"

namespace memory {
namespace {

using explain::size_text;

std::int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<std::int64_t>(tensor.nbytes()) : 0;
}

at::Tensor random_batch(const chapter::Options& options) {
  const chapter::Shape& s = options.shape;
  return at::randn({s.batch, s.seq, s.heads * s.head_dim},
                   at::TensorOptions().device(options.device).dtype(options.dtype));
}

AllocatorFacts allocator_facts(c10::DeviceIndex device, const std::function<void()>& work) {
  at::accelerator::resetPeakStats(device);
  const auto before = at::accelerator::getDeviceStats(device);
  work();
  const auto after = at::accelerator::getDeviceStats(device);
  constexpr std::size_t kAll = 0;  // small and large blocks together
  return {.allocated = after.allocated_bytes[kAll].peak,
          .requested = after.requested_bytes[kAll].peak,
          .reserved = after.reserved_bytes[kAll].peak,
          .inactive = after.inactive_split_bytes[kAll].current,
          .device_mallocs = after.num_device_alloc - before.num_device_alloc,
          .retries = after.num_alloc_retries,
          .failures = after.num_ooms};
}

// "20.00 GiB" out of LibTorch's own words for a CUDA device, "8796093022208 bytes" for a CPU.
std::string size_asked_for(const std::string& text) {
  for (const std::string before : {"Tried to allocate ", "you tried to allocate "}) {
    const std::size_t begin = text.find(before);
    if (begin == std::string::npos) continue;
    const std::size_t start = begin + before.size();
    const std::size_t unit = text.find(' ', start);
    if (unit == std::string::npos) return "";
    const std::size_t end = text.find_first_of(". \n", unit + 1);
    return text.substr(start, std::min(end, text.size()) - start);
  }
  return "";
}

// "1.50 GiB" -> 1610612736
std::optional<double> bytes_in(const std::string& size) {
  std::istringstream stream(size);
  double number = 0;
  std::string unit;
  if (!(stream >> number >> unit)) return std::nullopt;
  constexpr std::array<std::string_view, 5> kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
  for (std::size_t i = 0; i < kUnits.size(); ++i)
    if (unit == kUnits[i]) return std::ldexp(number, static_cast<int>(10 * i));
  return std::nullopt;
}

// What follows a number of bytes in LibTorch's words for CUDA: "and 1.50 GiB is reserved by PyTorch
// but unallocated".
constexpr std::string_view kUnused = " is reserved by PyTorch but unallocated";

// Whether an allocator that holds enough, but in pieces, is to blame: CUDA's words alone say it.
std::string fragmentation_text(const std::string& text, const std::string& asked) {
  const std::size_t end = text.find(kUnused);
  if (end == std::string::npos) return "";
  const std::size_t unit = text.rfind(' ', end - 1);
  const std::size_t start = unit == std::string::npos ? unit : text.rfind(' ', unit - 1);
  if (start == std::string::npos) return "";
  const std::string unused = text.substr(start + 1, end - start - 1);
  const auto has = bytes_in(unused), needs = bytes_in(asked);
  if (!has || !needs) return "";
  return *has >= *needs
             ? fmt::format(
                   " although the allocator holds {} unused, in pieces: "
                   "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True may help",
                   unused)
             : fmt::format(" (fragmentation is not to blame: the allocator holds {} unused)",
                           unused);
}

}  // namespace

Setup::Setup(const chapter::Options& options, const Attention& attention, std::int64_t layers,
             Mode mode)
    : model(options, attention, layers, mode), x(random_batch(options)) {
  if (mode == Mode::inference) return;
  target = random_batch(options);
  adam.emplace(model.weights());
}

Held Setup::held() const {
  Held held;
  for (const at::Tensor& weight : model.weights()) held.weights += bytes_of(weight);
  held.inputs = bytes_of(x) + bytes_of(target) + bytes_of(model.mask());
  held.optimizer_state = adam ? adam->state_bytes() : 0;
  return held;
}

Measured measure(const chapter::Options& options, Setup& setup, const Step& step) {
  step(setup);  // libraries take their workspaces in the first
  const c10::DeviceType device = options.device.type();
  Measured measured{.held = setup.held()};
  measured.peak = prof::peak_memory(device, [&] { step(setup); });
  measured.forward_peak = prof::peak_memory(device, [&] {
    const c10::AutoGradMode graph(setup.model.mode() != Mode::inference);
    (void)setup.model.forward(setup.x);
  });
  if (options.on_gpu()) {
    measured.allocator = allocator_facts(options.device.index(), [&] { step(setup); });
  }
  return measured;
}

std::string to_text(const Measured& measured) {
  std::string text;
  const auto line = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<28}{}\n", name, value);
  };
  text += "Allocator:\n";
  line("peak of a step", size_text(measured.peak) + " beyond what is held");
  if (!measured.allocator) {
    line("blocks", "malloc's: the bytes above are those asked for, to the byte");
    return text;
  }
  const AllocatorFacts& facts = *measured.allocator;
  line("allocated at the peak", size_text(facts.allocated) + " in blocks");
  line("asked for at the peak",
       fmt::format("{}: blocks are rounded up to 512 B and more, by {}", size_text(facts.requested),
                   size_text(facts.allocated - facts.requested)));
  line("reserved at the peak", fmt::format("{}, of it {} not in use", size_text(facts.reserved),
                                           size_text(facts.reserved - facts.allocated)));
  line("free inside of segments", size_text(facts.inactive) + " after the step");
  line("cudaMalloc in a warm step", fmt::format("{}", facts.device_mallocs));
  line("retries, failures", fmt::format("{}, {}", facts.retries, facts.failures));
  return text;
}

std::optional<std::string> out_of_memory_text(const std::exception& error, Variant variant,
                                              Mode mode, std::int64_t layers,
                                              const chapter::Options& options) {
  const auto* c10_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text =
      c10_error != nullptr ? c10_error->what_without_backtrace() : error.what();
  const std::string asked = size_asked_for(text);
  const bool is_out = dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr;
  if (!is_out && asked.empty()) return std::nullopt;
  const bool has_scores =
      variant == Variant::naive || variant == Variant::inplace || variant == Variant::sdpa_math;
  return fmt::format(
      "{}, {}, {} layer{}, S={}: out of memory, {} more {}{}: try {}{}a smaller --seq or --batch",
      name_of(variant), name_of(mode), layers, layers == 1 ? "" : "s", options.shape.seq,
      asked.empty() ? "some" : asked, asked.empty() ? "were asked for" : "was asked for",
      fragmentation_text(text, asked),
      has_scores ? "--variant flash, which makes no score matrix, " : "",
      mode == Mode::training && layers > 1 ? "--mode checkpoint, " : "");
}

}  // namespace memory
