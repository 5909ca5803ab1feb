// SPDX-License-Identifier: Apache-2.0
//
// The programs as a user runs them: output, files, exit codes.
#include <fmt/format.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "explain/decode.h"
#include "explain/facts.h"
#include "explain/forwards.h"
#include "explain/memory.h"
#include "explain/memory_figure.h"
#include "explain/op_graph.h"
#include "explain/plot.h"
#include "explain/quiz.h"
#include "explain/sweep_file.h"
#include "explain/text.h"
#include "profiler/device.h"
#include "trace/key_averages.h"
#include "trace/reader.h"

using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

struct Result {
  int exit_code = -1;
  std::string out, err;
};

std::string file_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A folder to run programs in; the small shape keeps each run below a second.
class Sandbox {
 public:
  Sandbox() {
    std::string name = (fs::temp_directory_path() / "prof-run-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    folder_ = name;
  }
  ~Sandbox() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  [[nodiscard]] Result run(const std::string& program, const std::string& arguments,
                           const std::string& environment = "") const {
    const fs::path err = folder_ / "stderr";
    const std::string command =
        fmt::format("cd '{}' && {} '{}/{}' {} 2>'{}'", folder_.string(), environment, PROF_PROGRAMS,
                    program, arguments, err.string());
    FILE* pipe = ::popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    Result result;
    std::array<char, 4096> buffer;
    for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
      result.out.append(buffer.data(), got);
    }
    const int status = ::pclose(pipe);
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result.err = file_text(err);
    fs::remove(err);
    return result;
  }
  [[nodiscard]] const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

// Names and nesting of the ops, without times: one line an event, indented by its depth.
std::string structure(const fs::path& path) {
  const trace::Trace trace = trace::read(path);
  const trace::OpTree tree(trace);
  std::string text;
  for (const std::uint32_t event : tree.order()) {
    for (auto up = tree.parent(event); up != trace::kNoEvent; up = tree.parent(up)) text += ' ';
    text += std::string(tree.name(event)) + '\n';
  }
  return text;
}

using Names = std::vector<std::string>;

Names op_names(const explain::OpGraph& graph) {
  Names names;
  for (const explain::OpGraph::Node& node : graph.nodes)
    if (node.kind == explain::OpGraph::Kind::op) names.push_back(node.name);
  return names;
}

constexpr const char* kSmall = "--device cpu --batch 1 --heads 2 --seq 64 --head-dim 16";

struct Chapter {
  const char* name;
  const char* variant;
};

}  // namespace

TEST_CASE("A chapter prints its table, writes its files, and the file reproduces the table") {
  const auto [name, variant] =
      GENERATE(Chapter{"01_naive", "naive"}, Chapter{"02_inplace", "inplace"});
  const Sandbox sandbox;
  const Result result = sandbox.run(name, kSmall);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  for (const char* part :
       {"Device ", "LibTorch ", "[B=1, H=2, S=64, D=16]", "Schedule  wait=1, warmup=1",
        "relative error", "Facts from the trace, 3 forwards", "peak memory",
        "Finding: ", "Next: "}) {
    CHECK_THAT(result.out, ContainsSubstring(part));
  }
  const fs::path stem = sandbox.folder() / "traces" / name / fmt::format("1_2_64_16_{}", variant);
  const std::string table = file_text(stem.string() + ".txt");
  CHECK_THAT(result.out, ContainsSubstring(table));
  const trace::Trace trace = trace::read(stem.string() + ".json.gz");
  CHECK(trace::key_averages(trace).table({.sort_by = "cpu_time_total", .row_limit = 15}) == table);
  const explain::Facts facts = explain::facts(trace::OpTree(trace), "attn_fwd");
  CHECK_THAT(result.out, ContainsSubstring(explain::to_text(facts)));
  // Two score tensors of 1 * 2 * 64 * 64 floats are alive at the peak, masked in place or not.
  // (and a few bytes of scalars on their way into an op).
  REQUIRE(facts.peak_memory);
  CHECK(*facts.peak_memory >= 2 * 2 * 64 * 64 * 4);
  CHECK(*facts.peak_memory < 2 * 2 * 64 * 64 * 4 + 64);
  CHECK(std::distance(fs::directory_iterator(stem.parent_path()), fs::directory_iterator()) == 2);
}

