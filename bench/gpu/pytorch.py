#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The peer of gpu-bench: a Llama of the same shape in PyTorch, as fast as we know to make it.

torch.compile over the whole model (--mode max-autotune-no-cudagraphs searches longer), the fastest of
PyTorch's attention backends (each is tried), fused AdamW, bf16 by autocast over fp32 weights as ours
has them (8B: weights, gradients and moments all bf16, which is less than ours keeps), the loss left to
the compiler to fuse, and activation checkpointing that keeps products and attention where the shape asks
for it. Clipping is compiled, too. The model is made on the GPU, in the type it trains in. Nothing in a step
waits for the GPU; its own events time the steps. Prints a line for each attention backend as it comes: tokens/s
as median and best of steps.

With --text FILE it trains on that file's bytes as the long training of gpu-check does (same model, length, schedule
and optimizer; its own beginning and order of samples) and prints "loss STEP LOSS" for each step.

--toy is for rehearsals (LB_GPU_TOY of gpu-bench): all as asked, but with the smallest shape and on the CPU.

    pytorch.py FLAVOR BATCH SEQ [--selective] [--steps N] [--warmup N] [--mode NAME] [--attention KIND,...]
               [--text FILE] [--device NAME] [--toy]
"""
import argparse, functools, math, sys, time
import torch, torch.nn as nn, torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts, CheckpointPolicy

DEVICE = "cuda"
#          vocab   dim  layers heads kv  ffn    tied
SHAPES = { "124M": (50304, 768, 12, 12, 12, 2048, True),
           "1B": (128256, 2048, 16, 32, 8, 8192, True),
           "8B": (128256, 4096, 32, 32, 8, 14336, False),
           "debugmodel": (256, 64, 2, 4, 2, 176, False) }


def rope(seq, width, theta=500000.0):
    turn = theta ** (-torch.arange(0, width, 2).float() / width)
    angle = torch.outer(torch.arange(seq).float(), turn)
    return torch.cat([angle.cos(), angle.cos()], -1), torch.cat([angle.sin(), angle.sin()], -1)


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class Layer(nn.Module):
    def __init__(self, dim, heads, kv, ffn):
        super().__init__()
        self.heads, self.kv, self.width = heads, kv, dim // heads
        self.norm1, self.norm2 = nn.RMSNorm(dim, 1e-5), nn.RMSNorm(dim, 1e-5)
        self.qkv = nn.Linear(dim, (heads + 2 * kv) * self.width, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.up, self.down = nn.Linear(dim, 2 * ffn, bias=False), nn.Linear(ffn, dim, bias=False)

    def forward(self, x, cos, sin):
        b, t, d = x.shape
        qkv = self.qkv(self.norm1(x)).view(b, t, -1, self.width).transpose(1, 2)
        q, k, v = qkv.split([self.heads, self.kv, self.kv], 1)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.kv != self.heads)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        gate, up = self.up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


def keep_products(ctx, op, *args, **kwargs):
    products = (torch.ops.aten.mm.default, torch.ops.aten._scaled_dot_product_flash_attention.default,
                torch.ops.aten._scaled_dot_product_cudnn_attention.default,
                torch.ops.aten._scaled_dot_product_efficient_attention.default)
    return CheckpointPolicy.MUST_SAVE if op in products else CheckpointPolicy.PREFER_RECOMPUTE


class Llama(nn.Module):
    def __init__(self, shape, seq, selective):
        super().__init__()
        vocab, dim, layers, heads, kv, ffn, tied = shape
        self.embedding, self.norm = nn.Embedding(vocab, dim), nn.RMSNorm(dim, 1e-5)
        self.layers = nn.ModuleList(Layer(dim, heads, kv, ffn) for _ in range(layers))
        self.head = nn.Linear(dim, vocab, bias=False)
        if tied:
            self.head.weight = self.embedding.weight
        self.selective = selective
        cos, sin = rope(seq, dim // heads, 500000.0 if vocab == 128256 else 10000.0)
        self.register_buffer("cos", cos.bfloat16()), self.register_buffer("sin", sin.bfloat16())

    def forward(self, tokens, targets):
        x = self.embedding(tokens).bfloat16()
        for layer in self.layers:
            if self.selective:
                x = checkpoint(layer, x, self.cos, self.sin, use_reentrant=False, context_fn=functools.partial(
                    create_selective_checkpoint_contexts, keep_products))     # a lambda does not compile
            else:
                x = layer(x, self.cos, self.sin)
        return F.cross_entropy(self.head(self.norm(x)).float().flatten(0, 1), targets.flatten())


class Moment:
    """What torch.cuda.Event(enable_timing=True) is on a GPU."""
    def record(self):
        self.at = time.perf_counter()

    def elapsed_time(self, end):
        return 1e3 * (end.at - self.at)


def measure(options, backend):
    torch.manual_seed(0)
    on_gpu, shape = options.device == "cuda", SHAPES["debugmodel" if options.toy else options.flavor]
    # 8B: fp32 weights, gradients and moments do not fit beside each other
    torch.set_default_dtype(torch.bfloat16 if options.flavor == "8B" else torch.float32)
    with torch.device(options.device):
        model = Llama(shape, options.seq, options.selective)
    for p in model.parameters():
        nn.init.normal_(p, 0, 0.02) if p.dim() > 1 else None
    clip = torch.compile(lambda: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True))
    update = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    run = torch.compile(model, mode=options.mode, dynamic=False)
    batches = [torch.randint(shape[0], (2, options.batch, options.seq), device=options.device) for _ in range(4)]
    marks = [torch.cuda.Event(enable_timing=True) if on_gpu else Moment() for _ in range(options.steps + 1)]
    for step in range(options.warmup + options.steps):
        if step >= options.warmup:
            marks[step - options.warmup].record()
        torch.compiler.cudagraph_mark_step_begin()      # what graphs gave in the step before is not looked at again
        with torch.autocast(options.device, torch.bfloat16), sdpa_kernel(backend):
            loss = run(*batches[step % 4])
        loss.backward()
        clip()
        update.step()
        update.zero_grad(set_to_none=True)
    marks[-1].record()
    if on_gpu:
        torch.cuda.synchronize()
    return sorted(a.elapsed_time(b) / 1e3 for a, b in zip(marks, marks[1:]))


def rate(step, steps, peak=6e-4):
    """Of the 0-based step: up over a twentieth of them, then down along a cosine."""
    warmup = steps // 20
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))


def train(options):
    torch.manual_seed(0)
    with open(options.text, "rb") as file:
        text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).long().to(options.device)
    with torch.device(options.device):
        model = Llama(SHAPES[options.flavor], options.seq, False)
    layers = SHAPES[options.flavor][2]
    for name, p in model.named_parameters():
        if p.dim() > 1:
            nn.init.normal_(p, 0, 0.02 / math.sqrt(2 * layers) if "out." in name or "down." in name else 0.02)
    groups = [{"params": [p for p in model.parameters() if p.dim() > 1]},
              {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0}]
    update = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.95), weight_decay=0.1)
    run = torch.compile(model, dynamic=False) if options.device == "cuda" else model
    losses = []
    for step in range(options.steps):
        at = torch.randint(len(text) - options.seq, (options.batch, 1), device=options.device)
        window = text[at + torch.arange(options.seq + 1, device=options.device)]
        with torch.autocast(options.device, torch.bfloat16):
            loss = run(window[:, :-1], window[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in update.param_groups:
            group["lr"] = rate(step, options.steps)
        update.step()
        update.zero_grad(set_to_none=True)
        losses.append(loss.detach())
        if len(losses) == 100 or step + 1 == options.steps:
            for i, x in enumerate(torch.stack(losses).tolist()):
                print("loss", step + 2 - len(losses) + i, f"{x:.5f}")
            losses = []


def main():
    p = argparse.ArgumentParser()
    p.add_argument("flavor", choices=SHAPES)
    p.add_argument("batch", type=int)
    p.add_argument("seq", type=int)
    p.add_argument("--selective", action="store_true")
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--warmup", type=int, default=5)
    p.add_argument("--mode", default="default")
    p.add_argument("--text")
    p.add_argument("--attention", default="cudnn,flash,efficient")
    p.add_argument("--device", default=DEVICE)
    p.add_argument("--toy", action="store_true")
    options = p.parse_args()
    if options.text:
        train(options)
        return
    if options.toy:
        options.batch, options.seq, options.steps, options.warmup, options.device = 1, 16, 3, 1, "cpu"
    torch.set_float32_matmul_precision("high")
    tokens, worked, kinds = options.batch * options.seq, 0, SDPBackend
    for backend in (getattr(kinds, name.upper() + "_ATTENTION") for name in options.attention.split(",")):
        try:
            times = measure(options, backend)
            peak = torch.cuda.max_memory_allocated() if options.device == "cuda" else 0
            print(f"{tokens / times[len(times) // 2]:.0f} {tokens / times[0]:.0f} torch-{torch.__version__} "
                  f"{backend.name} peak {peak / 2**30:.1f} GiB", flush=True)
            worked += 1
        except Exception as e:      # one that this build lacks: the next one counts
            print(f"# {backend.name}: {type(e).__name__}: {(str(e) or '?').splitlines()[0][:150]}", file=sys.stderr)
            if isinstance(e, torch.cuda.OutOfMemoryError):      # all of them keep as much
                break
        torch._dynamo.reset()
        if options.device == "cuda":
            torch.cuda.empty_cache()
    if not worked:
        sys.exit("pytorch: no attention backend worked")


main()
