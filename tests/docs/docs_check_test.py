#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The docs check fails when a page and its sources part: docs_check_test.py READTRACE

Breaks a copy of the pages in one place at a time. Each break must make `tools/docs.py --check` exit 1
and say so.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def copy_to(folder, readtrace):
    for name in ("tools", "docs", "chapters"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copytree(ROOT / "tests" / "data", folder / "tests" / "data")
    shutil.copy(ROOT / "README.md", folder)
    (folder / "build").mkdir()
    (folder / "build" / "readtrace").symlink_to(readtrace)


def check(folder):
    return subprocess.run([sys.executable, folder / "tools" / "docs.py", "--check"], text=True, capture_output=True,
                          check=False)


def edited(path, pattern, replacement):
    if pattern is None:
        path.write_text(replacement, encoding="utf-8")
        return
    before = path.read_text(encoding="utf-8")
    after = re.sub(pattern, replacement, before, count=1, flags=re.DOTALL)
    assert before != after, f"{pattern} is not in {path.name}: the test breaks nothing"
    path.write_text(after, encoding="utf-8")


STALE = "not what the recordings say"
OTHER_CODE = "was recorded from other code"
# What is broken: file, what in it, by what; and what the check must say. A file without a pattern is a new one.
BREAKS = {
    "a figure in a table": ("docs/01_naive.md", r"(aten::bmm +)\d", r"\g<1>9", STALE),
    "a line of an excerpt": ("docs/01_naive.md", "at::softmax", "at::softmax_", STALE),
    "a line of a Python excerpt": ("docs/01_naive.md", "torch.softmax", "torch.softmin", STALE),
    "a figure in a sentence": ("docs/02_inplace.md", r'("CUDA time per forward" -->)\d', r"\g<1>7", STALE),
    "a figure that readtrace prints": ("docs/01_naive.md", r'(fig: readtrace tree [^>]*-->)\d', r"\g<1>8", STALE),
    "a ratio": ("docs/03_sdpa.md", r"(fig: ratio [^>]*-->)\d", r"\g<1>8", STALE),
    "a figure of a file": ("docs/reading_a_trace.md", r"(fig: text [^>]*-->)\d", r"\g<1>9", STALE),
    "a figure of a nested JSON": ("docs/04_kernels.md", r"(fig: json \S+ \S+ [^>]*-->)\d", r"\g<1>9", STALE),
    "a quotient": ("docs/04_kernels.md", r"(fig: quotient [^>]*-->)\d", r"\g<1>9", STALE),
    "a quotient of what is not there": ("docs/04_kernels.md", r"(fig: quotient [^>]*)\.v6", r"\1.v7", "has no us."),
    "a line of a part": ("docs/04_kernels.md", r"start_scores\(\);", "start_output();", STALE),
    "a part that is not there": ("chapters/04_kernels/library.cpp", r"TORCH_LIBRARY\(", "TORCH_LIBRARIES(", "has no part"),
    "a line of what health says": ("docs/readtrace.md", r"nothing odd", "all odd", STALE),
    "a shift of a merged file": ("docs/readtrace.md", r"(times moved by )-", r"\g<1>+", STALE),
    "an op graph": ("docs/figures/01_naive.naive.cpu.graph.svg", "aten::bmm", "aten::mm", STALE),
    "a figure of the comparison with Python": ("docs/01_naive.md", r"(fig: beside [^>]*-->)\d", r"\g<1>9", STALE),
    "a comparison with Python": ("docs/results/02_inplace.beside.cpu.txt", r"(aten::mul +)3", r"\g<1>4", STALE),
    "a pattern that nothing matches": ("docs/01_naive.md", r"attn_fwd \+", "attn_bwd +", "has nothing like"),
    "a diff": ("docs/02_inplace.md", r"\+  scores\.masked_fill_", "+  scores.masked_fill", STALE),
    "a diff of Python": ("docs/02_inplace.md", r"\+    scores\.masked_fill_", "+    scores.masked_fill", STALE),
    "a drawing": ("docs/figures/01_naive.naive.h200.step2.svg", "<svg", "<svg ", STALE),
    "a drawing for phones": ("docs/figures/01_naive.naive.h200.step3.narrow.svg", "<svg", "<svg ", STALE),
    "a drawing of the CPU's part": ("docs/figures/01_naive.naive.h200.step3.cpu.svg", "<svg", "<svg ", STALE),
    "a drawing of a range": ("docs/figures/cudnn_cold.us0-12000.svg", "<svg", "<svg ", STALE),
    "a plot of a sweep": ("docs/figures/05_memory.all-training-2layers.cpu.sweep.svg", "<svg", "<svg ", STALE),
    "a figure of a sweep": ("docs/results/05_memory.all-training-2layers.cpu.sweep.json", r'("peak": )\d', r"\g<1>9", STALE),
    "a path in a sweep": ("docs/results/05_memory.all-training-2layers.cpu.sweep.json", "AMD", "/home/x/AMD", "holds a path"),
    "a drawing that no page shows": ("docs/figures/01_naive.naive.h200.step9.svg", None, "<svg/>", STALE),
    "a picture without its narrow drawing": ("docs/01_naive.md", "<source [^>]*>", "", STALE),
    "a marker without its end": ("docs/03_sdpa.md", "<!-- end -->", "", "each marker is closed"),
    "a marker at the start of a line": ("docs/01_naive.md", " (<!-- fig: )", r"\n\1", "begins its line"),
    "a marker with --": ("docs/01_naive.md", r"(fig: readtrace \S+ \S+) step=2", r"\1 --step 2", "holds --"),
    "a marker with too many words": ("docs/01_naive.md", r"(fill: figure \S+) step=3", r"\1 --step 3", "figure: "),
    "the code that a recording is of": ("chapters/01_naive/main.cpp", r"scores = at::softmax\(scores, -1\);",
                                        "scores = scores.softmax(-1);", OTHER_CODE),
    "the code that a comparison is of": ("chapters/01_naive/attention.py", "torch.softmax", "torch.softmin", OTHER_CODE),
    "a path in a comparison": ("docs/results/01_naive.beside.cpu.txt", "AMD", '"/home/x/AMD', "holds a path"),
    "the source of an excerpt": ("chapters/02_inplace/main.cpp", r"// \[end attention\]", "// [ende attention]", "no region"),
    "the source of a Python excerpt": ("chapters/02_inplace/attention.py", r"# \[end", "# [ende", "no region"),
}


def look(folder, readtrace, *words):
    """What `make look` runs, on the recordings, without a terminal."""
    return subprocess.run([folder / "tools" / "look.sh", *words], text=True, capture_output=True, check=False,
                          stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], "READTRACE": str(readtrace)})


