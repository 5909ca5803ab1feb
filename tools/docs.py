#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills what pages quote from recordings and sources, so that no page can drift from them.

    tools/docs.py            rewrite the pages
    tools/docs.py --check    exit 1 and name the page if one differs from what would be written

A page holds markers, and whatever stands between a marker and its end is replaced:

    <!-- fill: table docs/results/01_naive.naive.h200.txt rows=8 columns="Name,CUDA total" -->
    <!-- fill: lines docs/results/bench_table.cpu.txt -->
    <!-- fill: chapters -->
    <!-- end -->

and, within a sentence, `<!-- fig: docs/results/build.json clean_build_minutes .1f -->7.2<!-- end -->`.
Needs Python 3.10 and nothing else.
"""
import argparse
import json
import pathlib
import re
import shlex
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(<!-- fill: (?P<command>.*?) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)
INLINE = re.compile(r"(<!-- fig: (?P<command>.*?) -->)(?P<body>.*?)(<!-- end -->)")
RULE = re.compile(r"-+")


class DocsError(Exception):
    pass


def text_of(name):
    path = ROOT / name
    if not path.is_file():
        raise DocsError(f"{name} is not there: record it with `make results`, or mend the marker")
    return path.read_text(encoding="utf-8")


def code_block(text):
    return "```\n" + text.rstrip("\n") + "\n```\n"


def table(name, rows="8", columns=None):
    """The head of a recorded profiler table, some of its columns, and its footer."""
    lines = text_of(name).splitlines()
    rule = next(i for i, line in enumerate(lines) if line.startswith("---"))
    spans = [match.span() for match in RULE.finditer(lines[rule])]

    def cells(line):
        # Padding stands left of a cell: take it along from the end of the column before.
        return [line[start:end] for start, end in spans]

    titles = [cell.strip() for cell in cells(lines[rule + 1])]
    wanted = columns.split(",") if columns else titles
    missing = [title for title in wanted if title not in titles]
    if missing:
        raise DocsError(f"{name} has no column {', '.join(missing)}: it has {', '.join(titles)}")
    picked = [titles.index(title) for title in wanted]

    def row(line):
        return "  ".join(cells(line)[i] for i in picked).rstrip()

    end = next(i for i in range(rule + 3, len(lines)) if lines[i].startswith("---"))
    body = lines[rule + 3:min(end, rule + 3 + int(rows))]
    dropped = ["..."] if end - rule - 3 > int(rows) else []
    shown = [row(lines[rule]), row(lines[rule + 1]), row(lines[rule])]
    shown += [row(line) for line in body] + dropped + [row(lines[rule])] + lines[end + 1:]
    return code_block("\n".join(shown))


def lines(name):
    return code_block(text_of(name))


def chapters():
    """One row per chapter, from the summary that its --help prints."""
    names = re.findall(r"^prof_add_chapter\((\w+)\)", text_of("chapters/CMakeLists.txt"), re.MULTILINE)
    out = "| Program | What it runs | Look for |\n|---|---|---|\n"
    for name in names:
        source = text_of(f"chapters/{name}/main.cpp")
        summary = re.search(r'\.summary = "(.*?)"', source).group(1)
        look = re.search(r"^// +(.+? / .+?|\S+) {2,}(.+)$", source, re.MULTILINE)
        out += f"| [`{name}`](chapters/{name}/main.cpp) | {summary} | {look.group(1)}: {look.group(2)} |\n"
    return out


def figure(name, key, spec=""):
    values = json.loads(text_of(name))
    if key not in values:
        raise DocsError(f"{name} has no {key}")
    return format(values[key], spec)


BLOCKS = {"table": table, "lines": lines, "chapters": chapters}


def filled(text):
    def block(match):
        command, *words = shlex.split(match["command"])
        if command not in BLOCKS:
            raise DocsError(f"no such marker: {command}")
        positional = [word for word in words if "=" not in word]
        named = dict(word.split("=", 1) for word in words if "=" in word)
        return match[1] + BLOCKS[command](*positional, **named) + match[4]

    text = BLOCK.sub(block, text)
    return INLINE.sub(lambda match: match[1] + figure(*match["command"].split()) + match[3], text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    stale = []
    for page in pages:
        before = page.read_text(encoding="utf-8")
        try:
            after = filled(before)
        except DocsError as error:
            sys.exit(f"{page.relative_to(ROOT)}: {error}")
        if before == after:
            continue
        stale.append(str(page.relative_to(ROOT)))
        if not args.check:
            page.write_text(after, encoding="utf-8")
    if args.check and stale:
        sys.exit(f"{', '.join(stale)}: not what the recordings say; run `make docs` and look at the change")
    print(f"docs: {len(pages)} pages, {len(stale)} {'rewritten' if stale else 'changed'}")


if __name__ == "__main__":
    main()
