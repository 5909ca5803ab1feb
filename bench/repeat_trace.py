#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a large trace of a real one: its events again and again, with new ids, times and step numbers.

    repeat_trace.py TRACE OUT.json (--events N | --bytes N)

The text between the numbers stays as Kineto wrote it. N is the least number of complete events (ph X) or of
bytes; the last repetition is whole.
"""
import argparse
import gzip
import json
import pathlib
import re
import sys

NUMBER = re.compile(r'(?P<ts>"ts": )(?P<us>\d+)\.(?P<ns>\d{3})|(?P<id>"(?:External id|correlation|id|Ev Idx)": ?)(?P<value>\d+)'
                    r'|(?P<step>ProfilerStep#)(?P<number>\d+)')


def parts_of(events):
    """The text as literals with a number between each two: (literal, kind, value)."""
    parts, end = [], 0
    for found in NUMBER.finditer(events):
        kind = "ts" if found["ts"] else "id" if found["id"] else "step"
        value = int(found["us"]) * 1000 + int(found["ns"]) if kind == "ts" else int(found["value"] or found["number"])
        parts.append((events[end:found.start()] + (found["ts"] or found["id"] or found["step"]), kind, value))
        end = found.end()
    return parts, events[end:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--events", type=int, default=0)
    size.add_argument("--bytes", type=int, default=0)
    args = parser.parse_args()

    raw = args.trace.read_bytes()
    text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    begin = text.index("[", text.index('"traceEvents"')) + 1
    end = text.rindex("]")
    parts, last = parts_of(text[begin:end])
    if not parts:
        print(f"{args.trace} is not as Kineto writes it: no times with three decimals")
        return 1
    times = [value for _, kind, value in parts if kind == "ts"]
    per_round = sum(event.get("ph") == "X" for event in json.loads(text)["traceEvents"])
    steps = {"ts": max(times) - min(times) + 1_000_000, "step": 1 + len({v for _, k, v in parts if k == "step"}),
             "id": 1 + max(value for _, kind, value in parts if kind == "id")}

    events = 0
    unfinished = args.out.with_name(args.out.name + ".tmp")
    with open(unfinished, "w", encoding="utf-8", newline="") as out:
        written = out.write(text[:begin])
        offsets = dict.fromkeys(steps, 0)
        while events < args.events or written < args.bytes:
            pieces = [] if events == 0 else [","]
            for literal, kind, value in parts:
                value += offsets[kind]
                pieces.append(literal)
                pieces.append(f"{value // 1000}.{value % 1000:03}" if kind == "ts" else str(value))
            pieces.append(last)
            written += out.write("".join(pieces))
            events += per_round
            for kind, step in steps.items():
                offsets[kind] += step
        out.write(text[end:])
    unfinished.replace(args.out)  # a run that is stopped leaves no half file behind
    print(f"{args.out}: {events} events, {args.out.stat().st_size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