TEST_CASE("The option --graph writes the ops of one forward and changes nothing else") {
  const auto [name, arguments, variant, expected] = GENERATE(
      std::tuple("01_naive", "", "naive",
                 Names{"aten::bmm", "aten::mul", "aten::clone", "aten::masked_fill_",
                       "aten::_softmax", "aten::bmm"}),
      std::tuple(
          "02_inplace", "", "inplace",
          Names{"aten::bmm", "aten::mul", "aten::masked_fill_", "aten::_softmax", "aten::bmm"}),
      std::tuple("03_sdpa", "--backend flash", "flash",
                 Names{"aten::_scaled_dot_product_flash_attention_for_cpu"}),
      std::tuple("04_kernels", "--kernel c1", "c1", Names{"attention_kernels::attention"}));
  const Sandbox sandbox;
  const Result plain = sandbox.run(name, fmt::format("{} {}", kSmall, arguments));
  const fs::path stem = sandbox.folder() / "traces" / name / fmt::format("1_2_64_16_{}", variant);
  const std::string before = structure(stem.string() + ".json.gz");
  const Result result = sandbox.run(name, fmt::format("{} {} --graph", kSmall, arguments));
  CAPTURE(name, result.out, result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK_THAT(plain.out, !ContainsSubstring("Graph "));
  CHECK_THAT(result.out,
             ContainsSubstring("Graph     traces/") && ContainsSubstring("readtrace graph"));
  CHECK(structure(stem.string() + ".json.gz") == before);
  const explain::OpGraph graph =
      explain::op_graph(explain::read_execution_trace(stem.string() + ".graph.json"), {});
  CHECK(op_names(graph) == expected);
  CHECK_THAT(graph.title, Catch::Matchers::EndsWith("_fwd"));
  // The one result of the forward, [B, H, S, D].
  REQUIRE_FALSE(graph.edges.empty());
  CHECK(std::any_of(graph.edges.begin(), graph.edges.end(), [&](const auto& edge) {
    return graph.nodes[edge.to].kind == explain::OpGraph::Kind::output &&
           edge.tensor == "[1, 2, 64, 16] fp32 8.00 KiB";
  }));
}

TEST_CASE("The recorded graph of 01 is the one that it has today") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("01_naive", std::string(kSmall) + " --graph").exit_code == 0);
  const auto graph_in = [](const fs::path& file) {
    return explain::op_graph(explain::read_execution_trace(file), {});
  };
  CHECK(op_names(graph_in(PROF_RESULTS "/01_naive.naive.cpu.graph.json.gz")) ==
        op_names(graph_in(sandbox.folder() / "traces/01_naive/1_2_64_16_naive.graph.json")));
}

TEST_CASE("The copy is in 01 and not in 02") {
  const Sandbox sandbox;
  // Large enough that the copy is worth saying: a hundredth of a forward or more.
  const std::string shape = "--device cpu --batch 1 --heads 4 --seq 512 --head-dim 16";
  CHECK_THAT(sandbox.run("01_naive", shape).out,
             ContainsSubstring("called by aten::clone < aten::masked_fill"));
  CHECK_THAT(sandbox.run("02_inplace", shape).out,
             ContainsSubstring("Finding: no copy of a tensor"));
}

TEST_CASE("03 runs every backend that the CPU has, and says why it has no others") {
  const Sandbox sandbox;
  // One thread: the CPU's flash kernel has a buffer per thread, which many cores would make large.
  const Result result =
      sandbox.run("03_sdpa", std::string(kSmall) + " --backend all", "OMP_NUM_THREADS=1");
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  for (const char* part :
       {"in place", "math", "flash", "not efficient: it runs on CUDA devices only",
        "not cudnn: it runs on CUDA devices only", "rel. error"}) {
    CHECK_THAT(result.out, ContainsSubstring(part));
  }
  const auto facts = [&](const char* variant) {
    const trace::Trace trace =
        trace::read(sandbox.folder() / fmt::format("traces/03_sdpa/1_2_64_16_{}.json.gz", variant));
    CHECK(trace.metadata_value("variant") == fmt::format("\"{}\"", variant));
    return explain::facts(trace::OpTree(trace), "sdpa_fwd");
  };
  // Flash never holds a score matrix; math and in place hold two or more of 2 * 64 * 64 floats.
  CHECK(facts("flash").peak_memory.value_or(0) < 2 * 64 * 64 * 4);
  CHECK(facts("math").peak_memory.value_or(0) >= 2 * 2 * 64 * 64 * 4);
  CHECK(facts("inplace").peak_memory.value_or(0) >= 2 * 2 * 64 * 64 * 4);
  CHECK(facts("flash").ops.most < facts("inplace").ops.most);
}

