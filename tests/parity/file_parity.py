#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds readtrace against torch's own table code, fed from files.

    file_parity.py READTRACE TRACE_OR_FOLDER...

Makes torch.autograd.profiler_util's events from each file, lets torch build the tree, the averages and the
table, and compares its text with readtrace's. Folders named by READTRACE_TRACES (colons between) are added.
Other versions of torch print other tables, so any but 2.11 is a skipped test (exit code 4).
"""
import argparse
import os
import pathlib
import sys

import table_reference
from readtrace import SKIPPED, Comparison, table

try:
    import torch
    from torch.autograd import DeviceType
    from torch.autograd.profiler_util import EventList, FunctionEvent, Kernel
except ImportError:
    print("skipped: this Python has no torch")
    sys.exit(SKIPPED)
if not torch.__version__.startswith("2.11."):
    print(f"skipped: torch is {torch.__version__}, the tables are those of 2.11")
    sys.exit(SKIPPED)
if sys.version_info < (3, 11):
    print("skipped: table_reference.py needs Python 3.11")
    sys.exit(SKIPPED)

CALLS = (
    ({}, {}),
    ({}, {"sort_by": "cuda_time_total", "row_limit": 15}),
    ({}, {"sort_by": "self_cpu_time_total", "row_limit": -1}),
    ({}, {"sort_by": "count", "row_limit": 10, "top_level_events_only": True}),
    ({"group_by_input_shapes": True}, {"sort_by": "cpu_time_total", "row_limit": 50}),
    ({}, {"sort_by": "self_cuda_memory_usage", "row_limit": 20, "max_name_column_width": 25}),
)


def torch_event(e, use_device):
    made = FunctionEvent(
        id=e.ident, name=torch._C._demangle(e.name), thread=e.thread, start_us=e.start, end_us=e.end,
        input_shapes=e.shapes, stack=[], use_device=use_device, cpu_memory_usage=e.cpu_bytes,
        device_memory_usage=e.device_bytes, is_async=e.is_async,
        device_type=DeviceType.CUDA if e.on_device else DeviceType.CPU, flops=e.flops or None,
        is_user_annotation=e.is_annotation)
    made.kernels = [Kernel("", 0, duration) for duration in e.kernels]
    return made


def events_of(path):
    events, trace = table_reference.read_events(path)
    table_reference.build_tree(events)  # only to find the ops around CUPTI's overhead
    table_reference.attribute_overhead(events)
    use_device = trace.use_device and trace.use_device.lower()
    threads = {thread: number for number, thread in enumerate(dict.fromkeys(e.thread for e in events))}
    for e in events:
        e.thread = threads[e.thread]  # numbers, which torch can sort
    result = EventList([torch_event(e, use_device) for e in events], use_device=use_device,
                       profile_memory=trace.profile_memory, with_flops=trace.with_flops)
    result._build_tree()
    return result


def torch_table(events, averages, arguments):
    try:
        return events.key_averages(**averages).table(**arguments)
    except AssertionError as error:  # torch has no share of nothing; readtrace prints NaN
        return f"torch gives up: {error}"


def traces(places):
    for place in map(pathlib.Path, places):
        files = sorted(place.iterdir()) if place.is_dir() else [place]
        yield from (file for file in files if file.name.endswith((".json", ".json.gz")))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("readtrace")
    parser.add_argument("places", nargs="*")
    args = parser.parse_args()
    more = [place for place in os.environ.get("READTRACE_TRACES", "").split(":") if place]

    comparison = Comparison()
    for path in traces(args.places + more):
        events = events_of(path)
        for averages, arguments in CALLS:
            want = torch_table(events, averages, arguments)
            averages = {name.removesuffix("s"): value for name, value in averages.items()}  # EventList says shapes
            got = table(args.readtrace, path, averages, arguments)
            comparison.add(f"{path.name}, {averages}, {arguments}", want, got)
    return comparison.exit_code()


if __name__ == "__main__":
    sys.exit(main())
