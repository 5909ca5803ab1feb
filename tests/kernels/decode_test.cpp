// SPDX-License-Identifier: Apache-2.0
//
// decode through the op, sequence by sequence against float64: on the CPU, and on a GPU if there is
// one.
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "op.h"
#include "profiler/device.h"
#include "reference.h"
#include "versions.h"
#ifdef KERNELS_HAVE_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#endif

using Catch::Matchers::ContainsSubstring;

namespace {

const kernels::DecodeOp& decode() {
  static const kernels::DecodeOp op = kernels::DecodeOp::load(PROF_KERNEL_LIBRARY);
  return op;
}

bool has_gpu() {
  const prof::Machine machine = prof::Machine::here();
  return kernels::kHaveCuda && !machine.gpus.empty() &&
         machine.gpus.front().compute_capability() >= 80;
}

std::vector<at::TensorOptions> runners() {
  const auto cpu = at::TensorOptions().device(at::kCPU), gpu = cpu.device(at::kCUDA, 0);
  std::vector<at::TensorOptions> result{cpu.dtype(at::kFloat), cpu.dtype(at::kBFloat16)};
  if (has_gpu()) {
    result.push_back(gpu.dtype(at::kBFloat16));
    result.push_back(gpu.dtype(at::kHalf));
  }
  return result;
}

Tensor ints(const std::vector<int>& values, const at::TensorOptions& like) {
  return at::tensor(values, at::TensorOptions().dtype(at::kInt)).to(like.device());
}

std::string name_of(const at::TensorOptions& like) {
  return fmt::format("{} {}", like.device().str(), at::toString(like.dtype().toScalarType()));
}

struct Cache {
  Tensor k, v;  // [B, Hkv, capacity, D]
};

Cache random_cache(std::int64_t B, std::int64_t Hkv, std::int64_t capacity, std::int64_t D,
                   const at::TensorOptions& like) {
  return {at::randn({B, Hkv, capacity, D}, like), at::randn({B, Hkv, capacity, D}, like)};
}

// Overwrites what lies behind the lengths: no kernel may look at it.
void spoil(const Cache& cache, const std::vector<int>& lengths) {
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    for (const Tensor& x : {cache.k, cache.v}) {
      x[static_cast<std::int64_t>(b)].slice(1, lengths[b]).fill_(kInfinity - kInfinity);
    }
  }
}

struct Pages {
  Tensor k, v, table;
};

// The same cache in pages that lie in any order, with some that belong to nobody. Only pages that a
// sequence reaches into stand in the table.
Pages paged(const Cache& cache, std::int64_t page_size, const std::vector<int>& lengths) {
  const std::int64_t B = cache.k.size(0), each = cache.k.size(2) / page_size;
  const Tensor order = at::randperm(B * each + 3, at::kLong).slice(0, 0, B * each).view({B, each});
  const auto scattered = [&](const Tensor& x) {
    Tensor pages = at::full({B * each + 3, x.size(1), page_size, x.size(3)}, kInfinity - kInfinity,
                            x.options());
    for (std::int64_t b = 0; b < B; ++b) {
      for (std::int64_t i = 0; i < each; ++i) {
        pages[order[b][i].item<std::int64_t>()].copy_(
            x[b].slice(1, i * page_size, (i + 1) * page_size));
      }
    }
    return pages;
  };
  Tensor table = order.to(at::kInt);
  for (std::int64_t b = 0; b < B; ++b) {
    table[b].slice(0, (lengths[static_cast<std::size_t>(b)] + page_size - 1) / page_size).fill_(-5);
  }
  return {scattered(cache.k), scattered(cache.v), table.to(cache.k.device())};
}

