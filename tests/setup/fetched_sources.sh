#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The build without system packages: every dependency from a source folder, as FetchContent takes it.
#
#   fetched_sources.sh <source folder>             configures with stand-ins: right names, right order
#   fetched_sources.sh <source folder> <sources>   builds and tests readtrace with the real ones, in
#                                                  <sources>/{simdjson,cli11,zlib,catch2,fmt}; minutes
set -euo pipefail
readonly source_dir=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources=${2:-$work}

# stand_in <folder> <targets with their public names>
stand_in() {
  mkdir -p "$work/$1"
  printf 'add_library(%s INTERFACE)\nadd_library(%s ALIAS %s)\n' "$2" "$3" "$2" \
    >>"$work/$1/CMakeLists.txt"
}
if [ $# = 1 ]; then
  stand_in simdjson simdjson simdjson::simdjson
  stand_in cli11 CLI11 CLI11::CLI11
  stand_in zlib zlibstatic its_own::name
  stand_in fmt fmt fmt::fmt
  stand_in catch2 Catch2 Catch2::Catch2
  stand_in catch2 Catch2WithMain Catch2::Catch2WithMain
  mkdir "$work/catch2/extras"
  printf 'function(catch_discover_tests)\nendfunction()\n' >"$work/catch2/extras/Catch.cmake"
fi

arguments=()
for name in simdjson cli11 zlib catch2 fmt; do
  arguments+=("-DFETCHCONTENT_SOURCE_DIR_${name^^}=$sources/$name")
done
env -u PYTHON -u CMAKE_PREFIX_PATH cmake -S "$source_dir" -B "$work/build" -G Ninja \
  -DPROF_LIBTORCH=OFF -DPROF_TESTS=ON "${arguments[@]}"
# Nothing came from the system beside them.
if grep -E '^(simdjson|CLI11|Catch2|fmt)_DIR:PATH=/' "$work/build/CMakeCache.txt"; then exit 1; fi
if [ $# = 2 ]; then
  cmake --build "$work/build"
  ctest --test-dir "$work/build" --output-on-failure --no-tests=error
fi
