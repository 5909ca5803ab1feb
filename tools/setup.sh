#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fetches what is missing, then configures one CMake preset. Where nothing is missing it asks no
# network and takes about two seconds. The Makefile calls it before every build:
#
#   tools/setup.sh release [cmake arguments]   LibTorch, packages, cmake and ninja; configures build/
#   tools/setup.sh asan|look                   the same without LibTorch
#   tools/setup.sh fuzz                        that with clang
#   tools/setup.sh clang-format                only the pinned clang-format, into .venv
#
# Environment:
#   LIBTORCH=cuda|cpu     which LibTorch; by itself: cuda with an NVIDIA GPU, else cpu
#   PYTHON=/path/python3  use that interpreter's torch: no .venv, no download
#   CMAKE_PREFIX_PATH     a LibTorch somewhere else, or packages
#   CXX                   the compiler
#
# Each error is one line that says what to do. Nothing here calls sudo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly cpu_index=https://download.pytorch.org/whl/cpu
readonly min_cmake=3.25
readonly cuda=13.0  # what the pinned LibTorch is built with

say() { printf 'set-up: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
at_least() { printf '%s\n%s\n' "$2" "$1" | sort -V -C; }  # at_least 3.28 3.25
pin() { grep "^$1==" requirements.txt; }

# --- what must be there already -----------------------------------------------------------------

check_machine() {
  [ "$(uname -s)" = Linux ] || die "this runs on Linux only; on Windows use WSL 2, on macOS a Linux machine or container."
  case "${LIBTORCH:-}" in
    '' | cuda | cpu) ;;
    *) say "LIBTORCH=$LIBTORCH is not known: use LIBTORCH=cuda or LIBTORCH=cpu." >&2; exit 2 ;;
  esac
}

check_compiler() {
  local cxx=${CXX:-c++} macros gcc clang
  have "${cxx%% *}" || die "no C++ compiler ($cxx): install g++ 11 or newer (Debian, Ubuntu: apt-get install g++), or set CXX."
  macros=$($cxx -x c++ -dM -E /dev/null)
  clang=$(awk '$2 == "__clang_major__" { print $3 }' <<<"$macros")
  gcc=$(awk '$2 == "__GNUC__" { print $3 }' <<<"$macros")
  if [ -n "$clang" ]; then
    [ "$clang" -ge 14 ] || die "clang $clang is too old for C++20: set CXX to clang++ 14 or newer, or to g++ 11 or newer."
  else
    [ "${gcc:-0}" -ge 11 ] || die "g++ ${gcc:-?} is too old for C++20: set CXX to g++ 11 or newer."
  fi
}

# --- .venv --------------------------------------------------------------------------------------

# Python's part of the work takes minutes: a line every 20 seconds says that it goes on.
heartbeat() {
  local seconds=0
  [ ! -t 1 ] || return 0  # pip's own progress bar is better
  while sleep 20 >/dev/null 2>&1; do
    seconds=$((seconds + 20))
    say "... $1, ${seconds} s so far"
  done
}

make_venv() {
  local python=python3
  if .venv/bin/python3 -m pip --version >/dev/null 2>&1 &&
    .venv/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    return
  fi
  have $python || die "no python3: install Python 3.10 or newer (Debian, Ubuntu: apt-get install python3-venv)."
  $python -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    die "$($python --version) is too old: LibTorch's wheel needs Python 3.10 or newer, first on PATH."
  $python -c 'import ensurepip, venv' 2>/dev/null ||
    die "python3 has no venv: install it (Debian, Ubuntu: apt-get install python3-venv)."
  [ ! -e .venv ] || say ".venv is not usable (unfinished, or its Python is gone): making it anew"
  $python -m venv --clear .venv || die "python3 could not make .venv; see above."
}

# pip_install <what it is, for the reader> <pip arguments...>
pip_install() {
  local what=$1 beat reason
  shift
  heartbeat "installing $what" &
  beat=$!
  # shellcheck disable=SC2064  # the process of now
  trap "kill $beat 2>/dev/null || true" EXIT
  if ! .venv/bin/python3 -m pip install --disable-pip-version-check "$@" 2>.cache/pip.log; then
    reason=$(grep '^ERROR' .cache/pip.log | tail -n 1) || true
    if grep -q 'Retrying.*onnect' .cache/pip.log; then
      reason="the package index cannot be reached; only a second call does without network"
    fi
    die "pip could not install $what (${reason:-see .cache/pip.log}). The same command goes on from here."
  fi
  kill "$beat" 2>/dev/null || true
  trap - EXIT
}

need_disk() {  # need_disk <GB> <what for>; what an interrupted set-up has left in .venv counts as free
  local free
  free=$(df -Pk . | awk 'NR == 2 { print $4 }')
  [ ! -d .venv ] || free=$((free + $(du -sk .venv | cut -f 1)))
  free=$((free / 1000000))
  [ "$free" -ge "$1" ] || die "$2 needs $1 GB of free disk, $PWD has $free GB: free some, or clone to a larger disk."
}

