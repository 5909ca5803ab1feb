// SPDX-License-Identifier: Apache-2.0
//
// c2: tiles that stay in registers and caches, on the CPU.
//
// The idea: c1 loads every key once per query. Here 24 queries (three vectors of eight) and four
// keys meet in twelve registers: seven loads serve twelve multiply-adds. Everything is turned so
// that *queries lie across the lanes of a vector*: q is transposed once per task, scores, weights
// and the result stay transposed until the end. So keys and values are read where they lie, one
// number to all lanes; and a row's maximum and sum need no sum across lanes, because each lane is a
// row of its own.
//
// Look for: the same op and the same memory as c1 in the table, and the time: this is where a CPU
// gets close to its multiply-adds per second. exp2 on vectors is a polynomial of seven lines.
//
// This file is compiled once for each kind of vectors (KERNELS_ISA); c2 takes what the CPU has.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu.h"

namespace kernels::KERNELS_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
using Vector = float __attribute__((vector_size(4 * kLanes)));
using Integers = std::int32_t __attribute__((vector_size(4 * kLanes)));

constexpr int kVectors = 3;                    // of rows in a panel
constexpr int kPanelRows = kVectors * kLanes;  // rows that are worked on together
constexpr int kStep = 4;                       // keys, or columns of v, beside them
constexpr int kKeys = 128;                     // whose scores are held at a time
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504088896340736F;
constexpr float kLn2 = 0.69314718055994530942F;
static_assert(kRowsPerTask % kPanelRows == 0);

struct Panel {
  Vector at[kVectors];
};

Vector max(Vector a, Vector b) {
  return a > b ? a : b;
}

// 2^x for x <= 0: the integer part becomes the exponent's bits, the rest in [-0.5, 0.5] a
// polynomial (minimax: fitted here, relative error 7.5e-8). Below -126 it is 0, -inf included.
Vector exp2(Vector x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves the integer in the low bits
  const Vector bounded = max(x, Vector{} - 126.0F);
  const Vector shifted = bounded + kRound;
  const Vector fraction = bounded - (shifted - kRound);
  Vector power = fraction * 1.3276472e-3F + 9.6755413e-3F;
  power = power * fraction + 5.5507133e-2F;
  power = power * fraction + 2.4022120e-1F;
  power = power * fraction + 6.9314697e-1F;
  power = power * fraction + 1.0000001F;
  const Integers bits = std::bit_cast<Integers>(power) + (std::bit_cast<Integers>(shifted) << 23);
  const Vector outside = x < -126.0F ? Vector{} : x;  // 0, or a NaN that must not get lost
  return x >= -126.0F ? std::bit_cast<Vector>(bits) : outside;
}

// sums[i] += over n of left[n * left_step + i * left_next] * right[n]: the inner loop of both
// products. Count = 4 fills the registers: 4 x 3 sums, three vectors of `right`, one number.
template <int Count>
void multiply_add(const float* left, std::int64_t left_step, std::int64_t left_next,
                  const Panel* right, int size, Panel* sums) {
  Vector sum[Count][kVectors];
  for (int i = 0; i < Count; ++i)
    for (int j = 0; j < kVectors; ++j) sum[i][j] = sums[i].at[j];
  for (int n = 0; n < size; ++n) {
    const Vector r[kVectors] = {right[n].at[0], right[n].at[1], right[n].at[2]};
#pragma GCC unroll 4
    for (int i = 0; i < Count; ++i) {
      const float number = left[n * left_step + i * left_next];
      for (int j = 0; j < kVectors; ++j) sum[i][j] += number * r[j];
    }
  }
  for (int i = 0; i < Count; ++i)
    for (int j = 0; j < kVectors; ++j) sums[i].at[j] = sum[i][j];
}

// For each i below `count`, four at a time.
void multiply_add(const float* left, std::int64_t left_step, std::int64_t left_next,
                  const Panel* right, int size, int count, Panel* sums) {
  int i = 0;
  for (; i + kStep <= count; i += kStep)
    multiply_add<kStep>(left + i * left_next, left_step, left_next, right, size, sums + i);
  for (; i < count; ++i)
    multiply_add<1>(left + i * left_next, left_step, left_next, right, size, sums + i);
}

