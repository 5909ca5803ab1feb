// SPDX-License-Identifier: Apache-2.0
#include "profiler/device.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using Catch::Matchers::ContainsSubstring;

namespace {

const prof::Machine::Gpu kH200{"NVIDIA H200", 9, 0, 150'109'880'320, 132};
const prof::Machine::Gpu kP100{"Tesla P100", 6, 0, 17'071'734'784, 56};

// A machine on which LibTorch can use its GPU.
prof::Machine good() {
  prof::Machine machine;
  machine.libtorch_cuda = 13000;
  machine.has_nvidia_hardware = true;
  machine.driver_version = "580.95.05";
  machine.driver_cuda = 13000;
  machine.driver_gpus = machine.gpus = {kH200};
  return machine;
}

}  // namespace

TEST_CASE("A GPU that cannot be used is named with its remedy") {
  prof::Machine machine = good();
  SECTION("usable: nothing to say") {
    CHECK(machine.why_no_gpu().empty());
  }
  SECTION("no GPU at all: nothing to say") {
    CHECK(prof::Machine{}.why_no_gpu().empty());
  }
  SECTION("LibTorch's CPU build") {
    machine.gpus.clear();
    machine.libtorch_cuda = 0;
    CHECK_THAT(machine.why_no_gpu(), ContainsSubstring("LIBTORCH=cuda"));
  }
  SECTION("no driver") {
    machine.gpus.clear();
    machine.driver_gpus.clear();
    machine.driver_version.clear();
    machine.driver_cuda = 0;
    CHECK_THAT(machine.why_no_gpu(), ContainsSubstring("install driver 580"));
  }
  SECTION("an old driver") {
    machine.gpus.clear();
    machine.driver_version = "550.54.15";
    machine.driver_cuda = 12040;
    CHECK_THAT(machine.why_no_gpu(), ContainsSubstring("550.54.15") && ContainsSubstring("12.4") &&
                                         ContainsSubstring("update the driver to 580"));
  }
  SECTION("hidden by the environment") {
    machine.gpus.clear();
    machine.driver_gpus.clear();
    CHECK_THAT(machine.why_no_gpu(), ContainsSubstring("CUDA_VISIBLE_DEVICES"));
  }
  SECTION("held by another program") {
    machine.gpus.clear();
    CHECK_THAT(machine.why_no_gpu(), ContainsSubstring("cannot start CUDA on NVIDIA H200"));
  }
  SECTION("too old a GPU") {
    machine.gpus = machine.driver_gpus = {kP100};
    CHECK_THAT(machine.why_no_gpu(), ContainsSubstring("Tesla P100") && ContainsSubstring("6.0") &&
                                         ContainsSubstring("7.5"));
    machine.gpus.push_back(kH200);  // one that works is enough
    CHECK(machine.why_no_gpu().empty());
  }
}

TEST_CASE("This machine is described") {
  const prof::Machine machine = prof::Machine::here();
  CHECK_FALSE(machine.cpu_name.empty());
  CHECK(machine.cpu_threads >= 1);
  CHECK(machine.libtorch_version.find('.') != std::string::npos);
  for (const prof::Machine::Gpu& gpu : machine.gpus) {
    CHECK_FALSE(gpu.name.empty());
    CHECK(gpu.total_memory > 0);
    CHECK(gpu.multiprocessors > 0);
    CHECK(gpu.compute_major > 0);
  }
}
