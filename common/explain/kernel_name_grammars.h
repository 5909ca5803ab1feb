// SPDX-License-Identifier: Apache-2.0
//
// One grammar per naming scheme. Each fills in what the name says and answers true, or leaves
// `name` as it was and answers false. kernel_name.cpp holds the table of them and its order.
#pragma once

#include "explain/kernel_name.h"
#include "explain/kernel_name_parts.h"

namespace explain::names {

using Grammar = bool (*)(const Symbol& symbol, KernelName& name);

// kernel_name_cublas.cpp, kernel_name_cutlass.cpp: matrix multiplications and convolutions
bool read_nvjet(const Symbol& symbol, KernelName& name);     // nvjet_sm90_tst_256x128_64x4_...
bool read_xmma(const Symbol& symbol, KernelName& name);      // sm80_xmma_gemm_f32f32_...
bool read_assembly(const Symbol& symbol, KernelName& name);  // ampere_sgemm_128x64_nn
bool read_cutlass(const Symbol& symbol, KernelName& name);   // cutlass_80_tensorop_s1688gemm_...
bool read_cutlass3(const Symbol& symbol, KernelName& name);  // cutlass3x_sm100_tensorop_...
bool read_cutlass_types(const Symbol& symbol, KernelName& name);     // cutlass::device_kernel<...>
bool read_cublas_templates(const Symbol& symbol, KernelName& name);  // gemv2T_kernel_val<...>
bool read_trtllm_gemm(const Symbol& symbol, KernelName& name);       // bmm_MxE4m3_MxE2m1MxE4m3_...

// kernel_name_attention.cpp
bool read_flash2(const Symbol& symbol, KernelName& name);  // pytorch_flash::flash_fwd_kernel<...>
bool read_flash3(const Symbol& symbol, KernelName& name);  // flash::FlashAttnFwdSm90<...>
bool read_flash4(const Symbol& symbol, KernelName& name);  // ...FlashAttentionForwardSm100...
bool read_memory_efficient(const Symbol& symbol, KernelName& name);  // fmha_cutlassF_bf16_...
bool read_older_attention(const Symbol& symbol, KernelName& name);   // fmha_fwd_loop_kernel<...>
bool read_cudnn_generated(const Symbol& symbol, KernelName& name);   // cudnn_generated_..._sdpa_...
bool read_trtllm_fmha(const Symbol& symbol, KernelName& name);       // fmhaSm100aKernel_QkvE4m3...
bool read_ladder(const Symbol& symbol, KernelName& name);            // kernels::overlapped<...>

// kernel_name_aten.cpp
bool read_aten(const Symbol& symbol, KernelName& name);  // at::native::reduce_kernel<...>

// kernel_name_others.cpp
bool read_memory_operation(const Symbol& symbol, KernelName& name);  // Memcpy DtoD (...), Memset
bool read_nccl(const Symbol& symbol, KernelName& name);      // ncclDevKernel_AllReduce_Sum_...
bool read_inductor(const Symbol& symbol, KernelName& name);  // triton_poi_fused_add_0
bool read_cudnn_templates(const Symbol& symbol, KernelName& name);  // cudnn::bn_fw_tr_1C11_...
bool read_cub(const Symbol& symbol, KernelName& name);   // cub::DeviceRadixSortOnesweepKernel
bool read_rocm(const Symbol& symbol, KernelName& name);  // Cijk_Ailk_Bljk_BBS_...
bool read_by_namespace(const Symbol& symbol, KernelName& name);  // vllm::rms_norm_kernel<...>

// What a function's words say of its work; `other` where they say nothing.
[[nodiscard]] KernelFamily family_of_words(std::string_view words);

}  // namespace explain::names
