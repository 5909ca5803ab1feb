#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
r"""Fills what pages quote from recordings and sources, so that no page can drift from them.

    tools/docs.py            rewrite the pages
    tools/docs.py --check    exit 1 and name the page if one differs from what would be written, or if
                             a recording is of other code than the chapter has now
    tools/docs.py --stamp RECORDING...   remember of which code these recordings are

A page holds markers, and what stands between a marker and its end is replaced. Blocks:

    <!-- fill: table RECORDING.txt rows=8 columns="Name,CUDA total" -->   head of a profiler table
    <!-- fill: explain RECORDING.json.gz -->                facts and findings, by readtrace
    <!-- fill: readtrace tree RECORDING.json.gz --step 2 -->        what a command prints
    <!-- fill: merge A.json.gz B.json.gz --align start -->  what merging says
    <!-- fill: figure RECORDING.json.gz step=2 alt="what it shows" -->   a timeline, drawn into docs/figures/,
                                                            and a narrow one for phones; part=cpu: only as
                                                            long as the CPU was in that step; us=0-5000
                                                            instead of step=2: that range
    <!-- fill: memory RECORDING.json.gz alt="what it shows" -->     the memory of its first step, drawn alike
    <!-- fill: plot SWEEP.sweep.json quantity=peak alt="what it shows" -->   how figures grow, drawn alike; without a
                                                            quantity the first
    <!-- fill: graph RECORDING.graph.json.gz alt="what it shows" -->   the op graph of an execution trace
    <!-- fill: code chapters/01_naive/main.cpp attention -->        a region marked [begin attention], or of a .py
    <!-- fill: part FILE "float s" "^  }$" -->              of a source, from the first line that fits the first
                                                            pattern to the next that fits the second
    <!-- fill: diff 01_naive 02_inplace -->                 what changed between two chapters; with a third word,
                                                            in that file of theirs (attention.py)
    <!-- fill: lines docs/results/bench_table.cpu.txt -->   a file as it stands
    <!-- fill: chapters -->                                 the list of chapters
    <!-- end -->

and within a sentence:

    <!-- fig: fact RECORDING.json.gz "CUDA time per forward" -->1.065ms<!-- end -->
    <!-- fig: cell RECORDING.txt aten::bmm "CUDA total" -->506.462us<!-- end -->
    <!-- fig: json docs/results/build.cpu.json clean_build_seconds .0f -->431<!-- end -->
    <!-- fig: json docs/results/bench_kernels.h200.json "us.8_16_1024_64 full.v6" .1f -->94.5<!-- end -->   within
    <!-- fig: quotient FILE.json us.a.flash us.a.v6 .2f -->1.37<!-- end -->   of two of these; or of one and a number
    <!-- fig: ratio RECORDING.json.gz OTHER.json.gz "CUDA time per forward" -->1.13<!-- end -->   of two facts
    <!-- fig: readtrace tree RECORDING.json.gz step=2 "attn_fwd +(\S+)" -->1.350ms<!-- end -->   the first such in
                                                            what readtrace tree RECORDING --step 2 prints
    <!-- fig: text docs/results/bench_profiler.cpu.txt "prof::Profiler .* (\S+ ns)" -->852 ns<!-- end -->   ... in a file
    <!-- fig: beside RECORDING.txt aten::mul "Python calls" -->3<!-- end -->   what `make beside` printed

Markdown wants two things of the latter: not to begin a line (which would end the paragraph), and no -- inside.

RECORDING is a name in docs/results, or a path. Needs Python 3.10 and, for `explain`, `readtrace` and `fact`, the
program build/readtrace.
"""
import argparse
import functools
import gzip
import hashlib
import html
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap

import tables

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = "docs/results/"
END = "<!-- end -->"
BLOCK = re.compile(r"(<!-- fill: (?P<command>.*?) -->\n).*?" + END, re.DOTALL)
INLINE = re.compile(r"(<!-- fig: (?P<command>.*?) -->).*?" + END)
PAGE_WIDTH = 108  # columns of a block in a page
NARROW = 400      # px of a figure on a phone


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
    words = [RESULTS + word if re.fullmatch(r"[^/]+\.(json\.gz|sweep\.json)", word) else word for word in arguments]
    result = subprocess.run([program, *words], cwd=ROOT, text=True, capture_output=True, check=False)
    found_something = result.returncode == 1 and result.stdout  # a fault, a difference
    if result.returncode != 0 and not found_something:
        raise DocsError(f"readtrace {' '.join(words)}: {result.stderr.strip()}")
    return result.stdout


