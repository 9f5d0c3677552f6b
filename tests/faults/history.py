#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""history.py HOME WITNESS [JOBCOMP] - did the real programs keep their promises?

Holds three records against each other, none of which knows of the others:
  HOME/ledger.db      what lbd believes (lbd must be down)
  WITNESS/RUN.log     what each trainer did, written by itself (trainer.py tells how); of an array
                      each task has its own, RUN_TASK.log
  WITNESS/orders.log  what people asked for and were told: TIME_MS ask|ack VERB RUN
  JOBCOMP             what Slurm ran (jobcomp/filetxt) beside WITNESS, if there was a Slurm
It shares no code with the programs. Prints one line for each broken promise, then the counts; exit
status 1 when something is broken."""
import collections, datetime, json, os, re, sqlite3, sys

LATE_MS = 10000         # what was started when a kill was acknowledged may still show up so long
FINAL = ("completed", "failed", "killed")
broken = []


def violation(run, text):
    broken.append(f"{run}: {text}")


# --- the records ------------------------------------------------------------------------------
Line = collections.namedtuple("Line", "ms attempt launch pid word step")
Order = collections.namedtuple("Order", "ms kind verb run")


def read_witness(folder):
    lines = collections.defaultdict(list)
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".log") or name == "orders.log":
            continue
        for text in open(f"{folder}/{name}"):
            ms, attempt, launch, pid, word, step = text.split()
            numbers = (int(n) for n in (ms, attempt, launch, pid))
            lines[name[:-4]].append(Line(*numbers, word, int(step)))
    return lines


def tasks_of(witness, runs):
    """run → task → lines: what is of arrays is taken out of `witness`."""
    tasks = collections.defaultdict(dict)
    for name in [name for name in witness if name not in runs]:
        run, _, task = name.rpartition("_")
        if run in runs:
            tasks[run][task] = witness.pop(name)
    return tasks


def read_orders(folder):
    try:
        texts = open(f"{folder}/orders.log").read().splitlines()
    except FileNotFoundError:
        texts = []
    return [Order(int(ms), kind, verb, run) for ms, kind, verb, run in map(str.split, texts)]


def read_jobs(path, home):
    """(name, job id, start, end) of every job that was ever given a node; ours work in HOME. The
    first end counts: a slurmctld that was killed runs, or ends, again what it had not saved."""
    first = {}
    for text in open(path) if path and os.path.exists(path) else ():
        # JobId=2 … Name=lb-… StartTime=2026-11-21T08:00:01 EndTime=… NodeList=n1 …
        f = dict(re.findall(r"(\w+)=(\S+)", text))
        if f["WorkDir"] == home and "null" not in f["NodeList"] and f["StartTime"][:2] == "20":
            times = (datetime.datetime.fromisoformat(f[k]) for k in ("StartTime", "EndTime"))
            first.setdefault((f["Name"], int(f["JobId"])), [t.timestamp() for t in times])
    return [(*job, *times) for job, times in first.items()]


class Ledger:
    def __init__(self, home):
        path = f"{home}/ledger.db"
        if os.path.exists(path + "-wal"):
            sys.exit(f"{path}: somebody died in the middle of a write: start and stop lbd first")
        self.db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        self.db.row_factory = sqlite3.Row
        self.runs = {r["name"]: r for r in self.all("SELECT * FROM runs")}

    def all(self, sql, *values):
        return self.db.execute(sql, values).fetchall()

    def of_run(self, table, run):
        return self.all(f"SELECT * FROM {table} WHERE run_id = ? ORDER BY id", self.runs[run]["id"])


# --- the promises -------------------------------------------------------------------------------
def check_ledger(ledger):
    for row in ledger.all("PRAGMA integrity_check"):
        if row[0] != "ok":
            violation("ledger", row[0])
    for row in ledger.all("PRAGMA foreign_key_check"):
        violation("ledger", f"a row of {row[0]} refers to nothing")


def check_not_lost(ledger, orders):
    """A submission that was acknowledged has reached its end."""
    for o in orders:
        if o.kind == "ack" and o.verb == "submit" and o.run not in ledger.runs:
            violation(o.run, "LOST: acknowledged, and not in the ledger")
    for name, run in ledger.runs.items():
        if run["state"] not in FINAL:
            violation(name, f"LOST: still {run['state']} at the end ({run['text']})")
        elif run["state"] == "failed":
            violation(name, f"LOST: given up: {run['text']}")


def check_alone(run, lines):
    """Each trainer's lines stand together: once another one has begun, the first is dead."""
    gone, now = set(), None
    for line in lines:
        who = (line.attempt, line.launch, line.pid)
        if line.word == "two" or who in gone:
            violation(run, f"TWO TRAINERS: attempt {line.attempt} launch {line.launch} "
                           f"pid {line.pid} says {line.word} {line.step} beside {now}")
        elif who != now:
            gone.add(now)
            now = who


