#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""chaos.py SECONDS SEED - whatever can break breaks, in an order that nobody chose.

Called by tests/system/chaos.t, with the environment of faults.py. People submit runs and meddle with
them in one thread; another one draws faults from SEED and lets them overlap. Then all is mended,
every run comes to its end, and witnesses alone judge: what the trainers wrote down, what people were
told, what Slurm ran, which processes are left. No code of lbd is asked; history.py has the rules.

SEED draws what happens and when; how far lbd is at that moment is the machine's affair, so a
seed that found something is worth some tries. T/chaos.log says what was done, in order.

Environment, beside that: DISK=own when LB_HOME is a small file system that may be filled;
FAULTS, the names of the only faults to draw."""
import concurrent.futures, errno, os, random, re, signal, sqlite3, subprocess, sys, threading, time

import stage
from stage import (CLUSTER, FINAL, HOME, T, WITNESS, Lbd, Traffic, ask, await_true, cluster,
                   configure, end_all, judge, note, shows, states, submit, switch)

SECONDS, SEED = float(sys.argv[1]), int(sys.argv[2])
BEGUN = time.monotonic()
NOBODY, MISSED = "nobody there", "no "    # a fault that met nobody is no fault
LONG_S = 300            # a cold start costs the runs that it forgets three minutes
ended = threading.Event()


def is_over():
    return ended.is_set() or time.monotonic() > BEGUN + SECONDS


def say(text):
    with open(f"{T}/chaos.log", "a") as log:
        log.write(f"{time.monotonic() - BEGUN:8.3f} {stage.now_ms()} {text}\n")


# --- whom to hit ----------------------------------------------------------------------------------
def words_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as line:
            return line.read().decode(errors="replace").split("\0")
    except OSError:                     # it has ended meanwhile
        return []


def processes(program):
    """Those of this test, found by their command lines: a job's script lies in Slurm's own spool."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in pids for words in [words_of(pid)]
            if any(T in word for word in words) and
            any(os.path.basename(word) == program for word in words[:4])]


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as pids:
            return [int(child) for child in pids.read().split()]
    except OSError:
        return []


def kill_one(dice, pids):
    if not pids:
        return NOBODY
    pid = dice.choice(pids)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return f"{pid} was gone"
    return f"kill -9 {pid}"


# --- lbd, and who starts it again as systemd would ----------------------------------------------------
class Keeper:
    def __init__(self):
        self.lbd, self.stopped, self.away_until = Lbd(), False, 0
        self.thread = threading.Thread(target=self.keep)
        self.thread.start()

    def keep(self):
        while not self.stopped:
            if self.lbd.is_dead() and time.monotonic() > self.away_until:
                self.lbd = Lbd(may_fail=True)
                say(f"lbd {self.lbd.process.pid} {'is up' if self.lbd.is_ready else 'is refused'}")
            time.sleep(0.05)

    def stop(self):
        self.stopped = True
        self.thread.join()
        if not self.lbd.is_dead():
            self.lbd.kill()


# --- faults: each says what it did ----------------------------------------------------------------
def fault_lbd(dice, keeper):
    keeper.away_until = time.monotonic() + dice.random() ** 2 * 4
    return kill_one(dice, [keeper.lbd.process.pid])


def fault_helper(dice, keeper):
    return kill_one(dice, children(keeper.lbd.process.pid))


def shepherds():
    """lbrun is two processes: the guard has lbrun as its child, the shepherd the trainer."""
    pids = processes("lbrun")
    guards = [pid for pid in pids if set(children(pid)) & set(pids)]
    return guards, [pid for pid in pids if pid not in guards]


def fault_lbrun(dice, _):
    return kill_one(dice, shepherds()[1])


def fault_guard(dice, _):
    return kill_one(dice, shepherds()[0])