def check_look(folder, readtrace):
    """Questions, table, findings and figure of each variant, in the order of the pages."""
    result = look(folder, readtrace, "03_sdpa")
    order = re.findall("^=== 03_sdpa, ([a-z]+):", result.stdout, re.MULTILINE)
    parts = ("does one forward launch?", "Self CUDA time total", "Finding: ", "Figure: ", "Next: docs/03_sdpa.md")
    if result.returncode != 0 or order != ["math", "flash", "efficient", "cudnn"] or \
            not all(part in result.stdout for part in parts):
        sys.exit(f"look.sh 03_sdpa: {order} {result.stdout[-500:]} {result.stderr}")
    result = look(folder, readtrace, "03_sdpa", "flash", "--guess", "1,no,no,1,10")
    if result.returncode != 0 or "of 5 right" not in result.stdout or "03_sdpa, math" in result.stdout:
        sys.exit(f"look.sh 03_sdpa flash --guess: {result.stdout} {result.stderr}")
    result = look(folder, readtrace, "03_sdpa", "naive")
    if result.returncode != 2 or result.stdout or "no recording of 03_sdpa with naive" not in result.stderr:
        sys.exit(f"look.sh 03_sdpa naive: {result.returncode} {result.stderr}")


def main():
    readtrace = pathlib.Path(sys.argv[1]).resolve()
    failed = 0
    with tempfile.TemporaryDirectory() as whole:
        copy_to(pathlib.Path(whole), readtrace)
        result = check(pathlib.Path(whole))
        if result.returncode != 0:
            sys.exit(f"the pages as they are do not pass: {result.stderr.strip()}")
        check_look(pathlib.Path(whole), readtrace)
    for name, (file, pattern, replacement, message) in BREAKS.items():
        with tempfile.TemporaryDirectory() as folder:
            copy_to(pathlib.Path(folder), readtrace)
            edited(pathlib.Path(folder, file), pattern, replacement)
            result = check(pathlib.Path(folder))
        caught = result.returncode == 1 and message in result.stderr
        failed += not caught
        print(f"{'caught' if caught else 'MISSED'}: {name}: {result.stderr.strip() or result.stdout.strip()}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
