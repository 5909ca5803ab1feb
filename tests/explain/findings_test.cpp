// SPDX-License-Identifier: Apache-2.0
//
// Findings follow the trace: each test changes a recording and expects the findings to change with
// it.
#include "explain/finding.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <optional>

#include "explain/about.h"
#include "explain/forwards.h"
#include "trace/reader.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using Catch::Matchers::WithinAbs;
using explain::Finding;
using trace::Category;

namespace {

trace::Trace recording(const std::string& name) {
  return trace::read(std::string(PROF_TEST_DATA) + "/" + name + ".json.gz");
}

std::vector<Finding> findings_of(const trace::Trace& trace) {
  const trace::OpTree tree(trace);
  return explain::findings(tree, explain::facts(tree, explain::forward_label(tree)));
}

std::optional<Finding> find(const trace::Trace& trace, std::string_view title) {
  for (Finding& finding : findings_of(trace)) {
    if (finding.title.starts_with(title)) return std::move(finding);
  }
  return std::nullopt;
}

std::string text_of(const std::optional<Finding>& finding) {
  REQUIRE(finding);
  return explain::to_text({*finding});
}

bool is(const trace::Trace& trace, const trace::Event& event, std::string_view part) {
  return trace.name(event).find(part) != std::string_view::npos;
}

// Every event whose name holds `part` is called `name` from now on.
void rename(trace::Trace& trace, std::string_view part, std::string_view name) {
  int renamed = 0;
  for (trace::Event& event : trace.events) {
    if (!is(trace, event, part)) continue;
    event.name = trace.texts.add(name);
    ++renamed;
  }
  REQUIRE(renamed > 0);
}

void remove(trace::Trace& trace, std::string_view part) {
  REQUIRE(std::erase_if(trace.events, [&](const auto& event) { return is(trace, event, part); }) >
          0);
}

// All device events of the second forward and later ones start later.
void widen_gap(trace::Trace& trace, std::int64_t ns) {
  std::vector<std::int64_t> starts;
  for (const trace::Event& event : trace.events) {
    if (event.category == Category::kernel) starts.push_back(event.start_ns);
  }
  std::sort(starts.begin(), starts.end());
  const std::int64_t middle = starts[starts.size() / 2];
  for (trace::Event& event : trace.events) {
    if (trace::is_device(event.category) && event.start_ns >= middle) event.start_ns += ns;
  }
}

constexpr std::string_view kSgemm = "ampere_sgemm_128x64_nn";
constexpr std::string_view kOneCopy = "a copy, 3 times in 3 forwards";
constexpr std::string_view kNoCopy = "no copy of a tensor";
constexpr std::string_view kCudaCores = "matrix products on CUDA cores";
constexpr std::string_view kMask = "a mask built on every call";
constexpr std::string_view kSafe = "safe softmax does more than softmax";
constexpr std::string_view kFused = "one fused kernel does the forward";
constexpr std::string_view kLow = "low occupancy on purpose";
constexpr std::string_view kWaits = "the GPU waits between its operations";
constexpr std::string_view kWider = "the annotation on the GPU is wider than its operations";
constexpr std::string_view kPlans = "CPU time that no event explains";
constexpr std::string_view kColder = "the first forward is colder than the rest";

}  // namespace

TEST_CASE("A copy made by an out-of-place op, with the ops that made it") {
  trace::Trace trace = recording("pytorch/naive");
  const auto copy = find(trace, kOneCopy);
  CHECK_THAT(text_of(copy),
             StartsWith("Finding: a copy, 3 times in 3 forwards: Memcpy DtoD (Device -> Device), "
                        "256.00 MiB, 129.1us, launched by aten::copy_ < aten::clone < "
                        "aten::masked_fill\n"));
  CHECK_THAT(copy->share.value, WithinAbs(0.12, 0.01));
  CHECK_FALSE(find(trace, kNoCopy));

  SECTION("without the copies there is none") {
    std::erase_if(trace.events, [](const auto& e) { return e.category == Category::gpu_memcpy; });
    CHECK(text_of(find(trace, kNoCopy)) ==
          "Finding: no copy of a tensor: not one memcpy in 3 forwards\n");
    CHECK_FALSE(find(trace, "a copy"));
  }
  SECTION("a copy of a few bytes is counted, not told") {
    for (trace::Event& event : trace.events) {
      if (event.category == Category::gpu_memcpy) event.duration_ns = 900;
    }
    CHECK_THAT(text_of(find(trace, kNoCopy)),
               ContainsSubstring("3 copies in 3 forwards, each less than 1 % of a forward"));
  }
  SECTION("the chain follows the op's name") {
    rename(trace, "aten::masked_fill", "aten::where");
    CHECK_THAT(text_of(find(trace, kOneCopy)), ContainsSubstring("aten::clone < aten::where\n"));
  }
}