def readtrace(*arguments):
    return code_block(printed_by_readtrace(*arguments))


def merge(*arguments):
    """What readtrace merge says of the files; what it writes is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        command = [ROOT / "build" / "readtrace", "merge", *(RESULTS + word if word.endswith(".gz") else word for word in arguments),
                   "-o", pathlib.Path(folder) / "merged.json"]
        result = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    if result.returncode != 0:
        raise DocsError(f"readtrace merge: {result.stderr.strip()}")
    return code_block(result.stderr)


def explain(name):
    """Facts and findings; long lines go on below themselves, as a terminal would not do it."""
    out = []
    for line in printed_by_readtrace("explain", name).splitlines():
        indent = " " * (len(line) - len(line.lstrip()))
        out += textwrap.wrap(line.lstrip(), PAGE_WIDTH, initial_indent=indent, subsequent_indent=indent + " " * 4,
                             break_long_words=False, break_on_hyphens=False) or [""]
    return code_block("\n".join(out))


def step_on_the_cpu(name, step):
    """From and to of ProfilerStep#step on the CPU, as readtrace counts: us since the recording's start."""
    with gzip.open(ROOT / RESULTS / name) as file:
        events = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
    for event in events:
        if event["name"] == f"ProfilerStep#{step}" and event["cat"] == "user_annotation":
            start = event["ts"] - min(event["ts"] for event in events)
            return ["--from", f"{start:.1f}", "--to", f"{start + event['dur']:.1f}"]
    raise DocsError(f"{name} has no step {step}")


def figure(name, alt, step="", part="", us=""):
    """A timeline of one step, drawn into docs/figures/: wide, and narrow for phones. A click opens the wide one."""
    file = f"figures/{pathlib.Path(name).name.removesuffix('.json.gz')}.{f'us{us}' if us else f'step{step}'}{part and '.' + part}"
    what = ["--step", step]
    if us:
        start, end = us.split("-")
        what = ["--from", start, "--to", end]
    elif part == "cpu":
        what = step_on_the_cpu(name, step)
    return picture(file, alt, "figure", name, *what)


def memory(name, alt):
    """The memory of the first step, drawn the same way."""
    return picture(f"figures/{pathlib.Path(name).name.removesuffix('.json.gz')}.memory", alt, "figure", name, "--memory")


def plot(name, alt, quantity=""):
    """A sweep, drawn the same way."""
    file = f"figures/{pathlib.Path(name).name.removesuffix('.json')}{quantity and '.' + quantity}"
    return picture(file, alt, "plot", name, *(["--quantity", quantity] if quantity else []))


def picture(file, alt, *command):
    """What a command draws, wide and narrow, as files under docs/ and a tag that shows them."""
    FIGURES[f"{file}.svg"] = printed_by_readtrace(*command)
    FIGURES[f"{file}.narrow.svg"] = printed_by_readtrace(*command, "--width", str(NARROW))
    # off-glb: the link is here already; the plug-in's own would come between picture and img.
    return (f'<a class="glightbox" href="{file}.svg"><picture>'
            f'<source media="(max-width: 600px)" srcset="{file}.narrow.svg">'
            f'<img class="off-glb" src="{file}.svg" alt="{html.escape(alt)}"></picture></a>\n')


def graph(name, alt):
    """The op graph of an execution trace, drawn into docs/figures/."""
    file = f"figures/{pathlib.Path(name).name.removesuffix('.json.gz')}.svg"
    FIGURES[file] = printed_by_readtrace("graph", name, "--format", "svg")
    return f'<a class="glightbox" href="{file}"><img class="off-glb" src="{file}" alt="{html.escape(alt)}"></a>\n'


def fact(name, key):
    """The value of one line of `readtrace explain`."""
    for line in printed_by_readtrace("explain", name).splitlines():
        if line.strip().startswith(key):
            return line.strip()[len(key):].strip()
    raise DocsError(f"{name} has no fact '{key}'")


def ratio(name, other, key, spec=".2f"):
    """How many times of the other's fact this one's is."""
    units = {"us": 1e-6, "ms": 1e-3, "s": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "": 1}
    values = []
    for recording in (name, other):
        value = re.match(r"([\d.]+) ?([A-Za-z]*)", fact(recording, key))
        values.append(float(value[1]) * units[value[2]])
    return format(values[0] / values[1], spec)