# --- LibTorch -----------------------------------------------------------------------------------

has_nvidia_gpu() {
  [ -e /dev/nvidia0 ] || [ -d /proc/driver/nvidia/gpus ] || { have nvidia-smi && nvidia-smi -L 2>/dev/null | grep GPU >/dev/null; }
}

libtorch_is_elsewhere() {
  local prefix
  local -a prefixes
  if [ -n "${PYTHON:-}" ]; then
    "$PYTHON" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' 2>/dev/null ||
      die "PYTHON=$PYTHON is no Python that has torch: install torch there, or leave PYTHON out."
    return 0
  fi
  IFS=':;' read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for prefix in ${prefixes[@]+"${prefixes[@]}"}; do
    [ ! -e "$prefix/lib/libtorch_cpu.so" ] && [ ! -e "$prefix/../../lib/libtorch_cpu.so" ] || return 0
  done
  return 1
}

cpu_index_answers() {
  timeout 8 .venv/bin/python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=4)' \
    "$cpu_index/torch/" 2>/dev/null
}

# .venv/libtorch says what is installed: the pin, what was asked for, what came. It is written last,
# so an interrupted set-up is taken up again. Without LIBTORCH whatever is there is kept.
install_libtorch() {
  local pinned asked=${LIBTORCH:-} got have_pin='' have_asked='' have_got=''
  pinned=$(pin torch)
  [ ! -f .venv/libtorch ] || read -r have_pin have_asked have_got <.venv/libtorch
  if [ "$have_pin" = "$pinned" ] && [ -x .venv/bin/python3 ]; then
    case "$asked" in '' | "$have_asked" | "$have_got") return ;; esac
  fi

  if [ -z "$asked" ]; then
    asked=cpu
    ! has_nvidia_gpu || asked=cuda
  fi
  make_venv
  got=$asked
  if [ "$asked" = cpu ] && ! cpu_index_answers; then
    say "PyTorch's index of CPU builds does not answer: taking PyPI's build with CUDA, which runs on a CPU too"
    got=cuda
  fi
  rm -f .venv/libtorch
  if [ "$got" = cuda ]; then
    need_disk 12 "LibTorch with CUDA"
    say "LibTorch: $pinned with CUDA into .venv, a download of about 2.7 GB (4.7 GB unpacked)"
    # For pip an installed CPU build counts as the same version.
    ! grep -qs "+cpu'" .venv/lib/python3*/site-packages/torch/version.py ||
      .venv/bin/python3 -m pip uninstall -q -y torch
    pip_install LibTorch "$pinned"
  else
    need_disk 2 "LibTorch"
    say "LibTorch: $pinned for CPU into .venv, a download of about 0.2 GB"
    pip_install LibTorch --extra-index-url "$cpu_index" "$pinned+cpu"
  fi
  printf '%s %s %s\n' "$pinned" "$asked" "$got" >.venv/libtorch
}

# Chapter 04's compiler: for who asked for CUDA, or has a GPU, and has no nvcc that fits.
install_nvcc() {
  local asked='' folder library nvcc
  [ ! -f .venv/libtorch ] || read -r _ asked _ <.venv/libtorch
  if [ "$asked" != cuda ] || [ -e .venv/nvcc ]; then return; fi
  for nvcc in "${CUDACXX:-nvcc}" nvcc /usr/local/cuda/bin/nvcc; do
    case $("$nvcc" --version 2>/dev/null) in *"release ${cuda%.*}."*) return ;; esac
  done
  say "nvcc: CUDA $cuda's compiler into .venv, a download of about 0.2 GB"
  pip_install nvcc "cuda-toolkit[nvcc,cudart,cccl,cupti,nvrtc,crt,nvvm]==$cuda.*"
  # nvcc and CMake look for lib64 and for names without version, which wheels do not have.
  for folder in .venv/lib/python3*/site-packages/nvidia/cu${cuda%.*}; do
    ln -sfn lib "$folder/lib64"
    for library in "$folder"/lib/lib*.so.[0-9]*; do
      ln -sf "$(basename "$library")" "${library%%.so.*}.so"
    done
  done
  touch .venv/nvcc
}

# --- packages, cmake, ninja ---------------------------------------------------------------------

installed() {  # installed <package> [oldest version]
  local state
  state=$(dpkg-query -W -f '${db:Status-Abbrev} ${Version}' "$1" 2>/dev/null) || return 1
  [ "${state%% *}" = ii ] && dpkg --compare-versions "${state##* }" ge "${2:-0}"
}

