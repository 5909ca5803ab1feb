#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From a trace file to its table: `readtrace table` beside Python, in one run.

    bench_table.py READTRACE TRACE [--rounds N]

TRACE is made first if it is not there (make_trace.py, 500,000 events). Both sides are whole processes that read
the same file and print the same text, which is compared: Python's is tests/parity/table_reference.py, json.load
and the steps of PyTorch's own table. Rounds alternate, the best of each counts. Exits 1 where the texts differ.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def run(command):
    """Seconds and output of a process."""
    start = time.perf_counter()
    result = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - start, result.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("readtrace")
    parser.add_argument("trace", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()

    if not args.trace.exists():
        args.trace.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, HERE / "make_trace.py", args.trace], check=True)
    ours = [args.readtrace, "table", args.trace]
    python = [sys.executable, HERE.parent / "tests" / "parity" / "table_reference.py", args.trace]
    our_times, python_times = [], []
    for _ in range(args.rounds):
        seconds, want = run(python)
        python_times.append(seconds)
        for _ in range(3):  # it is short: more chances to be undisturbed
            seconds, got = run(ours)
            our_times.append(seconds)
        if got != want:
            print("the two tables differ: no result")
            return 1
    size = os.path.getsize(args.trace) / 1e6
    version = ".".join(map(str, sys.version_info[:2]))
    print(f"file to table, {size:.0f} MB: readtrace {min(our_times):.3f} s, Python {version} {min(python_times):.2f} s, "
          f"{min(python_times) / min(our_times):.0f} times faster")
    return 0


if __name__ == "__main__":
    sys.exit(main())
