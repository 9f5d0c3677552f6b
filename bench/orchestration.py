# SPDX-License-Identifier: MIT
"""orchestration.py LBD_PID SLURMCTLD_PID - times lbctl and lbd beside Slurm's own commands.

Each line: what, our figure, the peer and its figure, ours / theirs. Called by orchestration.sh,
which has started lbd and a private Slurm and set the environment for both."""
import json
import os
import socket
import sqlite3
import statistics
import subprocess
import sys
import time

HOME = os.environ["LB_HOME"]
SCRATCH = os.environ["T"]
LINES = 200_000
RUNS, LINES_EACH = 20, 8_000	# few enough for the ledger to keep each line of each run
SUBMISSIONS = 100
IN_REPOSITORY = 30
QUESTIONS = 300
GIVE_UP_S = 120


def say(what, ours, unit, peer, theirs, note=""):
    digits = 0 if ours >= 1000 else 2
    print(f"{what:<34} {ours:>10,.{digits}f} {unit:<8} {peer:<34} {theirs:>10,.{digits}f} {unit:<8} "
          f"ratio {ours / theirs:.2f}{note}", flush=True)


def run(*command):
    """Seconds that a command takes as a process, and what it printed."""
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - start, done.stdout.decode().strip()


class Lbd:
    """A client of the control socket."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(HOME + "/lbd.sock")
        self.answers = self.socket.makefile("rb")

    def ask(self, verb, **args):
        line = json.dumps({"v": 1, "verb": verb, "args": args})
        self.socket.sendall(line.encode() + b"\n")
        answer = json.loads(self.answers.readline())
        if not answer["ok"]:
            sys.exit(f"{verb}: {answer['text']}")
        return answer["data"]


def until(condition, what):
    deadline = time.monotonic() + GIVE_UP_S
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"{what}: not within {GIVE_UP_S} s")
        time.sleep(0.0005)


def job_id(lbd, name):
    attempts = lbd.ask("status", run=name)["attempts"]
    return attempts[0]["job_id"] if attempts else None


def submit(lbd, what, prefix, count):
    """In turns, each first as often as the other, so that both see the same machine. An lbd run is
    submitted held, written down, then released; sbatch does none of that. The id is known when the
    command that printed it has ended."""
    known, sbatch = [], []

    def ours(i):
        name = f"{prefix}-{i}"
        start = time.perf_counter()
        _, said = run("lbctl", "submit", "--json", "--name", name, "--", "true")
        if "job_id" not in json.loads(said):
            until(lambda: job_id(lbd, name), "job id")
        known.append(time.perf_counter() - start)
        until(lambda: lbd.ask("status", run=name)["state"] == "queued", "queued")

    def theirs():
        sbatch.append(run("sbatch", "--parsable", "--output=/dev/null", "--wrap=true")[0])

    for i in range(count):
        if i % 2:
            theirs()
        ours(i)
        if not i % 2:
            theirs()
    pairs = statistics.median(ours / theirs for ours, theirs in zip(known, sbatch))
    say(what, statistics.median(known) * 1e3, "ms", "sbatch --parsable",
        statistics.median(sbatch) * 1e3, f"   (median of the pairs' ratios: {pairs:.2f})")


def make_repository(folder):
    """Of 200 files, one of them changed: lbctl keeps what a run is made of."""
    os.mkdir(folder)
    os.chdir(folder)
    for i in range(200):
        with open(f"f{i}.py", "w", encoding="ascii") as file:
            file.write(f"x = {i}\n" * 50)
    for words in (["init", "-q"], ["add", "."],
                  ["-c", "user.name=bench", "-c", "user.email=bench@invalid", "commit", "-qm", "x"]):
        run("git", *words)
    with open("f3.py", "a", encoding="ascii") as file:
        file.write("changed\n")


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))] * 1e3


def ask(lbd):
    job = str(job_id(lbd, "bench-0"))
    ours, theirs, raw = [], [], []
    for _ in range(QUESTIONS):
        ours.append(run("lbctl", "status", "bench-0", "--json")[0])
        theirs.append(run("squeue", "--noheader", "--job", job)[0])
        start = time.perf_counter()
        lbd.ask("status", run="bench-0")
        raw.append(time.perf_counter() - start)
    for share, name in ((0.50, "p50"), (0.99, "p99")):
        say(f"lbctl status {name}", percentile(ours, share), "ms", f"squeue --job {name}",
            percentile(theirs, share), f"   (on the open socket: {percentile(raw, share):.2f} ms)")


def sqlite_rate(runs, lines):
    """As many rows into SQLite alone, from memory, as durable as the ledger: nothing to read or
    parse, so no ingest can be faster."""
    db = sqlite3.connect(f"{SCRATCH}/peer-{runs}.db", isolation_level=None)
    db.execute("pragma synchronous = full")
    db.execute("create table m (run integer, step integer, loss real, rate real, "
               "primary key (run, step)) without rowid")
    rows = [(run, i, 5.0 / (i + 1), 5400.0) for run in range(runs) for i in range(lines)]
    start = time.perf_counter()
    for i in range(0, len(rows), 10_000):
        db.execute("begin immediate")
        db.executemany("insert into m values (?, ?, ?, ?)", rows[i:i + 10_000])
        db.execute("commit")
    return len(rows) / (time.perf_counter() - start)


def lines_for(spool, count):
    with open(spool, encoding="utf-8") as file:
        seq = len(file.readlines())
    now = int(time.time() * 1000)
    return "".join(
        json.dumps({"v": 1, "seq": seq + i, "time_ms": now + i, "launch": 1, "from": "trainer",
                    "line": {"type": "step", "step": i, "loss": 5.0 / i, "target_step": count,
                             "tokens_per_s": 5400.0, "grad_norm": 1.25}},
                   separators=(",", ":")) + "\n"
        for i in range(1, count + 1)).encode()


def ingest(lbd, runs, lines, peer):
    """Lines appended to the spools of live runs, then read by lbd and committed."""
    names = [f"ingest-{runs}-{i}" for i in range(runs)]
    spools = [f"{HOME}/runs/{name}/attempts/1/spool.jsonl" for name in names]
    for name in names:
        run("lbctl", "submit", "--name", name, "--set", "run.scheduler=local", "--", "sleep", "600")
    for name, spool in zip(names, spools):
        until(lambda: lbd.ask("status", run=name)["state"] == "running", "running")
        until(lambda: os.path.exists(spool) and b"launch_start" in open(spool, "rb").read(), "spool")
    texts = [lines_for(spool, lines) for spool in spools]
    start = time.perf_counter()
    for name, spool, text in zip(names, spools, texts):
        with open(spool, "ab") as file:
            file.write(text)
        lbd.ask("poke", run=name)
    for name in names:
        until(lambda: lbd.ask("status", run=name)["step"] == lines, "ingest")
    say(f"progress of {runs} run{'s' if runs > 1 else ''}, lines a second",
        runs * lines / (time.perf_counter() - start), "lines/s", peer, sqlite_rate(runs, lines))
    run("lbctl", "kill", "--now", *names)


def rss_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


def main():
    lbd_pid, slurmctld_pid = sys.argv[1:]
    os.chdir(SCRATCH)           # in no git repository: sbatch keeps nothing of one either
    idle = rss_mb(lbd_pid)
    lbd = Lbd()
    submit(lbd, "submit, job id known (median)", "bench", SUBMISSIONS)
    make_repository(f"{SCRATCH}/repository")
    submit(lbd, "the same in a git repository", "git", IN_REPOSITORY)
    os.chdir(SCRATCH)
    ask(lbd)
    ingest(lbd, RUNS, LINES_EACH, "SQLite alone, the same rows")
    ingest(lbd, 1, LINES, "SQLite alone, all rows")	# the ledger keeps 10,000 of a run
    say("lbd resident, idle", idle, "MB", "slurmctld of the same cluster", rss_mb(slurmctld_pid))
    say(f"lbd resident, {SUBMISSIONS + IN_REPOSITORY + RUNS + 1} runs, after ingest", rss_mb(lbd_pid), "MB",
        "slurmctld of the same cluster", rss_mb(slurmctld_pid))


main()