TEST_CASE("The in-place recording has no copy") {
  CHECK(find(recording("pytorch/inplace"), kNoCopy));
}

TEST_CASE("On a CPU the copy is an op") {
  CHECK_THAT(text_of(find(recording("explain/cpu_naive"), kOneCopy)),
             ContainsSubstring("called by aten::clone < aten::masked_fill\n") &&
                 ContainsSubstring("of the CPU time"));
}

TEST_CASE("A change of dtype is a copy by a kernel") {
  const trace::Trace trace = recording("explain/math");
  const auto conversion = find(trace, "a conversion to another dtype, 9 times");
  CHECK_THAT(text_of(conversion), ContainsSubstring("aten::copy_ < aten::_to_copy < aten::to < "
                                                    "aten::_scaled_dot_product_attention_math"));
  CHECK_FALSE(find(trace, kNoCopy));
}

TEST_CASE("Matrix products on CUDA cores while the tensor cores stand idle") {
  trace::Trace trace = recording("explain/math");
  const auto slow = find(trace, kCudaCores);
  CHECK_THAT(text_of(slow),
             StartsWith("Finding: matrix products on CUDA cores while the tensor cores stand idle: "
                        "2 per forward on NVIDIA H200\n") &&
                 ContainsSubstring("launched by aten::bmm < aten::matmul") &&
                 ContainsSubstring("CUDA cores, no tensor cores (FFMA)"));
  CHECK_THAT(slow->share.value, WithinAbs(0.366, 0.005));

  SECTION("on a GPU without tensor cores it is as it must be") {
    trace.devices.front().compute_major = 6;
    CHECK_FALSE(find(trace, kCudaCores));
  }
  SECTION("half of them renamed") {
    rename(trace, "_tn_n_tilesize", "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn");
    const std::string text = text_of(find(trace, kCudaCores));
    CHECK_THAT(text, ContainsSubstring("while others use the tensor cores: 1 per forward"));
    CHECK_THAT(text, !ContainsSubstring("s16816"));
  }
}

TEST_CASE("A kernel renamed from tensor cores to sgemm is found") {
  trace::Trace trace = recording("pytorch/naive");
  CHECK_FALSE(find(trace, kCudaCores));
  rename(trace, "nvjet_sm90_tst_256x128", kSgemm);
  const auto slow = find(trace, kCudaCores);
  CHECK_THAT(text_of(slow), ContainsSubstring(std::string(kSgemm) + ": 3 calls"));
  CHECK_THAT(slow->share.value, WithinAbs(255.3 / 3228, 0.001));  // of three such kernels
}

TEST_CASE("A mask built on every call") {
  trace::Trace trace = recording("explain/math");
  const auto mask = find(trace, kMask);
  CHECK_THAT(text_of(mask),
             StartsWith("Finding: a mask built on every call, 3 times in 3 forwards: aten::ones, "
                        "aten::tril, aten::scalar_tensor, aten::where, in "
                        "aten::_scaled_dot_product_attention_math\n") &&
                 ContainsSubstring("GPU operations: 5 per forward: "));
  SECTION("a longer triangle is a larger share") {
    for (trace::Event& event : trace.events) {
      if (is(trace, event, "triu_tril_kernel")) event.duration_ns += 1'000'000;
    }
    CHECK(find(trace, kMask)->share.value > mask->share.value + 0.2);
  }
  SECTION("without the triangle there is no mask") {
    remove(trace, "aten::tril");
    CHECK_FALSE(find(trace, kMask));
  }
}

TEST_CASE("A mask made before the forward is none") {
  CHECK_FALSE(find(recording("pytorch/naive"), kMask));
  CHECK(find(recording("explain/cpu_math"), kMask));
}

