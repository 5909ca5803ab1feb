// SPDX-License-Identifier: Apache-2.0
#include "chapter/options.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <initializer_list>
#include <vector>

using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
const prof::Machine::Gpu kH200{"NVIDIA H200", 9, 0, 140 * kGiB, 132};
const prof::Machine::Gpu kT4{"Tesla T4", 7, 5, 15 * kGiB, 40};
const prof::Machine::Gpu kRtx3050{"NVIDIA GeForce RTX 3050", 8, 6, 6 * kGiB, 20};
const prof::Machine::Gpu kP100{"Tesla P100", 6, 0, 16 * kGiB, 56};

const chapter::Info kInfo{
    .name = "01_naive", .variant = "naive", .summary = "a test", .score_tensors = 2};

prof::Machine machine_with(std::vector<prof::Machine::Gpu> gpus) {
  prof::Machine machine;
  machine.libtorch_cuda = 13000;
  machine.driver_cuda = 13000;
  machine.has_nvidia_hardware = !gpus.empty();
  machine.driver_gpus = machine.gpus = std::move(gpus);
  return machine;
}

chapter::Options parse(std::initializer_list<const char*> arguments, const prof::Machine& machine) {
  std::vector<const char*> argv{"01_naive"};
  argv.insert(argv.end(), arguments);
  return chapter::parse_options(static_cast<int>(argv.size()), argv.data(), kInfo, machine);
}

