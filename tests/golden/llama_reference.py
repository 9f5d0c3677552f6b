#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""llama_reference.py - the numbers that tests/unit/test_model.c must reproduce.

A Llama decoder written from its formulas on plain PyTorch tensors (no module of PyTorch or of
transformers), in float64, with gradients from autograd. It shares no code with the C trainer:
query, key and value are separate here, rotation uses complex-free half-rotate, the softmax matrix
is stored whole. Needs PyTorch only to make the files again:

    python3 tests/golden/llama_reference.py tests/golden

Each file is a safetensors file (written here by hand: 8 bytes of header length, JSON, raw data):
weights under their Hugging Face names, "grad."+name, "tokens" and "targets" [B,T] as I32, "losses"
[B,T], all else F32; __metadata__ holds the shape. The gradient is of the mean loss.
"""
import json
import math
import struct
import sys

import torch

torch.set_default_dtype(torch.float64)

SHAPES = {
    "llama_tied": dict(vocab=37, dim=32, layers=2, heads=4, kv_heads=2, ffn=40, tied=True,
                       batch=2, seq=9),
    "llama_untied": dict(vocab=50, dim=24, layers=2, heads=6, kv_heads=2, ffn=36, tied=False,
                         batch=3, seq=5),
}
NORM_EPS = 1e-5
ROPE_THETA = 10000.0


def make_weights(s, gen):
    d, f, v = s["dim"], s["ffn"], s["vocab"]
    kv = d // s["heads"] * s["kv_heads"]
    shapes = {"model.embed_tokens.weight": (v, d)}
    for l in range(s["layers"]):
        p = f"model.layers.{l}."
        shapes |= {p + "self_attn.q_proj.weight": (d, d), p + "self_attn.k_proj.weight": (kv, d),
                   p + "self_attn.v_proj.weight": (kv, d), p + "self_attn.o_proj.weight": (d, d),
                   p + "mlp.gate_proj.weight": (f, d), p + "mlp.up_proj.weight": (f, d),
                   p + "mlp.down_proj.weight": (d, f), p + "input_layernorm.weight": (d,),
                   p + "post_attention_layernorm.weight": (d,)}
    shapes["model.norm.weight"] = (d,)
    if not s["tied"]:
        shapes["lm_head.weight"] = (v, d)
    weights = {}
    for name, shape in shapes.items():
        mean, std = (1.0, 0.2) if len(shape) == 1 else (0.0, 0.25)
        w = mean + std * torch.randn(shape, generator=gen)
        # what the C side reads is fp32: start from exactly those values
        weights[name] = w.float().double().requires_grad_()
    return weights


def norm(x, w):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + NORM_EPS) * w


def rotate(x):  # [B, heads, T, C]
    t, c = x.shape[-2], x.shape[-1]
    freq = torch.tensor([ROPE_THETA ** (-2 * i / c) for i in range(c // 2)])
    angle = torch.arange(t).double()[:, None] * freq[None, :]
    cos, sin = torch.cos(angle), torch.sin(angle)
    a, b = x[..., : c // 2], x[..., c // 2:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def attention(x, w, p, s):
    b, t, d = x.shape
    c = d // s["heads"]

    def heads(name, count):
        y = x @ w[p + name].T
        return y.view(b, t, count, c).transpose(1, 2)

    q = rotate(heads("self_attn.q_proj.weight", s["heads"]))
    k = rotate(heads("self_attn.k_proj.weight", s["kv_heads"]))
    v = heads("self_attn.v_proj.weight", s["kv_heads"])
    share = s["heads"] // s["kv_heads"]
    k, v = k.repeat_interleave(share, 1), v.repeat_interleave(share, 1)
    score = q @ k.transpose(-1, -2) / math.sqrt(c)
    future = torch.ones(t, t, dtype=torch.bool).triu(1)
    prob = torch.exp(score.masked_fill(future, -math.inf))
    prob = prob / prob.sum(-1, keepdim=True)
    y = (prob @ v).transpose(1, 2).reshape(b, t, d)
    return y @ w[p + "self_attn.o_proj.weight"].T


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
    logits = norm(x, w["model.norm.weight"]) @ head.T
    chosen = logits.gather(-1, targets[..., None])[..., 0]
    return torch.log(torch.exp(logits).sum(-1)) - chosen


def save(path, tensors, metadata):
    header, data = {"__metadata__": {k: str(v) for k, v in metadata.items()}}, b""
    for name, t in tensors.items():
        kind, fmt = ("I32", "i") if t.dtype == torch.int64 else ("F32", "f")
        flat = t.detach().reshape(-1).tolist()
        raw = struct.pack(f"<{len(flat)}{fmt}", *flat)
        header[name] = {"dtype": kind, "shape": list(t.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def main(folder):
    for name, s in SHAPES.items():
        gen = torch.Generator().manual_seed(20240517)
        w = make_weights(s, gen)
        tokens = torch.randint(s["vocab"], (s["batch"], s["seq"]), generator=gen)
        targets = torch.randint(s["vocab"], (s["batch"], s["seq"]), generator=gen)
        loss = losses(tokens, targets, w, s)
        loss.mean().backward()
        out = dict(w)
        out |= {"grad." + k: t.grad for k, t in w.items()}
        out |= {"tokens": tokens, "targets": targets, "losses": loss}
        save(f"{folder}/{name}.safetensors", out, s)
        print(f"{name}: mean loss {loss.mean().item():.9f}")


main(sys.argv[1] if len(sys.argv) > 1 else "tests/golden")
