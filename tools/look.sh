#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a chapter printed on the H200, from its recordings: look.sh CHAPTER [VARIANT] [--guess ANSWERS].
# First the questions, as in the chapter itself, then table, facts, findings, and a figure to open in
# a browser. A chapter of several variants shows all, in the order of its page.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly readtrace=${READTRACE:-build-look/readtrace} chapter=$1
shift

variant=
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
  variant=$1
  shift
fi
recordings=()
for name in naive inplace math flash efficient cudnn v1 v2 v3 v4 v5 v6 \
  naive-inference-1layer naive-training-2layers naive-checkpoint-2layers flash-training-2layers \
  concat preallocated paged paged-sdpa preallocated-graph paged-graph; do
  recording=docs/results/$chapter.$name.h200.json.gz
  if [ -f "$recording" ] && [ "${variant:-$name}" = "$name" ]; then recordings+=("$recording"); fi
done
[ ${#recordings[@]} -gt 0 ] || { echo "look: docs/results/ has no recording of $chapter${variant:+ with $variant} on an H200" >&2; exit 2; }

# On a terminal that is narrower than the table: name, CPU total, CUDA total, calls.
columns=1000
[ ! -t 1 ] || columns=$(tput cols 2>/dev/null || echo 80)
fit() {
  if [ "$columns" -ge 200 ]; then cat; else
    awk '/^---/ { line = sprintf("%85s", ""); gsub(/ /, "-", line); print line; next }
      { row = $0; gsub(/^ +| +$/, "", row); n = split(row, cell, /  +/) }
      n == 11 { printf "%55s  %10s  %10s  %5s\n", cell[1], cell[5], cell[9], (cell[11] ~ /Calls/) ? "calls" : cell[11]; next }
      { print }'
  fi
}
wrap() { if [ "$columns" -lt 1000 ]; then fold -s -w "$columns"; else cat; fi; }

for recording in "${recordings[@]}"; do
  name=$(basename "$recording" .json.gz)
  echo "=== $chapter, $(cut -d . -f 2 <<<"$name"): a run that was recorded on an H200. Guess first, then look."
  $readtrace quiz "$recording" "$@"
  echo
  $readtrace table "$recording" --sort-by cuda_time_total --row-limit 15 | fit
  [ "$columns" -ge 200 ] || echo "The table is wider than this terminal; all columns: docs/results/$name.txt"
  echo
  $readtrace explain "$recording" | wrap
  $readtrace figure "$recording" -o "traces/figures/$name.svg"
  echo "Figure: traces/figures/$name.svg (open it in a browser)"
  echo "Trace:  $recording (drag it onto https://ui.perfetto.dev)"
  echo
  if [ -t 0 ] && [ -t 1 ] && [ "$recording" != "${recordings[-1]}" ]; then
    read -r -p "Enter goes on to the next recording: " || exit 0
  fi
done
echo "Next: docs/$chapter.md explains it row by row and lane by lane"
