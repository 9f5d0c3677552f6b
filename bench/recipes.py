# SPDX-License-Identifier: MIT
"""recipes.py - the table of recipes.sh. A row is the mean of ten steps, of which one is logged, with its statistics, as
by default.

    recipes.py LBWORKER FOLDER ROUNDS "RECIPE ..."      FOLDER holds text.tokens
"""
import os
import re
import statistics
import subprocess
import sys
import time

STEPS, TICKS = int(os.environ.get("LB_BENCH_STEPS", 10)) + 1, os.sysconf("SC_CLK_TCK")
THREADS = int(os.environ.get("LB_BENCH_THREADS", 2))
BOUND = {"tensorwise": 2, "delayed": 2, "rowwise": 2, "blockwise": 2, "mxfp8": 2, "int8": 1 / 1.5, "int8+output": 1 / 1.5}


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def steps(worker, folder, recipe):
    """Seconds on the clock and of CPU of a step, over all but the first; the last checkpoint is not waited for."""
    options = {"model.name": "llama", "model.flavor": "124M", "job.dump_folder": folder + "/run",
               "training.dataset_path": folder + "/text.tokens", "training.seq_len": 64, "training.local_batch_size": 4,
               "training.steps": STEPS, "training.threads": THREADS, "lr_scheduler.warmup_steps": 1,
               "metrics.log_freq": STEPS, "metrics.peak_tflops": 1, "checkpoint.interval": 0,
               "quantize.recipe": recipe.split("+")[0]}
    if recipe.endswith("+output"):
        options["quantize.filter_fqns"] = "[]"
    open(folder + "/empty.toml", "w").close()
    words = [word for k, v in options.items() for word in ("--" + k, str(v))]
    seen = []
    with subprocess.Popen([worker, "train", folder + "/empty.toml", *words], stdout=subprocess.PIPE, text=True) as trainer:
        for line in trainer.stdout:
            if not re.match(rf"step (1|{STEPS})/", line):
                continue
            seen.append((time.monotonic(), cpu_seconds(trainer.pid)))
            if len(seen) == 2:
                trainer.kill()
    return [(after - before) / (STEPS - 1) for before, after in zip(*seen)]


def main():
    worker, folder, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    recipes = sys.argv[4].split()
    wall, cpu = {r: [] for r in recipes}, {r: [] for r in recipes}
    for _ in range(rounds):
        for recipe in recipes:
            a, b = steps(worker, folder, recipe)
            wall[recipe].append(a)
            cpu[recipe].append(b)
    first = recipes[0]
    print(f"Llama 124M, 4 x 64 tokens, threads: {THREADS}, load {os.getloadavg()[0]:.1f}; a step in seconds, as a share of {first}'s "
          "by the best (by the median)")
    print(f"{'recipe':12} {'clock':>7} {'share':>17} {'CPU':>7} {'share':>17}")
    for r in recipes:
        def share(of):
            return (f"{min(of[r]) / min(of[first]):.2f} ({statistics.median(of[r]) / statistics.median(of[first]):.2f})")
        bound = f"  at most {BOUND[r]:.2f}" if r in BOUND else ""
        print(f"{r:12} {min(wall[r]):7.3f} {share(wall):>17} {min(cpu[r]):7.2f} {share(cpu):>17}{bound}")


main()
