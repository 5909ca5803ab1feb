// SPDX-License-Identifier: Apache-2.0
//
// Names of kernels decode by the schemes of their authors. tests/data/kernel_names.txt holds real
// names with what they say, checked by hand; the tests here are about names that it does not hold.
#include "explain/kernel_name.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cctype>
#include <fstream>
#include <string>
#include <vector>

#include "explain/kernel_name_parts.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using explain::decode;
using explain::KernelFamily;
using explain::KernelName;
using explain::TensorCores;

namespace {

struct Example {
  std::string source;
  std::string name;
  std::string expected;
};

// Blocks of three lines: "source: ", "name: ", "says: ".
std::vector<Example> examples() {
  std::ifstream file(PROF_TEST_DATA "/kernel_names.txt");
  std::vector<Example> found;
  Example example;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("source: ")) example.source = line.substr(8);
    if (line.starts_with("name: ")) example.name = line.substr(6);
    if (line.starts_with("says: ")) {
      example.expected = line.substr(6);
      found.push_back(example);
    }
  }
  return found;
}

// Family, author, architecture, data type, tile, stages, instruction, tensor cores, operation.
std::string said(const KernelName& name) {
  const auto or_dash = [](std::string_view text) {
    return text.empty() ? std::string("-") : std::string(text);
  };
  std::string text(to_string(name.family));
  for (const std::string& part :
       {or_dash(name.author), or_dash(name.architecture), or_dash(name.dtype), or_dash(name.tile),
        name.stages == 0 ? "-" : std::to_string(name.stages), or_dash(name.instruction),
        std::string(to_string(name.tensor_cores)), or_dash(name.operation)}) {
    text += " | " + part;
  }
  return text;
}

}  // namespace

TEST_CASE("Real names say what was read out of them by hand") {
  const std::vector<Example> all = examples();
  REQUIRE(all.size() >= 100);
  for (const Example& example : all) {
    INFO(example.name);
    CHECK_FALSE(example.source.empty());
    CHECK(said(decode(example.name)) == example.expected);
  }
}

TEST_CASE("A name cut off anywhere decodes without a wrong family") {
  for (const Example& example : examples()) {
    const KernelFamily whole = decode(example.name).family;
    // Each length at first, where it matters, then some: the longest names have a thousand letters.
    for (std::size_t length = 0; length < example.name.size(); length += length < 90 ? 1 : 9) {
      const KernelName name = decode(std::string_view(example.name).substr(0, length));
      CHECK_FALSE(name.sentence.empty());
      // Less is said, but nothing else. Elementwise kernels are told apart by their functor, and
      // that comes late.
      const bool is_elementwise = whole == KernelFamily::copy || whole == KernelFamily::fill ||
                                  whole == KernelFamily::optimizer;
      INFO(example.name.substr(0, length));
      CHECK((name.family == whole || name.family == KernelFamily::unknown ||
             name.family == KernelFamily::other ||
             (is_elementwise && name.family == KernelFamily::elementwise)));
    }
  }
}

TEST_CASE("Sentences say it in words") {
  CHECK(
      decode("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT").sentence ==
      "cuBLAS: matrix multiplication, bf16, for Hopper (sm_90), tile 256x128x64, 4 stages, tensor "
      "cores (wgmma), sums in fp32, clusters of 1x2 blocks, layout TNT");
  CHECK(
      decode("ampere_sgemm_128x64_nn").sentence ==
      "cuBLAS: matrix multiplication, fp32, for Ampere (sm_80), tile 128x64, CUDA cores, no tensor "
      "cores, layout nn");
  CHECK(decode("fmha_cutlassF_bf16_aligned_64x64_rf_sm80").sentence ==
        "PyTorch's memory-efficient attention (CUTLASS): attention forward, bf16, for Ampere "
        "(sm_80), "
        "tile 64x64, tensor cores (mma), aligned, output kept in registers");
  CHECK(decode("Memcpy DtoD (Device -> Device)").sentence ==
        "CUDA driver: memcpy device to device");
  CHECK(decode("my_kernel<float>(float*)").sentence == "a name of no known scheme");
}

