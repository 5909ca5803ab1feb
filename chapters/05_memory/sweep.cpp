// SPDX-License-Identifier: Apache-2.0
#include "sweep.h"

#include <ATen/DeviceAccelerator.h>
#include <fmt/format.h>

#include <algorithm>

#include "chapter/report.h"
#include "explain/sweep_file.h"
#include "explain/text.h"
#include "predict.h"

namespace memory {
namespace {

using explain::size_text;

constexpr const char* kColumns = "{:<11}{:>8}{:>13}{:>13}{:>13}{:>10}{:>13}\n";

std::string bytes_text(double bytes) {
  constexpr double kMost = 9e18;
  return size_text(static_cast<std::int64_t>(std::min(bytes, kMost)));
}

// In the order of the quantities below.
std::vector<std::optional<double>> values_of(const Measured& measured) {
  const auto bytes = [](std::int64_t value) { return static_cast<double>(value); };
  std::vector<std::optional<double>> values{bytes(measured.peak), bytes(measured.forward_peak),
                                            bytes(measured.held.total() + measured.peak)};
  if (measured.allocator) values.emplace_back(bytes(measured.allocator->reserved));
  return values;
}

explain::Sweep new_record(const chapter::Options& options, const Asked& asked) {
  explain::Sweep record =
      chapter::new_sweep(options,
                         fmt::format("one step of {}, {} layer{}", name_of(asked.mode),
                                     asked.layers, asked.layers == 1 ? "" : "s"),
                         "S");
  const auto limit = chapter::memory_limit(options);
  record.quantities = {{"peak", "peak of a step beyond what is held", "bytes", limit},
                       {"forward", "peak of a forward beyond what is held", "bytes", limit},
                       {"total", "peak of a step with what is held", "bytes", limit}};
  if (options.on_gpu())
    record.quantities.push_back({"reserved", "reserved by the allocator", "bytes", limit});
  return record;
}

class Sweep {
 public:
  Sweep(const chapter::Options& options, const Asked& asked, const Step& step)
      : options_(options), asked_(asked), step_(step), record_(new_record(options, asked)) {}

  void run() {
    fmt::print("\nOne step of {}, {} layer{}, {}; peaks beyond what is held:\n",
               name_of(asked_.mode), asked_.layers, asked_.layers == 1 ? "" : "s",
               options_.dtype_name());
    fmt::print(fmt::runtime(kColumns), "", "S", "held", "forward", "step", "scores", "reserved");
    for (const Variant variant : asked_.variants) {
      const Attention attention(variant);
      std::vector<Point> peaks, totals;
      for (const std::int64_t seq : asked_.lengths) {
        const std::optional<Measured> measured = try_length(attention, seq);
        if (!measured) continue;
        peaks.push_back({seq, measured->peak});
        totals.push_back({seq, measured->held.total() + measured->peak});
      }
      say_growth(attention, peaks, totals);
    }
    fmt::print("{}scores: the step's peak in tensors [B, H, S, S] of the dtype\n", asked_.missing);
    chapter::show(named_after(asked_, options_), record_);
  }

 private:
  [[nodiscard]] chapter::Options with(std::int64_t seq) const {
    chapter::Options options = options_;
    options.shape.seq = seq;
    return options;
  }

  // A line of the table; nullopt, after a sentence, where it did not fit.
  std::optional<Measured> try_length(const Attention& attention, std::int64_t seq) {
    const chapter::Options options = with(seq);
    const Variant variant = attention.variant();
    const double needed = bytes_needed(variant, asked_.mode, asked_.layers, options);
    const double available = chapter::available_memory(options);
    if (!options.on_gpu() && available > 0 && needed > available) {
      const std::string why = fmt::format("not tried: it may need {} and {} are free",
                                          bytes_text(needed), bytes_text(available));
      fmt::print("{:<11}{:>8}  {}\n", name_of(variant), seq, why);
      record(variant, seq, {}, why);
      return std::nullopt;
    }
    try {
      const Measured measured = measure_length(attention, options);
      print(variant, options, measured);
      record(variant, seq, values_of(measured));
      return measured;
    } catch (const std::exception& error) {
      const auto sentence = out_of_memory_text(error, variant, asked_.mode, asked_.layers, options);
      if (!sentence) throw;
      fmt::print("{}\n", *sentence);
      record(variant, seq, {}, "out of memory");
      return std::nullopt;
    }
  }

