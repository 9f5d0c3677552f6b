#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""llama_reference.py - a Llama decoder written from its formulas; see golden.py for the files.

It shares no code with the C trainer and uses no module of PyTorch or of transformers: query, key
and value are separate here, the softmax matrix is stored whole. Needs PyTorch only to make the
files again:

    python3 tests/golden/llama_reference.py tests/golden
"""
import sys

import torch

from golden import NORM_EPS, attend, cross_entropy, rotate, write_all

MODELS = {
    "llama_tied": dict(vocab=37, dim=32, layers=2, heads=4, kv_heads=2, ffn=40, tied=True,
                       batch=2, seq=9),
    "llama_untied": dict(vocab=50, dim=24, layers=2, heads=6, kv_heads=2, ffn=36, tied=False,
                         batch=3, seq=5),
    # wavelengths 6, 63, 628, 6283 against 100/4 and 100/1: one stays, one blends, two slow down
    "llama_scaled": dict(vocab=30, dim=24, layers=1, heads=3, kv_heads=1, ffn=20, tied=True,
                         batch=1, seq=7, rule=(8.0, 1.0, 4.0, 100.0)),
    # heads wider together than the model, no size a multiple of another
    "llama_odd": dict(vocab=61, dim=30, layers=3, heads=3, kv_heads=1, head=14, ffn=37, tied=False,
                      batch=2, seq=7, theta=500.0),
}


def shapes(s):
    d, f, v = s["dim"], s["ffn"], s["vocab"]
    c = s.get("head", d // s["heads"])
    q, kv = c * s["heads"], c * s["kv_heads"]
    out = {"model.embed_tokens.weight": (v, d)}
    for l in range(s["layers"]):
        p = f"model.layers.{l}."
        out |= {p + "self_attn.q_proj.weight": (q, d), p + "self_attn.k_proj.weight": (kv, d),
                p + "self_attn.v_proj.weight": (kv, d), p + "self_attn.o_proj.weight": (d, q),
                p + "mlp.gate_proj.weight": (f, d), p + "mlp.up_proj.weight": (f, d),
                p + "mlp.down_proj.weight": (d, f), p + "input_layernorm.weight": (d,),
                p + "post_attention_layernorm.weight": (d,)}
    out["model.norm.weight"] = (d,)
    if not s["tied"]:
        out["lm_head.weight"] = (v, d)
    return out


def norm(x, w):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + NORM_EPS) * w


def attention(x, w, p, s):
    b, t, d = x.shape
    c = s.get("head", d // s["heads"])
    theta = s.get("theta", 10000.0)

    def heads(name, count):
        y = x @ w[p + name].T
        return y.view(b, t, count, c).transpose(1, 2)

    q = rotate(heads("self_attn.q_proj.weight", s["heads"]), c, s.get("rule"), theta)
    k = rotate(heads("self_attn.k_proj.weight", s["kv_heads"]), c, s.get("rule"), theta)
    v = heads("self_attn.v_proj.weight", s["kv_heads"])
    share = s["heads"] // s["kv_heads"]
    k, v = k.repeat_interleave(share, 1), v.repeat_interleave(share, 1)
    return attend(q, k, v) @ w[p + "self_attn.o_proj.weight"].T


def losses(tokens, targets, w, s):
    x = w["model.embed_tokens.weight"][tokens]
    for l in range(s["layers"]):
        p = f"model.layers.{l}."
        x = x + attention(norm(x, w[p + "input_layernorm.weight"]), w, p, s)
        h = norm(x, w[p + "post_attention_layernorm.weight"])
        gate = h @ w[p + "mlp.gate_proj.weight"].T
        up = h @ w[p + "mlp.up_proj.weight"].T
        x = x + (gate / (1 + torch.exp(-gate)) * up) @ w[p + "mlp.down_proj.weight"].T
    head = w["model.embed_tokens.weight" if s["tied"] else "lm_head.weight"]
    return cross_entropy(norm(x, w["model.norm.weight"]) @ head.T, targets)


if __name__ == "__main__":
    write_all(sys.argv[1] if len(sys.argv) > 1 else "tests/golden", MODELS, shapes, losses)
