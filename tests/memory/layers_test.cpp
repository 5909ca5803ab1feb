// SPDX-License-Identifier: Apache-2.0
//
// Bytes on a CPU are exact, so they are asserted exactly: what each variant of attention holds at
// the peak of its forward, keeps for backward, and holds at the peak of backward.
#include "layers.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <c10/core/Allocator.h>
#include <c10/core/GradMode.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <stdexcept>

#include "adam.h"
#include "checkpoint.h"
#include "measure.h"
#include "predict.h"

using Catch::Matchers::ContainsSubstring;
using memory::Mode;
using memory::Variant;

namespace {

constexpr chapter::Shape kShape{.batch = 1, .heads = 4, .kv_heads = 4, .seq = 128, .head_dim = 16};
constexpr std::int64_t kRow = 4 * 1 * 4 * 128;  // bytes of a float per head and query
constexpr std::int64_t SD = kRow * 16;          // of [B, H, S, D]
constexpr std::int64_t SS = kRow * 128;         // of [B, H, S, S]
constexpr std::int64_t kScalar =
    8 + 4;  // the scale, as a double and as a float while aten::mul runs

chapter::Options options_of(chapter::Shape shape = kShape) {
  chapter::Options options;
  options.info.name = "test";
  options.shape = shape;
  return options;
}

// What is allocated now, and the most that was, since it was made.
class Meter : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*pointer*/, std::int64_t bytes, std::size_t /*allocated*/,
                         std::size_t /*reserved*/, c10::Device /*device*/) override {
    now += bytes;
    peak = std::max(peak, now);
  }
  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }
  std::int64_t now = 0, peak = 0;
};

struct Bytes {
  std::int64_t forward = 0, kept = 0, backward = 0;  // beyond q, k, v, mask and dL/dout
};

Bytes bytes_of(Variant variant, Mode mode) {
  const chapter::Options options = options_of();
  const memory::Attention attention(variant);
  const at::Tensor mask = memory::mask_for(variant, options);
  const auto leaf = [&] {
    return at::randn({kShape.batch, kShape.heads, kShape.seq, kShape.head_dim})
        .set_requires_grad(mode != Mode::inference);
  };
  const at::Tensor q = leaf(), k = leaf(), v = leaf(), gradient = at::randn_like(q.detach());
  const c10::AutoGradMode graph(mode != Mode::inference);
  (void)attention(q, k, v, mask);  // what is allocated once per process does not count
  const auto meter = std::make_shared<Meter>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
  at::Tensor out = attention(q, k, v, mask);
  Bytes bytes{.forward = meter->peak, .kept = meter->now};
  if (mode == Mode::inference) return bytes;
  meter->peak = meter->now;
  out.backward(gradient);
  bytes.backward = meter->peak;
  return bytes;
}

void step(memory::Setup& s) {
  const at::Tensor y = s.model.forward(s.x);
  if (!s.adam) return;
  at::mse_loss(y, s.target).backward();
  s.adam->step();
}

memory::Measured measured(Variant variant, Mode mode, std::int64_t layers) {
  const chapter::Options options = options_of();
  const memory::Attention attention(variant);
  const c10::AutoGradMode graph(mode != Mode::inference);
  memory::Setup setup(options, attention, layers, mode);
  return memory::measure(options, setup, step);
}

struct Case {
  Variant variant;
  Mode mode;
};

std::int64_t peak(Variant variant, Mode mode, std::int64_t layers) {
  return measured(variant, mode, layers).peak;
}

}  // namespace

TEST_CASE("Masking in place lowers the peak by nothing") {
  const Bytes naive = bytes_of(Variant::naive, Mode::inference);
  CHECK(naive.forward == 2 * SS + kScalar);
  CHECK(naive.kept == SD);
  CHECK(bytes_of(Variant::inplace, Mode::inference).forward == naive.forward);
  for (const Variant variant : {Variant::naive, Variant::inplace}) {
    const Bytes bytes = bytes_of(variant, Mode::training);
    CHECK(bytes.forward == 2 * SS + kScalar);
    CHECK(bytes.kept == SS + SD);
    CHECK(bytes.backward == 3 * SS + 2 * SD);
  }
}

TEST_CASE("Flash keeps a number per row instead of a score matrix") {
  const Bytes bytes = bytes_of(Variant::flash, Mode::training);
  CHECK(bytes.kept == SD + kRow);  // the output and the log-sum-exp
  CHECK(bytes_of(Variant::flash, Mode::inference).kept == SD);
}

TEST_CASE("SDPA's math keeps scaled copies of q and k, and the softmax") {
  const Bytes bytes = bytes_of(Variant::sdpa_math, Mode::training);
  CHECK(bytes.kept == SS + 3 * SD);
}

