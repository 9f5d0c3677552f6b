# SPDX-License-Identifier: MIT
"""golden.py - what the reference programs of the families share: weights, files, and a training.

A reference gives `shapes(s)` (tensor names and sizes) and `losses(tokens, targets, w, s)`; all else
is here, on plain PyTorch tensors in float64, with gradients from autograd.

Each file is a safetensors file (written here by hand: 8 bytes of header length, JSON, raw data):
weights under their Hugging Face names, "grad."+name, "tokens" and "targets" [B,T] as I32, "losses"
[B,T], all else F32; __metadata__ holds the shape. The gradient is of the mean loss. "train.tokens",
"train.targets" [POOL*B,T] and "train.losses" [STEPS] are a training from the same weights, step i
(from 0) on batch i mod POOL.
"""
import json
import math
import struct

import torch

torch.set_default_dtype(torch.float64)

NORM_EPS = 1e-5
POOL, STEPS = 8, 200
PEAK_LR, WARMUP, MIN_FACTOR = 6e-4, 20, 0.1
BETA1, BETA2, EPS, DECAY, MAX_NORM = 0.9, 0.95, 1e-8, 0.1, 1.0


def make_weights(shapes, gen, spread=0.25, norm_mean=1.0):
    """Norm weights around norm_mean, all else around 0, rounded to fp32: that is what the C side reads."""
    weights = {}
    for name, shape in shapes.items():
        is_norm = len(shape) == 1 and not name.endswith("bias")
        mean, std = (norm_mean, 0.2) if is_norm else (0.0, spread)
        w = mean + std * torch.randn(shape, generator=gen)
        weights[name] = w.float().double().requires_grad_()
    return weights


def layer_norm(x, w, b):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + NORM_EPS) * w + b


def scaled(freq, rule):
    """Llama 3's rule for one frequency, by its wavelength."""
    if not rule:
        return freq
    factor, low, high, original = rule
    wavelength = 2 * math.pi / freq
    if wavelength < original / high:
        return freq
    if wavelength > original / low:
        return freq / factor
    smooth = (original / wavelength - low) / (high - low)
    return (1 - smooth) * freq / factor + smooth * freq


def rotate(x, turned, rule=None, theta=10000.0):  # x [B, heads, T, C]; the first `turned` of C
    t = x.shape[-2]
    freq = torch.tensor([scaled(theta ** (-2 * i / turned), rule) for i in range(turned // 2)])
    angle = torch.arange(t).double()[:, None] * freq[None, :]
    cos, sin = torch.cos(angle), torch.sin(angle)
    a, b, rest = x[..., : turned // 2], x[..., turned // 2: turned], x[..., turned:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)


def attend(q, k, v, scale=None):  # [B, heads, T, C] each -> [B, T, heads*C]
    b, h, t, c = q.shape
    score = q @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(c))
    future = torch.ones(t, t, dtype=torch.bool).triu(1)
    prob = torch.exp(score.masked_fill(future, -math.inf))
    prob = prob / prob.sum(-1, keepdim=True)
    return (prob @ v).transpose(1, 2).reshape(b, t, h * c)


def cross_entropy(logits, targets):
    chosen = logits.gather(-1, targets[..., None])[..., 0]
    return torch.log(torch.exp(logits).sum(-1)) - chosen


def rate(step):
    """Of the peak, at step 1, 2, ...: linear warm-up, then a cosine that ends one step after the last."""
    if step <= WARMUP:
        return step / WARMUP
    progress = (step - WARMUP) / (STEPS - WARMUP + 1)
    return (MIN_FACTOR + (1 - MIN_FACTOR) * 0.5 * (1 + math.cos(math.pi * progress)))


def usual_group(name, x, s):
    """Peak learning rate, what a step at the peak takes off the weight, and epsilon."""
    return PEAK_LR, PEAK_LR * (DECAY if x.dim() == 2 else 0.0), EPS


def train(tokens, targets, weights, s, losses, group):
    """The mean loss of each step before its update: AdamW, clipped; vectors do not decay."""
    w = {k: v.detach().clone().requires_grad_() for k, v in weights.items()}
    m = {k: torch.zeros_like(v) for k, v in w.items()}
    v = {k: torch.zeros_like(x) for k, x in w.items()}
    told = []
    for step in range(1, STEPS + 1):
        at = (step - 1) % POOL * s["batch"]
        batch = slice(at, at + s["batch"])
        loss = losses(tokens[batch], targets[batch], w, s).mean()
        grads = dict(zip(w, torch.autograd.grad(loss, list(w.values()))))
        norm = math.sqrt(sum((g * g).sum().item() for g in grads.values()))
        scale = min(1.0, MAX_NORM / norm)
        with torch.no_grad():
            for k, x in w.items():
                g = grads[k] * scale
                m[k] = BETA1 * m[k] + (1 - BETA1) * g
                v[k] = BETA2 * v[k] + (1 - BETA2) * g * g
                m_hat, v_hat = m[k] / (1 - BETA1 ** step), v[k] / (1 - BETA2 ** step)
                lr, decay, eps = group(k, x, s)
                x -= rate(step) * (lr * m_hat / (torch.sqrt(v_hat) + eps) + decay * x)
        told.append(loss.item())
    return torch.tensor(told)


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


def write_all(folder, models, shapes, losses, group=usual_group):
    """One file for each row of `models`."""
    for name, s in models.items():
        gen = torch.Generator().manual_seed(20240517)
        w = make_weights(shapes(s), gen, s.get("spread", 0.25), s.get("norm_mean", 1.0))
        size = (s["batch"], s["seq"])
        tokens = torch.randint(s["vocab"], size, generator=gen)
        targets = torch.randint(s["vocab"], size, generator=gen)
        loss = losses(tokens, targets, w, s)
        loss.mean().backward()
        pool = (POOL * s["batch"], s["seq"])
        many = torch.randint(s["vocab"], pool, generator=gen)
        after = torch.randint(s["vocab"], pool, generator=gen)
        out = dict(w)
        out |= {"grad." + k: t.grad for k, t in w.items()}
        out |= {"tokens": tokens, "targets": targets, "losses": loss}
        told = train(many, after, w, s, losses, group)
        out |= {"train.tokens": many, "train.targets": after, "train.losses": told}
        save(f"{folder}/{name}.safetensors", out, s)
        print(f"{name}: mean loss {loss.mean().item():.9f}, "
              f"training {told[0].item():.9f} to {told[-1].item():.9f}")
