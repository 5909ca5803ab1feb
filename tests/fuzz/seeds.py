#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the inputs that the fuzzer starts from: a few events of each kind from the small recordings.

    seeds.py OUT_FOLDER [--commands N]

Whole recordings would be slow to mutate. Each seed comes once for every command of fuzz_readtrace.cpp, which
is chosen by the first byte. What no recording has (B and E, bare lists, ranks in one file) is written here.
"""
import argparse
import gzip
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT_METADATA = ("schemaVersion", "deviceProperties", "distributedInfo", "baseTimeNanoseconds", "with_flops",
                 "profile_memory", "chapter", "shape", "dtype", "metadata")

ODD = {
    "brackets": '[{"ph":"B","name":"a","pid":1,"tid":1,"ts":1},{"ph":"E","pid":1,"tid":1,"ts":3.5}]',
    "no_kineto": '[{"name":"aten::mul","ph":"X","ts":1.5,"dur":2,"tid":1,"pid":"CPU functions","args":{}}]',
    "ranks": '{"traceEvents":[' + ",".join(
        f'{{"ph":"X","cat":"cpu_op","name":"a","pid":{pid},"tid":1,"ts":1,"dur":9,"args":{{"External id":3}}}},'
        f'{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":4,"dur":2,"args":{{"External id":3,"correlation":5,'
        f'"stream":7,"grid":[1,1,1],"block":[128,1,1]}}}}' for pid in (100, 200)) + "]}",
    "graph_launch": '{"traceEvents":[{"ph":"X","cat":"cuda_runtime","name":"cudaGraphLaunch","pid":1,"tid":1,"ts":1,'
                    '"dur":2,"args":{"correlation":5}},{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":4,'
                    '"dur":2,"args":{"correlation":5}}]}',
    "damaged": '{"traceEvents":[{"ph":"X","name":"a "b" c","ts":1,"dur":2},{"ph":"X","name":"d\\e","ts":3,"args":}',
}


def shortened(path):
    """One event of each category and name, spread over the file, at most 18."""
    document = json.loads(gzip.decompress(path.read_bytes()))
    kept, seen = [], {}
    for event in document["traceEvents"]:
        key = (event.get("ph"), event.get("cat"), event.get("name", "").split("<")[0].split("#")[0])
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= (2 if event.get("cat") in ("user_annotation", "kernel") else 1):
            kept.append(event)
    top = {key: document[key] for key in KEPT_METADATA if key in document}
    return json.dumps({**top, "traceEvents": kept[::1 + len(kept) // 18]}, separators=(",", ":"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--commands", type=int, default=13)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    seeds = dict(ODD)
    for folder in ("tests/data/pytorch", "docs/results"):
        for path in sorted((ROOT / folder).glob("*.json.gz")):
            if path.name.endswith(".graph.json.gz"):
                continue
            seeds[path.name.removesuffix(".json.gz")] = shortened(path)
    for path in (ROOT / "docs/results").glob("*.graph.json.gz"):
        document = json.loads(gzip.decompress(path.read_bytes()))
        for first in range(0, len(document["nodes"]), 4):
            document_part = {**document, "nodes": document["nodes"][first:first + 4]}
            seeds[f"graph_{first}"] = json.dumps(document_part, separators=(",", ":"))
    for path in (ROOT / "docs/results").glob("*.sweep.json"):
        seeds[path.name.removesuffix(".json")] = path.read_text(encoding="utf-8")
    for name, text in seeds.items():
        for command in range(args.commands):
            (args.out / f"{name}.{command}").write_bytes(bytes([command]) + text.encode())
    print(f"{len(seeds)} seeds for each of {args.commands} commands in {args.out}")


if __name__ == "__main__":
    main()