TEST_CASE("What is held is what weights, inputs and Adam's state take") {
  const memory::Held held = measured(Variant::naive, Mode::training, 3).held;
  constexpr std::int64_t kWeight = 4 * 64 * 64;
  CHECK(held.weights == 3 * 4 * kWeight);
  CHECK(held.optimizer_state == 2 * held.weights);
  CHECK(held.inputs == 2 * SD + 128 * 128);  // x, target, mask
  const memory::Held inference = measured(Variant::flash, Mode::inference, 1).held;
  CHECK(inference.optimizer_state == 0);
  CHECK(inference.inputs == SD);
}

TEST_CASE("One checkpointed layer gains nothing, several do") {
  CHECK(peak(Variant::naive, Mode::checkpoint, 1) >= peak(Variant::naive, Mode::training, 1));
  const std::int64_t one = peak(Variant::naive, Mode::checkpoint, 1);
  for (const std::int64_t layers : {2, 4}) {
    const std::int64_t with = peak(Variant::naive, Mode::checkpoint, layers);
    const std::int64_t without = peak(Variant::naive, Mode::training, layers);
    CHECK(with < without - (layers - 1) * SS);
    CHECK(with < one + (layers - 1) * SS);  // a layer more costs less than a score matrix
  }
}

TEST_CASE("A checkpoint changes no gradient, dropout and all, to the last digit") {
  const auto gradients = [](Mode mode) {
    const chapter::Options options = options_of({2, 2, 1, 33, 8});
    const memory::Attention attention(Variant::naive);
    memory::Setup setup(options, attention, 3, mode);
    at::Generator generator = at::globalContext().defaultGenerator(c10::kCPU);
    generator.set_current_seed(7);
    const at::Tensor y = setup.model.forward(setup.x);
    at::mse_loss(y, setup.target).backward();
    std::vector<at::Tensor> result{y.detach(), at::rand({4})};  // where the generator is after it
    for (const at::Tensor& weight : setup.model.weights()) result.push_back(weight.grad());
    return result;
  };
  const auto with = gradients(Mode::checkpoint), without = gradients(Mode::training);
  REQUIRE(with.size() == 2 + 3 * 4);
  for (std::size_t i = 0; i < with.size(); ++i) {
    CAPTURE(i);
    REQUIRE(with[i].defined());
    CHECK(at::equal(with[i], without[i]));
    CHECK(with[i].abs().max().item<double>() > 0);
  }
}

TEST_CASE("Adam is the paper's") {
  at::Tensor weight = at::full({1}, 2.0, at::kDouble).set_requires_grad(true);
  memory::Adam adam({weight});
  double w = 2, m = 0, v = 0;
  for (int t = 1; t <= 3; ++t) {
    weight.square().sum().backward();
    adam.step();
    const double g = 2 * w;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    w -= 1e-3 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
    CHECK(weight.item<double>() == Catch::Approx(w).epsilon(1e-12));
    CHECK_FALSE(weight.grad().defined());
  }
}

// Peaks of what the formula says at three lengths, and its first coefficient. On a GPU blocks are
// larger than what was asked for, but for sizes like these.
void check_matrices(chapter::Options options, Variant variant, Mode mode, std::int64_t layers,
                    std::initializer_list<std::int64_t> lengths, double mask_bytes) {
  std::vector<memory::Point> points;
  const memory::Attention attention(variant);
  const c10::AutoGradMode graph(mode != Mode::inference);
  for (const std::int64_t seq : lengths) {
    options.shape.seq = seq;
    memory::Setup setup(options, attention, layers, mode);
    const memory::Measured result = memory::measure(options, setup, step);
    points.push_back({seq, result.held.total() + result.peak});
  }
  const auto growth = memory::growth(points);
  REQUIRE(growth);
  CHECK(growth->exact == points.size());
  const std::int64_t matrices = memory::score_matrices(variant, mode, layers, options.on_gpu());
  options.shape.seq = 1;
  CHECK(growth->square ==
        Catch::Approx(static_cast<double>(matrices) * memory::score_bytes(variant, options) +
                      mask_bytes));
  const std::int64_t end = memory::first_beyond(*growth, 1e9);
  CHECK(growth->at(static_cast<double>(end)) > 1e9);
  CHECK(growth->at(static_cast<double>(end - 1)) <= 1e9);
  CHECK_FALSE(memory::growth(std::span(points).first(2)));
}

