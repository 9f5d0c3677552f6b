# SPDX-License-Identifier: MIT
"""scale.py BUILD SLURMCTLD_PID - lbd and its helper under numbers that few teams have. Called by
scale.sh. CPU time is that of the process named, from /proc; each line has a peer or the budget."""
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import time

BUILD, SLURMCTLD = sys.argv[1:]
HOME = os.environ["LB_HOME"]
LEDGER_ID = "00112233445566ff"
JOBS, POLLS, LOOKS = 10_000, 7, 15
RECENT = 100			# of the runs in the ledger ended just now, the others long ago
LIVE, IDLE_S = 100, 20


def say(what, ours, peer, theirs):
    print(f"{what:<44} {ours:>14}   {peer:<36} {theirs:>12}", flush=True)


def cpu_ms(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e6


def rss_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS:"))


def timed(*command):
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1e3


# --- the queue -----------------------------------------------------------------------------------

class Helper:
    """A helper, spoken to as lbd does."""

    def __init__(self, name="lbd-slurm"):
        self.process = subprocess.Popen([f"{BUILD}/{name}", str(os.getpid())],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, **request):
        self.process.stdin.write(json.dumps({"id": 1, **request}).encode() + b"\n")
        self.process.stdin.flush()
        while True:             # what is no JSON is a row
            answer = self.process.stdout.readline()
            if answer[:1] == b"{" and b'"acting"' not in answer[:40]:
                return answer


def fill_queue(helper):
    for i in range(JOBS):
        answer = helper.ask(op="submit", name=f"lb-x-{i}", comment=f"lbd1:{LEDGER_ID}:{i:032x}",
                            script="#!/bin/sh\ntrue\n", env=["A=1"],
                            fields={"work_dir": "/tmp"})
        if b'"ok"' not in answer:
            sys.exit(f"submitting job {i}: {answer.decode()}")


class LoadJobs:
    """libslurm without lbd-slurm: the least that a poll can take."""

    def __init__(self):
        linked = subprocess.run(["ldd", f"{BUILD}/lbd-slurm"], stdout=subprocess.PIPE, text=True,
                                check=True).stdout.splitlines()
        library = next(line.split()[2] for line in linked if "libslurm" in line)
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load_jobs.py")
        self.process = subprocess.Popen([sys.executable, script, library],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask()              # what the first one loads besides is not asked for

    def ask(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        if not self.process.stdout.readline():
            sys.exit("libslurm alone cannot load the jobs")


def cpu_of(process, work):
    before = cpu_ms(process.pid)
    answer = work()
    return cpu_ms(process.pid) - before, answer


def poll(helper):
    """All records anew, as after a change of each. slurmctld's own part is not ours."""
    times, alone, bare = [], [], LoadJobs()
    for _ in range(POLLS):
        taken, answer = cpu_of(helper.process, lambda: helper.ask(op="poll", have=0))
        times.append(taken)
        alone.append(cpu_of(bare.process, bare.ask)[0])
    bare.process.stdin.close()
    count = json.loads(answer)["rows"]
    usage = []
    for _ in range(POLLS):
        before = os.times()
        subprocess.run(["squeue", "-h"], stdout=subprocess.DEVNULL, check=True)
        after = os.times()
        usage.append((after.children_user + after.children_system -
                      before.children_user - before.children_system) * 1e3)
    say(f"poll of {count:,} jobs, CPU of lbd-slurm", f"{statistics.median(times):.0f} ms",
        "squeue -h of the same, CPU", f"{statistics.median(usage):.0f} ms")
    say("the same", f"{statistics.median(times):.1f} ms", "slurm_load_jobs alone, CPU",
        f"{statistics.median(alone):.1f} ms")


def poll_both_ways(library):
    """The same poll by libslurm and by commands, taking turns: from question to answer."""
    ways = {library: [], Helper("lbd-slurm-commands"): []}
    for _ in range(POLLS):
        for helper, times in ways.items():
            start = time.perf_counter()
            count = json.loads(helper.ask(op="poll", have=0))["rows"]
            times.append((time.perf_counter() - start) * 1e3)
    by_library, by_commands = (statistics.median(times) for times in ways.values())
    say(f"poll of {count:,} jobs by commands", f"{by_commands:.0f} ms", "by libslurm",
        f"{by_library:.0f} ms")


def poll_in_lbd(pid):
    """The jobs belong to another ledger: lbd reads each, and keeps none. Between polls one changes."""
    helper = subprocess.run(["pgrep", "-P", str(pid), "lbd-slurm"], stdout=subprocess.PIPE,
                            check=True).stdout.split()[0].decode()
    before, polls = cpu_ms(pid) + cpu_ms(helper), 6
    for i in range(polls):
        subprocess.run(["scontrol", "update", "JobId=7", f"TimeLimit={i + 10}"], check=True)
        time.sleep(1.0)
    share = (cpu_ms(pid) + cpu_ms(helper) - before) / polls
    say("one poll a second: lbd and lbd-slurm, CPU", f"{share:.0f} ms", "budget", "30 ms")


# --- the ledger ----------------------------------------------------------------------------------

def configure(text):
    with open(HOME + "/lbd.toml", "w", encoding="ascii") as file:
        # The logs of ended runs are looked after in the background, each once: here all at once.
        file.write(text + "[runs]\ncompress_logs = 0\n")


class Lbd:
    def __init__(self):
        ready, start = os.pipe(), time.perf_counter()
        self.process = subprocess.Popen(
            [BUILD + "/lbd", "--foreground", "--home", HOME, "--ready-fd", str(ready[1])],
            pass_fds=[ready[1]], stderr=subprocess.DEVNULL)
        os.close(ready[1])
        if not os.read(ready[0], 1):
            sys.exit("lbd did not start")
        self.start_ms = (time.perf_counter() - start) * 1e3
        os.close(ready[0])

    def stop(self):
        self.process.terminate()
        self.process.wait()


def add_runs(count):
    """Completed runs with an attempt each, put in behind lbd's back while it is not there."""
    now = int(time.time() * 1000)
    db = sqlite3.connect(HOME + "/ledger.db")
    have = db.execute("select count(*) from runs").fetchone()[0]
    runs = [c[1] for c in db.execute("pragma table_info(runs)")]
    like = dict(zip(runs, db.execute("select * from runs limit 1").fetchone()))
    attempts = [c[1] for c in db.execute("pragma table_info(attempts)")]
    trial = dict(zip(attempts, db.execute("select * from attempts limit 1").fetchone()))
    for i in range(have, count):
        like.update(id=i + 1000, name=f"run-{i}", dir=f"{HOME}/runs/run-{i}",
                    ended_ms=now - i * 1000 - (0 if i < RECENT else 90 * 86_400_000))
        trial.update(id=i + 1000, run_id=i + 1000, token=f"{i:032x}")
        for table, row in (("runs", like), ("attempts", trial)):
            db.execute(f"insert into {table} ({','.join(row)}) values ({','.join('?' * len(row))})",
                       list(row.values()))
    db.commit()
    db.close()


def ledgers(lbd):
    subprocess.run(["lbctl", "submit", "--name", "first", "--set", "run.scheduler=local", "--",
                    "true"], stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["lbctl", "wait", "first"], stdout=subprocess.DEVNULL, check=True)
    lbd.stop()
    add_runs(10_000)
    lbd = Lbd()
    ours = [timed("lbctl", "ls") for _ in range(LOOKS)]
    every = [timed("lbctl", "ls", "--all") for _ in range(LOOKS)]
    peer = [timed("squeue", "-h") for _ in range(LOOKS)]
    squeue = f"{statistics.median(peer):.0f} ms"
    say("lbctl ls, 10,000 runs in the ledger", f"{statistics.median(ours):.1f} ms",
        "squeue, 10,000 jobs (budget 30)", squeue)
    say("lbctl ls --all, 10,000 lines", f"{statistics.median(every):.0f} ms",
        "squeue, 10,000 jobs", squeue)
    time.sleep(8)               # what the answers took goes back with the next renewal of the lease
    say("lbd resident, 10,000 runs, 10,000 jobs seen", f"{rss_mb(lbd.process.pid):.1f} MB",
        "slurmctld (budget 25 MB)", f"{rss_mb(SLURMCTLD):.1f} MB")
    poll_in_lbd(lbd.process.pid)
    lbd.stop()
    add_runs(100_000)
    lbd = Lbd()
    say("start of lbd, 100,000 runs in the ledger", f"{lbd.start_ms:.0f} ms", "budget", "1000 ms")
    return lbd


def idle(lbd):
    """A hundred runs that train without a word, and lbd's own intervals."""
    lbd.stop()
    configure("")
    lbd = Lbd()
    for i in range(LIVE):
        subprocess.run(["lbctl", "submit", "--name", f"live-{i}", "--set", "run.scheduler=local",
                        "--", "sleep", "600"], stdout=subprocess.DEVNULL, check=True)
    time.sleep(5)
    pid = lbd.process.pid
    before, theirs = cpu_ms(pid), cpu_ms(SLURMCTLD)
    time.sleep(IDLE_S)
    say(f"lbd with {LIVE} live runs, idle", f"{(cpu_ms(pid) - before) / IDLE_S / 10:.2f} % CPU",
        "slurmctld meanwhile (budget 0.3 %)",
        f"{(cpu_ms(SLURMCTLD) - theirs) / IDLE_S / 10:.2f} % CPU")
    subprocess.run(["lbctl", "kill", "--now"] + [f"live-{i}" for i in range(LIVE)],
                   stdout=subprocess.DEVNULL, check=True)
    return lbd


def main():
    configure('[poll]\ninterval = "1s"\nidle_interval = "1s"\n')
    helper = Helper()
    fill_queue(helper)
    poll(helper)
    poll_both_ways(helper)
    lbd = ledgers(Lbd())
    idle(lbd).stop()


main()