void check(const std::pair<Tensor, Tensor>& result, const Tensor& q, const Cache& cache,
           const std::vector<int>& lengths, double scale) {
  const auto& [out, lse] = result;
  REQUIRE(out.sizes() == q.sizes());
  REQUIRE(out.scalar_type() == q.scalar_type());
  std::vector<Tensor> expected, expected_lse, by_flash;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const auto one = [&](const Tensor& x) {
      return x.slice(0, static_cast<std::int64_t>(b), static_cast<std::int64_t>(b) + 1);
    };
    const Tensor row = one(q);
    if (lengths[b] == 0) {
      expected.push_back(at::zeros_like(row, at::kDouble));
      expected_lse.push_back(
          at::full({1, q.size(1), q.size(2)}, -kInfinity, q.options().dtype(at::kDouble)));
      by_flash.push_back(at::zeros_like(row));
      continue;
    }
    const Tensor k = one(cache.k).slice(2, 0, lengths[b]), v = one(cache.v).slice(2, 0, lengths[b]);
    const std::int64_t group = q.size(1) / k.size(1);
    const auto [o, l] = reference(row, k, v, "bottom_right", scale);
    expected.push_back(o);
    expected_lse.push_back(l);
    by_flash.push_back(flash(row, at::repeat_interleave(k, group, 1),
                             at::repeat_interleave(v, group, 1), "bottom_right", scale));
  }
  const Tensor all = at::cat(expected);
  CHECK(is_within(error_of(out, all), error_of(at::cat(by_flash), all)));
  CHECK(is_lse(lse, at::cat(expected_lse)));
}

std::pair<Tensor, Tensor> run(const Tensor& q, const Tensor& k, const Tensor& v,
                              const std::vector<int>& lengths, double scale,
                              const std::optional<Tensor>& table = {}) {
  const auto [out, lse] = decode()(q, k, v, ints(lengths, q.options()), table, scale);
  return {out, lse};
}

}  // namespace

TEST_CASE("decode against float64: lengths, groups of heads, tokens, pages") {
  at::manual_seed(11);
  int turn = 0;
  for (const at::TensorOptions& like : runners()) {
    for (const std::int64_t group : {1, 2, 3, 4, 7, 8, 16, 20}) {
      for (const std::int64_t D : {64, 128}) {
        const std::int64_t page = std::int64_t{16} << turn % 3, Hkv = 1 + turn % 2;
        const std::int64_t S = std::vector{1, 2, 1, 5, 8}[turn++ % 5];
        const auto one_page = static_cast<int>(page);
        const std::vector<int> lengths{0, 1, one_page - 1, one_page, one_page + 1, 320, 257};
        const Cache cache = random_cache(7, Hkv, 320, D, like);
        const Tensor q = at::randn({7, group * Hkv, S, D}, like);
        const double scale = 1 / std::sqrt(static_cast<double>(D));
        spoil(cache, lengths);
        INFO(fmt::format("{} group={} D={} S={} page={}", name_of(like), group, D, S, page));
        check(run(q, cache.k, cache.v, lengths, scale), q, cache, lengths, scale);
        const Pages pages = paged(cache, page, lengths);
        check(run(q, pages.k, pages.v, lengths, scale, pages.table), q, cache, lengths, scale);
      }
    }
  }
}

TEST_CASE("decode: long sequences are shared out, one or in a batch") {
  at::manual_seed(12);
  for (const at::TensorOptions& like : runners()) {
    for (const std::vector<int>& lengths :
         {std::vector{5000}, {5000, 1, 0, 63}, std::vector<int>(40, 130)}) {
      const auto B = static_cast<std::int64_t>(lengths.size());
      const Cache cache = random_cache(B, 2, 5000 / B, 64, like);
      std::vector<int> fitting = lengths;
      for (int& length : fitting) length = std::min(length, static_cast<int>(5000 / B));
      const Tensor q = at::randn({B, 8, 1, 64}, like);
      INFO(fmt::format("{} B={}", name_of(like), B));
      check(run(q, cache.k, cache.v, fitting, 0.125), q, cache, fitting, 0.125);
    }
  }
}