TEST_CASE("Short names for figures") {
  CHECK(decode("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT").short_name ==
        "matmul bf16 256x128x64");
  CHECK(decode("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)").short_name ==
        "NCCL all-reduce sum bf16");
  CHECK(decode("my_kernel<float>(float*)").short_name == "my_kernel");
  CHECK(decode("void at::native::vectorized_elementwise_kernel<8, at::native::"
               "bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}>(int)")
            .short_name == "copy fp32 to bf16");
  for (const Example& example : examples()) {
    const std::string name = decode(example.name).short_name;
    CHECK_FALSE(name.empty());
    CHECK(name.size() <= 32);
  }
}

// The numbers of a shape that no recording here has; each scheme is a rule, not a list.
TEST_CASE("Names never seen decode by their scheme") {
  CHECK(said(decode("nvjet_sm90_hsh_192x72_64x7_4x1_v_bz_TNN")) ==
        "matmul | cuBLAS | sm_90 | fp16 | 192x72x64 | 7 | wgmma | yes | matrix multiplication");
  CHECK(said(decode("nvjet_sm120_tst_mma_48x96x128_5_32x32x128_tmaAB_bz_TNNN")) ==
        "matmul | cuBLAS | sm_120 | bf16 | 48x96x128 | 5 | mma | yes | matrix multiplication");
  CHECK(
      said(decode("ampere_i8_i16832gemm_int8_96x96_ldg16_stages_64x9_tt")) ==
      "matmul | cuBLAS | sm_80 | int8 | 96x96x64 | 9 | mma 16x8x32 | yes | matrix multiplication");
  CHECK(said(decode("sm100_xmma_gemm_f16f32_f16f32_f32_nt_n_tilesize32x48x64_stage9_warpsize1x1x1_"
                    "tensor16x8x16_execute_kernel__6x_cublas")) ==
        "matmul | cuBLAS | sm_100 | fp16 | 32x48x64 | 9 | mma 16x8x16 | yes | matrix "
        "multiplication");
  CHECK(said(decode("void cutlass::Kernel2<cutlass_86_simt_dgemm_16x32_8x2_tn_align1>(Params)")) ==
        "matmul | CUTLASS | sm_86 | fp64 | 16x32x8 | 2 | - | no | matrix multiplication");
  CHECK(said(decode("fmha_cutlassF_f16_notaligned_96x160_gmem_sm90(X)")) ==
        "attention | PyTorch's memory-efficient attention (CUTLASS) | sm_90 | fp16 | 96x160 | - | "
        "mma | yes | attention forward");
  CHECK(
      said(decode("void at::native::vectorized_elementwise_kernel<16, at::native::frob_kernel_cuda("
                  "at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda(c10::Half)"
                  "#1}, std::array<char*, 2ul> >(int)")) ==
      "elementwise | PyTorch ATen | - | fp16 | - | - | - | no | frob");
  CHECK(said(decode("ncclDevKernel_ReduceScatter_Prod_f64_TREE_LL128(ncclDevKernelArgs)")) ==
        "collective | NCCL | - | fp64 | - | - | - | no | reduce-scatter prod");
  CHECK(said(decode("triton_red_fused_add_native_layer_norm_12")) ==
        "reduce | Triton/Inductor | - | - | - | - | - | unknown | fused reduction, in a loop");
}

TEST_CASE("The kernels of chapter 04") {
  CHECK(
      decode("void kernels::(anonymous namespace)::overlapped<__nv_bfloat16, 64>(kernels::"
             "Attention, kernels::Maps)")
          .sentence ==
      "chapter 04: attention forward, bf16, for Hopper (sm_90), tensor cores (wgmma), v6, head_dim "
      "64");
  CHECK(decode("void kernels::warp_per_row<__half, 128>(kernels::Attention)").sentence ==
        "chapter 04: attention forward, fp16, CUDA cores, no tensor cores, v1, head_dim 128");
  CHECK(decode("void kernels::something_else<__half>(int)").family == KernelFamily::unknown);
}

// The template's flags: dropout, causal, sliding window, ALiBi, ...
TEST_CASE("FlashAttention's template arguments in words") {
  const std::string head =
      "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<96, 128, 64, 4, false, false, "
      "cutlass::half_t, Flash_kernel_traits<96, 128, 64, 4, cutlass::half_t> >, ";
  const std::string causal =
      decode(head + "false, true, false, false, true, true, false, false>(x)").sentence;
  CHECK_THAT(causal, ContainsSubstring("head_dim 96, 4 warps, causal"));
  CHECK_THAT(causal, !ContainsSubstring("dropout"));
  const std::string rest =
      decode(head + "true, false, true, true, true, true, false, false>(x)").sentence;
  CHECK_THAT(rest, EndsWith("dropout, not causal, sliding window, ALiBi"));
}

