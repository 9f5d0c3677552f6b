# SPDX-License-Identifier: MIT
"""peer_torch.py - seconds a training step of a 124M model takes in PyTorch, one line a step.

    peer_torch.py gpt2|llama compiled|eager BATCH SEQUENCE STEPS THREADS

Written as one would for speed: one product for query, key and value, fused attention, cross entropy,
GELU and AdamW. PyTorch before 2 has neither compiler nor fused attention. bench/trainer.sh says what around it
makes the difference.
"""
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, LAYERS, HEADS, VOCAB, POSITIONS, GATED = 768, 12, 12, 50304, 1024, 2048


def attend(qkv, turn):
    b, t, d = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    q, k, v = (y.view(b, t, HEADS, d // HEADS).transpose(1, 2) for y in qkv.split(d, -1))
    if turn is not None:
        q, k = rotate(q, *turn), rotate(k, *turn)
    if hasattr(F, "scaled_dot_product_attention"):
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    else:
        mask = torch.full((t, t), float("-inf")).triu(1)
        y = F.softmax(q @ k.transpose(-1, -2) * (d // HEADS) ** -0.5 + mask, -1) @ v
    return y.transpose(1, 2).reshape(b, t, d)


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class GPT2Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, turn):
        x = x + self.out(attend(self.qkv(self.norm1(x)), turn))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class LlamaLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 2 * GATED, bias=False)
        self.down = nn.Linear(GATED, WIDTH, bias=False)

    def forward(self, x, turn):
        x = x + self.out(attend(self.qkv(self.norm1(x)), turn))
        gate, up = self.up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self, name, seq):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.positions, self.turn = None, None
        if name == "gpt2":
            self.positions = nn.Embedding(POSITIONS, WIDTH)
            nn.init.normal_(self.positions.weight, std=0.02)
        else:
            half = WIDTH // HEADS // 2
            angle = torch.outer(torch.arange(seq), 10000.0 ** (-torch.arange(half) / half))
            self.turn = (angle.cos(), angle.sin())
        layer, norm = (GPT2Layer, nn.LayerNorm) if name == "gpt2" else (LlamaLayer, nn.RMSNorm)
        self.layers, self.norm = nn.ModuleList(layer() for _ in range(LAYERS)), norm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions.weight[:tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, self.turn)
        return F.cross_entropy(self.head(self.norm(x)).view(-1, VOCAB), targets.view(-1))


def main():
    name, mode = sys.argv[1:3]
    batch, seq, steps, threads = (int(a) for a in sys.argv[3:7])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    is_new = int(torch.__version__.split(".")[0]) >= 2
    model = Model(name, seq)
    if mode == "compiled":
        model = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4,
                                  **({"fused": True} if is_new else {"foreach": True}))
    tokens = torch.randint(256, (batch, seq + 1))
    for _ in range(steps):
        start = time.perf_counter()
        loss = model(tokens[:, :-1], tokens[:, 1:].contiguous())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        print(f"{time.perf_counter() - start:.4f}", flush=True)


if __name__ == "__main__":
    main()
