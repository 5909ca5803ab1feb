# SPDX-License-Identifier: Apache-2.0
#
# Records the traces in this folder: forwards that the recordings in ../pytorch do not show.
# Needs Python's torch 2.11 and a CUDA device:  python3 record.py OUT_FOLDER
import gzip
import json
import math
import os
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile, record_function, schedule

os.chdir(sys.argv[1])  # so that the trace holds a bare name, no path


def naive(q, k, v, mask):
    scores = torch.matmul(q, k.transpose(-2, -1)) * (1.0 / math.sqrt(q.size(-1)))
    scores = scores.masked_fill(mask, float("-inf"))
    return torch.matmul(torch.softmax(scores, -1), v)


def sdpa(q, k, v, _):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def peak_of(forward):
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    forward()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def record(name, attention, label, shape, dtype, chapter, variant, device="cuda", warm=True):
    torch.manual_seed(0)
    on_gpu = device == "cuda"
    q, k, v = (torch.randn(shape, device=device, dtype=dtype) for _ in range(3))
    mask = torch.ones(shape[2], shape[2], dtype=torch.bool, device=device).triu(1)
    forward = lambda: attention(q, k, v, mask)
    metadata = {
        "chapter": chapter,
        "variant": variant,
        "shape": "_".join(map(str, shape)),
        "dtype": {torch.bfloat16: "bf16", torch.float32: "fp32"}[dtype],
        "device": torch.cuda.get_device_name() if on_gpu else "CPU",
    }
    if warm:
        for _ in range(3):
            forward()
        if on_gpu:
            metadata["peak_memory_bytes"] = peak_of(forward)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if on_gpu else [])
    plan = schedule(wait=1, warmup=1, active=3) if warm else None
    with profile(activities=activities, schedule=plan) as profiler:
        for step in range(5 if warm else 3):
            if step == (1 if warm else 0):  # before the recording is prepared it would be lost
                for key, value in metadata.items():
                    profiler.add_metadata_json(key, json.dumps(value))
                torch.cuda.synchronize()  # no kernel from before in the recording
            with record_function(label):
                forward()
            if on_gpu and step == 1 and warm:
                torch.cuda.synchronize()
            profiler.step()
    path = f"{name}.json"
    profiler.export_chrome_trace(path)
    with open(path, "rb") as plain, gzip.GzipFile(f"{path}.gz", "wb", mtime=0) as packed:
        packed.write(plain.read())
    os.remove(path)


BLOG, TINY, SMALL = (8, 16, 1024, 64), (1, 2, 64, 64), (2, 8, 256, 64)
BF16, FP32 = torch.bfloat16, torch.float32
with torch.no_grad():
    # First of all: nothing is warm yet, neither cuDNN nor CUPTI nor the allocator.
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        record("cudnn_cold", sdpa, "sdpa_fwd", BLOG, BF16, "03_sdpa", "cudnn", warm=False)
        record("cudnn", sdpa, "sdpa_fwd", BLOG, BF16, "03_sdpa", "cudnn")
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        record("efficient", sdpa, "sdpa_fwd", BLOG, BF16, "03_sdpa", "efficient")
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        record("flash", sdpa, "sdpa_fwd", BLOG, BF16, "03_sdpa", "flash")
        record("cpu_flash", sdpa, "sdpa_fwd", SMALL, FP32, "03_sdpa", "flash", device="cpu")
    with sdpa_kernel(SDPBackend.MATH):
        record("math", sdpa, "sdpa_fwd", BLOG, BF16, "03_sdpa", "math")
        record("cpu_math", sdpa, "sdpa_fwd", SMALL, FP32, "03_sdpa", "math", device="cpu")
    record("naive", naive, "attn_fwd", BLOG, BF16, "01_naive", "naive")
    record("naive_tiny", naive, "attn_fwd", TINY, BF16, "01_naive", "naive")
    record("naive_fp32", naive, "attn_fwd", (2, 16, 1024, 64), FP32, "01_naive", "naive")
    record("cpu_naive", naive, "attn_fwd", SMALL, FP32, "01_naive", "naive", device="cpu")