# Debian 12 has Catch2 3 only in its backports, on the mirror that the machine uses already.
catch2_version_3() {
  apt-cache madison catch2 | awk '{ print $3 }' | grep '^3' | sed -n 1p
}
add_backports() {
  local mirror
  # shellcheck disable=SC2016  # apt-get's own variable
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | sed -n 1p)
  [ -n "$mirror" ] || return 1
  say "packages: adding Debian's bookworm-backports for Catch2 3" >&3
  echo "deb $mirror bookworm-backports main" >/etc/apt/sources.list.d/bookworm-backports.list
  apt-get update
}
apt_install() {
  local package version
  local -a wanted=()
  export DEBIAN_FRONTEND=noninteractive
  apt-get update || return 1
  for package in "$@"; do
    if [ "$package" = catch2 ]; then
      version=$(catch2_version_3)
      if [ -z "$version" ] && grep -q '^VERSION_CODENAME=bookworm' /etc/os-release; then
        add_backports || return 1
        version=$(catch2_version_3)
      fi
      [ -n "$version" ] || continue
      package=catch2=$version
    fi
    wanted+=("$package")
  done
  apt-get install -y --no-install-recommends "${wanted[@]}"
}

# As root on Debian or Ubuntu what is missing is installed. Otherwise CMake builds what it does not
# find from pinned sources, and the command that would be faster is printed. Tried once per list.
install_packages() {
  local package
  local -a missing=()
  have dpkg-query && have apt-get || return 0
  for package in libsimdjson-dev libcli11-dev zlib1g-dev libfmt-dev libbenchmark-dev; do
    installed $package || missing+=("$package")
  done
  installed catch2 3 || missing+=(catch2)
  if [ "$1" = fuzz ]; then
    installed clang || missing+=(clang)
  fi
  if [ ${#missing[@]} = 0 ] || [ "$(cat .cache/packages 2>/dev/null)" = "${missing[*]}" ]; then return; fi
  if [ "$(id -u)" != 0 ]; then
    say "packages: what is missing is built from source; faster, as root: apt-get install ${missing[*]}"
  else
    say "packages: installing ${missing[*]} (apt-get, log in .cache/apt.log)"
    apt_install "${missing[@]}" 3>&1 >.cache/apt.log 2>&1 ||
      say "packages: apt-get failed ($(grep '^E:' .cache/apt.log | tail -n 1)); what is missing is built from source"
  fi
  echo "${missing[*]}" >.cache/packages
}

# .venv/tools is first on make's PATH and holds only what the system lacks.
install_cmake_and_ninja() {
  local tool
  local -a missing=()
  export PATH="$PWD/.venv/tools:$PATH"
  have cmake && at_least "$(cmake --version | awk 'NR == 1 { print $3 }')" $min_cmake || missing+=(cmake)
  have ninja || missing+=(ninja)
  [ ${#missing[@]} -gt 0 ] || return 0
  [ -z "${PYTHON:-}" ] || die "cmake $min_cmake or newer and ninja are needed beside PYTHON=$PYTHON: install ${missing[*]}."
  make_venv
  for tool in "${missing[@]}"; do
    say "$tool: none that is new enough on PATH, taking $(pin "$tool") from PyPI into .venv"
    pip_install "$tool" "$(pin "$tool")"
  done
  mkdir -p .venv/tools
  for tool in .venv/lib/python3*/site-packages/cmake/data/bin/{cmake,ctest} .venv/bin/ninja; do
    [ ! -x "$tool" ] || ln -sf "../../$tool" .venv/tools/
  done
}

# --- configure ----------------------------------------------------------------------------------

configure() {  # configure <preset> [cmake arguments]; of CMake's output only what this project says
  local log=.cache/configure-$1.log
  if ! cmake --preset "$@" >"$log" 2>&1; then
    die "configuring failed: $(awk '/^CMake Error/ && !on { on = 1; next }
      on && /^[^ ]/ { exit } on && NF { $1 = $1; printf "%s ", $0 }' "$log")(all of it: $log)"
  fi
  sed -n 's/^-- prof: /set-up: /p' "$log"
}

main() {
  local preset=${1:?which preset} prefix_path=${CMAKE_PREFIX_PATH:-}
  shift
  check_machine
  mkdir -p .cache
  if [ "$preset" = clang-format ]; then
    make_venv
    pip_install clang-format -q "$(pin clang-format)"
    return
  fi
  check_compiler
  case $preset in
    asan | look | fuzz) ;;
    *)
      if ! libtorch_is_elsewhere; then
        install_libtorch
        install_nvcc
      fi
      ;;
  esac
  install_packages "$preset"
  if [ "$preset" = fuzz ] && ! have clang++; then
    die "no clang++, whose libFuzzer this needs: install it (Debian, Ubuntu: apt-get install clang)."
  fi
  install_cmake_and_ninja
  configure "$preset" -DPROF_PYTHON="${PYTHON:-}" -DCMAKE_PREFIX_PATH="${prefix_path//:/;}" "$@"
}

main "$@"
