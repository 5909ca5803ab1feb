#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds readtrace against torch.profiler itself: record, print Python's table, export, compare bytes.

    live_parity.py READTRACE [--seed N] [--calls N]

Records small programs on the CPU (attention, training steps, threads, nested annotations, ...) with the
profiler's flags and schedules, and prints each recording's table with many arguments. Other versions of torch
print other tables, so any but 2.11 is a skipped test (exit code 4).
"""
import argparse
import os
import pathlib
import random
import sys
import tempfile
import threading
import warnings

from readtrace import SKIPPED, Comparison, table

try:
    import torch
except ImportError:
    print("skipped: this Python has no torch")
    sys.exit(SKIPPED)
if not torch.__version__.startswith("2.11."):
    print(f"skipped: torch is {torch.__version__}, the tables are those of 2.11")
    sys.exit(SKIPPED)

from torch.nn import functional
from torch.profiler import ProfilerActivity, profile, record_function, schedule


# ---- Programs

def attention(heads=4, length=64):
    q, k, v = (torch.randn(2, heads, length, 32) for _ in range(3))
    with record_function("attn_fwd"):
        scores = q @ k.transpose(-2, -1) * 32**-0.5
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
        return torch.softmax(scores, dim=-1) @ v


def convolutions():
    image = torch.randn(1, 4, 9, 11)
    for shape, arguments in (((6, 4, 3, 3), {}), ((6, 4, 3, 2), {"stride": (2, 1), "padding": (1, 0)}),
                             ((8, 2, 3, 3), {"groups": 2, "dilation": (1, 2)}), ((6, 4, 3, 3), {"padding": "same"})):
        functional.conv2d(image, torch.randn(shape), **arguments)
    functional.conv2d(image[0], torch.randn(6, 4, 1, 1))


def training_step(optimizer, foreach):
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1, stride=2), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(8 * 5 * 6, 10))
    step = optimizer(model.parameters(), lr=1e-3, foreach=foreach)
    with record_function("forward"):
        loss = functional.cross_entropy(model(torch.randn(4, 3, 9, 11)), torch.randint(0, 10, (4,)))
    with record_function("backward"):
        loss.backward()
    step.step()
    step.zero_grad()


def products():
    a, b = torch.randn(5, 7), torch.randn(7, 3)
    torch.addmm(torch.randn(3), a, b)
    torch.baddbmm(torch.randn(2, 5, 3), torch.randn(2, 5, 7), torch.randn(2, 7, 3))
    functional.linear(torch.randn(2, 5, 7), torch.randn(4, 7))
    torch.mm(torch.randn(5, 0), torch.randn(0, 3))
    torch._foreach_mul([a, b], 2.0)
    torch.cat([a * 2, a + a, torch.add(a, 1)])[torch.tensor([0, 1])]


def nested(depth=4):
    with record_function(f"level {depth % 3}"):
        torch.ones(3) * 2
        if depth > 0:
            nested(depth - 1)
    with record_function("same"):
        with record_function("same"):
            with record_function("same"):
                torch.ones(2)
    with record_function("aten::mul"):
        torch.ones(1) * 2


def overlapping():
    first, second = record_function("first"), record_function("second")
    first.__enter__()
    torch.ones(3)
    second.__enter__()
    first.__exit__(None, None, None)
    torch.ones(3) * 2
    second.__exit__(None, None, None)


def names():
    for name in ("Pi", "i", "_Z3fooi", "y" * 51, "y" * 52, "y" * 200, "", "  leads", "quote's", "{braces} %s",
                 "aten::is_leaf", "ProfilerStep#7", 'has "quotes"', '{"a": 1}'):
        with record_function(name):
            torch.ones(2)


def threads():
    def work():
        x = torch.randn(20, 20, requires_grad=True)
        with record_function("work"):
            (x @ x).sum().backward()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    attention(heads=1, length=8)
    for worker in workers:
        worker.join()


def memory():
    kept = [torch.empty(1000) for _ in range(5)]
    with record_function("drop"):
        kept.clear()
    with record_function("allocate"):
        kept += [torch.empty(10**6) for _ in range(3)]
    kept.clear()  # inside no op


PROGRAMS = {
    "attention": attention,
    "convolutions": convolutions,
    "adam": lambda: training_step(torch.optim.Adam, False),
    "adamw_foreach": lambda: training_step(torch.optim.AdamW, True),
    "products": products,
    "nested": nested,
    "overlapping": overlapping,
    "names": names,
    "threads": threads,
    "memory": memory,
    "nothing": lambda: None,
}
EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_flops": True}
FLAGS = ({}, {"record_shapes": True}, {"profile_memory": True}, {"with_flops": True}, EVERYTHING,
         {"with_stack": True, **EVERYTHING})

# ---- Calls

SORT_KEYS = (
    None, "cpu_time_total", "self_cpu_time_total", "cpu_time", "cuda_time_total", "self_cuda_time_total",
    "device_time", "xpu_time_total", "count", "cpu_memory_usage", "self_cpu_memory_usage", "cuda_memory_usage",
    "self_privateuse1_memory_usage", "flops", "key", "input_shapes", "is_async", "node_id", "cpu_time_total_str")
ARGUMENTS = {
    "sort_by": SORT_KEYS,
    "row_limit": (0, 1, 7, 15, 100, 1000, -1, -5),
    "max_name_column_width": (None, 0, 1, 2, 3, 4, 10, 25, 55, 80),
    "max_shapes_column_width": (None, 0, 1, 12, 80, 200),
    "top_level_events_only": (True,),
    "time_unit": ("s", "ms", "us"),
    "header": ("Step 3", ""),
}


def calls(choose, count):
    """Two plain calls, then `count` with arguments at random."""
    yield {}, {}
    yield {"group_by_input_shape": True}, {"row_limit": -1}
    for _ in range(count):
        averages = {"group_by_input_shape": True} if choose.random() < 0.4 else {}
        yield averages, {name: choose.choice(values) for name, values in ARGUMENTS.items() if choose.random() < 0.4}


def record(program, flags, cycles):
    if cycles is None:
        with profile(activities=[ProfilerActivity.CPU], **flags) as profiler:
            program()
        return profiler
    plan = schedule(wait=1, warmup=1, active=2, repeat=cycles)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, **flags) as profiler:
        for _ in range(4 * cycles):
            program()
            profiler.step()
    return profiler


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("readtrace")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calls", type=int, default=8, help="calls with random arguments per recording")
    args = parser.parse_args()

    warnings.simplefilter("ignore")  # events of earlier cycles are cleared, which is what a file shows
    torch.manual_seed(args.seed)
    torch.set_num_threads(2)
    choose = random.Random(args.seed)
    comparison = Comparison()
    with tempfile.TemporaryDirectory() as folder:
        for name, program in PROGRAMS.items():
            for cycles in (None, 1, 2):
                flags = choose.choice(FLAGS)
                profiler = record(program, flags, cycles)
                path = pathlib.Path(folder) / (f"{name}.json" + choose.choice(("", ".gz")))
                profiler.export_chrome_trace(str(path))
                for averages, arguments in calls(choose, args.calls):
                    want = profiler.key_averages(**averages).table(**arguments)
                    got = table(args.readtrace, path, averages, arguments)
                    comparison.add(f"{name}, {cycles} cycles, {flags}, {averages}, {arguments}", want, got)
                os.remove(path)
    return comparison.exit_code()


if __name__ == "__main__":
    sys.exit(main())