TEST_CASE("03 shows LibTorch's choice with the reasons against the others") {
  const Sandbox sandbox;
  const Result result = sandbox.run("03_sdpa", std::string(kSmall) + " --kv-heads 1");
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("LibTorch's choice") &&
                             ContainsSubstring("not cudnn: it runs on CUDA devices only"));
}

TEST_CASE("A backend that cannot run is one line and exit code 2") {
  const Sandbox sandbox;
  for (const char* backend : {"cudnn", "efficient"}) {
    const Result result = sandbox.run("03_sdpa", fmt::format("{} --backend {}", kSmall, backend));
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(
        result.err ==
        fmt::format("03_sdpa: --backend {}: it runs on CUDA devices only; see --help\n", backend));
    CHECK(fs::is_empty(sandbox.folder()));
  }
  CHECK(sandbox.run("03_sdpa", "--backend fastest").exit_code == 2);
}

TEST_CASE("04 runs its own op, says why it chose, and compares") {
  const Sandbox sandbox;
  const Result result = sandbox.run("04_kernels", std::string(kSmall) + " --kernel auto");
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("Kernel    c2 (") &&
                             ContainsSubstring("not v6: it needs an NVIDIA GPU") &&
                             ContainsSubstring("attention_kernels::attention"));
  const Result all =
      sandbox.run("04_kernels", std::string(kSmall) + " --kernel all --against flash");
  CAPTURE(all.err);
  REQUIRE(all.exit_code == 0);
  for (const char* part : {"\nflash ", "\nc1 ", "\nc2 ", "not v1: it needs an NVIDIA GPU"})
    CHECK_THAT(all.out, ContainsSubstring(part));
  CHECK(fs::exists(sandbox.folder() / "traces/04_kernels/1_2_64_16_c1.json.gz"));
}

TEST_CASE("04 aligns the mask to either corner where keys and queries differ in number") {
  const Sandbox sandbox;
  for (const char* align : {"top-left", "bottom-right"}) {
    for (const char* keys : {"1", "40", "130"}) {  // with fewer keys than queries, rows are empty
      const Result result = sandbox.run(
          "04_kernels",
          fmt::format("{} --kernel all --kv-seq {} --causal-align {}", kSmall, keys, align));
      CAPTURE(align, keys, result.err);
      CHECK(result.exit_code == 0);
    }
  }
  CHECK(fs::exists(sandbox.folder() / "traces/04_kernels/1_2_64_16_c2-kv130-bottom-right.json.gz"));
}

TEST_CASE("04 calls an op of the signature in a library built elsewhere") {
  const Sandbox sandbox;
  const auto with = [&](const std::string& library) {
    return sandbox.run("04_kernels", fmt::format("{} --kernel-library '{}'", kSmall, library));
  };
  const Result result = with(PROF_FOREIGN_KERNELS);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("Op        foreign::flash"));
  CHECK_THAT(with(PROF_NO_KERNELS).err, ContainsSubstring("registers no op (Tensor q") &&
                                            ContainsSubstring("it registers foreign::another"));
  CHECK_THAT(with("/nowhere/lib.so").err, ContainsSubstring("/nowhere/lib.so cannot be loaded"));
  CHECK(with("/nowhere/lib.so").exit_code == 1);
}