TEST_CASE("Safe softmax launches more than softmax") {
  trace::Trace trace = recording("explain/math");
  CHECK_THAT(text_of(find(trace, kSafe)),
             ContainsSubstring("aten::isneginf, aten::all, aten::scalar_tensor, aten::where\n") &&
                 ContainsSubstring("GPU operations: 4 per forward: "));
  CHECK_FALSE(find(recording("pytorch/naive"), kSafe));
  CHECK(find(recording("explain/cpu_math"), kSafe)->share.whole == explain::kCpuTime);
  rename(trace, "aten::_safe_softmax", "aten::another_softmax");
  CHECK_FALSE(find(trace, kSafe));
}

TEST_CASE("One fused kernel does the forward") {
  const auto fused = [](const std::string& name) {
    return text_of(find(recording("explain/" + name), kFused));
  };
  CHECK_THAT(fused("flash"),
             ContainsSubstring("FlashAttention-2") &&
                 ContainsSubstring("launched by cudaLaunchKernel, after aten::transpose, 4 per "
                                   "forward, views that launch nothing") &&
                 ContainsSubstring("peak memory of a forward 16.50 MiB; one tensor of scores "
                                   "[B, H, S, S] would be 256.00 MiB"));
  CHECK_THAT(fused("efficient"), ContainsSubstring("fmha_cutlassF_bf16_aligned_64x64_rf_sm80") &&
                                     ContainsSubstring("tensor cores"));
  CHECK_THAT(fused("cudnn"), ContainsSubstring("launched by cuLaunchKernelEx, without any "
                                               "aten::transpose"));
  CHECK_FALSE(find(recording("explain/math"), kFused));
  CHECK_FALSE(find(recording("explain/cpu_flash"), kFused));
}

TEST_CASE("One kernel more, or another one, and the forward is not fused") {
  trace::Trace trace = recording("explain/flash");
  SECTION("more") {
    const auto kernel = std::find_if(trace.events.begin(), trace.events.end(),
                                     [](const auto& e) { return e.category == Category::kernel; });
    trace.events.push_back(*kernel);
  }
  SECTION("another") {
    rename(trace, "flash_fwd_kernel", kSgemm);
  }
  CHECK_FALSE(find(trace, kFused));
}

TEST_CASE("Low occupancy on purpose: few warps, much room for data, tensor cores") {
  trace::Trace trace = recording("explain/flash");
  const auto low = find(trace, kLow);
  CHECK_THAT(text_of(low),
             ContainsSubstring("8 of 64 warps on a multiprocessor (12.5%), limited by registers: "
                               "128 threads a block with 255 registers each and 48.00 KiB"));
  CHECK(low->share.value > 0.9);
  SECTION("fewer registers, more warps") {
    for (trace::Launch& launch : trace.launches) {
      launch.registers_per_thread = 32;
      launch.shared_memory = 0;
    }
    CHECK_FALSE(find(trace, kLow));
  }
  SECTION("without tensor cores it is no purpose") {
    rename(trace, "flash_fwd_kernel", kSgemm);
    CHECK_FALSE(find(trace, kLow));
  }
}

TEST_CASE("Low occupancy of the other fused kernels, and of none in math") {
  CHECK_THAT(
      text_of(find(recording("explain/cudnn"), kLow)),
      ContainsSubstring("12 of 64 warps") && ContainsSubstring("Kineto prints 0 %"));  // Kineto's 0
  CHECK(find(recording("explain/efficient"), kLow));
  CHECK_FALSE(find(recording("explain/math"), kLow));
}

TEST_CASE("On a CPU one fused op does the forward") {
  constexpr std::string_view kOp = "one fused op does the forward";
  CHECK_THAT(text_of(find(recording("explain/cpu_flash"), kOp)),
             ContainsSubstring("aten::_scaled_dot_product_flash_attention_for_cpu, 1 per forward"));
  CHECK_FALSE(find(recording("explain/cpu_math"), kOp));
  CHECK_FALSE(find(recording("explain/flash"), kOp));
}

TEST_CASE("The GPU waits for launches that come too late") {
  const auto waits = find(recording("explain/naive_tiny"), kWaits);
  CHECK(waits->share.value > 0.5);
  CHECK(waits->evidence.size() == 4);  // the sum, then the three longest gaps
  CHECK_THAT(waits->evidence[0], ContainsSubstring("17 gaps; 17 of them end with an operation that "
                                                   "was launched too late"));
  CHECK_THAT(waits->evidence[1], ContainsSubstring(" of aten::bmm; the CPU then: "));
}