TEST_CASE("decode: strides as they come") {
  at::manual_seed(13);
  for (const at::TensorOptions& like : runners()) {
    INFO(name_of(like));
    // [B, capacity, Hkv, D], K and V side by side, and more room than a row needs.
    const Tensor packed = at::randn({3, 100, 2, 4, 72}, like).slice(4, 0, 64);
    const Cache cache{packed.select(2, 0).transpose(1, 2), packed.select(2, 1).transpose(1, 2)};
    const Tensor q = at::randn({3, 2, 8, 64}, like).transpose(1, 2);
    const std::vector<int> lengths{100, 2, 65};
    check(run(q, cache.k, cache.v, lengths, 0.125), q, cache, lengths, 0.125);
    // One sequence's cache for all of them: stride 0.
    const auto shared = [](const Tensor& x) { return x.slice(0, 0, 1).expand({3, 4, 100, 64}); };
    const Cache same{shared(cache.k), shared(cache.v)};
    check(run(q, same.k, same.v, lengths, 0.125), q, same, lengths, 0.125);
  }
}

TEST_CASE("decode: large scores stay exact, a NaN stays in its sequence") {
  at::manual_seed(14);
  for (const at::TensorOptions& like : runners()) {
    INFO(name_of(like));
    const Cache cache = random_cache(2, 2, 700, 64, like);
    cache.k.mul_(4);
    const Tensor q = at::randn({2, 4, 1, 64}, like) * 40;
    const std::vector<int> lengths{700, 333};
    check(run(q, cache.k, cache.v, lengths, 0.125), q, cache, lengths, 0.125);
    cache.k[0][1][650][7].fill_(kInfinity - kInfinity);
    const auto [out, lse] = run(q, cache.k, cache.v, lengths, 0.125);
    CHECK(at::isnan(out[0].slice(0, 2)).all().item<bool>());
    CHECK(at::isnan(lse[0].slice(0, 2)).all().item<bool>());
    CHECK(at::isfinite(out[0].slice(0, 0, 2)).all().item<bool>());
    CHECK(at::isfinite(out[1]).all().item<bool>());
  }
}

TEST_CASE("decode: lengths and pages out of range are taken as the nearest in it") {
  at::manual_seed(15);
  for (const at::TensorOptions& like : runners()) {
    INFO(name_of(like));
    const Cache cache = random_cache(2, 1, 64, 64, like);
    const Tensor q = at::randn({2, 1, 1, 64}, like);
    check(run(q, cache.k, cache.v, {-3, 1 << 29}, 0.125), q, cache, {0, 64}, 0.125);
    const Tensor table = at::tensor(std::vector<int>{-9, 0, 1, 1 << 30}, at::kInt).view({2, 2});
    const Tensor right = at::tensor(std::vector<int>{0, 0, 1, 1}, at::kInt).view({2, 2});
    const std::vector<int> lengths{128, 70};
    const auto wild = run(q, cache.k, cache.v, lengths, 0.125, table.to(like.device()));
    const auto tame = run(q, cache.k, cache.v, lengths, 0.125, right.to(like.device()));
    CHECK(at::equal(wild.first, tame.first));
  }
}

