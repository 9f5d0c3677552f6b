# SPDX-License-Identifier: MIT
"""stage.py - what all faults play on: lbd, people and their runs, Slurm; and how a part ends.

Environment: as faults.py says."""
import atexit, json, os, random, select, signal, sqlite3, subprocess, sys, time

T, B, HOME, SRC = (os.environ[name] for name in ("T", "B", "LB_HOME", "SRC"))
CLUSTER = os.environ.get("CLUSTER", "")
LBD = os.environ.get("FAULTS_LBD", f"{B}/lbd")
LBRUN = os.environ.get("FAULTS_LBRUN", f"{B}/lbrun")
ASKER = os.environ.get("LB_ASKER", f"{B}/lbctl")        # as in lib.sh
WITNESS = f"{HOME}/witness"
SCHEDULER = os.environ.get("SCHEDULER", "slurm")        # local: those faults that need no Slurm
DEADLINE_S = 600                # for anything that must happen; a loaded machine is slow
SETTLE_S = 900                  # for all runs to end: a job that is lost in silence takes three minutes
BEGUN = time.monotonic()
FINAL = ("completed", "failed", "killed")


def now_ms():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000


def await_true(what, condition, seconds=DEADLINE_S, pause_s=None):
    """Without a pause it looks less often the longer it takes: a look may start a program."""
    begin = time.monotonic()
    end = begin + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise SystemExit(f"within {seconds} s: {what}")
        time.sleep(pause_s or max(0.02, min(0.25, (time.monotonic() - begin) / 8)))


CONFIG = """[poll]
interval = "200ms"
idle_interval = "1s"
spool_interval = "100ms"
deadline = "2s"
[nodes]
max_excluded = 0
[notify]
hook = ["true"]
[runs]
lbrun = "%s"
"""


def configure(lbrun=LBRUN):
    with open(f"{HOME}/lbd.toml", "w") as config:
        config.write(CONFIG % lbrun)


# --- lbd ----------------------------------------------------------------------------------------
class Lbd:
    """The daemon under test; `front` is put before it, `env` added to its environment."""
    def __init__(self, env=None, front=(), may_fail=False):
        reads, writes = os.pipe()
        self.log = open(f"{T}/lbd.log", "ab")
        self.process = subprocess.Popen(
            [*front, LBD, "--foreground", "--home", HOME, "--ready-fd", str(writes)],
            pass_fds=(writes,), stdout=self.log, stderr=self.log, env={**os.environ, **(env or {})})
        atexit.register(self.process.kill)
        os.close(writes)
        if not select.select([reads], [], [], DEADLINE_S)[0]:
            raise SystemExit("lbd hangs at its start")
        self.is_ready = os.read(reads, 1) == b"\n"      # or its end
        os.close(reads)
        if not self.is_ready and not env and not may_fail:
            raise SystemExit("lbd did not start; see its log")

    def is_dead(self):
        return self.process.poll() is not None

    def end(self, signo=signal.SIGTERM):
        if not self.is_dead():
            self.process.send_signal(signo)
        try:
            return self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise SystemExit("lbd did not end")
        finally:
            self.log.close()

    def kill(self):
        self.end(signal.SIGKILL)

    def again(self):
        self.kill()
        return Lbd()


# --- people -------------------------------------------------------------------------------------
def lbctl(*args, program=f"{B}/lbctl"):
    """(acknowledged?, what it printed); lbd may die in the middle of it"""
    try:
        done = subprocess.run([program, *args], capture_output=True, text=True,
                              timeout=DEADLINE_S)
        return done.returncode == 0, done.stdout
    except subprocess.TimeoutExpired:
        return False, ""


def states():
    ok, text = lbctl("ls", "--all", "--json", program=ASKER)
    return {run["name"]: run["state"] for run in json.loads(text)} if ok and text else {}


def live():
    return sum(state not in FINAL for state in states().values())


def await_state(run, *wanted):
    return await_true(f"{run} is {' or '.join(wanted)}", lambda: states().get(run) in wanted)


def note(kind, verb, run):
    with open(f"{WITNESS}/orders.log", "a") as log:
        log.write(f"{now_ms()} {kind} {verb} {run}\n")


def ask(verb, run, *args):
    """An order, with what was asked and what was acknowledged written down."""
    note("ask", verb, run)
    ok, _ = lbctl(verb, run, *args)
    if ok:
        note("ack", verb, run)
    return ok


def as_script(run, tasks, command):
    """The same as a batch script with an array of so many tasks, which end one after the other."""
    path = f"{T}/{run}.sh"
    with open(path, "w") as script:
        script.write(f"#!/bin/sh\n#SBATCH --array=1-{tasks} --chdir={T}\nexec {' '.join(command)}\n")
    return path


def submit(run, scheduler=SCHEDULER, steps=12, pause_ms=60, variables=(), sets=(), tasks=0):
    steps = f"$(({steps} / SLURM_ARRAY_TASK_ID))" if tasks else str(steps)
    command = ["env", f"LB_CLIENT={SRC}/docs", *variables, "python3", "-S",
               f"{SRC}/tests/faults/trainer.py", WITNESS, steps, str(pause_ms)]
    settings = ["checkpoint.pattern=step-{step}", "checkpoint.complete_when=complete",
                "restart.max_without_progress=100000", "restart.backoff_first=1s",
                "restart.backoff_max=2s", "watch.kill_grace=2s", "watch.stop_grace=10s",
                f"run.scheduler={scheduler}", *sets]
    settings += [] if tasks else [f"run.workdir={HOME}"]
    what = [as_script(run, tasks, command)] if tasks else ["--", *command]
    note("ask", "submit", run)
    options = [word for setting in settings for word in ("--set", setting)]
    ok, _ = lbctl("submit", "--name", run, *options, *what)
    if ok:
        note("ack", "submit", run)
    return ok


