# SPDX-License-Identifier: MIT
"""peer_torch_ranks.py - tokens/s of a small Llama in PyTorch on several processes of this machine, over gloo.

    peer_torch_ranks.py ddp|fsdp RANKS BATCH PASSES STEPS THREADS

Each rank makes PASSES passes of BATCH sequences a step, of which all but the last do without a reduction. The
model is peer_torch.py's in the size that bench/ranks.sh trains. One line: the median of all steps but the first two.
"""
import contextlib
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import peer_torch

SEQUENCE = 128


def shard(model):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def last_only(model, way, is_last):
    if not dist.is_initialized():
        return contextlib.nullcontext()
    if way == "ddp":
        return contextlib.nullcontext() if is_last else model.no_sync()
    model.set_requires_gradient_sync(is_last)
    return contextlib.nullcontext()


def step(model, optimizer, way, batch, passes):
    for i in range(passes):
        with last_only(model, way, i + 1 == passes):
            x = torch.randint(peer_torch.VOCAB, (batch, SEQUENCE + 1))
            (model(x[:, :-1], x[:, 1:].contiguous()) / passes).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def rank(number, way, ranks, batch, passes, steps, threads):
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    if ranks > 1:
        dist.init_process_group("gloo", rank=number, world_size=ranks)
    model = peer_torch.Model("llama", SEQUENCE)
    if ranks > 1:
        model = torch.nn.parallel.DistributedDataParallel(model) if way == "ddp" else shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        step(model, optimizer, way, batch, passes)
        times.append(time.perf_counter() - start)
    if number == 0:
        print(round(ranks * batch * passes * SEQUENCE / statistics.median(times[2:])), flush=True)
    if ranks > 1:
        dist.destroy_process_group()


def main():
    way, counts = sys.argv[1], [int(x) for x in sys.argv[2:]]
    peer_torch.WIDTH, peer_torch.LAYERS, peer_torch.HEADS = 256, 6, 4
    peer_torch.VOCAB, peer_torch.GATED = 4096, 512
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(20000 + os.getpid() % 10000)
    if counts[0] == 1:
        rank(0, way, *counts)
    else:
        mp.start_processes(rank, (way, *counts), nprocs=counts[0], start_method="fork")


if __name__ == "__main__":
    main()
