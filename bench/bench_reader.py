#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How trace::read keeps up with large files: bench_reader on three sizes, and Python's json.load beside it.

    bench_reader.py BENCH_READER READTRACE FOLDER

The files are one recording repeated (repeat_trace.py) and are made in FOLDER where they are not there: 1e5
events, 1 GB and 1e7 events (about 3 GB; 10 GB of memory for json.load of 1 GB). Exits 1 where a limit is not met.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
RECORDING = HERE.parent / "docs" / "results" / "01_naive.naive.h200.json.gz"
SIZES = (("1e5_events", ("--events", "100000"), 15), ("1GB", ("--bytes", "1000000000"), 3),
         ("1e7_events", ("--events", "10000000"), 2))
LEAST_SPEED = 0.9  # of the walk
MOST_GROWTH = 1.5  # of the time per event, from 1e5 to 1e7 events


def seconds(command):
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bench_reader")
    parser.add_argument("readtrace")
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)

    failed = []
    read_ns, table_ns = {}, {}
    for name, size, rounds in SIZES:
        path = args.folder / f"repeated_{name}.json"
        if not path.exists():
            subprocess.run([sys.executable, HERE / "repeat_trace.py", RECORDING, path, *size], check=True)
        print(f"--- {path.name}", flush=True)
        text = subprocess.run([args.bench_reader, path, str(rounds)], capture_output=True, text=True, check=True).stdout
        print(text, end="", flush=True)
        speed = float(re.search(r"speed +([\d.]+)", text)[1])
        memory = float(re.search(r"([\d.]+) of the limit", text)[1])
        read_ns[name] = float(re.search(r"([\d.]+) ns per event", text)[1])
        events = int(re.search(r"(\d+) events", text)[1])
        table_ns[name] = 1e9 * min(seconds([args.readtrace, "table", path]) for _ in range(rounds)) / events
        print(f"readtrace table {table_ns[name]:.0f} ns per event", flush=True)
        if speed < LEAST_SPEED:
            failed.append(f"{name}: speed {speed} of the walk, the least is {LEAST_SPEED}")
        if memory > 1:
            failed.append(f"{name}: memory {memory} of the limit")
        if name == "1GB":
            start = time.perf_counter()
            with open(path, "rb") as file:
                json.load(file)
            python = time.perf_counter() - start
            print(f"Python {sys.version.split()[0]}: json.load {python:.1f} s, "
                  f"{1e9 * python / events / read_ns[name]:.0f} times the time of trace::read", flush=True)
    for what, times in (("trace::read", read_ns), ("readtrace table", table_ns)):
        growth = times["1e7_events"] / times["1e5_events"]
        print(f"{what}: time per event at 1e7 events {growth:.2f} of that at 1e5")
        if growth > MOST_GROWTH:
            failed.append(f"{what}: time per event grows {growth:.2f} times, the most is {MOST_GROWTH}")
    for line in failed:
        print(f"not met: {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