TEST_CASE("Peaks are a quadratic in S, to the byte, and its end is found") {
  constexpr double kMask = 1;  // a byte for each S²
  const auto mode = GENERATE(Mode::inference, Mode::training, Mode::checkpoint);
  const auto variant = GENERATE(Variant::naive, Variant::inplace);
  CAPTURE(memory::name_of(mode), memory::name_of(variant));
  check_matrices(options_of(), variant, mode, 2, {256, 384, 512, 640},
                 kMask);  // below, another peak is higher
}

TEST_CASE("The same on a GPU, where backward holds one score matrix more") {
  if (!at::hasCUDA()) SKIP("no GPU");
  chapter::Options options =
      options_of({.batch = 8, .heads = 16, .kv_heads = 16, .seq = 512, .head_dim = 64});
  options.device = c10::Device(c10::kCUDA, 0);
  options.dtype = c10::kBFloat16;
  const auto mode = GENERATE(Mode::inference, Mode::training, Mode::checkpoint);
  const auto variant = GENERATE(Variant::naive, Variant::inplace);
  CAPTURE(memory::name_of(mode), memory::name_of(variant));
  check_matrices(options, variant, mode, 2, {512, 1024, 1536, 2048}, 1);
}

TEST_CASE("Exponents of powers, and none where there are none") {
  const std::vector<memory::Point> square{{10, 100}, {20, 400}, {40, 1600}};
  CHECK(memory::exponent(square).value() == Catch::Approx(2));
  const std::vector<memory::Point> line{{10, 30}, {20, 60}};
  CHECK(memory::exponent(line).value() == Catch::Approx(1));
  CHECK_FALSE(memory::exponent(std::vector<memory::Point>{{10, 100}}));
  CHECK_FALSE(memory::exponent(std::vector<memory::Point>{{10, 0}, {20, 5}}));
  memory::Growth flat;
  flat.constant = 5;
  CHECK(memory::first_beyond(flat, 10) == 0);
}

TEST_CASE("Before a run: more than the run takes") {
  const chapter::Options options = options_of();
  const auto [variant, mode] =
      GENERATE(Case{Variant::naive, Mode::training}, Case{Variant::inplace, Mode::inference},
               Case{Variant::sdpa_math, Mode::training}, Case{Variant::naive, Mode::checkpoint});
  const memory::Measured result = measured(variant, mode, 3);
  const double needed = memory::bytes_needed(variant, mode, 3, options);
  CAPTURE(memory::name_of(variant), memory::name_of(mode));
  CHECK(static_cast<double>(result.held.total() + result.peak) <= needed);
  CHECK(needed < 4 * static_cast<double>(result.held.total() + result.peak));
}

TEST_CASE("Memory that runs out is a sentence with the size and what to try") {
  const auto text = [](const std::exception& error, Variant variant, Mode mode) {
    return memory::out_of_memory_text(error, variant, mode, 2, options_of()).value_or("");
  };
  const std::runtime_error cuda(
      "CUDA out of memory. Tried to allocate 20.50 GiB. GPU 0 has a total capacity of 139.80 GiB");
  CHECK(text(cuda, Variant::naive, Mode::training) ==
        "naive, training, 2 layers, S=128: out of memory, 20.50 GiB more was asked for: try "
        "--variant flash, which makes no score matrix, --mode checkpoint, a smaller --seq or "
        "--batch");
  CHECK(text(cuda, Variant::flash, Mode::inference) ==
        "flash, inference, 2 layers, S=128: out of memory, 20.50 GiB more was asked for: try a "
        "smaller --seq or --batch");
  const std::string words =
      "CUDA out of memory. Tried to allocate 2.00 GiB. Of the allocated memory 130.00 GiB is "
      "allocated by PyTorch, and {} is reserved by PyTorch but unallocated. If reserved but";
  const auto with = [&](const std::string& unused) {
    return std::runtime_error(std::string(words).replace(words.find("{}"), 2, unused));
  };
  CHECK_THAT(text(with("500.00 MiB"), Variant::flash, Mode::inference),
             ContainsSubstring("2.00 GiB more was asked for (fragmentation is not to blame: the "
                               "allocator holds 500.00 MiB unused): try a"));
  CHECK_THAT(text(with("3.00 GiB"), Variant::flash, Mode::inference),
             ContainsSubstring("although the allocator holds 3.00 GiB unused, in pieces: "
                               "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True may help: try a"));
  CHECK(text(std::runtime_error("nothing of the kind"), Variant::naive, Mode::training).empty());
  // What LibTorch itself says on a CPU.
  try {
    (void)at::empty({std::int64_t{1} << 55});
    FAIL("there is not that much memory");
  } catch (const std::exception& error) {
    CHECK_THAT(text(error, Variant::flash, Mode::training),
               ContainsSubstring("144115188075855872 bytes more was asked for"));
  }
}
