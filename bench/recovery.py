# SPDX-License-Identifier: MIT
"""recovery.py SOURCE COUNT DONE - seconds from a trouble to the first new step, and steps made again. Called by recovery.sh.

What was measured is a line of JSON in DONE; what is there already is not measured again, so that an interrupted bench goes
on. A row whose training has not come back twice in a row is left. A step is new if it is beyond all that were made before the trouble; each is told with the process that made it. Each row of the table: trouble, way, how often it
came back, seconds (median, most), steps made again (median, most)."""
import concurrent.futures
import json
import os
import pathlib
import shlex
import signal
import statistics
import subprocess
import sys
import threading
import time

SOURCE, COUNT, DONE = pathlib.Path(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
T, CLUSTER = pathlib.Path(os.environ["T"]), os.environ["cluster"]
TORCH = os.environ["LB_BENCH_TORCH"]
TROUBLES = os.environ.get("LB_BENCH_TROUBLES", "kill hang preempt node").split()
WAYS = os.environ.get("LB_BENCH_WAYS", "lbd requeue elastic").split()
AT_ONCE = int(os.environ.get("LB_BENCH_AT_ONCE", "1"))
LEFT_AFTER = 2  # trials in a row that did not come back
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
        attempts = json.loads(run("lbctl", "status", self.name, "--json"))["attempts"]
        return str(attempts[-1]["job_id"])

    def node(self):
        return run("squeue", "-h", "-t", "R", "-j", self.job(), "-o", "%N")

    def pid(self, rank):
        return int((self.folder / f"rank.{rank}").read_text())

    def end(self):
        if self.way == "lbd":
            run("lbctl", "kill", "--now", self.name)
            subprocess.run(["lbctl", "wait", self.name], stdout=subprocess.DEVNULL, check=False)
        else:
            run("scancel", self.job_id)
            until(lambda: not run("squeue", "-h", "-n", self.name, "-o", "%i"), "the end of its job")


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


# --- what is done -------------------------------------------------------------------------------------

writing = threading.Lock()


def done(trouble, way):
    """Its trials so far, each {"seconds", "again"}; seconds None: it did not come back."""
    if not DONE.exists():
        return []
    # a line that a kill cut off counts as not measured
    lines = [line for line in DONE.read_text("utf-8").split("\n")[:-1] if line.endswith("}")]
    return [trial for trial in map(json.loads, lines) if (trial["trouble"], trial["way"]) == (trouble, way)]


def note(trouble, way, result):
    seconds, again = result if result else (None, None)
    line = json.dumps({"trouble": trouble, "way": way, "seconds": seconds, "again": again, "load": os.getloadavg()[0]})
    with writing, open(DONE, "a", encoding="utf-8") as out:
        out.write(line + "\n")


def is_left(trials):
    return len(trials) >= COUNT or len(trials) >= LEFT_AFTER and not any(
        trial["seconds"] for trial in trials[-LEFT_AFTER:])


def trials_of(trouble, way):
    """All that are still to be made, with one training as long as that comes back."""
    training, number = None, 0
    while not is_left(done(trouble, way)):
        if not training:
            number += 1
            training = Training(way, f"{trouble}-{way}-{number}")
        try:
            result = measure(training, trouble)
        except (TimeoutError, subprocess.CalledProcessError) as error:
            print(f"# {trouble}, {way}: {error}", file=sys.stderr, flush=True)
            result = None
        note(trouble, way, result)
        if result is None:
            training.end()
            training = None
    if training:
        training.end()


def row(trouble, way):
    trials = done(trouble, way)
    found = [trial for trial in trials if trial["seconds"]]
    seconds, again = [trial["seconds"] for trial in found], [trial["again"] for trial in found]
    return f"{WORDS[trouble]:<28} {way:<20} {f'{len(found)}/{len(trials)}':>6} " + (
        f"{min(seconds):>7.1f} {statistics.median(seconds):>8.1f} {max(seconds):>7.1f} "
        f"{statistics.median(again):>12.0f} {max(again):>5}" if found else "")


def main():
    print(f"# {COUNT} of each; PyTorch {run(TORCH, '-c', 'import torch; print(torch.__version__)')}, a checkpoint "
          "every 40 steps of 0.1 s; SlurmdTimeout " + os.environ["MC_SLURMDTIMEOUT"] + " s", flush=True)
    rows = [(trouble, way) for trouble in TROUBLES for way in WAYS]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for trial in [pool.submit(trials_of, *which) for which in rows]:
            trial.result()
    print(f"{'trouble':<28} {'under':<20} {'back':>6} {'least':>7} {'median':>8} {'most':>7} {'steps again':>12} {'most':>5}")
    for which in rows:
        print(row(*which))


main()
