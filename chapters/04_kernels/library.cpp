// SPDX-License-Identifier: Apache-2.0
//
// The kernels as an op of LibTorch's dispatcher, in a library of its own that is loaded at run
// time. Loading it runs the two TORCH_LIBRARY blocks below, and from then on the op can be called
// by its name, from C++ and from Python (torch.ops.load_library), and stands in tables and traces
// like any other. A second op, for key-value caches, is in decode_op.cpp.
//
// What the kernels do not check is checked here, once, in sentences: they see only pointers.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/library.h>

#include <limits>
#include <tuple>

#include "checks.h"
#include "cpu.h"
#include "versions.h"
#ifdef KERNELS_HAVE_CUDA
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include "gpu.h"
#endif

namespace kernels {
namespace {

using at::Tensor;
using Result = std::tuple<Tensor, Tensor>;

void check_shapes(const Tensor& q, const Tensor& k, const Tensor& v) {
  check_tensors(q, k, v);
  TORCH_CHECK_VALUE(q.size(0) == k.size(0), "q and k must agree in batch; they have ", q.sizes(),
                    " and ", k.sizes());
  for (const std::int64_t size : {q.size(0) * q.size(1), q.size(2), k.size(2)}) {
    TORCH_CHECK_VALUE(size <= std::numeric_limits<int>::max() / 2, "a size of ", size,
                      " is more than the kernels count to");
  }
}

Causal causal_of(std::string_view text) {
  if (text == "none") return Causal::none;
  if (text == "top_left") return Causal::top_left;
  TORCH_CHECK_VALUE(text == "bottom_right", "causal takes none, top_left or bottom_right, not '",
                    text, "'");
  return Causal::bottom_right;
}

// The version that `name` asks for, the best one for auto.
const Version& version_for(std::string_view name, int compute_capability) {
  const Version* best = nullptr;
  for (const Version& version : kVersions) {
    const std::string why = why_not(version, compute_capability);
    TORCH_CHECK_VALUE(version.name != name || why.empty(), "kernel ", name, ": ", why);
    if (version.name == name || (name == "auto" && why.empty())) best = &version;
  }
  TORCH_CHECK_VALUE(best != nullptr, "kernel '", name,
                    name == "auto" ? "': none of them runs on this device" : "' is not known");
  return *best;
}

// Everything but the version, checked. `layout` BSHD: tensors are [B, S, H, D], as flash-attn's
// packages take them; the kernels see them turned, which is a matter of strides.
struct Prepared {
  Attention call;
  Result result;  // out in the layout asked for, lse [B, H, S]
};

Prepared prepare(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in,
                 std::string_view layout, std::string_view causal, std::optional<double> scale) {
  TORCH_CHECK_VALUE(layout == "BHSD" || layout == "BSHD", "layout takes BHSD or BSHD, not '",
                    layout, "'");
  const auto turned = [&](const Tensor& x) {
    return layout == "BSHD" && x.dim() == 4 ? x.transpose(1, 2) : x;
  };
  const Tensor q = turned(q_in), k = turned(k_in), v = turned(v_in);
  check_shapes(q, k, v);
  Tensor out = at::empty(q_in.sizes(), q_in.options());
  Tensor lse = at::empty({q.size(0), q.size(1), q.size(2)}, q.options().dtype(at::kFloat));
  const Tensor o = turned(out);
  Attention call{};
  call.q = q.const_data_ptr();
  call.k = k.const_data_ptr();
  call.v = v.const_data_ptr();
  call.o = o.mutable_data_ptr();
  call.lse = lse.mutable_data_ptr<float>();
  call.B = size(q, 0), call.H = size(q, 1), call.Hkv = size(k, 1);
  call.S = size(q, 2), call.Skv = size(k, 2), call.D = size(q, 3);
  call.q_stride = strides_of(q), call.k_stride = strides_of(k);
  call.v_stride = strides_of(v), call.o_stride = strides_of(o);
  call.causal = causal_of(causal);
  call.scale = scale_of(scale, call.D);
  return {call, {std::move(out), std::move(lse)}};
}

Result on_cpu(const Tensor& q, const Tensor& k, const Tensor& v, std::string_view layout,
              std::string_view causal, std::optional<double> scale, std::string_view kernel) {
  const Version& version = version_for(kernel, 0);
  TORCH_CHECK_VALUE(q.scalar_type() == at::kFloat, "the CPU's kernels take fp32, not ",
                    q.scalar_type(), ": convert with .to(torch.float32)");
  auto [call, result] = prepare(q, k, v, layout, causal, scale);
  TORCH_CHECK_VALUE(call.D <= kMostD, "head_dim may be up to ", kMostD, ", not ", call.D);
  const auto run = version.name == "c1" ? c1 : c2;
  at::parallel_for(0, tasks(call), 1, [&call = call, run](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) run(call, task);
  });
  return result;
}

#ifdef KERNELS_HAVE_CUDA
Result on_gpu(const Tensor& q, const Tensor& k, const Tensor& v, std::string_view layout,
              std::string_view causal, std::optional<double> scale, std::string_view kernel) {
  const c10::cuda::CUDAGuard guard(q.device());
  const cudaDeviceProp* device = at::cuda::getCurrentDeviceProperties();
  const Version& version = version_for(kernel, 10 * device->major + device->minor);
  TORCH_CHECK_VALUE(q.scalar_type() == at::kBFloat16 || q.scalar_type() == at::kHalf,
                    "the GPU's kernels take bf16 and fp16, not ", q.scalar_type());
  auto [call, result] = prepare(q, k, v, layout, causal, scale);
  TORCH_CHECK_VALUE(call.D == 64 || call.D == 128, "head_dim must be 64 or 128, not ", call.D);
  call.dtype = q.scalar_type() == at::kBFloat16 ? Dtype::bf16 : Dtype::fp16;
  call.stream = at::cuda::getCurrentCUDAStream();
  const cudaError_t error = launcher_of(version.name)(call);
  TORCH_CHECK_VALUE(error != cudaErrorMisalignedAddress, "kernel ", version.name,
                    " reads 16 bytes at a time: q, k and v must begin at, and their strides be "
                    "multiples of, 16 bytes; call .contiguous() on a copy");
  TORCH_CHECK(error == cudaSuccess, "kernel ", version.name,
              " could not be launched: ", cudaGetErrorString(error));
  return result;
}
#endif

}  // namespace

TORCH_LIBRARY(attention_kernels, library) {
  library.def(
      "attention(Tensor q, Tensor k, Tensor v, *, str layout='BHSD', str causal='top_left', "
      "float? scale=None, str kernel='auto') -> (Tensor out, Tensor lse)");
}

TORCH_LIBRARY_IMPL(attention_kernels, CPU, library) {
  library.impl("attention", on_cpu);
}

#ifdef KERNELS_HAVE_CUDA
TORCH_LIBRARY_IMPL(attention_kernels, CUDA, library) {
  library.impl("attention", on_gpu);
}
#endif

}  // namespace kernels
