# SPDX-License-Identifier: MIT
"""recovery.py SOURCE COUNT - seconds from a trouble to the first new step, and steps made again. Called by recovery.sh.

A step is new if it is beyond all that were made before the trouble; each is told with the process that made it. Each row of the table: trouble, way, how often it
came back, seconds (median, most), steps made again (median, most)."""
import os
import pathlib
import shlex
import signal
import statistics
import subprocess
import sys
import time

SOURCE, COUNT = pathlib.Path(sys.argv[1]), int(sys.argv[2])
T, CLUSTER = pathlib.Path(os.environ["T"]), os.environ["cluster"]
TORCH = os.environ["LB_BENCH_TORCH"]
TROUBLES = os.environ.get("LB_BENCH_TROUBLES", "kill hang preempt node").split()
WAYS = os.environ.get("LB_BENCH_WAYS", "lbd requeue elastic").split()
GIVE_UP_S, SETTLE_STEPS = int(os.environ.get("LB_BENCH_GIVE_UP", "600")), 25
ELASTIC = ["--max-restarts=1000", "--monitor-interval=1"]


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode().strip()


def until(condition, what, limit_s=GIVE_UP_S):
    deadline = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {limit_s} s")
        time.sleep(0.05)


class Training:
    """One of them, under one of the ways; `job` is its newest in Slurm."""

    def __init__(self, way, name):
        self.way, self.name, self.folder = way, name, T / name
        (self.folder / "checkpoints").mkdir(parents=True)
        torchrun = [TORCH, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        command = [str(SOURCE / "bench/peer_torch_recovery.py"), str(self.folder), str(SOURCE / "docs")]
        if way == "lbd":
            run("lbctl", "submit", "--name", name, "--set", "slurm.partition=guests",
                "--set", "slurm.cpus_per_task=4", "--set", "restart.in_place=1000000",
                "--set", "restart.max_without_progress=1000", "--set", 'checkpoint.pattern=step-{step}.pt',
                "--set", f"checkpoint.folder={self.folder}/checkpoints",
                "--set", "watch.step_timeout=30s", "--", *torchrun, *command)
            return
        # what is usual: a script that requeues itself where its trainer ends badly
        words = shlex.join(torchrun + (ELASTIC if way == "elastic" else []) + command)
        script = f"#!/bin/bash\n{words} || scontrol requeue $SLURM_JOB_ID\n"
        (T / f"{name}.sh").write_text(script)
        self.job_id = run("sbatch", "--parsable", "--requeue", "--partition=guests", "--ntasks=1",
                          "--cpus-per-task=4", "--open-mode=append", f"--output={T}/{name}.log",
                          f"--job-name={name}", str(T / f"{name}.sh"))

    def steps(self):
        try:
            text = (self.folder / "steps").read_text("ascii")
        except FileNotFoundError:
            return []
        return [(float(when), int(step), int(pid))
                for when, step, pid in (line.split() for line in text.split("\n")[:-1])]

    def job(self):
        if self.way != "lbd":
            return self.job_id
        return run("squeue", "-h", "-t", "R", "-o", "%i %j").split("\n")[0].split()[0]

    def node(self):
        return run("squeue", "-h", "-t", "R", "-j", self.job(), "-o", "%N")

    def pid(self, rank):
        return int((self.folder / f"rank.{rank}").read_text())

    def end(self):
        if self.way == "lbd":
            run("lbctl", "kill", "--now", self.name)
        else:
            run("scancel", self.job_id)
        until(lambda: not run("squeue", "-h", "-o", "%i"), "the end of all jobs")


# --- troubles; each gives what undoes it later ------------------------------------------------------

def kill(training):
    os.kill(training.pid(1), signal.SIGKILL)
    return lambda: None


def hang(training):
    pid = training.pid(1)
    os.kill(pid, signal.SIGSTOP)

    def undo():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return undo


def preempt(training):
    owner = run("sbatch", "--parsable", "-p", "owners", "-w", training.node(), "-n1", "-c4", "-o", "/dev/null",
                "--wrap", "sleep 600")
    return lambda: run("scancel", owner)


def of_job(node, job):
    """All processes of that job on the node."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if f"SLURM_JOB_ID={job}".encode() in words and f"SLURMD_NODENAME={node}".encode() in words:
            found.append(int(path.parent.name))
    return found


def node_lost(training):
    node, job = training.node(), training.job()
    run(str(SOURCE / "etc/minicluster"), "kill-node", CLUSTER, node)
    for pid in of_job(node, job):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def undo():
        run(str(SOURCE / "etc/minicluster"), "start-node", CLUSTER, node)
        until(lambda: "idle" in run("sinfo", "-h", "-n", node, "-o", "%T"), f"{node} is back")
        if training.way == "lbd":
            run("lbctl", "nodes", "forgive", node)
    return undo


BRINGS = {"kill": kill, "hang": hang, "preempt": preempt, "node": node_lost}
WORDS = {"kill": "SIGKILL of a rank", "hang": "a rank hangs (30 s for all)", "preempt": "preempted (20 s grace)",
         "node": "node lost"}


def measure(training, trouble):
    """(seconds, steps made again), or None: it did not come back."""
    before = len(training.steps())
    until(lambda: len(training.steps()) >= before + SETTLE_STEPS, "steps before the trouble")
    begun = time.time()
    undo = BRINGS[trouble](training)

    def is_back():
        steps = training.steps()
        old = next(pid for when, _, pid in reversed(steps) if when <= begun)
        most = max(step for _, step, pid in steps if pid == old)
        again = 0
        for when, step, pid in steps:
            if when > begun and pid != old:
                if step > most:
                    return when - begun, again
                again += 1
        return None
    try:
        result = until(is_back, trouble)
    except TimeoutError as error:
        print(f"# {training.way}: {error}", file=sys.stderr)
        result = None
    undo()
    return result


def main():
    print(f"# {COUNT} of each; PyTorch {run(TORCH, '-c', 'import torch; print(torch.__version__)')}, a checkpoint "
          "every 40 steps of 0.1 s; SlurmdTimeout " + os.environ["MC_SLURMDTIMEOUT"] + " s")
    print(f"{'trouble':<28} {'under':<20} {'back':>6} {'seconds':>8} {'most':>7} {'steps again':>12} {'most':>5}")
    for trouble in TROUBLES:
        for way in WAYS:
            training = Training(way, f"{trouble}-{way}")
            found = []
            for _ in range(COUNT):
                result = measure(training, trouble)
                if result is None:
                    break
                found.append(result)
            training.end()
            seconds, again = [f[0] for f in found], [f[1] for f in found]
            row = f"{len(found)}/{COUNT}"  # within GIVE_UP_S; a training that does not come back is given up
            print(f"{WORDS[trouble]:<28} {way:<20} {row:>6} " + (
                f"{statistics.median(seconds):>8.1f} {max(seconds):>7.1f} {statistics.median(again):>12.0f} "
                f"{max(again):>5}" if found else ""), flush=True)


main()