def switch(run, level):
    path = f"{HOME}/switches/{run}.{level}"
    if os.path.exists(path):
        os.unlink(path)
    open(path, "w").close()


def take_away(run, level):
    """Where lbctl finds lbd dead it leaves a switch, and a switch is stronger than a release."""
    try:
        os.unlink(f"{HOME}/switches/{run}.{level}")
    except FileNotFoundError:
        pass


class Traffic:
    """Runs that come, are meddled with, and end, while something else goes wrong."""
    def __init__(self, prefix, scheduler=SCHEDULER, most=5, seed=1):
        self.prefix, self.scheduler, self.most = prefix, scheduler, most
        self.random, self.made, self.held = random.Random(seed), 0, set()

    def new(self, **more):
        self.made += 1
        name = f"{self.prefix}{self.made}"
        crash = ("CRASH_AT=7",) if self.made % 3 == 0 else ()
        submit(name, self.scheduler, variables=crash, **more)
        return name

    def pick(self, known, *wanted):
        names = [n for n, s in known.items() if s in wanted and n.startswith(self.prefix)]
        return self.random.choice(names) if names else None

    def order(self, verb, known):
        live = ("running", "queued", "submitting", "backoff")
        if verb == "release":
            run = self.pick(known, "held") or (self.held and self.random.choice(sorted(self.held)))
        else:
            run = self.pick(known, *{"save": ("running",), "restart": ("killed",)}.get(verb, live))
        if not run:
            return
        now = ("--now",) if verb == "kill" and self.random.random() < 0.3 else ()
        ask(verb, run, *now)
        if verb == "hold":
            self.held.add(run)
        elif verb in ("release", "kill"):
            self.held.discard(run)

    def remove(self, known):
        """A run that nobody trains is made, ended and removed, one step a turn."""
        name = "x-" + self.prefix
        if name not in known:
            lbctl("submit", "--hold", "--name", name, "--", "true")
        elif known[name] in FINAL:
            lbctl("rm", "--yes", name)
        else:
            ask("kill", name)

    def turn(self, *verbs):
        """One more run if there is room, and one of these orders (or a random one, at times)."""
        known = states()
        if sum(s not in FINAL and s != "held" for s in known.values()) < self.most:
            self.new()
            known = states()
        if not verbs and self.random.random() < 0.4:
            verbs = (self.random.choice(("kill", "hold", "release", "release", "restart", "save")),)
        for verb in verbs:
            if verb == "new-kill":
                ask("kill", self.new())
            elif verb == "stray":
                leave_stray()
            elif verb == "remove":
                self.remove(known)
            elif verb == "switch":
                switch(self.pick(known, "running") or "ALL", "save")
            else:
                self.order(verb, known)
        time.sleep(0.03)        # orders come from people


# --- Slurm --------------------------------------------------------------------------------------
def cluster(*args):
    subprocess.run([f"{SRC}/etc/minicluster", args[0], CLUSTER, *args[1:]], check=True,
                   stdout=subprocess.DEVNULL)


def shows(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def mend_nodes():
    """A Slurm that has forgotten a job drains the node on which it finds it again, once it gives its
    number to another one; an administrator brings the node back."""
    for node in set(shows("sinfo", "-h", "-N", "-t", "drain", "-o", "%N").split()):
        shows("scontrol", "update", f"nodename={node}", "state=resume")


def leave_stray():
    """A late copy of a submission: held, with this ledger's mark and a token of nobody."""
    db = sqlite3.connect(f"file:{HOME}/ledger.db?mode=ro&immutable=1", uri=True)
    mark = db.execute("SELECT value FROM meta WHERE key = 'ledger_id'").fetchone()[0]
    subprocess.run(["sbatch", "--hold", "--job-name=stray", f"--comment=lbd1:{mark}:{'0' * 32}",
                    "--output=/dev/null", "--wrap=true"], stdout=subprocess.DEVNULL, check=False)


# --- the end of a part ----------------------------------------------------------------------------
def end_all(look=None):
    """No more faults: every run comes to its end; then look(), and lbd ends: its exit status."""
    lbd = Lbd()

    def is_over():
        if SCHEDULER == "slurm":
            mend_nodes()
        known = states()
        for run, state in known.items():
            if state == "held":
                take_away(run, "hold")
                ask("release", run)
        return known and all(state in FINAL for state in known.values())
    try:
        await_true("every run is over", is_over, SETTLE_S, 0.2)
    finally:
        left = {run: state for run, state in states().items() if state not in FINAL}
        if left:
            print("still live:", left)
            for run in left:
                print(lbctl("status", run)[1], lbctl("events", run)[1])
    if look:
        look()
    return lbd.end()


def judge():
    """What history.py has to say; the counts stand in the last line."""
    seen = subprocess.run([sys.executable, f"{SRC}/tests/faults/history.py", HOME, WITNESS,
                           f"{CLUSTER}/log/jobcomp.txt"], stdout=subprocess.PIPE, text=True,
                          check=False)
    return seen.stdout


def settle(part, did):
    """The end of a part: all runs over, lbd ended well, and the history is looked at."""
    if end_all() != 0:
        raise SystemExit("lbd did not end well")
    seen = judge()
    print(seen, end="")
    counts = seen.splitlines()[-1].split(": ")[1]
    tabulate(part, did, counts)
    return 0 if counts.endswith("violations=0") else 1


def tabulate(part, did, found=""):
    with open(f"{T}/table", "a") as table:
        table.write(f"{part:<7}{time.monotonic() - BEGUN:5.0f} s  {did:<58} {found}\n")
