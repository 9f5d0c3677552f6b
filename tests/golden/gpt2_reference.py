#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpt2_reference.py - a GPT-2 decoder written from its formulas; see golden.py.

As Hugging Face stores it: matrices of a layer are [in, out], so y = x W + b; the head is the
embedding; positions are learned (here more of them than a sequence has tokens).

    python3 tests/golden/gpt2_reference.py tests/golden
"""
import math
import sys

import torch

from golden import attend, cross_entropy, layer_norm, write_all

MODELS = {
    "gpt2": dict(vocab=43, dim=32, layers=2, heads=4, ffn=48, positions=12, batch=3, seq=8),
    "gpt2_odd": dict(vocab=31, dim=42, layers=1, heads=3, ffn=65, positions=11, batch=1, seq=11),
}
P = "transformer."


def shapes(s):
    d, f, v = s["dim"], s["ffn"], s["vocab"]
    out = {P + "wte.weight": (v, d), P + "wpe.weight": (s["positions"], d)}
    for l in range(s["layers"]):
        p = f"{P}h.{l}."
        for name, size in {"ln_1": (d,), "attn.c_attn": (d, 3 * d), "attn.c_proj": (d, d),
                           "ln_2": (d,), "mlp.c_fc": (d, f), "mlp.c_proj": (f, d)}.items():
            out |= {p + name + ".weight": size, p + name + ".bias": size[-1:]}
    return out | {P + "ln_f.weight": (d,), P + "ln_f.bias": (d,)}


def normed(x, w, p):
    return layer_norm(x, w[p + ".weight"], w[p + ".bias"])


def linear(x, w, p):
    return x @ w[p + ".weight"] + w[p + ".bias"]


def attention(x, w, p, s):
    b, t, d = x.shape
    parts = linear(x, w, p + "c_attn").split(d, -1)
    q, k, v = (y.view(b, t, s["heads"], d // s["heads"]).transpose(1, 2) for y in parts)
    return linear(attend(q, k, v), w, p + "c_proj")


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def losses(tokens, targets, w, s):
    x = w[P + "wte.weight"][tokens] + w[P + "wpe.weight"][: tokens.shape[1]]
    for l in range(s["layers"]):
        p = f"{P}h.{l}."
        x = x + attention(normed(x, w, p + "ln_1"), w, p + "attn.", s)
        h = linear(normed(x, w, p + "ln_2"), w, p + "mlp.c_fc")
        x = x + linear(gelu(h), w, p + "mlp.c_proj")
    return cross_entropy(normed(x, w, P + "ln_f") @ w[P + "wte.weight"].T, targets)


if __name__ == "__main__":
    write_all(sys.argv[1] if len(sys.argv) > 1 else "tests/golden", MODELS, shapes, losses)
