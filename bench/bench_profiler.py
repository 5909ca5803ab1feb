#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What profiling costs: LibTorch bare, prof::Profiler, Python's torch.profiler, in one run.

    bench_profiler.py build/bench_profiler [--json FILE]

Runs the C++ benchmark, does the same work in this process, and prints ratios; times stand beside
them for orientation. Needs the torch that the C++ side was built with.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time

import torch

OPS, TABLE_OPS, REPETITIONS = 10_000, 100_000, 31  # as in bench_profiler.cpp


def cpp_medians(program):
    command = [program, "--benchmark_format=json", "--benchmark_enable_random_interleaving=true"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if not output.stderr.strip():
        sys.exit("bench_profiler printed no table: stop_to_table measured nothing")
    runs = json.loads(output.stdout)["benchmarks"]
    scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    return {
        run["run_name"].split("/")[0]: run["real_time"] * scale[run["time_unit"]]
        for run in runs if run.get("aggregate_name") == "median"
    }


def run_ops(x, count):
    start = time.perf_counter()
    for _ in range(count):
        torch.neg(x)
    return time.perf_counter() - start


def profiler():
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])


def python_medians():
    x = torch.ones(4, 4)
    plain, profiled = [], []
    for _ in range(REPETITIONS):
        plain.append(run_ops(x, OPS))
        with profiler():
            profiled.append(run_ops(x, OPS))
    to_table = []
    for _ in range(3):
        recording = profiler()
        recording.start()
        run_ops(x, TABLE_OPS)
        start = time.perf_counter()
        recording.stop()
        recording.events()
        text = recording.key_averages().table()
        print(text, file=sys.stderr)
        to_table.append(time.perf_counter() - start)
    return {
        "no_profiler": statistics.median(plain),
        "torch_profiler": statistics.median(profiled),
        "stop_to_table": statistics.median(to_table),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--json", help="write the figures to this file, too")
    args = parser.parse_args()

    cpp, python = cpp_medians(args.program), python_medians()
    bare = (cpp["bare_calls"] - cpp["no_profiler"]) / OPS
    ours = (cpp["prof_profiler"] - cpp["no_profiler"]) / OPS
    theirs = (python["torch_profiler"] - python["no_profiler"]) / OPS
    figures = {
        "added_per_op_ours_over_bare": ours / bare,
        "added_per_op_python_over_bare": theirs / bare,
        "stop_to_table_python_over_ours": python["stop_to_table"] / cpp["stop_to_table"],
        "added_per_op_bare_ns": bare * 1e9,
        "added_per_op_ours_ns": ours * 1e9,
        "added_per_op_python_ns": theirs * 1e9,
        "stop_to_table_ours_ms": cpp["stop_to_table"] * 1e3,
        "stop_to_table_python_ms": python["stop_to_table"] * 1e3,
    }
    print("added to one op while recording (CPU)              ratio to bare calls    time")
    print(f"  prepare/enable/disable, bare                               1.00        {bare * 1e9:6.0f} ns")
    print(f"  prof::Profiler                                           {ours / bare:6.2f}        {ours * 1e9:6.0f} ns")
    print(f"  torch.profiler in Python                                 {theirs / bare:6.2f}        {theirs * 1e9:6.0f} ns")
    print(f"from stop to the table of {TABLE_OPS} ops              ratio to ours          time")
    print(f"  prof::Profiler: stop, save, read, table                    1.00        {cpp['stop_to_table'] * 1e3:6.0f} ms")
    print(f"  torch.profiler: stop, events(), key_averages().table()   {python['stop_to_table'] / cpp['stop_to_table']:6.2f}"
          f"        {python['stop_to_table'] * 1e3:6.0f} ms")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