// One panel of rows while it passes over the keys.
struct State {
  Panel q[kMostD];      // [D][rows], times scale * log2(e): scores are powers of 2 then
  Panel o[kMostD];      // [D][rows], not divided yet
  Panel scores[kKeys];  // [keys][rows], then the weights
  Panel maximum, sum;   // [rows], so far

  void start(const Attention& call, const float* rows, int count) {
    std::memset(static_cast<void*>(this), 0, sizeof *this);
    for (Vector& v : maximum.at) v = Vector{} - kInfinity;
    auto* lanes = reinterpret_cast<float*>(q);
    for (int row = 0; row < count; ++row)
      for (int d = 0; d < call.D; ++d)
        lanes[d * kPanelRows + row] = rows[row * call.q_stride.row + d] * call.scale * kLog2E;
  }

  // Rows that do not see a key get -inf there. `visible(row)`: of this block's keys, the first
  // ones.
  template <typename Visible>
  void mask(int keys, const Visible& visible) {
    auto* lanes = reinterpret_cast<float*>(scores);
    for (int row = 0; row < kPanelRows; ++row)
      for (int key = std::max(visible(row), 0); key < keys; ++key)
        lanes[key * kPanelRows + row] = -kInfinity;
  }

  // Turns scores into weights; what was summed before shrinks to the new maximum.
  void softmax(int keys, int D) {
    for (int j = 0; j < kVectors; ++j) {
      Vector top = maximum.at[j];
      for (int key = 0; key < keys; ++key) top = max(top, scores[key].at[j]);
      const Vector shift = top > -kInfinity ? top : Vector{};  // no key yet: -inf - 0, not NaN
      const Vector shrink = exp2(maximum.at[j] - shift);
      Vector total = sum.at[j] * shrink;
      for (int key = 0; key < keys; ++key) {
        const Vector weight = exp2(scores[key].at[j] - shift);
        scores[key].at[j] = weight;
        total += weight;
      }
      for (int d = 0; d < D; ++d) o[d].at[j] *= shrink;
      maximum.at[j] = top;
      sum.at[j] = total;
    }
  }

  void finish(const Attention& call, float* rows, float* lse, int count) const {
    const auto* lanes = reinterpret_cast<const float*>(o);
    const auto* totals = reinterpret_cast<const float*>(&sum);
    const auto* tops = reinterpret_cast<const float*>(&maximum);
    for (int row = 0; row < count; ++row) {
      const float inverse = totals[row] > 0 ? 1 / totals[row] : 0;
      for (int d = 0; d < call.D; ++d)
        rows[row * call.o_stride.row + d] = lanes[d * kPanelRows + row] * inverse;
      if (lse != nullptr) lse[row] = tops[row] * kLn2 + std::log(totals[row]);
    }
  }
};

}  // namespace

void c2(const Attention& call, std::int64_t task) {
  thread_local State state;
  const Rows rows = rows_of(call, task);
  for (int begin = rows.begin; begin < rows.end; begin += kPanelRows) {
    const int count = std::min(kPanelRows, rows.end - begin);
    state.start(call, static_cast<const float*>(call.q) + rows.q_offset + begin * call.q_stride.row,
                count);
    const int first_end = visible_keys(call, begin);  // the first row sees the fewest keys
    const int last_end = visible_keys(call, begin + count - 1);
    for (int key = 0; key < last_end; key += kKeys) {
      const int keys = std::min(kKeys, last_end - key);
      const auto* k = static_cast<const float*>(call.k) + rows.k_offset + key * call.k_stride.row;
      const auto* v = static_cast<const float*>(call.v) + rows.v_offset + key * call.v_stride.row;
      std::memset(static_cast<void*>(state.scores), 0, sizeof(Panel) * static_cast<unsigned>(keys));
      multiply_add(k, 1, call.k_stride.row, state.q, call.D, keys, state.scores);
      if (key + keys > first_end)
        state.mask(keys, [&](int row) { return visible_keys(call, begin + row) - key; });
      state.softmax(keys, call.D);
      multiply_add(v, call.v_stride.row, 1, state.scores, keys, call.D, state.o);
    }
    state.finish(call, static_cast<float*>(call.o) + rows.o_offset + begin * call.o_stride.row,
                 call.lse == nullptr ? nullptr : call.lse + rows.lse_offset + begin, count);
  }
}

}  // namespace kernels::KERNELS_ISA