TEST_CASE("A wider gap makes a GPU that waits, and stands first") {
  trace::Trace trace = recording("pytorch/naive");
  CHECK_FALSE(find(trace, kWaits));
  widen_gap(trace, 2'000'000);
  const auto waits = find(trace, kWaits);
  REQUIRE(waits);
  CHECK(waits->share.value > 0.3);
  CHECK_THAT(waits->evidence[1], StartsWith("2.00"));  // 2 ms and the gap that was there
  CHECK_THAT(waits->evidence[1], ContainsSubstring("cudaDeviceSynchronize"));
  CHECK_THAT(waits->evidence[0], ContainsSubstring("; 0 of them"));  // all was launched in time
}

TEST_CASE("What another thread launches during a step keeps the GPU busy, too") {
  const auto idle = [](int second_thread) {
    const trace::Trace trace = trace::read_text(R"({"traceEvents": [
      {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "pid": 1, "tid": 1, "ts": 0, "dur": 90},
      {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"correlation": 7}},
      {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": )" +
                                                std::to_string(second_thread) +
                                                R"(, "ts": 3, "dur": 1, "args": {"correlation": 8}},
      {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 95, "dur": 1, "args": {"correlation": 9}},
      {"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 10, "dur": 1, "args": {"correlation": 7}},
      {"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 13, "dur": 1, "args": {"correlation": 8}},
      {"ph": "X", "cat": "kernel", "name": "after the step", "pid": 0, "tid": 7, "ts": 99, "dur": 1, "args": {"correlation": 9}}
    ]})");
    return explain::facts(trace::OpTree(trace), "").idle_share;
  };
  REQUIRE(idle(1));
  REQUIRE(idle(2));
  CHECK_THAT(*idle(1), WithinAbs(0.5, 1e-9));
  CHECK_THAT(*idle(2), WithinAbs(0.5, 1e-9));
}

TEST_CASE("The annotation's span on the GPU holds the gaps, too") {
  CHECK_THAT(text_of(find(recording("explain/cudnn"), kWider)),
             ContainsSubstring("sdpa_fwd on the device, 3 spans: "));
  trace::Trace trace = recording("explain/flash");
  CHECK_FALSE(find(trace, kWider));  // one kernel has no gaps inside
  for (trace::Event& event : trace.events) {
    if (event.category == Category::gpu_user_annotation) event.duration_ns *= 2;
  }
  const auto wider = find(trace, kWider);
  REQUIRE(wider);
  CHECK_THAT(wider->share.value, WithinAbs(0.5, 0.01));
}

TEST_CASE("A library that plans is CPU time that no event explains") {
  CHECK_THAT(text_of(find(recording("explain/cudnn"), kPlans)),
             ContainsSubstring("aten::_cudnn_attention_forward keeps "));
  CHECK(find(recording("explain/cudnn_cold"), kPlans)->share.value > 0.9);
  CHECK_FALSE(find(recording("explain/cpu_flash"), kPlans));  // there it is the work itself
  trace::Trace trace = recording("explain/efficient");
  CHECK_FALSE(find(trace, kPlans));
  // The forward and all around the op longer by as much as the op itself: its own time grows.
  for (trace::Event& event : trace.events) {
    const bool around = is(trace, event, "sdpa_fwd") || is(trace, event, "scaled_dot_product") ||
                        is(trace, event, "aten::_efficient_attention_forward");
    if (around && !trace::is_device(event.category)) event.duration_ns += 10'000;
  }
  for (trace::Event& event : trace.events) {
    if (is(trace, event, "ProfilerStep")) event.duration_ns += 10'000;
  }
  CHECK(find(trace, kPlans));
}

TEST_CASE("A first forward that is colder than the rest") {
  CHECK_THAT(text_of(find(recording("explain/cudnn_cold"), kColder)),
             ContainsSubstring("against the others' average: aten::_cudnn_attention_forward "));
  trace::Trace trace = recording("explain/cpu_math");
  CHECK_FALSE(find(trace, kColder));
  for (const char* first : {"ProfilerStep", "sdpa_fwd"}) {
    const auto event = std::find_if(trace.events.begin(), trace.events.end(),
                                    [&](const auto& e) { return is(trace, e, first); });
    event->start_ns -= 5'000'000;
    event->duration_ns += 5'000'000;
  }
  CHECK_THAT(text_of(find(trace, kColder)), ContainsSubstring("average: sdpa_fwd 5.0"));
}

