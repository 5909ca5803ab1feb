// SPDX-License-Identifier: Apache-2.0
//
// decode on the CPU: the online softmax of c1, with the loops turned round. All query rows that
// read a key head go through its keys together, so that K and V are read once.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "cpu.h"

namespace kernels {
namespace {

// bf16 is the upper half of a float.
struct Bf16 {
  std::uint16_t bits;
};

float to_float(float x) {
  return x;
}
float to_float(Bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

void assign(float& to, float x) {
  to = x;
}
void assign(Bf16& to, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  // Half of the last place is added, and to an odd number a little more: ties go to even ones. A
  // NaN must not be carried over into infinity.
  const std::uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  to.bits = static_cast<std::uint16_t>((std::isnan(x) ? bits | 1u << 22 : rounded) >> 16);
}

// One query row, and what it has seen so far.
struct QueryRow {
  std::vector<float> query, sum_of_values;
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0;

  explicit QueryRow(int D) : query(static_cast<std::size_t>(D)), sum_of_values(query.size()) {}

  void see(const std::vector<float>& key, const std::vector<float>& value) {
    float score = 0;
    for (std::size_t d = 0; d < query.size(); ++d) score += query[d] * key[d];
    if (score > max) {
      const float shrink = std::exp(max - score);  // of -inf: 0
      for (float& x : sum_of_values) x *= shrink;
      sum *= shrink;
      max = score;
    }
    const float weight = std::exp(score - max);
    sum += weight;
    for (std::size_t d = 0; d < query.size(); ++d) sum_of_values[d] += weight * value[d];
  }
};

std::int64_t offset(const Strides& stride, std::int64_t batch, std::int64_t head,
                    std::int64_t row) {
  return batch * stride.batch + head * stride.head + row * stride.row;
}

template <typename T>
void load(std::vector<float>& to, const T* from, float factor = 1) {
  for (std::size_t d = 0; d < to.size(); ++d) to[d] = factor * to_float(from[d]);
}

template <typename T>
void run(const Decode& call, std::int64_t b, std::int64_t h_kv) {
  const auto* q = static_cast<const T*>(call.q);
  const auto* keys = static_cast<const T*>(call.k);
  const auto* values = static_cast<const T*>(call.v);
  const std::int64_t group = call.H / call.Hkv, first_head = h_kv * group;
  std::vector<QueryRow> rows(static_cast<std::size_t>(group * call.S), QueryRow(call.D));
  const auto at = [&](std::int64_t h, std::int64_t s) -> QueryRow& {
    return rows[static_cast<std::size_t>(s * group + h)];
  };
  for (std::int64_t s = 0; s < call.S; ++s) {
    for (std::int64_t h = 0; h < group; ++h) {
      load(at(h, s).query, q + offset(call.q_stride, b, first_head + h, s), call.scale);
    }
  }

  const int length = std::clamp(call.lengths[b], 0, call.capacity);
  std::vector<float> k(static_cast<std::size_t>(call.D)), v(k.size());
  for (int key = 0; key < length; ++key) {
    std::int64_t page = b, row = key;
    if (call.table != nullptr) {
      page =
          std::clamp(call.table[b * call.table_stride + key / call.page_size], 0, call.pages - 1);
      row = key % call.page_size;
    }
    load(k, keys + offset(call.k_stride, page, h_kv, row));
    load(v, values + offset(call.v_stride, page, h_kv, row));
    // Tokens before this one see no more than their own past.
    for (std::int64_t s = std::max(0, key - length + call.S); s < call.S; ++s) {
      for (std::int64_t h = 0; h < group; ++h) at(h, s).see(k, v);
    }
  }

  for (std::int64_t s = 0; s < call.S; ++s) {
    for (std::int64_t h = 0; h < group; ++h) {
      const QueryRow& row = at(h, s);
      const bool seen_none = s < call.S - length;
      T* o = static_cast<T*>(call.o) + offset(call.o_stride, b, first_head + h, s);
      for (std::size_t d = 0; d < k.size(); ++d) {
        assign(o[d], seen_none ? 0 : row.sum_of_values[d] / row.sum);
      }
      call.lse[(b * call.H + first_head + h) * call.S + s] = row.max + std::log(row.sum);
    }
  }
}

}  // namespace

void decode_cpu(const Decode& call, std::int64_t task) {
  const std::int64_t b = task / call.Hkv, h_kv = task % call.Hkv;
  call.dtype == Dtype::fp32 ? run<float>(call, b, h_kv) : run<Bf16>(call, b, h_kv);
}

}  // namespace kernels