def fault_copy(dice, _):
    """Slurm runs a job twice: a second lbrun, in the same words and environment, comes to a live attempt."""
    pids = shepherds()[1]
    if not pids:
        return NOBODY
    pid = dice.choice(pids)
    try:
        with open(f"/proc/{pid}/environ", "rb") as block:
            env = dict(row.split(b"=", 1) for row in block.read().split(b"\0") if b"=" in row)
        subprocess.Popen(words_of(pid)[:-1], env=env, cwd="/", stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except (OSError, IndexError):
        return f"{pid} was gone"
    return f"{pid} has a copy"


def fault_trainer(dice, _):
    return kill_one(dice, processes("trainer.py"))


def restart_controller(dice, *options):
    cluster("signal", "slurmctld", "KILL")
    time.sleep(dice.random() ** 2 * 3)
    cluster("start-ctld", *options)


def fault_controller(dice, _):
    restart_controller(dice)
    return "slurmctld killed, started"


def fault_young_job(dice, _):
    """slurmctld dies in the first five seconds of a job, several times."""
    times = dice.randint(1, 3)
    for n in range(times):
        before = set(shows("squeue", "-h", "-t", "R", "-o", "%A").split())
        end = time.monotonic() + 10
        while time.monotonic() < end and not is_over():
            if set(shows("squeue", "-h", "-t", "R", "-o", "%A").split()) - before:
                break
            time.sleep(0.05)
        time.sleep(dice.random() * 5)
        restart_controller(dice)
    return f"slurmctld killed in the first seconds of a job, {times} times"


def fault_cold(dice, _):
    restart_controller(dice, "-c")
    return "slurmctld started cold: every job forgotten"


def fault_node(dice, _):
    """slurmd dies; its trainers live on, and Slurm gives the node up, or does not notice."""
    node, is_given_up = dice.choice(("n1", "n2")), dice.random() < 0.5
    cluster("kill-node", node)
    if is_given_up:             # as Slurm does by itself after SlurmdTimeout
        shows("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")
    time.sleep(dice.random() * 4)
    cluster("start-node", node)
    if is_given_up:
        shows("scontrol", "update", f"nodename={node}", "state=resume")
    return f"slurmd of {node} killed, started{', its jobs given up' if is_given_up else ''}"


def fault_frozen(dice, _):
    daemon, seconds = dice.choice(("slurmctld", "munged")), dice.random() * 5
    cluster("signal", daemon, "STOP")
    try:
        time.sleep(seconds)
    finally:
        cluster("signal", daemon, "CONT")
    return f"{daemon} frozen for {seconds:.1f} s"


def fault_disk(dice, _):
    seconds, filler = dice.random() * 5, f"{HOME}/filler"
    try:
        with open(filler, "wb", buffering=0) as file:
            while file.write(b"x" * 65536):
                pass
    except OSError as full:
        assert full.errno == errno.ENOSPC, full
    time.sleep(seconds)
    os.path.exists(filler) and os.unlink(filler)
    return f"disk full for {seconds:.1f} s"


def faults():
    """name → (weight, function)"""
    table = {"lbd": (8, fault_lbd), "helper": (3, fault_helper), "lbrun": (4, fault_lbrun),
             "guard": (4, fault_guard), "trainer": (5, fault_trainer), "copy": (3, fault_copy),
             "controller": (2, fault_controller), "young-job": (2, fault_young_job),
             "node": (3, fault_node), "frozen": (2, fault_frozen)}
    if SECONDS >= LONG_S:
        table["cold"] = (0.3, fault_cold)
    if os.environ.get("DISK") == "own":
        table["disk"] = (2, fault_disk)
    only = os.environ.get("FAULTS")
    return {name: row for name, row in table.items() if not only or name in only.split()}


SLURM = ("controller", "young-job", "cold", "node", "frozen")


def break_things(dice, keeper, done, names):
    """One fault after the other; what breaks Slurm takes its time, so that is a row of its own."""
    table = {name: row for name, row in faults().items() if name in names}
    weights = [weight for weight, _ in table.values()]
    while table and not is_over():
        name = dice.choices(list(table), weights)[0]
        time.sleep(dice.random() ** 2 * 3)
        say(f"fault {name} …")
        said = table[name][1](dice, keeper)
        say(f"fault {name}: {said}")
        done.append(name if said != NOBODY else MISSED + name)


# --- people ---------------------------------------------------------------------------------------
def leave_switch(dice, run):
    level = dice.choice(("kill", "hold", "stop", "save"))
    note("ask", level, run)
    switch(run, level)
    note("ack", level, run)             # the file is there: that is the order
    say(f"order: a file {run}.{level}")


class People(Traffic):
    """Runs of a second, and runs of ten, which are there when something breaks; some are arrays."""
    def new(self, **more):
        return super().new(steps=self.random.choice((10, 40, 120)),
                           tasks=self.random.choice((0, 0, 0, 2, 4)), **more)


def live_among_it(dice):
    traffic = People("x", most=6, seed=dice.random())
    while not is_over():
        try:
            if dice.random() < 0.06:
                run = traffic.pick(states(), "running", "queued")
                run and leave_switch(dice, run)
            elif dice.random() < 0.06:
                run = traffic.pick(states(), "running", "queued", "backoff")
                run and ask("stop", run)
            else:
                traffic.turn()
        except OSError:
            pass                        # the disk is full: a file was not left
        time.sleep(dice.random() * 0.3)


# --- what is left, and who says so ----------------------------------------------------------------
def leftovers():
    jobs = [line for line in shows("squeue", "-h", "-o", "%A %j %T").splitlines() if "lb-" in line]
    alive = processes("lbrun") + processes("trainer.py")
    return jobs + [f"{pid} {' '.join(words_of(pid))[:200]}" for pid in alive]


def mend():
    try:
        os.unlink(f"{HOME}/filler")
    except FileNotFoundError:
        pass
    for daemon in shows(f"{stage.SRC}/etc/minicluster", "status", CLUSTER).splitlines():
        name, _, how = daemon.split()
        if how == "down" and name == "slurmctld":
            cluster("start-ctld")
        elif how == "down" and name.startswith("slurmd."):
            cluster("start-node", name.split(".")[1])


def two_at_once():
    """The trainers' own lock has told of two: no need to go on."""
    return [name[:-4] for name in os.listdir(WITNESS) if name.endswith(".log") and
            re.search(r" two \d+$", open(f"{WITNESS}/{name}").read(), re.M)]


def story(run):
    """All that was written down about a run, or the task of an array."""
    for name, path in (("its trainers", f"{WITNESS}/{run}.log"), ("orders", f"{WITNESS}/orders.log")):
        lines = open(path).read().splitlines() if os.path.exists(path) else []
        print(f"--- {run}: {name}")
        print("\n".join(line for line in lines if name != "orders" or line.endswith(" " + run)))
    run = run.partition("_")[0]
    print(f"--- {run}: events")
    db = sqlite3.connect(f"file:{HOME}/ledger.db?mode=ro&immutable=1", uri=True)
    for row in db.execute("SELECT e.time_ms, e.kind, e.text FROM events e JOIN runs r "
                          "ON r.id = e.run_id WHERE r.name = ? ORDER BY e.id", (run,)):
        print(*row)
    jobs = {row[0] for row in db.execute("SELECT a.job_id FROM attempts a JOIN runs r ON r.id = a.run_id "
                                         "WHERE r.name = ? AND a.job_id > 0", (run,))}
    for job in sorted(jobs):
        story_of_job(db, job)


def story_of_job(db, job):
    """A number may have been given twice, by a controller that forgot the first."""
    print(f"--- job {job}: whose")
    for row in db.execute("SELECT r.name, a.number, a.state, a.cause FROM attempts a JOIN runs r "
                          "ON r.id = a.run_id WHERE a.job_id = ? ORDER BY a.id", (job,)):
        print(*row)
    print(f"--- job {job}: Slurm's words")
    for name in sorted(os.listdir(f"{CLUSTER}/log")):
        with open(f"{CLUSTER}/log/{name}", errors="replace") as lines:
            print("".join(f"{name}: {line}" for line in lines
                          if re.search(rf"\b(JobId=|job |\[){job}\b|slurmctld version", line)), end="")


def disturb(done):
    keeper, pool = Keeper(), concurrent.futures.ThreadPoolExecutor()
    rows = [pool.submit(live_among_it, random.Random(f"{SEED} people"))]
    for part, names in (("slurm", SLURM), ("programs", faults().keys() - set(SLURM))):
        dice = random.Random(f"{SEED} {part}")
        rows.append(pool.submit(break_things, dice, keeper, done, names))
    try:
        while not is_over() and not any(row.done() and row.exception() for row in rows):
            if two_at_once():
                ended.set()
            time.sleep(0.5)
        for row in rows:
            row.result()        # what went wrong in there goes wrong here
    finally:
        ended.set()
        pool.shutdown()
        keeper.stop()
        mend()


def blanks(done):
    """Faults that were tried again and again, and met nobody: that is a fault of this program. On a busy
    machine four tries of five come between two launches."""
    tried = {name.removeprefix(MISSED) for name in done}
    return [f"BROKEN chaos: {done.count(MISSED + name)} times {name}, and never met anybody"
            for name in sorted(tried) if done.count(MISSED + name) >= 40 and name not in done]


def verdict():
    """(lines about what is broken, the counts of history.py)"""
    twice = two_at_once()
    if twice:
        return [f"BROKEN {run}: TWO TRAINERS: its lock was taken" for run in twice], {}
    left = []
    status = end_all(lambda: await_true("nothing is left running", lambda: not leftovers(), 60))
    if status != 0:
        left.append("BROKEN lbd: it did not end well")
    seen = judge()
    counts = dict(re.findall(r"(\w+)=(\d+)", seen.splitlines()[-1]))
    return left + [line for line in seen.splitlines() if line.startswith("BROKEN")], counts


def main():
    os.makedirs(WITNESS, exist_ok=True)
    configure()
    print(f"chaos: seed={SEED}", flush=True)
    done, problems, counts = [], [], {}
    try:
        disturb(done)
        problems, counts = verdict()
        problems += blanks(done)
    except (SystemExit, OSError, AssertionError) as end:
        problems = [f"BROKEN chaos: {end}", *(f"  left: {line}" for line in leftovers())]
    for run in sorted({p.split()[1].rstrip(":") for p in problems if p.startswith("BROKEN")}):
        story(run)
    if problems:
        print("--- what happened\n" + open(f"{T}/chaos.log").read())
        print("\n".join(problems))
    kinds = ", ".join(f"{name} {done.count(name)}" for name in sorted(set(done)))
    done = [name for name in done if not name.startswith(MISSED)]
    print(f"chaos: faults were: {kinds}")
    print(f"chaos: minutes={(time.monotonic() - BEGUN) / 60:.1f} seed={SEED} faults={len(done)} "
          f"runs={counts.get('runs', 0)} launches={counts.get('launches', 0)} "
          f"steps={counts.get('steps', 0)} orders={counts.get('orders', 0)} "
          f"violations={sum(p.startswith('BROKEN') for p in problems)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
