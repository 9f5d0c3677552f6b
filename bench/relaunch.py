# SPDX-License-Identifier: MIT
"""relaunch.py SOURCE - times lbrun and lbd around trainers that die. Called by relaunch.sh.

Each line: what, our figure, the peer and its figure. A trainer here is this file itself with other
arguments: it writes down when it starts (CLOCK_MONOTONIC, one clock for the whole machine)."""
import json
import os
import signal
import statistics
import subprocess
import sys
import time

STEPS = 3000
STEP_S = 0.002			# so that lbrun is idle between two steps, as it is in life
KILLS = 15
GIVE_UP_S = 120


def say(what, ours, peer, theirs=""):
    print(f"{what:<40} {ours:>24}   {peer:<44} {theirs:>12}", flush=True)


def until(condition, what):
    deadline = time.monotonic() + GIVE_UP_S
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            sys.exit(f"{what}: not within {GIVE_UP_S} s")
        time.sleep(0.002)


# --- trainers ------------------------------------------------------------------------------------

def cpu_ns(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0])


def rss_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS:"))


def train_steps(out):
    """Steps that only report; what the reports cost is written to `out`."""
    import lb_client
    lbrun = os.getppid()
    lb_client.send("step", step=0, loss=5.0)
    before, waits = cpu_ns(lbrun), []
    for step in range(1, STEPS + 1):
        time.sleep(STEP_S)
        start = time.perf_counter()
        lb_client.send("step", step=step, loss=5.0 / step, grad_norm=1.0, tokens_per_s=5400.0)
        waits.append(time.perf_counter() - start)
    with open(out + ".tmp", "w", encoding="ascii") as file:
        json.dump({"wait_us": statistics.median(waits) * 1e6, "rss_mb": rss_mb(lbrun),
                   "cpu_us": (cpu_ns(lbrun) - before) / STEPS / 1e3}, file)
    os.rename(out + ".tmp", out)


def train_forever(out):
    with open(out, "a", encoding="ascii") as file:
        file.write(f"{time.monotonic()} {os.getpid()}\n")
    time.sleep(3600)


# --- the clock -----------------------------------------------------------------------------------

def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode().strip()


def status(name):
    return json.loads(run("lbctl", "status", name, "--json"))


def starts(path):
    """(when, pid) of every start so far."""
    try:
        with open(path, encoding="ascii") as file:
            return [(float(t), int(pid)) for t, pid in (line.split() for line in file)]
    except FileNotFoundError:
        return []


def cost(source, scratch):
    out = scratch + "/cost"
    run("lbctl", "submit", "--name", "cost", "--set", "run.scheduler=local", "--",
        "env", f"PYTHONPATH={source}/docs", "python3", __file__, "steps", out)
    until(lambda: os.path.exists(out), "3,000 steps")
    with open(out, encoding="ascii") as file:
        c = json.load(file)
    share = c["wait_us"] / 1e6 * 100
    say("a step reported and acknowledged", f"{c['wait_us']:.0f} us of waiting",
        "a step of one second", f"{share:.4f} %")
    say("lbrun's own CPU time a step", f"{c['cpu_us']:.0f} us", "a step of one second, one core",
        f"{c['cpu_us'] / 1e4:.4f} %")
    say("lbrun resident", f"{c['rss_mb']:.2f} MB", "budget", "4 MB")


def in_place(scratch):
    """From the SIGKILL of the trainer to the first statement of the next one."""
    out, times, alone = scratch + "/inplace", [], []
    run("lbctl", "submit", "--name", "inplace", "--set", "run.scheduler=local",
        "--set", "restart.in_place=100", "--set", "restart.max_without_progress=200",
        "--", "python3", __file__, "forever", out)
    for kill in range(3):
        pid = until(lambda: starts(out)[kill:], "a start")[0][1]
        start = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        times.append(until(lambda: starts(out)[kill + 1:], "a relaunch")[0][0] - start)
    for i in range(KILLS):
        start = time.monotonic()
        process = subprocess.Popen(["python3", __file__, "forever", scratch + "/alone"])
        alone.append(until(lambda: starts(scratch + "/alone")[i:], "a start")[0][0] - start)
        process.kill()
        process.wait()
    run("lbctl", "kill", "inplace", "--now")
    say("SIGKILL -> training in place again", " ".join(f"{t:.2f}" for t in times) + " s",
        "the same program started by a shell", f"{statistics.median(alone):.2f} s")


def node_of(job):
    return run("squeue", "-h", "-o", "%N", "-j", job)


def fail(node):
    run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=bench")
    return time.monotonic()


def node_lost(scratch):
    """From the moment Slurm holds the node for lost. Slurm's own --requeue waits for the job's
    credential to expire: 2 minutes by default, 5 s in this cluster."""
    ours, theirs = scratch + "/ours", scratch + "/theirs"
    run("lbctl", "submit", "--name", "lost", "--", "python3", __file__, "forever", ours)
    until(lambda: starts(ours), "a start")
    start = fail(status("lost")["attempts"][0]["nodes"][0])
    until(lambda: len(status("lost")["attempts"]) > 1 and status("lost")["attempts"][0]["job_id"],
          "a new job")
    known = time.monotonic() - start
    again = until(lambda: starts(ours)[1:], "a relaunch")[0][0] - start
    run("lbctl", "kill", "lost", "--now")
    job = run("sbatch", "--parsable", "--requeue", "--output=/dev/null",
              f"--wrap=exec python3 {__file__} forever {theirs}")
    until(lambda: starts(theirs), "a start")
    start = fail(node_of(job))
    peer = until(lambda: starts(theirs)[1:], "a requeue")[0][0] - start
    run("scancel", job)
    say("node lost -> new job submitted", f"{known:.2f} s", "sbatch --requeue: same job, queued", "0 s")
    say("node lost -> training elsewhere", f"{again:.2f} s",
        "sbatch --requeue (here; by default + 115 s)", f"{peer:.2f} s")


def main():
    if sys.argv[1] == "steps":
        train_steps(sys.argv[2])
    elif sys.argv[1] == "forever":
        train_forever(sys.argv[2])
    else:
        scratch = os.environ["T"]
        cost(sys.argv[1], scratch)
        in_place(scratch)
        node_lost(scratch)


main()