  // The end that say_end() tries may be one of the lengths.
  void record(Variant variant, std::int64_t seq, std::vector<std::optional<double>> values,
              const std::string& reason = "") {
    const auto x = static_cast<double>(seq);
    const auto is_same = [&](const explain::SweepRow& row) {
      return row.line == name_of(variant) && row.x == x;
    };
    if (std::none_of(record_.rows.begin(), record_.rows.end(), is_same))
      record_.rows.push_back({name_of(variant), x, std::move(values), reason});
  }

  // Each on an empty cache: what an earlier one left would count as reserved.
  Measured measure_length(const Attention& attention, const chapter::Options& options) {
    if (options.on_gpu()) at::accelerator::emptyCache();
    Setup setup(options, attention, asked_.layers, asked_.mode);
    return measure(options, setup, step_);
  }

  void print(Variant variant, const chapter::Options& options, const Measured& measured) const {
    const double scores = static_cast<double>(measured.peak) / score_bytes(variant, options);
    fmt::print(fmt::runtime(kColumns), name_of(variant), options.shape.seq,
               size_text(measured.held.total()), size_text(measured.forward_peak),
               size_text(measured.peak), fmt::format("{:.2f}", scores),
               measured.allocator ? size_text(measured.allocator->reserved) : std::string("-"));
  }

  void say_growth(const Attention& attention, const std::vector<Point>& peaks,
                  const std::vector<Point>& totals) {
    const std::optional<Growth> fit = growth(totals);
    const std::optional<double> power = exponent(peaks);
    if (!fit || !power) return;
    const std::string name = name_of(attention.variant());
    fmt::print("  {}: the step's peak grows as S^{:.2f}\n", name, *power);
    const bool is_tested = totals.size() > 3;
    if (is_tested && fit->exact == 3) {
      return fmt::print("  {}: no parabola: a part of it depends on the size of tiles\n", name);
    }
    say_parabola(attention.variant(), *fit, totals.size());
    say_end(attention, *fit);
  }

  void say_parabola(Variant variant, const Growth& fit, std::size_t lengths) const {
    const std::int64_t scores = score_matrices(variant, asked_.mode, asked_.layers);
    const double of_scores = static_cast<double>(scores) * score_bytes(variant, with(1));
    fmt::print("  {}: with what is held {:.6g} S² {:+.0f} S {:+.0f} bytes, {}\n", name_of(variant),
               fit.square, fit.linear, fit.constant,
               lengths > 3
                   ? fmt::format("to the byte for the last {} of {} lengths", fit.exact, lengths)
                   : "through 3 lengths: a fourth would test it");
    if (scores == 0) return;
    fmt::print("  {}: of the bytes per S² {:g} are {} score matrices, {:.4g} are masks\n",
               name_of(variant), of_scores, scores, fit.square - of_scores);
  }

  // The first S that does not fit, and whether that is so.
  void say_end(const Attention& attention, const Growth& fit) {
    const Variant variant = attention.variant();
    const double available = chapter::available_memory(options_);
    const std::int64_t end = first_beyond(fit, available);
    const bool has_wall = score_matrices(variant, asked_.mode, asked_.layers) > 0;
    if (end == 0 || available <= 0) return;
    fmt::print("  {}: the first S beyond {}: {}", name_of(variant), bytes_text(available), end);
    if (!options_.on_gpu()) return fmt::print(", not tried: a CPU would swap\n");
    if (!has_wall) return fmt::print(", not tried: it would take long\n");
    fmt::print("; trying it:\n");
    (void)try_length(attention, end);
    at::accelerator::emptyCache();
  }

  const chapter::Options& options_;
  const Asked& asked_;
  const Step& step_;
  explain::Sweep record_;
};

}  // namespace

void sweep(const chapter::Options& options, const Asked& asked, const Step& step) {
  Sweep(options, asked, step).run();
}

}  // namespace memory
