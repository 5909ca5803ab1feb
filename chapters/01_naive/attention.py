# SPDX-License-Identifier: Apache-2.0
"""01_naive in Python: `make beside N=01` runs it beside main.cpp."""
import math

import torch


# [begin attention]
def attention(q, k, v, mask):
    scores = torch.matmul(q, k.transpose(-2, -1))
    scores = scores * (1.0 / math.sqrt(q.size(-1)))
    scores = scores.masked_fill(mask, -math.inf)
    scores = torch.softmax(scores, -1)
    return torch.matmul(scores, v)
# [end attention]
