#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds readtrace against table_reference.py on made-up traces, with what no recording here has.

    reference_parity.py READTRACE [--seed N] [--traces N]

Each trace is a heap of random events: partial overlaps, equal times, runtime calls without an op, ids that
collide, kernels of no op, collectives, allocations outside every op, failed ones.
"""
import argparse
import json
import pathlib
import random
import sys
import tempfile

import table_reference
from readtrace import SKIPPED, Comparison, table

if sys.version_info < (3, 11):
    print("skipped: table_reference.py needs Python 3.11")
    sys.exit(SKIPPED)

NAMES = ("aten::mul", "aten::add", "aten::mm", "aten::bmm", "aten::conv2d", "A", "B", "ProfilerStep#1",
         "ProfilerStep#2", "aten::is_leaf", "nccl:all_reduce")
TYPES = (["float", "float"], ["float", "Scalar"], ["", "float"], ["float"])
SORT_KEYS = (None, "cpu_time_total", "self_cpu_time_total", "cuda_time_total", "self_cuda_time_total", "count",
             "self_cuda_memory_usage", "cpu_memory_usage", "flops")


class MadeUpTrace:
    def __init__(self, seed):
        self.choose = random.Random(seed)
        self.length = self.choose.choice((50, 1000, 10**6))  # ns: the shorter, the more equal times
        self.offset = self.choose.choice((0, 5182918374798798))
        self.threads = self.choose.sample((1, 2, 3, 4), self.choose.randrange(1, 4))
        self.ids = []
        self.records = [self.event() for _ in range(self.choose.randrange(60))]
        if self.choose.random() < 0.6:
            self.records += [self.memory() for _ in range(self.choose.randrange(25))]
        self.choose.shuffle(self.records)
        self.records.append(self.complete("Trace", "PyTorch Profiler (0)", {}, start=0))

    def microseconds(self, ns):
        return f"{ns // 1000}.{ns % 1000:03}"

    def complete(self, category, name, arguments, start=None, extra=0, pid=1, tid=None):
        start = self.choose.randrange(self.length) if start is None else start
        duration = self.choose.choice((0, 1, 2, self.choose.randrange(self.length))) + extra
        tid = self.choose.choice(self.threads) if tid is None else tid
        return (f'{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {tid}, '
                f'"ts": {self.microseconds(self.offset + start)}, "dur": {self.microseconds(duration)}, '
                f'"args": {json.dumps(arguments)}}}')

    def new_id(self):
        self.ids.append(2 * len(self.ids) + self.choose.choice((1, 2)))
        return self.ids[-1]

    def operation(self):
        arguments = {"External id": self.new_id()}
        if self.choose.random() < 0.6:
            dims = [[self.choose.randrange(4) for _ in range(self.choose.randrange(3))] for _ in range(2)]
            arguments |= {"Input Dims": dims, "Input type": self.choose.choice(TYPES)}
        elif self.choose.random() < 0.2:
            arguments |= {"Input Dims": [[[2, 3], [1]], []], "Input type": ["TensorList", "float"]}
        return self.complete("cpu_op", self.choose.choice(NAMES), arguments)

    def linked(self, chance):
        """Arguments of what refers to an op by its id, or to none."""
        arguments = {"correlation": self.choose.randrange(1, 40)}
        if self.ids and self.choose.random() < chance:
            arguments["External id"] = self.choose.choice(self.ids)
        return arguments

    def event(self):
        kind = self.choose.random()
        if kind < 0.5:
            return self.operation()
        if kind < 0.62:
            return self.complete("user_annotation", self.choose.choice(NAMES), {"External id": self.new_id()})
        if kind < 0.72:
            return self.complete(self.choose.choice(("cuda_runtime", "cuda_driver")), "cudaLaunchKernel", self.linked(0.6))
        if kind < 0.86:
            category = self.choose.choice(("kernel", "kernel", "gpu_memcpy", "gpu_memset"))
            return self.complete(category, self.choose.choice(("k1", "k2", "aten::mul")), self.linked(0.8), pid=0, tid=7)
        if kind < 0.91:
            return self.complete("gpu_user_annotation", self.choose.choice(NAMES), {}, extra=2, pid=0, tid=7)
        if kind < 0.94:
            return self.complete("overhead", "Activity Buffer Request", {}, pid=-1, tid=0)
        return self.complete(self.choose.choice(("python_function", "cuda_sync", "unheard_of")), "odd", {})

    def memory(self):
        name = "[memory]" if self.choose.random() < 0.9 else "[OutOfMemory]"
        size = self.choose.choice((1, -1)) * self.choose.choice((4, 1000, 1024, 5 * 10**6, 3 * 2**30))
        arguments = {"Bytes": size, "Device Type": self.choose.choice((0, 0, 1, 1, 2, 3)), "Device Id": 0}
        time = self.microseconds(self.offset + self.choose.randrange(self.length))
        return (f'{{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "{name}", "pid": 1, '
                f'"tid": {self.choose.choice(self.threads)}, "ts": {time}, "args": {json.dumps(arguments)}}}')

    def text(self):
        top = "".join(f'"{key}": 1, ' for key in ("profile_memory", "with_flops") if self.choose.random() < 0.5)
        base = self.choose.choice((0, 1790857026000000000))
        return f'{{{top}"baseTimeNanoseconds": {base}, "traceEvents": [\n' + ",\n".join(self.records) + "\n]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("readtrace")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--traces", type=int, default=200)
    args = parser.parse_args()

    comparison = Comparison()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        for number in range(args.traces):
            made_up = MadeUpTrace(args.seed * 1_000_003 + number)
            path.write_text(made_up.text())
            reference = table_reference.read(path)
            for averages in ({}, {"group_by_input_shape": True}):
                arguments = {"sort_by": made_up.choose.choice(SORT_KEYS), "row_limit": made_up.choose.choice((3, -1)),
                             "top_level_events_only": made_up.choose.random() < 0.3}
                rows = table_reference.key_averages(reference, **averages)
                want = table_reference.table(reference, rows, **arguments)
                got = table(args.readtrace, path, averages, arguments)
                comparison.add(f"trace {number}, {averages}, {arguments}", want, got)
    return comparison.exit_code()


if __name__ == "__main__":
    sys.exit(main())