TEST_CASE("What 04 cannot run is one line and exit code 2") {
  const Sandbox sandbox;
  const auto refused = [&](const std::string& arguments) {
    const Result result = sandbox.run("04_kernels", fmt::format("{} {}", kSmall, arguments));
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(fs::is_empty(sandbox.folder()));
    return result.err;
  };
  CHECK(refused("--kernel v3") == "04_kernels: --kernel v3: it needs an NVIDIA GPU; see --help\n");
  CHECK_THAT(refused("--kernel v7"), ContainsSubstring("--kernel"));
  CHECK_THAT(refused("--against fastest"), ContainsSubstring("not 'fastest'"));
  CHECK_THAT(refused("--against cudnn"), ContainsSubstring("--against cudnn: it runs on CUDA"));
  CHECK_THAT(refused("--dtype bf16"), ContainsSubstring("on the CPU the kernels take fp32"));
  CHECK_THAT(sandbox.run("04_kernels", "--device cpu --head-dim 300").err,
             ContainsSubstring("may be up to 256 on the CPU, not 300"));
  CHECK_THAT(refused("--kv-seq 0"), ContainsSubstring("--kv-seq takes a length"));
  CHECK_THAT(refused("--kv-seq 9x"), ContainsSubstring("not '9x'"));
  CHECK_THAT(refused("--kv-seq 9 --against flash"), ContainsSubstring("leave --kv-seq"));
  CHECK_THAT(refused("--kernel all --guess 1,2,3"), ContainsSubstring("about one kernel"));
}

