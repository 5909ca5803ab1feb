#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/schedules.txt: what torch.profiler.schedule does, step by step.

    python3 tests/parity/schedules.py > tests/data/schedules.txt

One schedule a line: skip_first wait warmup active repeat skip_first_wait, a colon, and one letter for
each of the first 40 steps: . none, w warmup, r record, s record and save.
"""
import itertools
import warnings

import torch

LETTERS = {"NONE": ".", "WARMUP": "w", "RECORD": "r", "RECORD_AND_SAVE": "s"}

warnings.simplefilter("ignore")  # warmup=0 warns, and is among the cases
print(f"# torch {torch.__version__.split('+')[0]}, tests/parity/schedules.py")
for skip_first, wait, warmup, active, repeat, skip_first_wait in itertools.product(
        (0, 3), (0, 1, 4), (0, 1, 2), (1, 3), (0, 1, 2), (0, 1)):
    function = torch.profiler.schedule(
        skip_first=skip_first, wait=wait, warmup=warmup, active=active, repeat=repeat,
        skip_first_wait=skip_first_wait)
    steps = "".join(LETTERS[function(step).name] for step in range(40))
    print(skip_first, wait, warmup, active, repeat, skip_first_wait, ":", steps)
