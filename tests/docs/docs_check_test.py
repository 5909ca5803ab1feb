#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The docs check fails when a page and its sources part: docs_check_test.py READTRACE

Breaks a copy of the pages in one place at a time. Each break must make `tools/docs.py --check` exit 1.
"""
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
    shutil.copy(ROOT / "README.md", folder)
    (folder / "build").mkdir()
    (folder / "build" / "readtrace").symlink_to(readtrace)


def check(folder):
    return subprocess.run([sys.executable, folder / "tools" / "docs.py", "--check"], text=True, capture_output=True,
                          check=False)


def edited(path, pattern, replacement):
    before = path.read_text(encoding="utf-8")
    after = re.sub(pattern, replacement, before, count=1, flags=re.DOTALL)
    assert before != after, f"{pattern} is not in {path.name}: the test breaks nothing"
    path.write_text(after, encoding="utf-8")


BREAKS = {
    "a figure in a table": ("docs/01_naive.md", r"(aten::bmm +)\d", r"\g<1>9"),
    "a line of an excerpt": ("docs/01_naive.md", "at::softmax", "at::softmax_"),
    "a figure in a sentence": ("docs/02_inplace.md", r'("CUDA time per forward" -->)\d', r"\g<1>7"),
    "a diff": ("docs/02_inplace.md", r"\+  scores\.masked_fill_", "+  scores.masked_fill"),
    "a drawing": ("docs/figures/01_naive.naive.h200.step2.svg", "<svg", "<svg "),
    "a marker without its end": ("docs/03_sdpa.md", "<!-- end -->", ""),
    "the code that a recording is of": ("chapters/01_naive/main.cpp", r"scores = at::softmax\(scores, -1\);",
                                        "scores = scores.softmax(-1);"),
    "the source of an excerpt": ("chapters/02_inplace/main.cpp", r"// \[end attention\]", "// [ende attention]"),
}


def main():
    readtrace = pathlib.Path(sys.argv[1]).resolve()
    failed = 0
    with tempfile.TemporaryDirectory() as whole:
        copy_to(pathlib.Path(whole), readtrace)
        result = check(pathlib.Path(whole))
        if result.returncode != 0:
            sys.exit(f"the pages as they are do not pass: {result.stderr.strip()}")
    for name, (file, pattern, replacement) in BREAKS.items():
        with tempfile.TemporaryDirectory() as folder:
            copy_to(pathlib.Path(folder), readtrace)
            edited(pathlib.Path(folder, file), pattern, replacement)
            result = check(pathlib.Path(folder))
        caught = result.returncode == 1
        failed += not caught
        print(f"{'caught' if caught else 'MISSED'}: {name}: {result.stderr.strip() or result.stdout.strip()}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
