// SPDX-License-Identifier: Apache-2.0
//
// Every version of chapter 04's ladder that this machine can run, through the op, against float64.
#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "op.h"
#include "profiler/device.h"
#include "reference.h"
#include "versions.h"

using at::Tensor;
using Catch::Matchers::ContainsSubstring;

namespace {

const kernels::Op& op() {
  static const kernels::Op op = kernels::Op::load(PROF_KERNEL_LIBRARY);
  return op;
}

int compute_capability() {
  const prof::Machine machine = prof::Machine::here();
  return machine.gpus.empty() ? 0 : machine.gpus.front().compute_capability();
}

// A version with a device and a dtype that it takes.
struct Runner {
  std::string version;
  at::TensorOptions options;
};

std::vector<Runner> runners() {
  std::vector<Runner> result;
  const int gpu = compute_capability();
  for (const kernels::Version& version : kernels::kVersions) {
    const std::string name(version.name);
    if (version.compute_capability == 0) {
      result.push_back({name, at::TensorOptions().device(at::kCPU).dtype(at::kFloat)});
    } else if (gpu > 0 && kernels::why_not(version, gpu).empty()) {
      for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf})
        result.push_back({name, at::TensorOptions().device(at::kCUDA, 0).dtype(dtype)});
    }
  }
  return result;
}

// Runs one version and compares both results with float64.
void check(const Runner& runner, const Tensor& q, const Tensor& k, const Tensor& v,
           const std::string& causal, double scale, const std::string& layout = "BHSD") {
  const auto turned = [&](const Tensor& x) {
    return layout == "BSHD" ? x.transpose(1, 2).contiguous() : x;
  };
  auto [out, lse] = op()(turned(q), turned(k), turned(v), causal, runner.version, layout, scale);
  if (layout == "BSHD") out = out.transpose(1, 2);
  REQUIRE(out.sizes() == q.sizes());
  REQUIRE(out.scalar_type() == q.scalar_type());

  const auto [expected, expected_lse] = reference(q, k, v, causal, scale);
  const Error allowed = error_of_flash(q, k, v, causal, scale);
  CHECK(is_within(error_of(out, expected), allowed));
  CHECK(is_lse(lse, expected_lse));
}

}  // namespace

TEST_CASE("Every version against float64: sizes, heads, alignments, layouts") {
  at::manual_seed(1);
  struct Sizes {
    std::int64_t S, Skv;
  };
  for (const Runner& runner : runners()) {
    for (const auto& [S, Skv] : {Sizes{1, 1}, Sizes{1, 77}, Sizes{63, 65}, Sizes{128, 128},
                                 Sizes{129, 300}, Sizes{300, 129}, Sizes{513, 513}}) {
      for (const std::int64_t D : {64, 128}) {
        const std::int64_t Hkv = S % 2 == 0 ? 4 : 2;
        const Tensor q = at::randn({2, 4, S, D}, runner.options);
        const Tensor k = at::randn({2, Hkv, Skv, D}, runner.options);
        const Tensor v = at::randn({2, Hkv, Skv, D}, runner.options);
        for (const char* causal : {"none", "top_left", "bottom_right"}) {
          for (const char* layout : {"BHSD", "BSHD"}) {
            INFO(fmt::format("{} {} S={} Skv={} D={} Hkv={} {} {}", runner.version,
                             at::toString(q.scalar_type()), S, Skv, D, Hkv, causal, layout));
            check(runner, q, k, v, causal, 1 / std::sqrt(static_cast<double>(D)), layout);
          }
        }
      }
    }
  }
}

TEST_CASE("Strides as they come: heads cut out of one packed tensor") {
  at::manual_seed(2);
  for (const Runner& runner : runners()) {
    INFO(runner.version);
    const Tensor packed = at::randn({2, 100, 3, 4, 64}, runner.options);  // [B, S, qkv, H, D]
    const auto part = [&](std::int64_t i) { return packed.select(2, i).transpose(1, 2); };
    check(runner, part(0), part(1), part(2), "top_left", 0.125);
    const Tensor one = at::randn({1, 1, 100, 64}, runner.options).expand({2, 4, 100, 64});
    check(runner, part(0), one, one, "none", 0.125);  // stride 0
  }
}

TEST_CASE("Large scores and other scales stay exact") {
  at::manual_seed(3);
  for (const Runner& runner : runners()) {
    INFO(runner.version);
    const Tensor q = at::randn({1, 2, 200, 64}, runner.options) * 40;
    const Tensor k = at::randn({1, 2, 200, 64}, runner.options) * 4;
    const Tensor v = at::randn({1, 2, 200, 64}, runner.options);
    check(runner, q, k, v, "top_left", 0.125);
    check(runner, q, k, v, "none", 1e-3);
  }
}

TEST_CASE("A NaN in reaches the rows that see it, and no others") {
  at::manual_seed(4);
  for (const Runner& runner : runners()) {
    INFO(runner.version);
    const Tensor q = at::randn({1, 1, 200, 64}, runner.options);
    Tensor k = at::randn({1, 1, 200, 64}, runner.options);
    const Tensor v = at::randn({1, 1, 200, 64}, runner.options);
    k.select(2, 150).select(2, 7).fill_(std::numeric_limits<float>::quiet_NaN());
    const auto [out, lse] = op()(q, k, v, "top_left", runner.version);
    CHECK(at::isfinite(out.slice(2, 0, 150)).all().item<bool>());
    CHECK(at::isnan(out.slice(2, 150)).all().item<bool>());
  }
}