TEST_CASE("05 says where the memory went, from its trace, in each mode") {
  const auto [variant, mode, at_peak] =
      GENERATE(std::tuple("naive", "inference", "aten::mul < forward, 2 blocks"),
               std::tuple("naive", "training", "; kept for SoftmaxBackward0"),
               std::tuple("inplace", "checkpoint", "< recompute; kept for SoftmaxBackward0"),
               std::tuple("sdpa-math", "training", "; kept for SafeSoftmaxBackward0"),
               std::tuple("flash", "training", "; kept for MulBackward0"),
               std::tuple("kernel", "inference", "reached in"));
  const Sandbox sandbox;
  const Result result =
      sandbox.run("05_memory", fmt::format("{} --variant {} --mode {}", kSmall, variant, mode));
  CAPTURE(variant, mode, result.out, result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK_THAT(result.out, ContainsSubstring("Self CPU Mem") && ContainsSubstring(at_peak));
  const fs::path stem =
      sandbox.folder() / "traces/05_memory" / fmt::format("1_2_64_16_{}-{}-2layers", variant, mode);
  const trace::Trace trace = trace::read(stem.string() + ".json.gz");
  const trace::OpTree tree(trace);
  const explain::MemoryTimeline memory = explain::memory_timeline(tree, std::nullopt);
  CHECK_THAT(result.out, ContainsSubstring(explain::to_text(tree, memory)));
  CHECK(file_text(stem.string() + ".memory.svg") == explain::memory_figure(tree, memory, {}));
  // LibTorch's reports outside of the recording give the same peak, to the byte.
  const std::int64_t peak =
      explain::total(memory.curve[memory.peak].bytes) - explain::total(memory.held);
  CHECK_THAT(result.out, ContainsSubstring(fmt::format("peak of a step              {} beyond",
                                                       explain::size_text(peak))));
  CHECK(memory.unpaired == 0);
}

TEST_CASE("05 compares lengths and variants, and goes on where one does not fit") {
  const Sandbox sandbox;
  const Result result = sandbox.run("05_memory", std::string(kSmall) +
                                                     " --variant all --mode inference --layers 1 "
                                                     "--sweep 64,128,192,256");
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  for (const char* part :
       {"\nnaive            64", "\ninplace         256", "\nflash           256",
        "\nkernel          256", "to the byte for the last 4 of 4 lengths",
        "16 are 2 score matrices, 1 are masks", "not tried: a CPU would swap",
        "not efficient: it runs on CUDA devices only"})
    CHECK_THAT(result.out, ContainsSubstring(part));
  const Result large =
      sandbox.run("05_memory", std::string(kSmall) + " --sweep 64,1000000,2000000");
  CHECK(large.exit_code == 0);
  CHECK_THAT(large.out, ContainsSubstring("\nnaive       1000000  not tried: it may need"));
}

TEST_CASE("05 writes what its sweep measured, and a plot of it") {
  const Sandbox sandbox;
  const Result result = sandbox.run("05_memory", std::string(kSmall) + " --sweep 64,128,1000000");
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  const std::string stem = "traces/05_memory/1_2_64_16_naive-training-2layers.sweep";
  CHECK_THAT(result.out, ContainsSubstring("Sweep     " + stem + ".json") &&
                             ContainsSubstring("Plot      " + stem + ".svg"));
  const explain::Sweep sweep = explain::read_sweep(sandbox.folder() / (stem + ".json"));
  CHECK(file_text(sandbox.folder() / (stem + ".svg")) == explain::plot_svg(sweep, {}));
  REQUIRE(sweep.rows.size() == 3);
  for (const std::size_t row : {std::size_t{0}, std::size_t{1}}) {
    CHECK(sweep.rows[row].line == "naive");
    CHECK(sweep.rows[row].x == 64.0 * static_cast<double>(row + 1));
    REQUIRE(sweep.rows[row].values.front() > 0.0);
    const auto peak = static_cast<std::int64_t>(*sweep.rows[row].values.front());
    CHECK_THAT(result.out, ContainsSubstring(explain::size_text(peak)));
  }
  CHECK_FALSE(sweep.rows[2].values.front());
  CHECK_THAT(sweep.rows[2].reason, ContainsSubstring("not tried: it may need"));
}

TEST_CASE("What 05 cannot run is one line and exit code 2") {
  const Sandbox sandbox;
  const auto refused = [&](const std::string& arguments) {
    const Result result = sandbox.run("05_memory", fmt::format("{} {}", kSmall, arguments));
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(fs::is_empty(sandbox.folder()));
    return result.err;
  };
  CHECK_THAT(refused("--variant kernel"), ContainsSubstring("have no backward"));
  CHECK_THAT(refused("--variant cudnn"), ContainsSubstring("it runs on CUDA devices only"));
  CHECK_THAT(refused("--variant fastest"), ContainsSubstring("--variant"));
  CHECK_THAT(refused("--layers 0"), ContainsSubstring("--layers takes a number from 1 to 1000"));
  CHECK_THAT(refused("--layers 2x"), ContainsSubstring("not '2x'"));
  for (const char* bad : {"0", "a", "64,", "64,,128", "-1", "99999999999999999999"})
    CHECK_THAT(refused(fmt::format("--sweep '{}'", bad)), ContainsSubstring("--sweep takes"));
  CHECK_THAT(refused("--sweep 64 --guess 1,2,3,4"), ContainsSubstring("about one recording"));
  CHECK_THAT(refused("--variant all --guess 1,2,3,4"), ContainsSubstring("about one recording"));
  const Result large = sandbox.run("05_memory", "--device cpu --seq 1000000");
  CHECK(large.exit_code == 2);
  CHECK_THAT(large.err, ContainsSubstring("this step may need"));
}

TEST_CASE("06 writes tokens over each cache, and says from its trace what that cost") {
  const auto [arguments, variant, seen] =
      GENERATE(std::tuple("--cache concat", "concat", "aten::cat"),
               std::tuple("--cache preallocated", "preallocated", "aten::index_copy_"),
               std::tuple("--cache paged --lengths 17", "paged", "attention_kernels::decode"),
               std::tuple("--cache paged --attention sdpa", "paged-sdpa", "aten::index_select"),
               std::tuple("--cache none", "none", "aten::scatter_"));
  const Sandbox sandbox;
  const Result result =
      sandbox.run("06_kv_cache", fmt::format("{} --tokens 8 {} --row-limit 40", kSmall, arguments));
  CAPTURE(arguments, result.out, result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK_THAT(result.out, ContainsSubstring(seen) && ContainsSubstring("Facts from the trace, 24 "));
  const fs::path file =
      sandbox.folder() / "traces/06_kv_cache" / fmt::format("1_2_64_16_{}.json.gz", variant);
  const trace::Trace trace = trace::read(file);
  const trace::OpTree tree(trace);
  CHECK(explain::forward_label(tree) == "decode");
  const auto facts = explain::decode_facts(tree);
  REQUIRE(facts);
  CHECK(facts->generations == 3);
  CHECK(facts->tokens == 8);
  CHECK_THAT(result.out, ContainsSubstring(explain::to_text(*facts)));
}

TEST_CASE("06 compares caches and numbers of tokens in one table") {
  const Sandbox sandbox;
  const Result result =
      sandbox.run("06_kv_cache", std::string(kSmall) + " --cache all --sweep 4,8");
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  for (const char* part : {"\nnone              4", "\nconcat            8",
                           "\npreallocated      4", "\npaged             8", "rel. error"})
    CHECK_THAT(result.out, ContainsSubstring(part));
  // (T (T + 1) / 2 + 64 T) / (64 + T) of the final cache, and 1 + 1 / (2 layers) less a token.
  CHECK_THAT(result.out, ContainsSubstring("concat            8       4.00      7.61"));
  const std::string stem = "traces/06_kv_cache/1_2_64_16_all.sweep";
  const explain::Sweep sweep = explain::read_sweep(sandbox.folder() / (stem + ".json"));
  CHECK(file_text(sandbox.folder() / (stem + ".svg")) == explain::plot_svg(sweep, {}));
  REQUIRE(sweep.rows.size() == 4 * 2);
  CHECK(sweep.rows[3].line == "concat");
  REQUIRE(sweep.rows[3].values.size() == 5);
  CHECK(fmt::format("{:.2f}", sweep.rows[3].values[2].value_or(0)) == "7.61");
}

TEST_CASE("What 06 cannot run is one line and exit code 2") {
  const Sandbox sandbox;
  const auto refused = [&](const std::string& arguments) {
    const Result result = sandbox.run("06_kv_cache", fmt::format("{} {}", kSmall, arguments));
    CAPTURE(arguments, result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK(fs::is_empty(sandbox.folder()));
    return result.err;
  };
  CHECK_THAT(refused("--cache preallocated --capacity 80"),
             ContainsSubstring("room for 80 tokens of a sequence, and 64 + 40 are to come"));
  CHECK_THAT(refused("--cache concat --cuda-graph"), ContainsSubstring("at other addresses"));
  CHECK_THAT(refused("--cache paged --cuda-graph"), ContainsSubstring("needs an NVIDIA GPU"));
  CHECK_THAT(refused("--cache ring"), ContainsSubstring("--cache"));
  CHECK_THAT(refused("--tokens 2x"), ContainsSubstring("not '2x'"));
  CHECK_THAT(refused("--lengths 3,4"), ContainsSubstring("each of the 1 sequences"));
  CHECK_THAT(refused("--sweep 8 --guess 1,2,3,4"), ContainsSubstring("about one recording"));
  const Result large =
      sandbox.run("06_kv_cache", "--device cpu --batch 64 --heads 64 --seq 64 --capacity 1048576");
  CHECK(large.exit_code == 2);
  CHECK_THAT(large.err, ContainsSubstring("the cache may need"));
}

TEST_CASE("On a GPU: 06 replays a token as one launch") {
  const prof::Machine machine = prof::Machine::here();
  if (machine.gpus.empty() || machine.gpus.front().compute_capability() < 80)
    SKIP("no NVIDIA GPU here that runs the decode kernel (sm_80)");
  const Sandbox sandbox;
  const std::string shape =
      "--device cuda:0 --batch 2 --heads 4 --kv-heads 2 --seq 64 --head-dim 64 --tokens 8 ";
  for (const char* cache : {"preallocated", "paged"}) {
    const Result result = sandbox.run("06_kv_cache", shape + "--cuda-graph --cache " + cache);
    CAPTURE(cache, result.out, result.err);
    REQUIRE(result.exit_code == 0);
    CHECK_THAT(result.out, ContainsSubstring("kernels from 1 cudaGraphLaunch per token") &&
                               ContainsSubstring("cudaGraphLaunch"));
    const fs::path file = sandbox.folder() / "traces/06_kv_cache" /
                          fmt::format("2_4kv2_64_64_{}-graph.json.gz", cache);
    const trace::Trace trace = trace::read(file);
    const auto facts = explain::decode_facts(trace::OpTree(trace));
    REQUIRE(facts);
    CHECK(facts->on_gpu);
    CHECK(facts->graph_launches == 3 * 8);
    CHECK(facts->graph_operations > 10 * facts->graph_launches);
  }
  for (const char* cache : {"none", "concat", "preallocated", "paged"})
    CHECK(sandbox.run("06_kv_cache", shape + "--cache " + cache).exit_code == 0);
}

TEST_CASE("On a GPU: the copy, one kernel per fused backend, LibTorch's reasons") {
  const prof::Machine machine = prof::Machine::here();
  if (machine.gpus.empty() || machine.gpus.front().compute_capability() < 80) {
    SKIP("no NVIDIA GPU here that runs FlashAttention (sm_80)");
  }
  const Sandbox sandbox;
  const std::string shape = "--device cuda:0 --batch 1 --heads 2 --seq 256 --head-dim 64";
  CHECK_THAT(sandbox.run("01_naive", shape).out,
             ContainsSubstring("launched by aten::copy_ < aten::clone < aten::masked_fill"));
  CHECK_THAT(sandbox.run("02_inplace", shape).out,
             ContainsSubstring("Finding: no copy of a tensor"));
  CHECK_THAT(sandbox.run("03_sdpa", shape + " --backend efficient").out,
             ContainsSubstring("Finding: one fused kernel does the forward: fmha_cutlassF"));

  const Result refused = sandbox.run("03_sdpa", shape + " --backend flash --dtype fp32");
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, ContainsSubstring("Half, BFloat16") && ContainsSubstring("; see --help"));
  const Result automatic = sandbox.run("03_sdpa", shape + " --dtype fp32");
  CHECK_THAT(automatic.out, ContainsSubstring("Backend   efficient, LibTorch's choice") &&
                                ContainsSubstring("not flash: Expected query"));
  const Result kernels = sandbox.run("04_kernels", shape + " --kernel all --against flash");
  CAPTURE(kernels.err);
  CHECK(kernels.exit_code == 0);
  CHECK_THAT(kernels.out, ContainsSubstring("\nflash ") && ContainsSubstring("not c2: it runs on"));
  CHECK_THAT(sandbox.run("04_kernels", shape).out,
             ContainsSubstring("Finding: one fused kernel does the forward: void kernels::"));
}

TEST_CASE("Guesses are graded from the run, by option") {
  const Sandbox sandbox;
  const std::size_t asked = explain::questions("01_naive", /*on_gpu=*/false).size();
  std::string guesses;
  for (const explain::Question& question : explain::questions("01_naive", false)) {
    guesses += (guesses.empty() ? "" : ",") +
               (question.kind == explain::QuestionKind::number   ? std::string("77")
                : question.kind == explain::QuestionKind::choice ? question.choices.front()
                                                                 : std::string("yes"));
  }
  const Result result = sandbox.run("01_naive", fmt::format("{} --guess '{}'", kSmall, guesses));
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("of " + std::to_string(asked)) &&
                             ContainsSubstring("docs/01_naive.md"));
  SECTION("too few, too many, of the wrong kind") {
    for (const std::string& bad : {std::string("1"), guesses + ",5", std::string("a,b,c,d")}) {
      const Result refused = sandbox.run("02_inplace", fmt::format("{} --guess '{}'", kSmall, bad));
      CHECK(refused.exit_code == 2);
      CHECK(refused.out.empty());
      CHECK(std::count(refused.err.begin(), refused.err.end(), '\n') == 1);
    }
  }
  SECTION("nobody to ask") {
    const Result refused = sandbox.run("01_naive", std::string(kSmall) + " --quiz </dev/null");
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, ContainsSubstring("--guess"));
  }
  SECTION("03 asks about one backend") {
    CHECK(sandbox.run("03_sdpa", "--backend all --guess 1,2,3").exit_code == 2);
  }
}

