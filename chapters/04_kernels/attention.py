# SPDX-License-Identifier: Apache-2.0
"""04_kernels in Python: `make beside N=04` runs it beside main.cpp."""
import pathlib

import torch

# The very library that main.cpp loads: what is registered with the dispatcher is there for both.
torch.ops.load_library(pathlib.Path(__file__).parents[2] / "build" / "libattention_kernels.so")


# [begin attention]
def attention(q, k, v, mask):
    out, log_sum_exp = torch.ops.attention_kernels.attention(q, k, v)
    return out
# [end attention]