TEST_CASE("What the op cannot take is one sentence") {
  const auto cpu = at::TensorOptions().dtype(at::kFloat);
  const Tensor x = at::randn({1, 4, 8, 64}, cpu);
  const auto refused = [&](const Tensor& q, const Tensor& k, const Tensor& v, const char* layout,
                           const char* causal, const char* kernel) -> std::string {
    try {
      op()(q, k, v, causal, kernel, layout);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "";
  };
  const auto with = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    return refused(q, k, v, "BHSD", "none", "auto");
  };
  CHECK(with(x, x, x).empty());
  CHECK_THAT(with(x[0], x, x), ContainsSubstring("q must have four dimensions"));
  CHECK_THAT(with(x, x.to(at::kDouble), x), ContainsSubstring("k is Double, q is Float"));
  CHECK_THAT(with(x.to(at::kHalf), x.to(at::kHalf), x.to(at::kHalf)),
             ContainsSubstring("take fp32, not Half"));
  CHECK_THAT(with(x, x, x.slice(2, 0, 4)), ContainsSubstring("k and v must have the same sizes"));
  CHECK_THAT(with(x, x.slice(3, 0, 32), x.slice(3, 0, 32)), ContainsSubstring("agree in head_dim"));
  CHECK_THAT(with(x, x.slice(1, 0, 3), x.slice(1, 0, 3)), ContainsSubstring("be a multiple of"));
  const Tensor gaps = at::randn({1, 4, 64, 8}, cpu).transpose(2, 3);
  CHECK_THAT(with(gaps, x, x), ContainsSubstring("q's last dimension must lie without gaps"));
  const Tensor nothing = x.slice(2, 0, 0);
  CHECK_THAT(with(x, nothing, nothing), ContainsSubstring("k is empty"));
  const Tensor wide = at::randn({1, 1, 4, 300}, cpu);
  CHECK_THAT(with(wide, wide, wide), ContainsSubstring("head_dim may be up to 256, not 300"));
  CHECK_THAT(refused(x, x, x, "SBHD", "none", "auto"), ContainsSubstring("BHSD or BSHD"));
  CHECK_THAT(refused(x, x, x, "BHSD", "left", "auto"), ContainsSubstring("not 'left'"));
  CHECK_THAT(refused(x, x, x, "BHSD", "none", "v3"), ContainsSubstring("needs an NVIDIA GPU"));
  CHECK_THAT(refused(x, x, x, "BHSD", "none", "v9"), ContainsSubstring("'v9' is not known"));
}

TEST_CASE("On a GPU: dtype, head_dim, alignment, streams") {
  if (compute_capability() < 80 || !kernels::kHaveCuda) SKIP("no NVIDIA GPU here, or no nvcc");
  const auto gpu = at::TensorOptions().device(at::kCUDA, 0).dtype(at::kBFloat16);
  const auto refused = [](const Tensor& x, const char* kernel) -> std::string {
    try {
      op()(x, x, x, "none", kernel);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "";
  };
  CHECK_THAT(refused(at::randn({1, 1, 8, 64}, gpu.dtype(at::kFloat)), "auto"),
             ContainsSubstring("bf16 and fp16, not Float"));
  CHECK_THAT(refused(at::randn({1, 1, 8, 80}, gpu), "auto"),
             ContainsSubstring("64 or 128, not 80"));
  CHECK_THAT(refused(at::randn({1, 1, 8, 64}, gpu), "c2"), ContainsSubstring("runs on the CPU"));
  const Tensor odd = at::randn({1 * 8 * 64 + 1}, gpu).slice(0, 1).view({1, 1, 8, 64});
  CHECK(refused(odd, "v1").empty());
  CHECK_THAT(refused(odd, "v3"), ContainsSubstring("16 bytes"));
}

TEST_CASE("Which version a device runs, and why not") {
  const auto why = [](std::string_view name, int compute_capability) {
    for (const kernels::Version& version : kernels::kVersions) {
      if (version.name == name) return kernels::why_not(version, compute_capability);
    }
    return std::string("no such version");
  };
  CHECK(why("c2", 0).empty());
  CHECK_THAT(why("c2", 90), ContainsSubstring("--device cpu"));
  CHECK_THAT(why("v1", 0), ContainsSubstring("needs an NVIDIA GPU"));
  if (!kernels::kHaveCuda) {
    CHECK_THAT(why("v1", 90), ContainsSubstring("no fitting nvcc"));
    return;
  }
  CHECK_THAT(why("v1", 75), ContainsSubstring("it needs sm_80, not sm_75"));
  CHECK(why("v3", 86).empty());
  CHECK_THAT(why("v4", 89), ContainsSubstring("it needs sm_90, not sm_89"));
  CHECK(why("v6", 90).empty());
  CHECK_THAT(why("v6", 100), ContainsSubstring("for sm_90 alone, this is sm_100"));
  CHECK(why("v3", 120).empty());
}

TEST_CASE("A library that is none, or has no such op, is one sentence") {
  CHECK_THROWS_WITH(kernels::Op::load("/nowhere/lib.so"),
                    ContainsSubstring("/nowhere/lib.so cannot be loaded"));
  CHECK(op().name() == "attention_kernels::attention");
  // Each library's own op, in whatever order and however often they are loaded.
  CHECK(kernels::Op::load(PROF_FOREIGN_KERNELS).name() == "foreign::flash");
  CHECK(kernels::Op::load(PROF_KERNEL_LIBRARY).name() == "attention_kernels::attention");
}