TEST_CASE("The quiz asks at a terminal, before anything is shown") {
  const Sandbox sandbox;
  const auto questions = explain::questions("01_naive", false);
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  REQUIRE(child >= 0);
  if (child == 0) {
    if (::chdir(sandbox.folder().c_str()) != 0) ::_exit(99);
    const std::string program = std::string(PROF_PROGRAMS) + "/01_naive";
    ::execl(program.c_str(), "01_naive", "--device", "cpu", "--batch", "1", "--heads", "2", "--seq",
            "64", "--head-dim", "16", "--quiz", nullptr);
    ::_exit(99);
  }
  std::string answers = "nonsense\n";  // is asked again
  for (const explain::Question& question : questions) {
    answers += question.kind == explain::QuestionKind::yes_no ? "no\n" : "1\n";
  }
  REQUIRE(::write(terminal, answers.data(), answers.size()) ==
          static_cast<ssize_t>(answers.size()));
  std::string seen;
  std::array<char, 4096> buffer;
  for (ssize_t got = 0; (got = ::read(terminal, buffer.data(), buffer.size())) > 0;) {
    seen.append(buffer.data(), static_cast<std::size_t>(got));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CAPTURE(seen);
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(seen.find(questions.front().text.substr(0, 20)) < seen.find("Device "));
  CHECK_THAT(seen, ContainsSubstring("of " + std::to_string(questions.size())));
}

// The pages describe the recordings; this is what keeps them true when code or LibTorch changes.
TEST_CASE("The CPU recordings have the structure that the chapters have today") {
  const auto [program, arguments, recording] = GENERATE(
      std::array{"01_naive", "", "01_naive.naive"},
      std::array{"02_inplace", "", "02_inplace.inplace"},
      std::array{"03_sdpa", "--backend math", "03_sdpa.math"},
      std::array{"03_sdpa", "--backend flash", "03_sdpa.flash"},
      std::array{"04_kernels", "--kernel c1", "04_kernels.c1"},
      std::array{"04_kernels", "--kernel c2", "04_kernels.c2"},
      std::array{"05_memory", "--mode inference --layers 1", "05_memory.naive-inference-1layer"},
      std::array{"05_memory", "", "05_memory.naive-training-2layers"},
      std::array{"05_memory", "--mode checkpoint", "05_memory.naive-checkpoint-2layers"},
      std::array{"05_memory", "--variant flash", "05_memory.flash-training-2layers"},
      std::array{"06_kv_cache", "--active 1 --cache concat", "06_kv_cache.concat"},
      std::array{"06_kv_cache", "--active 1 --cache preallocated", "06_kv_cache.preallocated"},
      std::array{"06_kv_cache", "--active 1 --cache paged", "06_kv_cache.paged"},
      std::array{"06_kv_cache", "--active 1 --cache paged --attention sdpa --tokens 16",
                 "06_kv_cache.paged-sdpa"});
  const Sandbox sandbox;
  REQUIRE(sandbox.run(program, std::string("--device cpu ") + arguments).exit_code == 0);
  fs::path fresh;
  for (const auto& entry : fs::recursive_directory_iterator(sandbox.folder())) {
    if (entry.path().extension() == ".gz") fresh = entry.path();
  }
  CHECK(structure(fresh) ==
        structure(fs::path(PROF_RESULTS) / fmt::format("{}.cpu.json.gz", recording)));
}

TEST_CASE("Options reach the recording") {
  const Sandbox sandbox;
  const Result result =
      sandbox.run("01_naive", std::string(kSmall) +
                                  " --kv-heads 1 --dtype bf16 --active 2 --repeat 2 --with-flops "
                                  "--profile-memory --out elsewhere --sort-by self_cpu_time_total");
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const trace::Trace trace =
      trace::read(sandbox.folder() / "elsewhere/01_naive/1_2kv1_64_16_naive.json.gz");
  CHECK(trace.flag("with_flops"));
  CHECK(trace.flag("profile_memory"));
  CHECK(trace.metadata_value("dtype") == "\"bf16\"");
  CHECK(explain::facts(trace::OpTree(trace), "attn_fwd").forwards == 2);
  CHECK_THAT(result.out, ContainsSubstring("FLOPs"));
}

TEST_CASE("Bad options write nothing and exit with 2") {
  const Sandbox sandbox;
  for (const char* arguments :
       {"--seq 0", "--dtype fp8", "--device cuda:77", "--nonsense", "--heads 3 --kv-heads 2",
        "--seq 100000000", "--sort-by nothing", "--out /proc/version"}) {
    const Result result = sandbox.run("02_inplace", arguments);
    CAPTURE(arguments, result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK(fs::is_empty(sandbox.folder()));
  }
  CHECK(sandbox.run("02_inplace", "--help").exit_code == 0);
}

TEST_CASE("Output that nobody can take is one sentence and exit code 1") {
  const Sandbox sandbox;
  const Result result = sandbox.run("01_naive", std::string(kSmall) + " >/dev/full");
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, ContainsSubstring("standard output"));
}