// The message that a bad command line gets, with its exit code.
std::string refusal(std::initializer_list<const char*> arguments, const prof::Machine& machine) {
  try {
    (void)parse(arguments, machine);
  } catch (const chapter::UsageError& error) {
    CHECK(error.exit_code == 2);
    CHECK(std::string(error.what()).find('\n') == std::string::npos);  // one line
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("Defaults follow the device") {
  SECTION("H200: the blog's shape") {
    const chapter::Options options = parse({}, machine_with({kH200}));
    CHECK(options.device == c10::Device(c10::kCUDA, 0));
    CHECK(options.shape.label() == "8_16_1024_64");
    CHECK(options.dtype == c10::kBFloat16);
    CHECK(options.sort_by == "cuda_time_total");
    CHECK(options.choice == "the blog's shape and dtype");
    CHECK(options.steps() == 5);
    CHECK(options.file(".txt") == "traces/01_naive/8_16_1024_64_naive.txt");
  }
  SECTION("T4: no bf16") {
    const chapter::Options options = parse({}, machine_with({kT4}));
    CHECK(options.shape.label() == "8_16_1024_64");
    CHECK(options.dtype == c10::kHalf);
    CHECK_THAT(options.choice, ContainsSubstring("fp16"));
  }
  SECTION("a card of 6 GB: a smaller batch, and it says so") {
    const chapter::Options options = parse({}, machine_with({kRtx3050}));
    CHECK(options.shape.batch == 4);
    CHECK(options.shape.seq == 1024);
    CHECK(options.dtype == c10::kBFloat16);
    CHECK_THAT(options.choice, ContainsSubstring("batch 4") && ContainsSubstring("6 GiB"));
  }
  SECTION("none: the CPU, small") {
    const chapter::Options options = parse({}, machine_with({}));
    CHECK(options.device.is_cpu());
    CHECK(options.shape.label() == "2_8_512_64");
    CHECK(options.dtype == c10::kFloat);
    CHECK(options.sort_by == "cpu_time_total");
  }
  SECTION("a GPU without code for it: the CPU") {
    CHECK(parse({}, machine_with({kP100})).device.is_cpu());
    CHECK(parse({}, machine_with({kP100, kH200})).device == c10::Device(c10::kCUDA, 1));
  }
}

TEST_CASE("The command line decides") {
  const prof::Machine machine = machine_with({kH200, kT4});
  const chapter::Options options = parse({"--device",
                                          "cuda:1",
                                          "--batch",
                                          "2",
                                          "--heads",
                                          "8",
                                          "--kv-heads",
                                          "2",
                                          "--seq",
                                          "77",
                                          "--head-dim",
                                          "32",
                                          "--dtype",
                                          "fp32",
                                          "--wait",
                                          "0",
                                          "--warmup",
                                          "2",
                                          "--active",
                                          "4",
                                          "--repeat",
                                          "3",
                                          "--record-shapes",
                                          "--profile-memory",
                                          "--with-flops",
                                          "--sort-by",
                                          "self_cuda_time_total",
                                          "--row-limit",
                                          "-1",
                                          "--seed",
                                          "7",
                                          "--out",
                                          "/tmp/elsewhere",
                                          "--full-table"},
                                         machine);
  CHECK(options.device == c10::Device(c10::kCUDA, 1));
  CHECK(options.shape.label() == "2_8kv2_77_32");
  CHECK(options.dtype_name() == "fp32");
  CHECK(options.steps() == 18);
  CHECK(options.schedule.warmup == 2);
  CHECK(options.record_shapes);
  CHECK(options.profile_memory);
  CHECK(options.with_flops);
  CHECK(options.full_table);
  CHECK(options.sort_by == "self_cuda_time_total");
  CHECK(options.row_limit == -1);
  CHECK(options.seed == 7);
  CHECK(options.file(".json.gz") == "/tmp/elsewhere/01_naive/2_8kv2_77_32_naive.json.gz");
  CHECK_FALSE(options.graph);
  CHECK(parse({"--graph"}, machine).graph);
  CHECK(parse({"--device", "cpu"}, machine).device.is_cpu());
  CHECK(parse({"--device", "cuda"}, machine).device == c10::Device(c10::kCUDA, 0));
}

TEST_CASE("Bad command lines get one line and exit code 2") {
  const prof::Machine none = machine_with({});
  const prof::Machine one = machine_with({kH200});
  CHECK_THAT(refusal({"--seq", "0"}, none), ContainsSubstring("--seq"));
  CHECK_THAT(refusal({"--seq", "-5"}, none), ContainsSubstring("--seq"));
  CHECK_THAT(refusal({"--seq", "many"}, none), ContainsSubstring("--seq"));
  CHECK_THAT(refusal({"--seq", "99999999999999999999"}, none), ContainsSubstring("--seq"));
  CHECK_THAT(refusal({"--seq"}, none), ContainsSubstring("--seq"));
  CHECK_THAT(refusal({"--sequence", "5"}, none), ContainsSubstring("--sequence"));
  CHECK_THAT(refusal({"extra"}, none), ContainsSubstring("extra"));
  CHECK_THAT(refusal({"--dtype", "int8"}, none), ContainsSubstring("fp32"));
  CHECK_THAT(refusal({"--heads", "6", "--kv-heads", "4"}, none),
             ContainsSubstring("does not divide"));
  CHECK_THAT(refusal({"--active", "0"}, none), ContainsSubstring("--active"));
  CHECK_THAT(refusal({"--repeat", "0"}, none), ContainsSubstring("--repeat"));
  CHECK_THAT(refusal({"--wait", "-1"}, none), ContainsSubstring("--wait"));
  CHECK_THAT(refusal({"--row-limit", "-2"}, none), ContainsSubstring("--row-limit"));
  CHECK_THAT(refusal({"--sort-by", "speed"}, none), ContainsSubstring("cpu_time_total"));
  CHECK_THAT(refusal({"--device", "tpu"}, none), ContainsSubstring("auto, cpu, cuda or cuda:N"));
  CHECK_THAT(refusal({"--device", "cuda"}, none), ContainsSubstring("no NVIDIA GPU here"));
  CHECK_THAT(refusal({"--device", "cuda:"}, one), ContainsSubstring("cuda:N"));
  CHECK_THAT(refusal({"--device", "cuda:1"}, one), ContainsSubstring("numbered 0 to 0"));
  CHECK_THAT(refusal({"--device", "cuda:-1"}, one), ContainsSubstring("cuda:N"));
  CHECK_THAT(refusal({"--out", "/proc/version"}, none), ContainsSubstring("not a folder"));
}

TEST_CASE("A shape that cannot fit is refused before anything is allocated") {
  CHECK_THAT(refusal({"--seq", "1000000"}, machine_with({kH200})),
             ContainsSubstring("GiB") && ContainsSubstring("smaller --seq"));
  CHECK_THAT(refusal({"--seq", "1000000000000"}, machine_with({})), ContainsSubstring("GiB"));
}

TEST_CASE("The option --help is not an error and names every option once") {
  try {
    (void)parse({"--help"}, machine_with({}));
    FAIL("--help did not end the program");
  } catch (const chapter::UsageError& error) {
    CHECK(error.exit_code == 0);
    CHECK_THAT(error.what(), ContainsSubstring("--head-dim") && ContainsSubstring("--sort-by") &&
                                 ContainsSubstring("a test"));
  }
}

TEST_CASE("Numbers of a chapter's own options") {
  CHECK(chapter::number_in("17", 20) == 17);
  for (const char* text : {"", "0", "-3", "21", "1x", " 1", "1.5", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(chapter::number_in(text, 20));
  }
  CHECK(chapter::numbers_in("17,4,17", 20) == std::vector<std::int64_t>{17, 4, 17});
  for (const char* list : {"", ",", "1,", ",1", "1,,2", "1,x", "1,21"}) {
    CAPTURE(list);
    CHECK_FALSE(chapter::numbers_in(list, 20));
  }
}