TEST_CASE("decode: what it cannot take is one sentence") {
  const auto like = at::TensorOptions().dtype(at::kFloat);
  const Tensor q = at::randn({2, 4, 1, 64}, like), k = at::randn({2, 2, 32, 64}, like);
  const Tensor lengths = ints({3, 4}, like), table = at::zeros({2, 2}, like.dtype(at::kInt));
  const auto refused = [](const Tensor& query, const Tensor& keys, const Tensor& values,
                          const Tensor& each, const std::optional<Tensor>& pages = {},
                          std::optional<double> scale = {}) -> std::string {
    try {
      decode()(query, keys, values, each, pages, scale);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "";
  };
  CHECK(decode().name() == "attention_kernels::decode");
  CHECK(refused(q, k, k, lengths).empty());
  CHECK(refused(q, k, k, lengths, table).empty());
  CHECK_THAT(refused(q[0], k, k, lengths), ContainsSubstring("q must have four dimensions"));
  CHECK_THAT(refused(q, k, k.slice(2, 0, 8), lengths), ContainsSubstring("have the same sizes"));
  CHECK_THAT(refused(q, k.slice(0, 0, 1), k.slice(0, 0, 1), lengths),
             ContainsSubstring("agree in batch, or k and v be pages"));
  CHECK_THAT(refused(q.slice(1, 0, 3), k, k, lengths), ContainsSubstring("be a multiple of"));
  CHECK_THAT(refused(q, k, k, lengths.to(at::kLong)), ContainsSubstring("must be int32, not Long"));
  CHECK_THAT(refused(q, k, k, lengths.slice(0, 1)),
             ContainsSubstring("one contiguous number for each of the 2 sequences"));
  CHECK_THAT(refused(q, k, k, lengths, table.to(at::kLong)),
             ContainsSubstring("block_table must be int32"));
  CHECK_THAT(refused(q, k, k, lengths, table[0]), ContainsSubstring("block_table must be [B,"));
  CHECK_THAT(refused(q, k, k, lengths, table.t()), ContainsSubstring("without gaps"));
  for (const std::int64_t size : {8, 24}) {
    const Tensor page = at::randn({2, 2, size, 64}, like);
    CHECK_THAT(refused(q, page, page, lengths, table),
               ContainsSubstring(fmt::format("a power of two, not {}", size)));
  }
  CHECK_THAT(refused(q, k, k, lengths, {}, 0.0), ContainsSubstring("must be a positive number"));
  const auto half = [](const Tensor& x) { return x.to(at::kHalf); };
  CHECK_THAT(refused(half(q), half(k), half(k), lengths), ContainsSubstring("fp32 and bf16"));
  const Tensor huge = at::randn({1, 1, 1, 64}, like).expand({2, 2, 1 << 30, 64});
  CHECK_THAT(refused(q, huge, huge, lengths), ContainsSubstring("more than the kernels count to"));
}

#ifdef KERNELS_HAVE_CUDA
TEST_CASE("decode on a GPU: a captured graph follows the lengths and the table") {
  if (!has_gpu()) SKIP("no NVIDIA GPU here");
  at::manual_seed(16);
  const auto like = at::TensorOptions().device(at::kCUDA, 0).dtype(at::kBFloat16);
  const Cache cache = random_cache(3, 2, 640, 64, like);
  const Tensor q = at::randn({3, 8, 1, 64}, like), lengths = ints({1, 2, 3}, like);
  const std::vector<std::vector<int>> steps{{640, 0, 1}, {63, 64, 65}, {300, 640, 512}};
  Pages pages = paged(cache, 64, {640, 640, 640});
  at::cuda::CUDAGraph graph;
  Tensor out, lse;
  {
    const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
    const c10::StreamGuard guard(cuda.getStreamFromGlobalPool(like.device()));
    decode()(q, pages.k, pages.v, lengths, pages.table);  // modules load at the first call
    graph.capture_begin();
    std::tie(out, lse) = decode()(q, pages.k, pages.v, lengths, pages.table);
    graph.capture_end();
  }
  for (const std::vector<int>& step : steps) {
    lengths.copy_(ints(step, like));
    out.fill_(kInfinity - kInfinity);
    graph.replay();
    check({out, lse}, q, cache, step, 0.125);
  }
}

TEST_CASE("decode on a GPU: dtype, head_dim, alignment") {
  if (!has_gpu()) SKIP("no NVIDIA GPU here");
  const auto like = at::TensorOptions().device(at::kCUDA, 0).dtype(at::kBFloat16);
  const auto refused = [&](const Tensor& x) -> std::string {
    try {
      decode()(x, x, x, ints({1}, like));
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "";
  };
  CHECK_THAT(refused(at::randn({1, 1, 1, 64}, like.dtype(at::kFloat))),
             ContainsSubstring("bf16 and fp16, not Float"));
  CHECK_THAT(refused(at::randn({1, 1, 1, 80}, like)), ContainsSubstring("64 or 128, not 80"));
  CHECK_THAT(refused(at::randn({65}, like).slice(0, 1).view({1, 1, 1, 64})),
             ContainsSubstring("16 bytes"));
}
#else
TEST_CASE("decode on a GPU") {
  SKIP("there was no nvcc");
}
#endif
