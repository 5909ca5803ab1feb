#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# How long a clean build of everything takes, and a build after one chapter was touched. Writes the
# figures that README quotes. Run it on an otherwise idle machine, after `make setup`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.venv/tools:$PATH"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

seconds() {  # seconds <command...>
  local start=$EPOCHREALTIME
  "$@" >&2
  awk -v start="$start" -v end="$EPOCHREALTIME" 'BEGIN { printf "%.1f", end - start }'
}

cmake --preset release -B "$folder" -DPROF_PYTHON="${PYTHON:-}" >/dev/null
clean=$(seconds cmake --build "$folder")
touch chapters/01_naive/main.cpp
chapter=$(seconds cmake --build "$folder" --target 01_naive)

printf '{"cores": %s, "clean_build_seconds": %s, "chapter_rebuild_seconds": %s}\n' \
  "$(nproc)" "$clean" "$chapter" | tee docs/results/build.cpu.json
