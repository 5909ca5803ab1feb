#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records a trace of at least N events with Python's torch.profiler on the CPU.

    make_trace.py OUT.json [--events 500000]

The benchmarks read it. Small aten ops in a loop, as eager inference makes them: nested ops of a few
microseconds each, no shapes, no stacks. An event of the file is about 250 bytes.
"""
import argparse
import pathlib

import torch
from torch.profiler import ProfilerActivity, profile, record_function


def step(x, weight, bias):
    with record_function("attention"):
        scores = torch.matmul(x, x.transpose(-2, -1)) * 0.125
        probabilities = torch.softmax(scores, dim=-1)
        x = torch.matmul(probabilities, x)
    with record_function("mlp"):
        return torch.nn.functional.linear(torch.relu(x), weight, bias) + x


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--events", type=int, default=500_000)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, weight, bias = torch.randn(2, 8, 16), torch.randn(16, 16), torch.randn(16)
    with torch.no_grad():
        # How many events a step makes depends on the version of torch, so count them first.
        with profile(activities=[ProfilerActivity.CPU]) as probe:
            step(x, weight, bias)
        per_step = len(probe.events())
        with profile(activities=[ProfilerActivity.CPU]) as recording:
            for _ in range(args.events // per_step + 1):
                step(x, weight, bias)
    unfinished = args.out.with_name(args.out.name + ".tmp")
    recording.export_chrome_trace(str(unfinished))
    unfinished.replace(args.out)  # a run that is stopped leaves no half recording behind
    print(f"{args.out}: {args.out.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
