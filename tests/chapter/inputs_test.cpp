// SPDX-License-Identifier: Apache-2.0
#include "chapter/inputs.h"

#include <ATen/Functions.h>

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

namespace {

chapter::Options options_of(chapter::Shape shape, c10::ScalarType dtype = c10::kFloat) {
  chapter::Options options;
  options.info.name = "test";
  options.shape = shape;
  options.dtype = dtype;
  return options;
}

at::Tensor sdpa(const chapter::Inputs& in) {
  return at::scaled_dot_product_attention(in.q, in.k, in.v, {}, 0.0, /*is_causal=*/true, {},
                                          /*enable_gqa=*/in.q.size(1) != in.k.size(1));
}

}  // namespace

TEST_CASE("LibTorch's own attention passes, whatever the shape") {
  for (const chapter::Shape shape :
       {chapter::Shape{1, 1, 1, 1, 1}, chapter::Shape{2, 3, 3, 17, 8},
        chapter::Shape{1, 4, 2, 65, 16}, chapter::Shape{1, 1, 1, 3000, 4}}) {
    const chapter::Inputs in = chapter::make_inputs(options_of(shape));
    const chapter::Error error = chapter::error_of(sdpa(in), in);
    CAPTURE(shape.label(), error.relative_l2);
    CHECK(error.acceptable());
    CHECK(error.max_abs < 1e-4);
  }
}

TEST_CASE("A wrong result does not pass") {
  const chapter::Options options = options_of({1, 2, 2, 16, 8});
  const chapter::Inputs in = chapter::make_inputs(options);
  const at::Tensor right = sdpa(in);
  CHECK_NOTHROW(chapter::check(options, right, in));
  SECTION("one number off") {
    at::Tensor wrong = right.clone();
    wrong[0][1][3][2] += 1.0;
    CHECK_THROWS_AS(chapter::check(options, wrong, in), chapter::WrongResult);
  }
  SECTION("one NaN") {
    at::Tensor wrong = right.clone();
    wrong[0][0][0][0] = std::numeric_limits<float>::quiet_NaN();
    const chapter::Error error = chapter::error_of(wrong, in);
    CHECK_FALSE(error.acceptable());
    CHECK(std::isnan(error.max_abs));
    CHECK_THROWS_AS(chapter::check(options, wrong, in), chapter::WrongResult);
  }
  SECTION("the mask forgotten") {
    const at::Tensor wrong = at::scaled_dot_product_attention(in.q, in.k, in.v);
    CHECK_THROWS_AS(chapter::check(options, wrong, in), chapter::WrongResult);
  }
  SECTION("zeros") {
    CHECK_THROWS_AS(chapter::check(options, at::zeros_like(right), in), chapter::WrongResult);
  }
}

TEST_CASE("Inputs are the seed's, and key and value heads are repeated in order") {
  chapter::Options options = options_of({2, 4, 2, 8, 4});
  const chapter::Inputs first = chapter::make_inputs(options);
  CHECK(at::equal(first.q, chapter::make_inputs(options).q));
  options.seed = 1;
  CHECK_FALSE(at::equal(first.q, chapter::make_inputs(options).q));

  const at::Tensor repeated = chapter::repeat_kv(first.k, 4);
  CHECK(repeated.size(1) == 4);
  CHECK(at::equal(repeated.select(1, 1), first.k.select(1, 0)));
  CHECK(at::equal(repeated.select(1, 2), first.k.select(1, 1)));
  CHECK(chapter::repeat_kv(first.q, 4).is_same(first.q));
  // The mask hides the future: true above the diagonal, nowhere else.
  CHECK(first.mask.sum().item<std::int64_t>() == 8 * 7 / 2);
  CHECK_FALSE(first.mask[3][3].item<bool>());
  CHECK(first.mask[3][4].item<bool>());
}