def told(lines):
    """launch → (steps that lbrun may have, how many of them it has for sure), in order of starts"""
    launches = {}
    for line in lines:
        sent, acked = launches.setdefault((line.attempt, line.launch), ([], [0]))
        if line.word == "send":
            sent.append(line.step)
        elif line.word == "refused":
            sent.pop()
        elif line.word == "ack":
            acked[0] = len(sent)
    return {who: (sent, acked[0]) for who, (sent, acked) in launches.items() if sent}


def check_progress(run, lines, ledger, numbers):
    """Every line that lbrun took is in the ledger, once, in order; nothing else is."""
    stored = collections.defaultdict(list)
    for row in ledger.of_run("metrics", run):
        stored[numbers[row["attempt_id"]], row["launch"]].append(row["step"])
    expected = told(lines)
    for (attempt, launch), (sent, sure) in expected.items():
        got = stored.get((attempt, launch), [])
        if got != sent[:len(got)] or len(got) < sure:
            missing = [s for s in sent[:sure] if s not in got]
            violation(run, f"PROGRESS: attempt {attempt} launch {launch}: {sure} lines "
                           f"acknowledged, {len(got)} stored; missing {missing[:5]}, "
                           f"doubled {doubles(got)[:5]}")
    for who in stored.keys() - expected.keys():
        violation(run, f"PROGRESS: steps of a launch {who} that no trainer told of")
    order = [who for who in expected if who in stored]
    if list(stored) != order:
        violation(run, f"PROGRESS: launches out of order: {list(stored)}, not {order}")


def doubles(items):
    return [item for item, count in collections.Counter(items).items() if count > 1]


def check_records(run, lines, ledger, numbers):
    """lbrun's own records arrived once each, and none is missing."""
    launches = [(e["attempt"], e["text"].split(",")[0]) for e in ledger.of_run("events", run)
                if e["kind"] == "launch"]
    for attempt, text in doubles(launches):
        violation(run, f"PROGRESS: {text} of attempt {attempt} is told twice")
    for e in ledger.of_run("events", run):
        if e["kind"] in ("spool_gap", "spool_bad"):
            violation(run, f"PROGRESS: {e['kind']}: {e['text']}")


def check_resume(run, lines, events):
    """A trainer goes on from the newest complete checkpoint, but for those from which a launch failed
    before any new step: of such, that is told."""
    saved, begun = 0, {0}
    suspects = {int(step) for e in events if e["kind"] == "checkpoint_suspect"
                for step in re.findall(r"/step-(\d+): is suspect", e["text"])}
    for line in lines:
        if line.word == "saving":
            begun.add(line.step)
        elif line.word == "saved" and line.step not in suspects:
            saved = max(saved, line.step)
        elif line.word == "start" and (line.step < saved or line.step not in begun):
            violation(run, f"RESUME: attempt {line.attempt} launch {line.launch} goes on from step "
                           f"{line.step}, step {saved} was saved")


def check_end(run, row, orders, is_done):
    """Done means completed and the other way round."""
    asked = {o.verb for o in orders}
    if row["state"] == "completed" and not is_done:
        violation(run, "LOST: called completed, and its trainer never was")
    if row["state"] == "killed" and not asked & {"kill", "stop"}:
        violation(run, "LOST: killed, and nobody asked for it")


def check_killed(run, lines, orders):
    """A kill wins and lasts."""
    kills = [o.ms for o in orders if o.kind == "ack" and o.verb in ("kill", "stop")]
    if not kills or any(o.ms >= max(kills) for o in orders if o.verb == "restart"):
        return
    for line in lines:
        if line.word == "start" and line.ms > min(kills) + LATE_MS and not any(
                o.verb == "restart" and o.ms < line.ms for o in orders):
            violation(run, f"KILL: attempt {line.attempt} started {line.ms - min(kills)} ms late")


def has_done(lines):
    return any(line.word == "done" for line in lines)


def ended_well(attempt, task):
    try:
        with open(f"{attempt}/task-{task}/exit.json") as text:
            return json.load(text)["cause"] == "completed"
    except FileNotFoundError:
        return False


