// SPDX-License-Identifier: Apache-2.0
//
// c1: one query row after the other, on the CPU.
//
// The idea: softmax needs its row's maximum and sum before it can divide, but neither the whole row
// nor a tensor of scores. Both are kept *so far*; when a larger score comes, what was summed up to
// here is scaled down to the new maximum (online softmax). One pass over the keys, D floats of
// memory per row.
//
// Look for: aten::empty and one op in the table, no tensor of scores under peak memory; and a time
// far above c2's, because each key is loaded anew for each query.
#include <cmath>
#include <limits>
#include <vector>

#include "cpu.h"

namespace kernels {
namespace {

float dot(const float* a, const float* b, int size) {
  float sum = 0;
  for (int i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

void scale_by(float factor, std::vector<float>& values) {
  for (float& value : values) value *= factor;
}

}  // namespace

void c1(const Attention& call, std::int64_t task) {
  const Rows rows = rows_of(call, task);
  const auto* q = static_cast<const float*>(call.q) + rows.q_offset;  // [S, D], rows of this head
  const auto* k = static_cast<const float*>(call.k) + rows.k_offset;  // [Skv, D]
  const auto* v = static_cast<const float*>(call.v) + rows.v_offset;  // [Skv, D]
  auto* o = static_cast<float*>(call.o) + rows.o_offset;              // [S, D]
  std::vector<float> sum_of_values(static_cast<std::size_t>(call.D));

  for (int row = rows.begin; row < rows.end; ++row) {
    float maximum = -std::numeric_limits<float>::infinity();
    float sum = 0;
    scale_by(0, sum_of_values);
    const int keys = visible_keys(call, row);
    for (int key = 0; key < keys; ++key) {
      const float score =
          call.scale * dot(q + row * call.q_stride.row, k + key * call.k_stride.row, call.D);
      if (score > maximum) {
        const float shrink = std::exp(maximum - score);  // of -inf: 0
        scale_by(shrink, sum_of_values);
        sum *= shrink;
        maximum = score;
      }
      const float weight = std::exp(score - maximum);
      sum += weight;
      const float* value = v + key * call.v_stride.row;
      for (int d = 0; d < call.D; ++d) sum_of_values[d] += weight * value[d];
    }
    for (int d = 0; d < call.D; ++d) {
      o[row * call.o_stride.row + d] = keys > 0 ? sum_of_values[d] / sum : 0;
    }
    if (call.lse != nullptr) call.lse[rows.lse_offset + row] = maximum + std::log(sum);
  }
}

}  // namespace kernels
