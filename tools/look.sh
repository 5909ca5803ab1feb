#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a chapter printed on the H200, from its recordings: look.sh CHAPTER. First the questions, as in
# the chapter itself, then table, facts, findings, and a figure to open in a browser.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly readtrace=build-look/readtrace
shopt -s nullglob

recordings=(docs/results/"$1".*.h200.json.gz)
[ ${#recordings[@]} -gt 0 ] || { echo "look: docs/results/ has no recording of $1 on an H200" >&2; exit 1; }

for recording in "${recordings[@]}"; do
  name=$(basename "$recording" .json.gz)
  echo "=== $name"
  $readtrace quiz "$recording"
  echo
  $readtrace table "$recording" --sort-by cuda_time_total --row-limit 15
  echo
  $readtrace explain "$recording"
  $readtrace figure "$recording" -o "traces/figures/$name.svg"
  echo "Figure: traces/figures/$name.svg (open it in a browser)"
  echo
done
