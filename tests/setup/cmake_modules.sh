#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What cmake/ finds on machines that this one is not, one case per call:
#
# shellcheck disable=SC2016  # `make setup` is meant literally
#   cmake_modules.sh <case> <source folder> <LibTorch of the build that runs this test>
set -euo pipefail
readonly name=$1 source_dir=$2 torch=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# configure <cmake arguments>: a project that does nothing but include the modules. Sets `out`.
configure() {
  mkdir -p "$work/project"
  cat >"$work/project/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25...4.0)
project(modules LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
list(APPEND CMAKE_MODULE_PATH "$source_dir/cmake")
include(ProfLibTorch)
include(ProfCuda)
$(cat "$work/more.cmake" 2>/dev/null || true)
CMAKE
  status=0
  out=$(env -u PYTHON -u CMAKE_PREFIX_PATH -u CUDACXX \
    cmake -S "$work/project" -B "$work/build" -G Ninja "$@" 2>&1) || status=$?
  # CMake wraps long messages; one line is what a reader gets from set-up.
  out=$(tr -s ' \n' ' ' <<<"$out")
}

expect() {  # expect <exit code> <text>
  if [ "$status" != "$1" ] || ! grep -qF -- "$2" <<<"$out"; then
    echo "expected exit code $1 and: $2"
    echo "got exit code $status and: $out"
    exit 1
  fi
}

# A LibTorch that is only looked at: no library in it can be loaded.
fake_torch() {  # fake_torch <major.minor.patch> [cuda major]
  local root=$work/torch
  mkdir -p "$root"/{lib,include/kineto,include/torch/headeronly}
  touch "$root/lib/libtorch_cpu.so" "$root/include/kineto/ActivityType.h"
  local major minor patch
  IFS=. read -r major minor patch <<<"$1"
  printf '#define TORCH_VERSION_%s %s\n' MAJOR "$major" MINOR "$minor" PATCH "$patch" \
    >"$root/include/torch/headeronly/version.h"
  if [ $# = 2 ]; then
    touch "$root/lib/libtorch_cuda.so"
    printf 'libcudart.so.%s\0' "$2" >"$root/lib/libc10_cuda.so"
  fi
}

# An nvcc that reports a version and does or does not compile.
fake_nvcc() {  # fake_nvcc <version> <exit code when it compiles>
  cat >"$work/nvcc" <<NVCC
#!/bin/sh
if [ "\$1" = --version ]; then echo "Cuda compilation tools, release $1, V$1.88"; exit; fi
echo "math_functions.h(629): error: exception specification is incompatible" >&2
exit $2
NVCC
  chmod +x "$work/nvcc"
}

case $name in
  # LibTorch
  torch_dir)
    configure -DPROF_TORCH_DIR="$torch" -DPROF_CUDA=OFF
    expect 0 "in $torch" ;;
  prefix_path)
    configure -DCMAKE_PREFIX_PATH="/nowhere;$torch" -DPROF_CUDA=OFF
    expect 0 "in $torch" ;;
  prefix_path_of_the_wheel)
    configure -DCMAKE_PREFIX_PATH="$torch/share/cmake" -DPROF_CUDA=OFF
    expect 0 "in $torch" ;;
  python)  # a torch package beside an interpreter: found, not imported
    fake_torch 2.11.0
    echo 'raise SystemExit("imported")' >"$work/torch/__init__.py"
    PYTHONPATH=$work configure -DPROF_PYTHON=python3
    expect 0 "LibTorch 2.11.0 (CPU) in $work/torch" ;;
  python_without_torch)
    PYTHONPATH='' configure -DPROF_PYTHON='python3;-S;-E'
    expect 1 'has no torch: install torch there' ;;
  none)
    configure
    expect 1 'run `make setup`' ;;
  not_a_torch)
    configure -DPROF_TORCH_DIR="$work"
    expect 1 'lib/libtorch_cpu.so is missing there' ;;
  too_old)
    fake_torch 2.6.0
    configure -DPROF_TORCH_DIR="$work/torch"
    expect 1 '(version 2.6.0) is too old' ;;

  # A CPU-only LibTorch, made of this one: libtorch_cuda and what only that needs are not there.
  cpu_only)
    mkdir -p "$work"/{torch/lib,nvidia/none/lib}
    ln -s "$torch/include" "$work/torch/include"
    ln -s "$torch"/lib/lib{torch_cpu,c10}.so "$torch"/lib/libgomp* "$work/torch/lib/"
    # Even a CPU build of the profiler asks for these two by name; a real one has them linked in.
    for library in libcudart.so libcupti.so; do
      find "$torch/lib" "$torch/../nvidia" -name "$library*" -exec ln -s {} "$work/torch/lib/" \; \
        2>/dev/null || true
    done
    cat >"$work/project.cpp" <<'CPP'
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>
#include <cstdio>
int main() { std::printf("sum %g\n", at::ones({2, 3}).sum().item<double>()); }
CPP
    echo "add_executable(tiny $work/project.cpp)
