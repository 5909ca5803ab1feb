#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chapter 04's kernels beside LibTorch's backends: runs bench_kernels and prints ratios.

    bench_kernels.py PROGRAM LIBRARY [--json FILE]

Repetitions of all benchmarks are interleaved at random, and the median of each counts, so that a clock that
drifts or a neighbour's work falls on all alike. FILE gets what the table is made of: medians in microseconds
and TFLOP/s by shape, mask and kernel, and the geometric means.
"""
import argparse
import json
import math
import subprocess
import sys
import tempfile

BACKENDS = ["flash", "efficient", "cudnn"]


def measure(program, library, repetitions):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([program, library, f"--benchmark_repetitions={repetitions}",
                        "--benchmark_enable_random_interleaving=true", "--benchmark_min_time=0.005",
                        "--benchmark_report_aggregates_only=true", "--benchmark_display_aggregates_only=true",
                        f"--benchmark_out={out.name}", "--benchmark_out_format=json"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return json.load(out)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("library")
    parser.add_argument("--json")
    parser.add_argument("--repetitions", type=int, default=9)
    args = parser.parse_args()

    result = measure(args.program, args.library, args.repetitions)
    times, tflops = {}, {}  # (shape, mask) -> kernel -> median
    for run in sorted(result["benchmarks"], key=lambda run: run["family_index"]):  # as they were registered
        if run.get("aggregate_name") != "median":
            continue
        shape, mask, who = run["run_name"].split("/")[:3]
        times.setdefault((shape, mask), {})[who] = run["real_time"]
        tflops.setdefault((shape, mask), {})[who] = run["TFLOP/s"]
    names = list(next(iter(times.values())))
    versions = [name for name in names if name not in BACKENDS]
    backends = [name for name in names if name in BACKENDS]

    context = result["context"]
    print(f"{context['device']}, driver {context['driver'] or 'none'}, LibTorch {context['libtorch']}, "
          f"{context['threads']} CPU threads; median of {args.repetitions}, cold L2 cache; us, TFLOP/s below")
    print(f"{'B, H, S, D':<26}" + "".join(f"{name:>10}" for name in names))
    for (shape, mask), row in times.items():
        print(f"{shape.replace('_', ', ') + ' ' + mask:<26}" + "".join(f"{row[name]:>10.1f}" for name in names))
        print(" " * 26 + "".join(f"{tflops[shape, mask][name]:>10.3g}" for name in names))

    means = {}
    for version in versions:
        to_flash = [row["flash"] / row[version] for row in times.values()]
        to_best = [min(row[name] for name in backends) / row[version] for row in times.values()]
        means[version] = {"to_flash": geometric_mean(to_flash), "least_to_flash": min(to_flash),
                          "to_fastest": geometric_mean(to_best), "least_to_fastest": min(to_best)}
    print("\nspeed, geometric mean over the shapes (least of them):")
    for version, mean in means.items():
        print(f"{version:<6}{mean['to_flash']:>8.3f} ({mean['least_to_flash']:.3f}) of flash"
              f"{mean['to_fastest']:>10.3f} ({mean['least_to_fastest']:.3f}) of the fastest backend of each shape")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"device": context["device"], "libtorch": context["libtorch"], "driver": context["driver"],
                       "threads": int(context["threads"]),
                       "us": {f"{shape} {mask}": row for (shape, mask), row in times.items()},
                       "tflops": {f"{shape} {mask}": row for (shape, mask), row in tflops.items()},
                       "speed": means}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
