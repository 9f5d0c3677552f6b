# SPDX-License-Identifier: MIT
"""Kills trainings of the real libraries in the middle of saving, again and again:

    check.py --lbrun FILE [--kills 50] [--seed 1] [LAYOUT …]

For each layout a training runs under lbrun alone. At a random moment after a step was told, which is when its
checkpoint is written, the process that writes gets SIGKILL; the next launch must start from the newest whole
one: it loads, and its step is that of the last one that was finished, or of the one at hand if the kill came
too late. Prints the table layout × killed while saving × resumed from; status 1 when any did not hold."""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LAYOUTS = ("torch", "safetensors", "numpy", "folder", "transformers", "accelerate", "lightning", "dcp",
           "deepspeed", "legacy", "pickle", "shards", "hdf5", "arrays", "joblib", "orbax")


class Run:
    def __init__(self, top, layout, args):
        self.folder, self.layout, self.args = f"{top}/{layout}", layout, args
        self.checkpoints = f"{self.folder}/checkpoints"
        self.number = 0
        os.makedirs(self.checkpoints)
        self.socket = f"{top}/warm"
        self.warm = subprocess.Popen([sys.executable, f"{HERE}/warm.py", "serve", self.socket, layout],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if self.warm.stdout.readline() != "ready\n":
            raise SystemExit(f"{layout}: its libraries cannot be imported")

    def launch(self):
        """An attempt of its own: what lbrun remembers must outlive it."""
        self.number += 1
        self.attempt = f"{self.folder}/attempts/{self.number}"
        os.makedirs(self.attempt)
        params = {
            "version": 1, "token": f"{self.number:032}", "run": self.layout, "number": self.number,
            "workdir": self.folder, "run_dir": self.folder, "checkpoint_dir": self.checkpoints,
            "lbd_socket": None, "launcher": "none", "kill_grace_ms": 500, "in_place": 0,
            "never_on_exit_codes": [], "watch": {"progress_regex": "auto"},
            "command": [sys.executable, "-I", "-S", f"{HERE}/warm.py", "run", self.socket],
        }
        with open(f"{self.attempt}/attempt.json", "w") as out:
            json.dump(params, out)
        self.log = f"{self.attempt}/out.log"
        with open(self.log, "w") as out:
            self.lbrun = subprocess.Popen([self.args.lbrun, "--attempt", self.attempt], stdout=out,
                                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def lines(self):
        with open(self.log, errors="replace") as text:
            return text.read().splitlines()

    def find(self, word):
        """The last number behind a word in the output."""
        found = None
        for line in self.lines():
            words = line.split("] ", 1)[-1].split()
            if len(words) > 1 and words[0] == word:
                found = int(words[1].split("/")[0])
        return found

    def wait(self, condition):
        deadline = time.monotonic() + 120
        while not condition():
            if self.lbrun.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("\n".join(self.lines()[-15:]))
            time.sleep(0.001)

    def kill_trainer(self):
        """What it leaves lbrun clears away."""
        os.kill(self.find("pid"), signal.SIGKILL)
        self.lbrun.wait(60)

    def close(self):
        if self.lbrun.poll() is None:
            if self.find("pid"):
                os.kill(self.find("pid"), signal.SIGKILL)
            self.lbrun.terminate()
            self.lbrun.wait(60)
        self.warm.kill()
        self.warm.wait()


def loads(run):
    """What it was started from, once it is loaded."""
    run.wait(lambda: run.find("from") is not None)
    return run.find("from")


def try_layout(top, layout, args, rng):
    run, killed, good, older, bad = Run(top, layout, args), 0, 0, 0, []
    run.launch()
    try:
        loads(run)
        while killed < args.kills:
            start = run.find("step") or 0
            # some steps, then a moment within the save that follows a step's line
            goal = start + rng.randint(2, 3)
            run.wait(lambda: (run.find("step") or 0) >= goal)
            time.sleep(rng.uniform(0, args.save_ms[layout]) / 1000)
            run.kill_trainer()
            reached = run.find("step")
            killed += 1
            run.launch()
            step = loads(run)
            if step == reached:
                good += 1		# the kill came after its save was over
            elif step in (reached - 1, reached - 2):
                older += 1		# the one at hand was cut short
            else:
                bad.append(f"killed at step {reached}, came back from {step}")
    except RuntimeError as why:
        bad.append(str(why))
    run.close()
    return killed, good, older, bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lbrun", required=True)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("layouts", nargs="*", default=LAYOUTS)
    args = parser.parse_args()
    args.save_ms = dict.fromkeys(LAYOUTS, 40) | {"transformers": 150, "accelerate": 80, "lightning": 80, "orbax": 80}
    is_bad = False
    print(f"{'layout':14} {'killed':>6} {'from it':>8} {'from before':>12} {'wrong':>6}", flush=True)
    for layout in args.layouts:
        with tempfile.TemporaryDirectory() as top:
            killed, good, older, bad = try_layout(top, layout, args, random.Random(f"{args.seed} {layout}"))
        print(f"{layout:14} {killed:6} {good:8} {older:12} {len(bad):6}", flush=True)
        for line in bad:
            print("  " + line.replace("\n", "\n  "), flush=True)
        is_bad |= bool(bad)
    return is_bad


if __name__ == "__main__":
    sys.exit(main())