// What cuBLAS's names say of stages must fit into the shared memory that the kernel was launched
// with: (M + N) x K x 2 bytes in each stage, and something for the rest. Blocks that work in pairs
// (2cta) hold half of B each. Launches from the recordings named in kernel_names.txt.
TEST_CASE("nvjet's tile and stages agree with the shared memory of its launches") {
  struct Launch {
    std::string_view name;
    int shared_memory;
  };
  for (const auto& [text, shared_memory] :
       {Launch{"nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", 213188},
        Launch{"nvjet_sm90_tst_64x512_64x2_1x2_h_bz_coopB_NNT", 163972},
        Launch{"nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT", 213656},
        Launch{"nvjet_tst_144x128_64x6_2x1_v_bz_bias_TNN", 217680},
        Launch{"nvjet_tst_64x16_64x16_2x4_2cta_h_bz_bias_TNT", 164504},
        Launch{"nvjet_tst_192x8_64x8_4x1_v_bz_TNT", 221512}}) {
    const KernelName name = decode(text);
    const std::vector<int> tile = explain::names::integers(name.tile);
    REQUIRE(tile.size() == 3);
    const int b = text.find("2cta") == std::string_view::npos ? tile[1] : tile[1] / 2;
    const int stages = (tile[0] + b) * tile[2] * 2 * name.stages;
    INFO(text);
    CHECK(stages <= shared_memory);
    CHECK(shared_memory - stages < 24 * 1024);  // the result on its way out, barriers
  }
}

TEST_CASE("What is not known is not guessed") {
  for (const std::string_view text : {"",
                                      " ",
                                      "softmax_kernel(float*)",
                                      "matmul",
                                      "flash_attention_kernel",
                                      "gemm_tuned_128x128",
                                      "triton",
                                      "nccl",
                                      "cutlass",
                                      "at",
                                      "_Z",
                                      "_ZN",
                                      "<<<<",
                                      ">>>>",
                                      "((((",
                                      "Kernel",
                                      "elementwise",
                                      "my::attention<float>(x)",
                                      "bmm_kernel_t",
                                      "sm90_",
                                      "volta_",
                                      "nvjetx_tst"}) {
    INFO(text);
    const KernelName name = decode(text);
    CHECK(name.family == KernelFamily::unknown);
    CHECK(name.author.empty());
    CHECK(name.sentence == "a name of no known scheme");
  }
}

TEST_CASE("Mangled names say the same") {
  const std::string mangled =
      "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13BinaryFunctorIfffNS0_15binary_"
      "internal"
      "10MulFunctorIfEEEESt5arrayIPcLm3EEEEviT0_T1_";
  CHECK(explain::names::readable(mangled) ==
        "at::native::vectorized_elementwise_kernel<4, ?::BinaryFunctor<float, float, float, "
        "?::binary_internal::MulFunctor<float>>, std::array<char, 3>>");
  CHECK(said(decode(mangled)) == "elementwise | PyTorch ATen | - | fp32 | - | - | - | no | mul");
  // A name that is cut off says what stands in it whole: "15binar" is no part of
  // "15binary_internal", and "Li12" may have been any of 12 to 129.
  CHECK(explain::names::readable(mangled.substr(0, mangled.find("y_internal"))) ==
        "at::native::vectorized_elementwise_kernel<4, ?::BinaryFunctor<float, float, float, ?>>");
  CHECK(explain::names::readable("_ZN3foo3barILi128ELi12") == "foo::bar<128, >");
  CHECK(explain::names::readable("_ZN3foo12_GLOBAL__N_13barEv") == "foo::bar");
}

TEST_CASE("Hostile names are cheap and safe to print") {
  const KernelName escaped = decode("triton_poi_fused_\x1b[2J_0");
  for (const char c : escaped.sentence + escaped.short_name) CHECK(std::iscntrl(c) == 0);
  for (const std::string_view part :
       {"<", "(", "::", "a<b<", "_", "Z", "NS0_", "{lambda(", "ILi1E", "at::native::", "x8", "9"}) {
    std::string long_name = "_Z";
    std::string other = "void at::native::reduce_kernel<";
    while (other.size() < 100'000) {
      long_name += part;
      other += part;
    }
    CHECK_FALSE(decode(long_name).sentence.empty());
    CHECK(decode(other).sentence.size() <= 400);
  }
}
