#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills what pages quote from recordings and sources, so that no page can drift from them.

    tools/docs.py            rewrite the pages
    tools/docs.py --check    exit 1 and name the page if one differs from what would be written, or if
                             a recording is of other code than the chapter has now
    tools/docs.py --stamp RECORDING...   remember of which code these recordings are

A page holds markers, and what stands between a marker and its end is replaced. Blocks:

    <!-- fill: table RECORDING.txt rows=8 columns="Name,CUDA total" -->   head of a profiler table
    <!-- fill: explain RECORDING.json.gz -->                facts and findings, by readtrace
    <!-- fill: readtrace tree RECORDING.json.gz --step 2 -->        what a command prints
    <!-- fill: figure RECORDING.json.gz step=2 alt="what it shows" -->   a timeline, drawn into docs/figures/
    <!-- fill: code chapters/01_naive/main.cpp attention -->        a region marked [begin attention]
    <!-- fill: diff 01_naive 02_inplace -->                 what changed between two chapters
    <!-- fill: lines docs/results/bench_table.cpu.txt -->   a file as it stands
    <!-- fill: chapters -->                                 the list of chapters
    <!-- end -->

and within a sentence:

    <!-- fig: fact RECORDING.json.gz "CUDA time per forward" -->1.065ms<!-- end -->
    <!-- fig: cell RECORDING.txt aten::bmm "CUDA total" -->506.462us<!-- end -->
    <!-- fig: json docs/results/build.cpu.json clean_build_seconds .0f -->431<!-- end -->