def first_match(pattern, text, where):
    """The first group, or all, of the first match."""
    match = re.search(pattern, text, re.MULTILINE)
    if not match:
        raise DocsError(f"{where} has nothing like '{pattern}'")
    return match[match.re.groups and 1]


def found(*arguments):
    """What the last argument matches first in what readtrace prints; step=2 is --step 2."""
    *words, pattern = arguments
    arguments = [part for word in words for part in re.sub(r"^([a-z-]+)=", r"--\1 ", word).split(" ")]
    return first_match(pattern, printed_by_readtrace(*arguments), f"readtrace {' '.join(arguments)}")


def text(name, pattern):
    """What the pattern matches first in a file."""
    return first_match(pattern, text_of(name), name)


def beside(name, row, column):
    """A cell of what `make beside` printed."""
    titles, *rows = [re.split(" {2,}", line.rstrip(" <")) for line in text_of(RESULTS + name).splitlines()[1:-1]]
    for cells in rows:  # the line of titles begins with blanks, over the names
        if cells[0] == row:
            return cells[column_of(name, titles, column)]
    raise DocsError(f"{name} has no row {row}")


def region(path, name):
    match = re.search(rf"^(?://|#) \[begin {name}\]\n(.*?)^(?://|#) \[end {name}\]$", text_of(path), re.DOTALL | re.MULTILINE)
    if not match:
        raise DocsError(f"{path} has no region {name}")
    return match[1]


def code(path, name):
    return f"```{'python' if path.endswith('.py') else 'cpp'}\n{region(path, name)}```\n"


def part(path, first, last):
    """What stands in a source from one line to another, without its indentation."""
    lines = text_of(path).splitlines()
    start = next((i for i, line in enumerate(lines) if re.search(first, line)), None)
    end = next((i for i, line in enumerate(lines) if start is not None and i > start and re.search(last, line)), None)
    if end is None:
        raise DocsError(f"{path} has no part from '{first}' to '{last}'")
    indent = len(lines[start]) - len(lines[start].lstrip())
    text = "\n".join(line[indent:] if line[:indent].isspace() else line for line in lines[start:end + 1])
    return f"```{'python' if path.endswith('.py') else 'cpp'}\n{text}\n```\n"


def diff(before, after, file="main.cpp"):
    command = ["git", "diff", "--no-index", "--no-color", "--", f"chapters/{before}/{file}", f"chapters/{after}/{file}"]
    text = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False).stdout
    return "```diff\n" + "\n".join(text.splitlines()[4:]) + "\n```\n"


def lines(name):
    return code_block(text_of(name))


def names_in_code(text):
    """`a` / `b` of a / b: ops have underscores and stars, which Markdown would take for emphasis."""
    return " / ".join(f"`{name}`" for name in text.split(" / "))


def chapters():
    """One row per chapter, from the summary that its --help prints."""
    names = re.findall(r"^prof_add_chapter\((\w+)", text_of("chapters/CMakeLists.txt"), re.MULTILINE)
    out = "| Program | What it runs | Look for |\n|---|---|---|\n"
    for name in names:
        source = text_of(f"chapters/{name}/main.cpp")
        summary = re.search(r'\.summary = "(.*?)"', source).group(1)
        look = re.search(r"^// +(.+? / .+?|\S+) {2,}(.+)$", source, re.MULTILINE)
        out += f"| [`{name}`](chapters/{name}/main.cpp) | {summary} | {names_in_code(look.group(1))}: {look.group(2)} |\n"
    return out


def value_at(name, key):
    """Of a JSON file: what is at `key`, at `outer.inner` where it is nested."""
    value = json.loads(text_of(name))
    for word in key.split("."):
        if not isinstance(value, dict) or word not in value:
            raise DocsError(f"{name} has no {key}")
        value = value[word]
    return value


def json_value(name, key, spec=""):
    return format(value_at(name, key), spec)


def quotient(name, key, divisor, spec=".2f"):
    """How many times of another value of that file, or of a number, a value is."""
    is_number = re.fullmatch(r"[\d.]+", divisor)
    return format(value_at(name, key) / (float(divisor) if is_number else value_at(name, divisor)), spec)


FIGURES = {}  # file under docs/ -> what must stand in it, for the figures that pages show
BLOCKS = {"table": table, "explain": explain, "figure": figure, "memory": memory, "plot": plot, "graph": graph,
          "readtrace": readtrace, "merge": merge, "code": code, "part": part, "diff": diff, "lines": lines,
          "chapters": chapters}