target_link_libraries(tiny PRIVATE prof::torch)" >"$work/more.cmake"
    configure -DPROF_TORCH_DIR="$work/torch" -DCMAKE_BUILD_TYPE=Debug
    expect 0 '(CPU)'
    cmake --build "$work/build"
    "$work/build/tiny" | grep -x 'sum 6'
    ! ldd "$work/build/tiny" | grep -E 'torch_cuda|c10_cuda' ;;

  # CUDA
  cpu_build)
    fake_torch 2.11.0
    configure -DPROF_TORCH_DIR="$work/torch"
    expect 0 'no CUDA kernels: LibTorch is a CPU build' ;;
  no_nvcc)
    fake_torch 2.11.0 13
    folders=$(type -aP nvcc | xargs -r dirname | paste -sd ';')
    configure -DPROF_TORCH_DIR="$work/torch" -DCMAKE_IGNORE_PATH="/usr/local/cuda/bin;$folders"
    expect 0 'no CUDA kernels: no nvcc on PATH or in /usr/local/cuda' ;;
  nvcc)  # the real one, where there is one
    nvcc=$(PATH=$PATH:/usr/local/cuda/bin type -P nvcc) || exit 4
    configure -DPROF_TORCH_DIR="$torch" -DCMAKE_CUDA_COMPILER="$nvcc"
    case $out in *'LibTorch was built with'* | *'cannot compile'* | *'CPU build'*) exit 4 ;; esac
    expect 0 "CUDA kernels are built with $nvcc" ;;
  nvcc_of_another_major)
    fake_torch 2.11.0 13; fake_nvcc 12.4 0
    configure -DPROF_TORCH_DIR="$work/torch" -DCMAKE_CUDA_COMPILER="$work/nvcc"
    expect 0 "no CUDA kernels: $work/nvcc is CUDA 12.4, LibTorch was built with 13" ;;
  nvcc_that_cannot_compile)
    fake_torch 2.11.0 13; fake_nvcc 13.0 1
    configure -DPROF_TORCH_DIR="$work/torch" -DCMAKE_CUDA_COMPILER="$work/nvcc"
    expect 0 'cannot compile an empty file with this compiler and C library'
    expect 0 '(math_functions.h(629): error' ;;
  cuda_is_asked_for)
    fake_torch 2.11.0 13; fake_nvcc 12.4 0
    configure -DPROF_TORCH_DIR="$work/torch" -DCMAKE_CUDA_COMPILER="$work/nvcc" -DPROF_CUDA=ON
    expect 1 'PROF_CUDA=ON, but' ;;
  cuda_is_off)
    fake_torch 2.11.0 13
    configure -DPROF_TORCH_DIR="$work/torch" -DPROF_CUDA=OFF
    expect 0 'LibTorch 2.11.0 (CUDA 13)'
    if grep -q kernels <<<"$out"; then exit 1; fi ;;
  *) echo "no case $name"; exit 1 ;;
esac
