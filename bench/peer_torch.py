# SPDX-License-Identifier: MIT
"""peer_torch.py - seconds a training step of GPT-2 124M takes in PyTorch, one line a step.

    peer_torch.py BATCH SEQUENCE STEPS THREADS

Written as one would for speed: one product for query, key and value, fused cross entropy and GELU,
and where PyTorch is new enough the model compiled and AdamW fused; before, over lists of tensors
(foreach). bench/trainer.sh says what around it makes the difference.
"""
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, LAYERS, HEADS, VOCAB, POSITIONS = 768, 12, 12, 50304, 1024


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def attention(self, x, mask):
        b, t, d = x.shape
        if hasattr(F, "scaled_dot_product_attention"):
            q, k, v = (y.view(b, t, HEADS, d // HEADS).transpose(1, 2)
                       for y in self.qkv(x).split(d, -1))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            q, k, v = (y.view(b, t, HEADS, d // HEADS).transpose(1, 2)
                       for y in self.qkv(x).split(d, -1))
            y = F.softmax(q @ k.transpose(-1, -2) * (d // HEADS) ** -0.5 + mask, -1) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, d))

    def forward(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.layers, self.norm = nn.ModuleList(Layer() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.positions.weight, std=0.02)

    def forward(self, tokens, targets):
        t = tokens.shape[1]
        mask = torch.full((t, t), float("-inf")).triu(1)
        x = self.tokens(tokens) + self.positions.weight[:t]
        for layer in self.layers:
            x = layer(x, mask)
        logits = self.norm(x) @ self.tokens.weight.T
        return F.cross_entropy(logits.view(-1, VOCAB), targets.view(-1))


def main():
    batch, seq, steps, threads = (int(a) for a in sys.argv[1:5])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    is_new = int(torch.__version__.split(".")[0]) >= 2
    model = torch.compile(Model()) if is_new else Model()
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
