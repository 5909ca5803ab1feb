#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records what the chapters print on this machine: record.sh CHAPTER...
# Each becomes docs/results/<chapter>.<variant>.<device>.{json.gz,txt}; other devices' files stay as
# they are. Pages quote these files: run `make docs` afterwards.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly python=${PYTHON:-.venv/bin/python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The figures of sweeps in a folder, from which pages draw their plots.
keep_sweeps() {
  local file name recording
  for file in "$1"/*.sweep.json; do
    name=${file##*/}
    name=${name#*_*_*_*_}
    recording=docs/results/$chapter.${name%%.*}.${device:-cpu}.sweep.json
    cp "$file" "$recording"
    python3 tools/docs.py --stamp "$recording"
  done
}

on_gpu=false
if command -v nvidia-smi > "$scratch/smi" && nvidia-smi > "$scratch/smi" 2>&1; then on_gpu=true; fi

for chapter in "$@"; do
  runs=("")
  case $chapter in
    01_naive) runs=("--graph") ;;
    03_sdpa) runs=("--backend all") ;;
    04_kernels) runs=("--kernel all") ;;
    05_memory) runs=("--mode inference --layers 1" "" "--mode checkpoint" "--variant flash") ;;
    06_kv_cache)  # a generation is many forwards: one step is enough
      runs=("--cache concat" "--cache preallocated" "--cache paged" "--cache paged --attention sdpa --tokens 16")
      if $on_gpu; then runs+=("--cache preallocated --cuda-graph" "--cache paged --cuda-graph"); fi
      runs=("${runs[@]/#/--active 1 }")
      ;;
  esac
  for options in "${runs[@]}"; do
    # shellcheck disable=SC2086  # several words
    build/"$chapter" --out "$scratch" $options > "$scratch/output" || { cat "$scratch/output"; exit 1; }
    if grep -q '^  reserved at' "$scratch/output"; then  # of CUDA's allocator
      echo "$chapter $options" | sed 's/ *$//'
      sed -n '/^Allocator/,/^  retries/p' "$scratch/output"
      echo
    fi >> "$scratch/allocator"
  done
  # "Device    NVIDIA H200 (sm_90, ..." is h200; a line without a compute capability is a CPU.
  device=$(sed -n 's/^Device *\(NVIDIA \)\{0,1\}\(.*\) (sm_.*/\2/p' "$scratch/output" | tr '[:upper:] ' '[:lower:]-')
  for file in "$scratch/$chapter"/*; do
    name=$(basename "$file")
    case $name in *.memory.svg | *.pickle) continue ;; esac  # drawn from the trace; of this machine alone
    case $name in *.graph.json) gzip -n9 "$file" && file+=.gz && name+=.gz ;; esac
    variant=${name#*_*_*_*_}  # without batch, heads, sequence and head dimension
    recording=docs/results/$chapter.${variant%%.*}.${device:-cpu}.${variant#*.}
    cp "$file" "$recording"
    case $recording in *.json.gz) python3 tools/docs.py --stamp "$recording" ;; esac
  done
  # How the choice changes with dtype, shared heads and head dimension: the comparisons alone.
  if [ "$chapter" = 03_sdpa ]; then
    for other in "--dtype fp32" "--kv-heads 4" "--head-dim 256"; do
      echo "03_sdpa --backend all $other"
      # shellcheck disable=SC2086
      build/03_sdpa --backend all --out "$scratch/other" $other | sed -n '/^ *GPU ops\|^ *ops /,/^speed/{/^speed/!p}'
      echo
    done > "$scratch/comparisons"
    sed '$d' "$scratch/comparisons" > "docs/results/03_sdpa.comparisons.${device:-cpu}.txt"
  fi
  # How memory grows with S, and what a checkpoint saves with more layers: the comparisons alone.
  if [ "$chapter" = 05_memory ]; then
    lengths=256,512,768,1024
    if $on_gpu; then
      lengths=1024,2048,3072,4096
      sed '$d' "$scratch/allocator" > "docs/results/05_memory.allocator.${device:-cpu}.txt"
    fi
    for other in "--mode inference --layers 1 --sweep $lengths" "--sweep $lengths"; do
      echo "05_memory --variant all $other"
      # shellcheck disable=SC2086
      build/05_memory --variant all --out "$scratch/growth" $other | sed '1,/^$/d; /^Sweep  /d; /^Plot  /d; /^Next:/d'
      echo
    done > "$scratch/sweeps"
    sed '$d' "$scratch/sweeps" > "docs/results/05_memory.sweeps.${device:-cpu}.txt"
    keep_sweeps "$scratch/growth/05_memory"
    for layers in 1 2 4 8; do
      for mode in training checkpoint; do
        echo "05_memory --mode $mode --layers $layers"
        build/05_memory --mode "$mode" --layers "$layers" --sweep 512 --out "$scratch/layer" > "$scratch/layers"
        grep '^ .* held\|^naive ' "$scratch/layers"
      done
    done | awk '!/ held/ || !seen++' > "docs/results/05_memory.layers.${device:-cpu}.txt"
  fi
  # What T tokens cost over each cache and without one: the comparison alone.
  if [ "$chapter" = 06_kv_cache ]; then
    other="--cache all --heads 2 --seq 16 --sweep 64,256,1024"
    # shellcheck disable=SC2086
    build/06_kv_cache --out "$scratch/growth" $other > "$scratch/sweeps"
    { echo "06_kv_cache $other"; sed '1,/^$/d; /^Sweep  /d; /^Plot  /d; /^Next:/d' "$scratch/sweeps"; } \
      > "docs/results/06_kv_cache.sweeps.${device:-cpu}.txt"
    keep_sweeps "$scratch/growth/06_kv_cache"
    if $on_gpu; then  # what a server has: bytes count there, and launches do not
      other="--cache all --batch 64 --seq 4096 --tokens 16"
      # shellcheck disable=SC2086
      build/06_kv_cache --out "$scratch/server" $other > "$scratch/sweeps"
      { echo "06_kv_cache $other"; sed '1,/^$/d; /^Sweep  /d; /^Plot  /d; /^Next:/d' "$scratch/sweeps"; } \
        > "docs/results/06_kv_cache.server.${device:-cpu}.txt"
    fi
  fi
  # The same in Python, where chapter and LibTorch have one.
  if [ -f chapters/"$chapter"/attention.py ] && "$python" -c 'import torch' 2>/dev/null; then
    recording=docs/results/$chapter.beside.${device:-cpu}.txt
    "$python" tools/beside.py "$chapter" > "$scratch/beside"
    cp "$scratch/beside" "$recording"
    python3 tools/docs.py --stamp "$recording"
  fi
  echo "recorded: docs/results/$chapter.*.${device:-cpu}.*"
done
