# SPDX-License-Identifier: MIT
"""matrices.py - what comparisons with others' arithmetic share: matrices, what ours makes of them, how far two are apart."""
import subprocess
import sys

import torch

ROWS, COLUMNS = 96, 512


def ours(words, x):
    """What build/formats/operands, the script's first argument, makes of a matrix."""
    done = subprocess.run([sys.argv[1], *words], input=x.contiguous().numpy().tobytes(), capture_output=True, check=True)
    return torch.frombuffer(bytearray(done.stdout), dtype=torch.float32).reshape(x.shape[0], -1)


def operand(slot, x):
    return ours([slot, str(x.shape[0]), str(x.shape[1])], x)


def product(slot, x):
    return ours([slot, str(x.shape[0]), str(x.shape[1]), "product"], x)


def matrices(few=12, rows=ROWS, columns=COLUMNS):
    """Of several kinds; rows of the last one lie `few` binades about 1."""
    torch.manual_seed(1)
    x = torch.randn(rows, columns)
    yield "normal", x
    yield "outliers", torch.where(torch.rand(rows, columns) < 1e-3, 100 * x, x)
    # torchao holds the scale of an NVFP4 block at the least normal e4m3, here it may be smaller: blocks of few binades
    yield "binades", x * torch.exp2(torch.randint(-12, 12, (rows, 1)).float().clamp(-few, few))


def apart(a, b):
    """The largest difference as a share of its row's largest, and the share of elements that differ."""
    most = ((a - b).abs() / b.abs().amax(-1, keepdim=True).clamp(min=1e-30)).max().item()
    return most, (a != b).float().mean().item()
