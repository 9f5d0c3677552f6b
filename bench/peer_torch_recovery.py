# SPDX-License-Identifier: MIT
"""peer_torch_recovery.py FOLDER CLIENT - a small PyTorch training on two ranks (DDP over gloo), for bench/recovery.py.

Begun by torchrun. Rank 0 writes a line for each step, "WALL-TIME STEP PID", to FOLDER/steps, and every rank its pid to
FOLDER/rank.N; a checkpoint comes every SAVE_EVERY steps, by torch.save and a rename, the last two stay. On SIGTERM,
and where lbrun asks for it (lb_client.py in CLIENT), it saves and ends. It goes on from the newest in FOLDER/checkpoints."""
import datetime
import os
import pathlib
import signal
import sys
import time

import torch
import torch.distributed as dist

SAVE_EVERY, STEP_S, WORDS_S = 40, 0.1, 30


def newest(folder):
    steps = sorted((int(path.stem.split("-")[1]), path) for path in folder.glob("step-*.pt"))
    return steps[-1] if steps else (0, None)


def save(folder, step, model, optimizer):
    path = folder / f"step-{step}.pt"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, f"{path}.tmp")
    os.rename(f"{path}.tmp", path)
    for old in sorted(folder.glob("step-*.pt"), key=lambda p: int(p.stem.split("-")[1]))[:-2]:
        old.unlink()


def main():
    root = pathlib.Path(sys.argv[1])
    folder = root / "checkpoints"
    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=WORDS_S))
    rank = dist.get_rank()
    (root / f"rank.{rank}").write_text(str(os.getpid()))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(256, 256))
    optimizer = torch.optim.AdamW(model.parameters())
    step, path = newest(folder)
    if path:
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    sys.path.insert(0, sys.argv[2])
    import lb_client as lb  # does nothing where there is no lbrun
    if rank == 0:
        lb.send("hello", rank=0, world=dist.get_world_size(), pid=os.getpid())
        lb.send("phase", name="train")
    while True:
        model(torch.randn(8, 256)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(STEP_S)
        step += 1
        if rank == 0:
            with open(root / "steps", "a", encoding="ascii") as steps:
                steps.write(f"{time.time()} {step} {os.getpid()}\n")
            lb.send("step", step=step)
        wants = torch.tensor([float(bool(asked) or rank == 0 and lb.asked("stop")),
                              float(rank == 0 and lb.asked("save"))])
        dist.all_reduce(wants)  # all ranks stop at the same step
        if rank == 0 and (wants.any() or step % SAVE_EVERY == 0):
            save(folder, step, model, optimizer)
            lb.send("checkpoint", step=step, path=str(folder / f"step-{step}.pt"))
        if wants[0]:
            if rank == 0:
                lb.send("bye", status="stopped")
            sys.exit(0 if "LB_SOCKET" in os.environ else 3)


main()
