// SPDX-License-Identifier: Apache-2.0
//
// decode as an op, beside the ladder's in library.cpp:
//
//   decode(q [B, H, S, D], k, v, lengths=[B] int32) -> (out [B, H, S, D], lse [B, H, S])
//
// k and v are [B, Hkv, capacity, D], or with a block_table [B, pages of a sequence] int32 they are
// pages, [pages, Hkv, page_size, D]. Any strides will do as long as D lies without gaps: a cache
// that was made as [B, capacity, Hkv, D] is given as cache.transpose(1, 2).
//
// What lengths and block_table hold is not checked: on a GPU that would mean waiting for it. Values
// that are out of range are taken as the nearest in it, so nothing but the cache is ever read.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/library.h>

#include <bit>
#include <tuple>

#include "checks.h"
#include "cpu.h"
#ifdef KERNELS_HAVE_CUDA
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include "gpu.h"
#endif

namespace kernels {
namespace {

using at::Tensor;
using Result = std::tuple<Tensor, Tensor>;

void check_lengths(const Tensor& lengths, const Tensor& q) {
  TORCH_CHECK_VALUE(lengths.scalar_type() == at::kInt, "lengths must be int32, not ",
                    lengths.scalar_type());
  TORCH_CHECK_VALUE(lengths.device() == q.device(), "lengths are on ", lengths.device(), ", q on ",
                    q.device(), ": move them to one device");
  TORCH_CHECK_VALUE(lengths.dim() == 1 && lengths.size(0) == q.size(0) && lengths.is_contiguous(),
                    "lengths must be one contiguous number for each of the ", q.size(0),
                    " sequences; their sizes are ", lengths.sizes());
}

void check_table(const Tensor& table, const Tensor& q, const Tensor& k) {
  TORCH_CHECK_VALUE(table.scalar_type() == at::kInt, "block_table must be int32, not ",
                    table.scalar_type());
  TORCH_CHECK_VALUE(table.device() == q.device(), "block_table is on ", table.device(), ", q on ",
                    q.device(), ": move them to one device");
  TORCH_CHECK_VALUE(
      table.dim() == 2 && table.size(0) == q.size(0) && table.size(1) > 0 && table.stride(1) == 1,
      "block_table must be [B, pages of a sequence] for the ", q.size(0),
      " sequences, its last dimension without gaps; its sizes are ", table.sizes());
  const auto page_size = static_cast<std::uint64_t>(k.size(2));
  TORCH_CHECK_VALUE(page_size >= 16 && std::has_single_bit(page_size),
                    "a page must have 16, 32, 64, ... keys, a power of two, not ", page_size);
}

// Everything but what only a GPU needs, checked.
struct Prepared {
  Decode call;
  Result result;
};

Prepared prepare(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& lengths,
                 const std::optional<Tensor>& table, std::optional<double> scale) {
  check_tensors(q, k, v);
  check_lengths(lengths, q);
  if (table.has_value()) {
    check_table(*table, q, k);
  } else {
    TORCH_CHECK_VALUE(q.size(0) == k.size(0), "q and k must agree in batch, or k and v be pages ",
                      "with a block_table; they have ", q.sizes(), " and ", k.sizes());
  }
  const std::int64_t capacity = k.size(2) * (table.has_value() ? table->size(1) : 1);
  for (const std::int64_t size : {q.size(0), q.size(1) * q.size(2), k.size(0), capacity}) {
    TORCH_CHECK_VALUE(size < 1 << 30, "a size of ", size, " is more than the kernels count to");
  }

  Tensor out = at::empty(q.sizes(), q.options());
  Tensor lse = at::empty({q.size(0), q.size(1), q.size(2)}, q.options().dtype(at::kFloat));
  Decode call{};
  call.q = q.const_data_ptr();
  call.k = k.const_data_ptr();
  call.v = v.const_data_ptr();
  call.o = out.mutable_data_ptr();
  call.lse = lse.mutable_data_ptr<float>();
  call.lengths = lengths.const_data_ptr<std::int32_t>();
  call.q_stride = strides_of(q), call.o_stride = strides_of(out);
  call.k_stride = strides_of(k), call.v_stride = strides_of(v);
  call.B = size(q, 0), call.H = size(q, 1), call.Hkv = size(k, 1);
  call.S = size(q, 2), call.D = size(q, 3);
  call.capacity = static_cast<int>(capacity);
  call.pages = size(k, 0), call.page_size = size(k, 2);
  if (table.has_value()) {
    call.table = table->const_data_ptr<std::int32_t>();
    call.table_stride = table->stride(0);
  }
  call.scale = scale_of(scale, call.D);
  return {call, {std::move(out), std::move(lse)}};
}

Result on_cpu(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& lengths,
              const std::optional<Tensor>& table, std::optional<double> scale) {
  TORCH_CHECK_VALUE(q.scalar_type() == at::kFloat || q.scalar_type() == at::kBFloat16,
                    "on the CPU decode takes fp32 and bf16, not ", q.scalar_type());
  auto [call, result] = prepare(q, k, v, lengths, table, scale);
  TORCH_CHECK_VALUE(call.D <= kMostD, "head_dim may be up to ", kMostD, ", not ", call.D);
  call.dtype = q.scalar_type() == at::kFloat ? Dtype::fp32 : Dtype::bf16;
  const std::int64_t tasks = std::int64_t{call.B} * call.Hkv;
  at::parallel_for(0, tasks, 1, [&call = call](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) decode_cpu(call, task);
  });
  return result;
}

#ifdef KERNELS_HAVE_CUDA
Result on_gpu(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& lengths,
              const std::optional<Tensor>& table, std::optional<double> scale) {
  const c10::cuda::CUDAGuard guard(q.device());
  const cudaDeviceProp* device = at::cuda::getCurrentDeviceProperties();
  TORCH_CHECK_VALUE(device->major >= 8, "decode needs sm_80, not sm_", device->major,
                    device->minor);
  TORCH_CHECK_VALUE(q.scalar_type() == at::kBFloat16 || q.scalar_type() == at::kHalf,
                    "on a GPU decode takes bf16 and fp16, not ", q.scalar_type());
  auto [call, result] = prepare(q, k, v, lengths, table, scale);
  TORCH_CHECK_VALUE(call.D == 64 || call.D == 128, "head_dim must be 64 or 128, not ", call.D);
  call.dtype = q.scalar_type() == at::kBFloat16 ? Dtype::bf16 : Dtype::fp16;
  call.stream = at::cuda::getCurrentCUDAStream();
  plan(call, device->multiProcessorCount);
  // Back to the allocator at once: whoever gets it next on this stream comes after the kernels.
  const Tensor scratch = at::empty({scratch_floats(call)}, q.options().dtype(at::kFloat));
  call.scratch = scratch.mutable_data_ptr<float>();
  const cudaError_t error = decode(call);
  TORCH_CHECK_VALUE(error != cudaErrorMisalignedAddress,
                    "decode reads 16 bytes at a time: q, k and v must begin at, and their strides "
                    "be multiples of, 16 bytes; call .contiguous() on a copy");
  TORCH_CHECK(error == cudaSuccess, "decode could not be launched: ", cudaGetErrorString(error));
  return result;
}
#endif

}  // namespace

TORCH_LIBRARY_FRAGMENT(attention_kernels, library) {
  library.def(
      "decode(Tensor q, Tensor k, Tensor v, *, Tensor lengths, Tensor? block_table=None, float? "
      "scale=None) -> (Tensor out, Tensor lse)");
}

TORCH_LIBRARY_IMPL(attention_kernels, CPU, library) {
  library.impl("decode", on_cpu);
}

#ifdef KERNELS_HAVE_CUDA
TORCH_LIBRARY_IMPL(attention_kernels, CUDA, library) {
  library.impl("decode", on_gpu);
}
#endif

}  // namespace kernels