INLINES = {"fact": fact, "cell": cell, "json": json_value, "ratio": ratio, "readtrace": found, "text": text,
           "beside": beside, "quotient": quotient}


def call(functions, words):
    command, *words = words
    if command not in functions:
        raise DocsError(f"no such marker: {command}")
    if command in ("readtrace", "merge"):
        return functions[command](*words)
    named = dict(word.split("=", 1) for word in words if re.match(r"[a-z]+=", word))
    try:
        return functions[command](*[word for word in words if not re.match(r"[a-z]+=", word)], **named)
    except TypeError as error:  # too many words, or too few
        raise DocsError(f"{command}: {error}") from error


def filled(text):
    # A marker that lost its end would never be filled again, and no check would notice.
    opened, closed = len(re.findall("<!-- (?:fill|fig): ", text)), text.count(END)
    if opened != closed:
        raise DocsError(f"{opened} markers but {closed} ends: each marker is closed by {END}")
    if first := re.search("^[ >*-]*<!-- fig: .*", text, re.MULTILINE):
        raise DocsError(f"a marker begins its line, which ends the paragraph there: {first[0][:60]}")
    if dashes := re.search("<!-- fig: (?:(?!-->).)*--(?!>).*", text):
        raise DocsError(f"a marker in a sentence holds --, which GitHub does not take for a comment: {dashes[0][:60]}")
    text = BLOCK.sub(lambda match: match[1] + call(BLOCKS, shlex.split(match["command"])) + END, text)
    return INLINE.sub(lambda match: match[1] + call(INLINES, shlex.split(match["command"])) + END, text)


# ---- Recordings

STAMPS = "docs/results/recorded_from.json"
# What must not be in a published trace: absolute paths of somebody's machine, names of hosts and users.
PRIVATE = re.compile(rb'"/(?:home|root|Users|tmp|work|opt|usr|var|mnt|data)/|"(?:host|hostname|user|username)"\s*:')


def code_hash(recording):
    """Of the attention region of the chapter that a recording (01_naive.naive.h200.json.gz) is of; what
    `make beside` printed (01_naive.beside.cpu.txt) is of its Python program, too, and a recording of v3 of
    v3_*.cu. Lines that are comments do not count there."""
    chapter, kind = recording.split(".")[:2]
    text = region(f"chapters/{chapter}/main.cpp", "attention")
    if kind == "beside":
        text += region(f"chapters/{chapter}/attention.py", "attention")
    for kernel in sorted((ROOT / "chapters" / chapter).glob(f"{kind}_*.c*")):
        text += re.sub(r"^ *//.*\n", "", kernel.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def stamp(recordings):
    path = ROOT / STAMPS
    stamps = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for recording in recordings:
        name = pathlib.Path(recording).name
        stamps[name] = code_hash(name)
    path.write_text(json.dumps(stamps, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def check_recordings():
    stamps = json.loads(text_of(STAMPS))
    names = sorted(path.name for kind in ("*.json.gz", "*.sweep.json", "*.beside.*.txt")
                   for path in (ROOT / RESULTS).glob(kind))
    for name in names:
        if stamps.get(name) != code_hash(name):
            raise DocsError(f"{name} was recorded from other code than its chapter has now: run `make results` "
                            "on that device")
        content = (ROOT / RESULTS / name).read_bytes()
        if PRIVATE.search(gzip.decompress(content) if name.endswith(".gz") else content):
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
            if page.parent == ROOT:
                after = re.sub('"figures/', '"docs/figures/', after)
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
        for path in sorted((ROOT / "docs" / "figures").glob("*.svg")):
            if f"figures/{path.name}" not in FIGURES:
                stale.append(f"docs/figures/{path.name}")
                if not args.check:
                    path.unlink()
    except DocsError as error:
        sys.exit(f"{page.relative_to(ROOT) if page.is_absolute() else page}: {error}")
    if args.check and stale:
        sys.exit(f"{', '.join(stale)}: not what the recordings say; run `make docs` and look at the change")
    if args.check:
        print(f"docs: {len(pages)} pages say what {recordings} recordings and the sources say")
    else:
        print(f"docs: {len(pages)} pages, rewritten: {', '.join(stale) or 'none'}")


if __name__ == "__main__":
    main()