def check_task(name, lines, folder, task):
    """What completed in one attempt is not run again in the next."""
    done = [number for number in {line.attempt for line in lines}
            if ended_well(f"{folder}/attempts/{number}", task)]
    for line in lines:
        if line.word == "start" and done and line.attempt > min(done):
            violation(name, f"TASK: attempt {line.attempt} ran it, and attempt {min(done)} had completed it")


def check_tasks(run, row, orders, folder, tasks):
    """Of an array: tasks has the lines of each that began."""
    count = 0
    if os.path.exists(f"{folder}/tasks/all"):       # else none got so far as to tell
        with open(f"{folder}/tasks/all") as text:
            count = int(text.read())
    check_end(run, row, orders, sum(map(has_done, tasks.values())) == count > 0)
    for task, lines in tasks.items():
        name = f"{run}_{task}"
        check_alone(name, lines)
        check_resume(name, lines, [])
        check_killed(name, lines, orders)
        check_task(name, lines, folder, task)


def check_attempts(run, attempts):
    if [a["number"] for a in attempts] != list(range(1, len(attempts) + 1)):
        violation(run, f"attempts are numbered {[a['number'] for a in attempts]}")
    for a in attempts:
        if a["state"] != "ended":
            violation(run, f"LOST: attempt {a['number']} is still {a['state']}")


def check_jobs(jobs, ledger):
    """Whatever ran under Slurm was recorded first; and one job at a time."""
    by_name = {f"lb-{a['name']}-{a['token'][:12]}": a for a in ledger.all(
        "SELECT a.*, r.name FROM attempts a JOIN runs r ON r.id = a.run_id")}
    ran = collections.defaultdict(list)
    for name, job_id, start, end in jobs:
        attempt = by_name.get(name)
        if attempt is None:
            violation(name, f"TWO JOBS: job {job_id} ran, and no attempt has its token")
        elif attempt["job_id"] != job_id:
            violation(attempt["name"], f"TWO JOBS: job {job_id} ran for attempt "
                                       f"{attempt['number']}, whose job is {attempt['job_id']}")
        else:
            ran[attempt["name"]].append((start, end, job_id))
    for run, spans in ran.items():
        spans.sort()
        for (_, end, first), (start, _, second) in zip(spans, spans[1:]):
            if start < end - 1:         # whole seconds
                violation(run, f"TWO JOBS: {first} and {second} ran at once, {end - start:.0f} s")


def check_run(run, row, orders, ledger, attempts, lines):
    numbers = {a["id"]: a["number"] for a in attempts}
    check_alone(run, lines)
    check_progress(run, lines, ledger, numbers)
    check_records(run, lines, ledger, numbers)
    check_resume(run, lines, ledger.of_run("events", run))
    check_end(run, row, orders, has_done(lines))
    check_killed(run, lines, orders)


def main():
    home, folder = sys.argv[1:3]
    jobs = read_jobs(sys.argv[3] if len(sys.argv) > 3 else None, os.path.dirname(folder))
    ledger, witness, orders = Ledger(home), read_witness(folder), read_orders(folder)
    check_ledger(ledger)
    check_not_lost(ledger, orders)
    check_jobs(jobs, ledger)
    lines = [line for lines in witness.values() for line in lines]
    tasks = tasks_of(witness, ledger.runs)
    for run in witness.keys() - ledger.runs.keys():
        violation(run, "a trainer ran, and the ledger does not know the run")
    attempts = 0
    for run, row in ledger.runs.items():
        rows, asked = ledger.of_run("attempts", run), [o for o in orders if o.run == run]
        check_attempts(run, rows)
        if os.path.exists(f"{home}/runs/{run}/tasks"):
            check_tasks(run, row, asked, f"{home}/runs/{run}", tasks.pop(run, {}))
        else:
            check_run(run, row, asked, ledger, rows, witness.get(run, []))
        attempts += len(rows)
    for run in tasks:
        violation(run, "a task ran, and the run is no array")
    for line in broken:
        print("BROKEN", line)
    launches, steps = (sum(line.word == word for line in lines) for word in ("start", "ack"))
    print(f"history: runs={len(ledger.runs)} attempts={attempts} launches={launches} steps={steps} "
          f"jobs={len(jobs)} orders={sum(o.kind == 'ack' for o in orders)} "
          f"violations={len(broken)}")
    return 1 if broken else 0


sys.exit(main())