TEST_CASE("Names in findings cannot move a cursor") {
  trace::Trace trace = recording("pytorch/naive");
  rename(trace, "aten::masked_fill", "aten::\x1b[2Jfill");
  CHECK_THAT(text_of(find(trace, kOneCopy)), ContainsSubstring("aten::\\x1b[2Jfill"));
}

TEST_CASE("A trace without forwards says so") {
  const trace::Trace trace = trace::read_text(R"({"traceEvents": []})");
  CHECK(explain::to_text(findings_of(trace)) == "Finding: none, the trace has no forward ()\n");
}

TEST_CASE("The annotation that marks the forwards") {
  const auto label = [](const trace::Trace& trace) {
    return explain::forward_label(trace::OpTree(trace));
  };
  CHECK(label(recording("pytorch/naive")) == "attn_fwd");
  CHECK(label(recording("explain/cudnn_cold")) == "sdpa_fwd");  // no steps at all
  trace::Trace trace = recording("pytorch/naive");
  SECTION("none of two that do not nest") {
    std::vector<trace::Event> more;
    for (const trace::Event& event : trace.events) {
      if (event.category == Category::cpu_op && is(trace, event, "aten::softmax")) {
        more.push_back(event);
        more.back().category = Category::user_annotation;
        more.back().name = trace.texts.add("softmax");
      }
    }
    trace.events.insert(trace.events.end(), more.begin(), more.end());
    CHECK(label(trace) == "softmax");  // inside attn_fwd: the innermost
    for (trace::Event& event : trace.events) {
      if (event.category == Category::user_annotation && is(trace, event, "attn_fwd")) {
        event.duration_ns = 1000;  // ends before the softmax begins
      }
    }
    CHECK(label(trace).empty());
    CHECK_THAT(explain::no_forward_text(trace::OpTree(trace), ""),
               ContainsSubstring("choose one by --label: ") && ContainsSubstring("attn_fwd (3)"));
  }
  SECTION("none of no annotation") {
    std::erase_if(trace.events, [](const auto& e) { return trace::is_annotation(e.category); });
    CHECK(label(trace).empty());
    CHECK_THAT(explain::no_forward_text(trace::OpTree(trace), ""), ContainsSubstring("record"));
  }
}

TEST_CASE("About the run: what is known is shown, all else is not repeated") {
  const trace::Trace trace = trace::read_text(
      R"({"chapter": "01_naive", "dtype": "bf16\u001b", "secret": "x", "device": "\u001b[2JGPU",
          "shape": "1_2_3_4", "traceEvents": []})");
  const std::string text = explain::about(trace);
  CHECK_THAT(text, ContainsSubstring("Chapter   01_naive\n") && ContainsSubstring("[2JGPU") &&
                       !ContainsSubstring("\x1b") && !ContainsSubstring("secret"));
}

TEST_CASE("Sizes of the run") {
  const auto sizes = [](const std::string& shape, const std::string& dtype) {
    return explain::sizes(trace::read_text(R"({"shape": ")" + shape + R"(", "dtype": ")" + dtype +
                                           R"(", "traceEvents": []})"));
  };
  REQUIRE(sizes("8_16_1024_64", "bf16"));
  CHECK(sizes("8_16_1024_64", "bf16")->score_bytes() == 268435456);
  CHECK(sizes("8_16_1024_64", "bf16")->output_bytes() == 16777216);
  CHECK(sizes("2_8kv2_77_32", "fp32")->score_bytes() == 2 * 8 * 77 * 77 * 4);
  for (const char* bad : {"", "8_16_1024", "8_16_1024_64_2", "8_-16_1024_64", "8_16kv_1024_64",
                          "9999999_9999999_9999999_1", "99999999999999999999_1_1_1"}) {
    CAPTURE(bad);
    CHECK_FALSE(sizes(bad, "bf16"));
  }
  CHECK_FALSE(sizes("8_16_1024_64", "int8"));
}
