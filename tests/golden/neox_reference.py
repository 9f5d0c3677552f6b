#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""neox_reference.py - a GPT-NeoX (Pythia) decoder written from its formulas; see golden.py.

As Hugging Face stores it: query, key and value of head 0 are the first rows of query_key_value,
then those of head 1; the first `rotary` elements of a head turn; both halves of a layer read x.

    python3 tests/golden/neox_reference.py tests/golden
"""
import math
import sys

import torch

from golden import attend, cross_entropy, layer_norm, rotate, write_all

MODELS = {
    "neox": dict(vocab=41, dim=32, layers=2, heads=4, rotary=2, ffn=56, batch=2, seq=9),
    "neox_whole": dict(vocab=30, dim=24, layers=1, heads=3, rotary=8, ffn=40, batch=1, seq=6),
    "neox_odd": dict(vocab=53, dim=44, layers=1, heads=2, rotary=6, ffn=51, batch=3, seq=5),
}
P = "gpt_neox."


def shapes(s):
    d, f, v = s["dim"], s["ffn"], s["vocab"]
    out = {P + "embed_in.weight": (v, d)}
    for l in range(s["layers"]):
        p = f"{P}layers.{l}."
        for name, size in {"input_layernorm": (d,), "post_attention_layernorm": (d,),
                           "attention.query_key_value": (3 * d, d), "attention.dense": (d, d),
                           "mlp.dense_h_to_4h": (f, d), "mlp.dense_4h_to_h": (d, f)}.items():
            out |= {p + name + ".weight": size, p + name + ".bias": size[:1]}
    return out | {P + "final_layer_norm.weight": (d,), P + "final_layer_norm.bias": (d,),
                  "embed_out.weight": (v, d)}


def normed(x, w, p):
    return layer_norm(x, w[p + ".weight"], w[p + ".bias"])


def linear(x, w, p):
    return x @ w[p + ".weight"].T + w[p + ".bias"]


def attention(x, w, p, s):
    b, t, d = x.shape
    c = d // s["heads"]
    qkv = linear(x, w, p + "query_key_value").view(b, t, s["heads"], 3, c)
    q, k, v = (qkv[:, :, :, i].transpose(1, 2) for i in range(3))
    y = attend(rotate(q, s["rotary"]), rotate(k, s["rotary"]), v)
    return linear(y, w, p + "dense")


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def losses(tokens, targets, w, s):
    x = w[P + "embed_in.weight"][tokens]
    for l in range(s["layers"]):
        p = f"{P}layers.{l}."
        a = attention(normed(x, w, p + "input_layernorm"), w, p + "attention.", s)
        h = linear(normed(x, w, p + "post_attention_layernorm"), w, p + "mlp.dense_h_to_4h")
        x = x + a + linear(gelu(h), w, p + "mlp.dense_4h_to_h")
    return cross_entropy(normed(x, w, P + "final_layer_norm") @ w["embed_out.weight"].T, targets)


if __name__ == "__main__":
    write_all(sys.argv[1] if len(sys.argv) > 1 else "tests/golden", MODELS, shapes, losses)
