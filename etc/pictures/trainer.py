#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""trainer.py BEHAVIOUR - stands in for a trainer in recordings: reports steps as one would, computes
nothing. Checkpoints are files that a restart begins from."""
import math, os, random, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs"))
import lb_client as lb

behaviour = sys.argv[1]
TARGETS = {"short": 240, "long": 60000}
target = TARGETS.get(behaviour, 2000)
pause = {"short": 0.12, "fast": 0.06, "long": 1.0}.get(behaviour, 0.25)
speed = {"fast": 412e3, "short": 96e3}.get(behaviour, 186e3)
folder = os.environ["LB_CHECKPOINT_DIR"]
resumed = os.environ.get("LB_RESUME_FROM")
step = int(os.path.basename(resumed).split("-")[1]) if resumed else 0
first = os.environ["LB_ATTEMPT"] == "1" and os.environ["LB_LAUNCH"] == "1"
draw = random.Random(behaviour + os.environ["LB_ATTEMPT"] + os.environ["LB_LAUNCH"])
lb.send("hello", rank=0, world=1, pid=os.getpid())
lb.send("phase", name="setup")
time.sleep(1.0)
lb.send("phase", name="train")
while step < target and not lb.asked("stop"):
    step += 1
    time.sleep(pause)
    loss = 1.9 + 8.6 * math.exp(-step / (0.11 * min(target, 2000))) + draw.gauss(0, 0.03)
    tokens = speed * (1 + draw.gauss(0, 0.01))
    if behaviour == "slow" and step > 260:
        tokens, _ = tokens * 0.46, time.sleep(pause)
    if behaviour == "stall" and step > 150:
        print(f"[rank0]: step {step}: waiting for all-reduce", flush=True)
        time.sleep(3600)
    if behaviour == "crash" and first and step == 130:
        print("CUDA error: an illegal memory access was encountered", file=sys.stderr, flush=True)
        os.kill(os.getpid(), 11)
    if behaviour == "oom" and step == 90:
        print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", file=sys.stderr, flush=True)
        sys.exit(1)
    is_lost = behaviour == "nan" and step > 200
    lb.send("step", step=step, loss=None if is_lost else loss, target_step=target, tokens_per_s=tokens, mfu=0.42)
    print(f"step {step}/{target} loss {loss:.4f} {tokens:.0f} tokens/s", flush=True)
    if step % 50 == 0 or lb.asked("save"):
        path = os.path.join(folder, f"step-{step}")
        with open(path + ".new", "w") as f:
            f.write("a checkpoint\n")
        os.rename(path + ".new", path)
        lb.send("checkpoint", step=step, path=path)
lb.send("bye", status="done" if step >= target else "stopped")
