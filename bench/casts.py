# SPDX-License-Identifier: MIT
"""casts.py - the casts of others on one core, as bench/casts.c has ours: PyTorch's, torchao's, ml_dtypes', gfloat's."""
import importlib.util
import time

COUNT, ROUNDS = 1 << 22, 9


def best(cast, count=COUNT):
    rate = 0
    for _ in range(ROUNDS if count == COUNT else 2):
        start = time.thread_time()
        cast()
        rate = max(rate, count * 4 / (time.thread_time() - start) * 1e-9)
    return rate


def has(name):
    if importlib.util.find_spec(name):
        return True
    print(f"{name}: not installed, not measured")
    return False


def line(who, what, rate):
    print(f"{who:9} {what:9} {'nearest':10} {rate:6.2f} GB/s")


if has("torch"):
    import torch
    torch.set_num_threads(1)
    x = torch.rand(COUNT) * 16 - 8
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "bfloat16", "float16"):
        to = getattr(torch, name)
        line("PyTorch", name.removeprefix("float8_"), best(lambda to=to: x.to(to)))
if has("torchao"):
    from torchao.prototype.mx_formats.kernels import f32_to_f4_unpacked, f32_to_f6_e2m3_unpacked
    line("torchao", "e2m1", best(lambda: f32_to_f4_unpacked(x)))
    line("torchao", "e2m3", best(lambda: f32_to_f6_e2m3_unpacked(x)))
if has("numpy") and has("ml_dtypes"):
    import ml_dtypes
    import numpy as np
    y = (np.random.default_rng(0).random(COUNT, np.float32) * 16 - 8)
    for name in ("float8_e4m3fn", "float8_e5m2", "float6_e3m2fn", "float4_e2m1fn"):
        line("ml_dtypes", name.split("_")[1], best(lambda to=getattr(ml_dtypes, name): y.astype(to)))
if has("gfloat"):
    import gfloat
    from gfloat.formats import format_info_ocp_e4m3
    small = 1 << 18
    line("gfloat", "e4m3fn", best(lambda: gfloat.round_ndarray(format_info_ocp_e4m3, y[:small], sat=True), small))
