#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""umup_reference.py - a Llama in u-muP (Blake et al. 2024, arXiv 2407.17465), as the paper writes it.

Each layer mixes what it adds with the stream by a tau of its own (appendix G) and keeps the stream at
scale 1; attention and SwiGLU are divided by their scales where they stand. The trainer computes a
telescoped form of this with all constants in its products, so the two have little in common. Gradients
are the true ones. Needs PyTorch only to make the file again:

    python3 tests/golden/umup_reference.py tests/golden
"""
import math
import sys

from golden import EPS, NORM_EPS, attend, cross_entropy, rotate, write_all
from llama_reference import shapes

MODELS = {
    "umup": dict(vocab=37, dim=32, layers=3, heads=4, kv_heads=2, ffn=40, tied=False, batch=2, seq=9,
                 a_attn=1.5, a_act=0.7, a_res=0.8, a_ratio=1.25, a_loss=1.3, spread=1.0,
                 lr=0.25, decay=1e-3),
}


def between(x, low, high):
    return math.exp(x * math.log(high) + (1 - x) * math.log(low))


def branch_alphas(s):
    feed = s["a_res"] * math.sqrt(2 / (1 + s["a_ratio"] ** 2))
    return s["a_ratio"] * feed, feed


def tau(i, s):
    """Of half i: 0 is the first layer's attention, 1 its feed-forward, ..."""
    attn, feed = branch_alphas(s)
    before = s["layers"] + (i + 1) // 2 * attn ** 2 + i // 2 * feed ** 2
    return (feed if i % 2 else attn) / math.sqrt(before)


class Stream:
    """The residual stream at scale 1. eps belongs to the stream as the trainer keeps it, which is
    this one divided by `shrunk`."""

    def __init__(self, x):
        self.x, self.shrunk = x, 1.0

    def normed(self, w):
        eps = NORM_EPS * self.shrunk ** 2
        return self.x / ((self.x ** 2).mean(-1, keepdim=True) + eps).sqrt() * w

    def add(self, y, t):
        keep = 1 / math.sqrt(1 + t * t)
        self.x = self.x * keep + y * (t * keep)
        self.shrunk *= keep


def linear(x, w):
    return x @ w.T / math.sqrt(w.shape[1])


def attention(x, w, p, s):
    b, t, d = x.shape
    c = d // s["heads"]

    def heads(name, count):
        return linear(x, w[p + name]).view(b, t, count, c).transpose(1, 2)

    q = rotate(heads("q_proj.weight", s["heads"]), c)
    k = rotate(heads("k_proj.weight", s["kv_heads"]), c)
    v = heads("v_proj.weight", s["kv_heads"])
    share = s["heads"] // s["kv_heads"]
    k, v = k.repeat_interleave(share, 1), v.repeat_interleave(share, 1)
    scale = between(1 / (1 + 4 * c / s["a_attn"] ** 2), math.sqrt(math.log(t) / t), 1)
    return linear(attend(q, k, v, s["a_attn"] / c) / scale, w[p + "o_proj.weight"])


def feed_forward(x, w, p, s):
    gate, up = linear(x, w[p + "gate_proj.weight"]), linear(x, w[p + "up_proj.weight"])
    scale = between(1 / (1 + 1 / s["a_act"] ** 2), 0.5, math.sqrt(0.5))
    return linear(up * gate / (1 + (-s["a_act"] * gate).exp()) / scale, w[p + "down_proj.weight"])


def losses(tokens, targets, w, s):
    stream = Stream(w["model.embed_tokens.weight"][tokens])
    for l in range(s["layers"]):
        p = f"model.layers.{l}."
        h = stream.normed(w[p + "input_layernorm.weight"])
        stream.add(attention(h, w, p + "self_attn.", s), tau(2 * l, s))
        h = stream.normed(w[p + "post_attention_layernorm.weight"])
        stream.add(feed_forward(h, w, p + "mlp.", s), tau(2 * l + 1, s))
    logits = stream.normed(w["model.norm.weight"]) @ w["lm_head.weight"].T / s["dim"]
    return cross_entropy(s["a_loss"] * logits, targets)


def group(name, x, s):
    """Learning rates of table 2; decay apart from them; epsilon against a typical gradient."""
    if x.dim() == 1:
        return 0.0, 0.0, 1.0
    v, d, tokens = s["vocab"], s["dim"], s["batch"] * s["seq"]
    logit = math.sqrt(v - 1) / v * s["a_loss"] / math.sqrt(tokens)
    attn, feed = (a / math.sqrt(s["layers"]) for a in branch_alphas(s))
    if name.startswith("lm_head"):
        return s["lr"], s["decay"], EPS * logit / d
    if "embed" in name:
        return s["lr"] / math.sqrt(d), s["decay"], EPS * logit / d
    lr = s["lr"] / math.sqrt(x.shape[1] * s["layers"])
    branch = attn if "self_attn" in name else feed
    return lr, s["decay"], EPS * logit * math.sqrt(v) / d * branch / math.sqrt(x.shape[1])


if __name__ == "__main__":
    write_all(sys.argv[1] if len(sys.argv) > 1 else "tests/golden", MODELS, shapes, losses, group)