RECORDING is a name in docs/results. Needs Python 3.10 and, for `explain`, `readtrace` and `fact`, the
program build/readtrace.
"""
import argparse
import functools
import gzip
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import sys

import tables

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = "docs/results/"
END = "<!-- end -->"
BLOCK = re.compile(r"(<!-- fill: (?P<command>.*?) -->\n).*?" + END, re.DOTALL)
INLINE = re.compile(r"(<!-- fig: (?P<command>.*?) -->).*?" + END)


class DocsError(Exception):
    pass


def text_of(name):
    path = ROOT / name
    if not path.is_file():
        raise DocsError(f"{name} is not there: record it with `make results`, or mend the marker")
    return path.read_text(encoding="utf-8")


def code_block(text):
    return "```\n" + text.rstrip("\n") + "\n```\n"


def parsed_table(name):
    return tables.parse(text_of(RESULTS + name))


def column_of(name, titles, title):
    if title not in titles:
        raise DocsError(f"{name} has no column {title}: it has {', '.join(titles)}")
    return titles.index(title)


def table(name, rows="8", columns=None):
    """The head of a recorded profiler table, some of its columns, and its footer."""
    titles, cells, footer = parsed_table(name)
    wanted = columns.split(",") if columns else titles
    picked = [column_of(name, titles, title) for title in wanted]
    shown = [titles] + cells[:int(rows)]
    # As narrow as what is shown allows: a page has fewer columns than a terminal.
    widths = [max(len(row[i]) for row in shown) for i in picked]
    text = ["  ".join(row[i].rjust(width) for i, width in zip(picked, widths)) for row in shown]
    rule = "  ".join("-" * width for width in widths)
    dropped = ["..."] if len(cells) > int(rows) else []
    return code_block("\n".join([rule, text[0], rule, *text[1:], *dropped, rule, *footer]))


def cell(name, row, column):
    """One cell: of the row called `row`, else of the first one whose name starts so."""
    titles, cells, _ = parsed_table(name)
    for fits in (lambda title: title == row, lambda title: title.startswith(row)):
        for line in cells:
            if fits(line[0]):
                return line[column_of(name, titles, column)]
    raise DocsError(f"{name} has no row {row}")


@functools.cache
def printed_by_readtrace(*arguments):
    program = ROOT / "build" / "readtrace"
    if not program.is_file():
        raise DocsError("build/readtrace is not there: run `make build` first")
    words = [RESULTS + word if word.endswith(".json.gz") else word for word in arguments]
    result = subprocess.run([program, *words], cwd=ROOT, text=True, capture_output=True, check=False)
    if result.returncode != 0:
        raise DocsError(f"readtrace {' '.join(words)}: {result.stderr.strip()}")
    return result.stdout


def readtrace(*arguments):
    return code_block(printed_by_readtrace(*arguments))


def explain(name):
    return readtrace("explain", name)


def figure(name, step, alt):
    """A timeline of one step, drawn into docs/figures/."""
    file = f"figures/{name.removesuffix('.json.gz')}.step{step}.svg"
    FIGURES[file] = printed_by_readtrace("figure", name, "--step", step)
    return f"![{alt}]({file})\n"


def fact(name, key):
    """The value of one line of `readtrace explain`."""
    for line in printed_by_readtrace("explain", name).splitlines():
        if line.strip().startswith(key):
            return line.strip()[len(key):].strip()
    raise DocsError(f"{name} has no fact '{key}'")


def region(path, name):
    match = re.search(rf"^// \[begin {name}\]\n(.*?)^// \[end {name}\]$", text_of(path), re.DOTALL | re.MULTILINE)
    if not match:
        raise DocsError(f"{path} has no region {name}")
    return match[1]


def code(path, name):
    return "```cpp\n" + region(path, name) + "```\n"


def diff(before, after):
    command = ["git", "diff", "--no-index", "--no-color", "--", f"chapters/{before}/main.cpp", f"chapters/{after}/main.cpp"]
    text = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False).stdout
    return "```diff\n" + "\n".join(text.splitlines()[4:]) + "\n```\n"


def lines(name):
    return code_block(text_of(name))


def chapters():
    """One row per chapter, from the summary that its --help prints."""
    names = re.findall(r"^prof_add_chapter\((\w+)", text_of("chapters/CMakeLists.txt"), re.MULTILINE)
    out = "| Program | What it runs | Look for |\n|---|---|---|\n"
    for name in names:
        source = text_of(f"chapters/{name}/main.cpp")
        summary = re.search(r'\.summary = "(.*?)"', source).group(1)
        look = re.search(r"^// +(.+? / .+?|\S+) {2,}(.+)$", source, re.MULTILINE)
        out += f"| [`{name}`](chapters/{name}/main.cpp) | {summary} | {look.group(1)}: {look.group(2)} |\n"
    return out


def json_value(name, key, spec=""):
    values = json.loads(text_of(name))
    if key not in values:
        raise DocsError(f"{name} has no {key}")
    return format(values[key], spec)


FIGURES = {}  # file under docs/ -> what must stand in it, for the figures that pages show
BLOCKS = {"table": table, "explain": explain, "figure": figure, "readtrace": readtrace, "code": code, "diff": diff, "lines": lines,
          "chapters": chapters}
INLINES = {"fact": fact, "cell": cell, "json": json_value}


def call(functions, words):
    command, *words = words
    if command not in functions:
        raise DocsError(f"no such marker: {command}")
    if command == "readtrace":
        return readtrace(*words)
    named = dict(word.split("=", 1) for word in words if re.match(r"[a-z]+=", word))
    return functions[command](*[word for word in words if not re.match(r"[a-z]+=", word)], **named)


def filled(text):
    # A marker that lost its end would never be filled again, and no check would notice.
    opened, closed = len(re.findall("<!-- (?:fill|fig): ", text)), text.count(END)
    if opened != closed:
        raise DocsError(f"{opened} markers but {closed} ends: each marker is closed by {END}")
    text = BLOCK.sub(lambda match: match[1] + call(BLOCKS, shlex.split(match["command"])) + END, text)
    return INLINE.sub(lambda match: match[1] + call(INLINES, shlex.split(match["command"])) + END, text)


# ---- Recordings

STAMPS = "docs/results/recorded_from.json"
# What must not be in a published trace: absolute paths of somebody's machine, names of hosts and users.
PRIVATE = re.compile(rb'"/(?:home|root|Users|tmp|work|opt|usr|var|mnt|data)/|"(?:host|hostname|user|username)"\s*:')


def code_hash(recording):
    """Of the attention region of the chapter that a recording (01_naive.naive.h200.json.gz) is of."""
    chapter = recording.split(".")[0]
    return hashlib.sha256(region(f"chapters/{chapter}/main.cpp", "attention").encode()).hexdigest()[:16]


def stamp(recordings):
    path = ROOT / STAMPS
    stamps = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for recording in recordings:
        name = pathlib.Path(recording).name
        stamps[name] = code_hash(name)
    path.write_text(json.dumps(stamps, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def check_recordings():
    stamps = json.loads(text_of(STAMPS))
    names = sorted(path.name for path in (ROOT / RESULTS).glob("*.json.gz"))
    for name in names:
        if stamps.get(name) != code_hash(name):
            raise DocsError(f"{name} was recorded from other code than its chapter has now: run `make results` "
                            "on that device")
        if PRIVATE.search(gzip.decompress((ROOT / RESULTS / name).read_bytes())):
            raise DocsError(f"{name} holds a path, a host or a user: record it again from a neutral folder")
    return len(names)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--stamp", nargs="+", metavar="RECORDING")
    args = parser.parse_args()
    if args.stamp:
        return stamp(args.stamp)
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    stale, page = [], pathlib.Path(STAMPS)
    try:
        recordings = check_recordings() if args.check else 0
        for page in pages:
            before = page.read_text(encoding="utf-8")
            after = filled(before)
            if before == after:
                continue
            stale.append(str(page.relative_to(ROOT)))
            if not args.check:
                page.write_text(after, encoding="utf-8")
        for file, svg in FIGURES.items():
            path = ROOT / "docs" / file
            if path.is_file() and path.read_text(encoding="utf-8") == svg:
                continue
            stale.append(f"docs/{file}")
            if not args.check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(svg, encoding="utf-8")
    except DocsError as error:
        sys.exit(f"{page}: {error}")
    if args.check and stale:
        sys.exit(f"{', '.join(stale)}: not what the recordings say; run `make docs` and look at the change")
    if args.check:
        print(f"docs: {len(pages)} pages say what {recordings} recordings and the sources say")
    else:
        print(f"docs: {len(pages)} pages, rewritten: {', '.join(stale) or 'none'}")


if __name__ == "__main__":
    main()
