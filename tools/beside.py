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
import re
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

    source = (ROOT / "chapters" / chapter / "main.cpp").read_text(encoding="utf-8")
    label = re.search(r'record_function scope\("(\w+)"\)', source).group(1)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if on_gpu else [])
    with torch.no_grad():
        for _ in range(3):
            module.attention(q, k, v, mask)
        if on_gpu:
            torch.cuda.synchronize()
        with profile(activities=activities, schedule=schedule(wait=1, warmup=1, active=3, repeat=1),
                     acc_events=True) as recording:  # without, torch warns of a second cycle
            for _ in range(5):
                with record_function(label):
                    module.attention(q, k, v, mask)
                recording.step()
    path = pathlib.Path(folder, "python.json")
    recording.export_chrome_trace(str(path))
    print(f"{metadata['device']}; {metadata['shape']} {metadata['dtype']}, three forwards; "
          f"C++: LibTorch {metadata['libtorch']}, Python: torch {torch.__version__}")
    return path


def ops(trace):
    """Name -> (calls, CPU total, CPU self) of ops and annotations, in order of first appearance."""
    command = [ROOT / "build" / "readtrace", "table", trace, "--row-limit", "-1", "--max-name-column-width", "1000"]
    titles, rows, _ = tables.parse(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    wanted = [titles.index(title) for title in ("# of Calls", "CPU total", "Self CPU")]
    named = {}
    for row in rows:
        cells = [row[column] for column in wanted]
        if cells[1] != "0.000us":  # kernels have no CPU time
            named.setdefault(row[0], cells)
    return named


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    chapter, *arguments = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        trace = run_cpp(chapter, arguments, folder)
        cpp, python = ops(trace), ops(run_python(chapter, trace, folder))
    titles = ["C++ calls", "C++ total", "C++ self", "Python calls", "Python total", "Python self"]
    nothing = ["-"] * 3
    lines = [[name, *cpp.get(name, nothing), *python.get(name, nothing)] for name in dict.fromkeys([*cpp, *python])]
    lines.insert(0, ["", "C++ calls", "C++ total", "C++ self", "Python calls", "Python total", "Python self"])
    widths = [max(map(len, column)) for column in zip(*lines)]
    for name, *cells in lines:
        mark = "" if cells[0] == cells[3] or not name else "  <"
        print(name.ljust(widths[0]), *(cell.rjust(width + 1) for cell, width in zip(cells, widths[1:])), end=f"{mark}\n")
    print("< marks what is called more often in one of them")


if __name__ == "__main__":
    main()
