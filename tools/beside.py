#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a chapter in C++ and in Python, same shape, same schedule, and prints their ops side by side.

    tools/beside.py 01_naive [options of the chapter]

Needs a torch for this interpreter; the ops are the same if it is the version that the chapter was
built with.
"""
import gzip
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

import tables

ROOT = pathlib.Path(__file__).resolve().parent.parent
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def run_cpp(chapter, arguments, folder):
    """The trace file that the C++ program wrote."""
    command = [ROOT / "build" / chapter, "--out", folder, *arguments]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        sys.exit(result.returncode)
    return next(pathlib.Path(folder, chapter).glob("*.json.gz"))


def run_python(chapter, like, folder):
    """The same in Python; shape, dtype and device are those of the C++ program's trace."""
    with gzip.open(like) as file:
        metadata = json.load(file)
    batch, heads, seq, head_dim = map(int, metadata["shape"].split("_"))
    on_gpu = "(sm_" in metadata["device"]
    options = {"device": "cuda" if on_gpu else "cpu", "dtype": DTYPES[metadata["dtype"]]}
    q, k, v = (torch.randn(batch, heads, seq, head_dim, **options) for _ in range(3))
    mask = torch.ones(seq, seq, dtype=torch.bool, device=options["device"]).triu(1)
    spec = importlib.util.spec_from_file_location("attention", ROOT / "chapters" / chapter / "attention.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    label = "sdpa_fwd" if chapter == "03_sdpa" else "attn_fwd"
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if on_gpu else [])
    with torch.no_grad():
        for _ in range(3):
            module.attention(q, k, v, mask)
        if on_gpu:
            torch.cuda.synchronize()
        with profile(activities=activities, schedule=schedule(wait=1, warmup=1, active=3, repeat=1)) as recording:
            for _ in range(5):
                with record_function(label):
                    module.attention(q, k, v, mask)
                recording.step()
    path = pathlib.Path(folder, "python.json")
    recording.export_chrome_trace(str(path))
    return path


def ops(trace):
    """Name -> (calls, CPU total) of ops and annotations, in order of first appearance."""
    command = [ROOT / "build" / "readtrace", "table", trace, "--row-limit", "-1", "--max-name-column-width", "1000"]
    titles, rows, _ = tables.parse(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    calls, total = titles.index("# of Calls"), titles.index("CPU total")
    named = {}
    for row in rows:
        if row[total] != "0.000us":  # kernels have no CPU time
            named.setdefault(row[0], (row[calls], row[total]))
    return named


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    chapter, *arguments = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        trace = run_cpp(chapter, arguments, folder)
        cpp, python = ops(trace), ops(run_python(chapter, trace, folder))
    width = max(map(len, [*cpp, *python]))
    print(f"{'three forwards':<{width}}  {'C++ calls':>9}  {'CPU total':>10}  {'Python calls':>12}  {'CPU total':>10}")
    nothing = ("-", "-")
    for name in [*cpp, *(name for name in python if name not in cpp)]:
        (calls, total), (their_calls, their_total) = cpp.get(name, nothing), python.get(name, nothing)
        mark = "" if calls == their_calls else "  <"
        print(f"{name:<{width}}  {calls:>9}  {total:>10}  {their_calls:>12}  {their_total:>10}{mark}")
    print("< marks what is called more often in one of them")


if __name__ == "__main__":
    main()
