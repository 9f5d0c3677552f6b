#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""faults.py PART [COUNT] - one kind of fault, COUNT times, against the real programs.

Called by tests/system/faults.t, in whose folder $T everything lies. Each part keeps runs flowing
through lbd, with people's orders mixed in, breaks something again and again, repairs it, waits
until every run is over, and has history.py look for broken promises. $T/table gets a line about it.

Environment: T B LB_HOME SRC, as in lib.sh; CLUSTER, the folder of the private Slurm; FAULTS_LBD
and FAULTS_LBRUN, other programs than those in B (the negative controls); SETTLE=later: what is live
stays so for the next part, the last part is "end". The numbers in what a part says it did are added
up by faults.t."""
import concurrent.futures, json, os, random, re, signal, subprocess, sys, time

from stage import (B, CLUSTER, DEADLINE_S, FINAL, HOME, LBRUN, SCHEDULER, T, WITNESS, Lbd,
                   Traffic, ask, await_state, await_true, cluster, configure, lbctl, live, mend_nodes,
                   settle, shows, states, submit, tabulate)

OF_SLURM_ALONE = ("stray.call", "job.told")
NUMBERS = 50                    # more than jobs are accepted between two of a controller's saves


# --- points of lbd --------------------------------------------------------------------------------
def points_of(program):
    rows = [line.split() for line in shows(f"{B}/lbd", "--failpoints").splitlines()]
    return [(row[1], row[2:]) for row in rows
            if row[0] == program and (SCHEDULER == "slurm" or row[1] not in OF_SLURM_ALONE)]


# What makes lbd come by: orders, by the first word of the point; the rest is plain traffic.
STIMULI = {"order": ("kill", "hold", "release"), "signal": ("kill",), "cancel": ("new-kill",),
           "restart": ("kill", "restart"), "wish": ("save",), "switch": ("switch",),
           "run": ("new-kill",), "stray": ("stray",), "removal": ("remove",)}


def crash_at(traffic, name, action):
    once = f"{T}/once"
    mark = f"{once}/{name}"
    os.makedirs(once, exist_ok=True)
    if os.path.exists(mark):
        os.unlink(mark)
    word = name.split(".")[0]
    lbd = Lbd({"LB_FAILPOINT": f"{name}:{action}", "LB_FAILPOINT_ONCE": once})
    end = time.monotonic() + DEADLINE_S
    while not lbd.is_dead() and not os.path.exists(mark):
        if word == "backup":
            lbd.end()
            break
        traffic.turn(*STIMULI.get(word, ()))
        if time.monotonic() > end:
            raise SystemExit(f"{name} was not reached")
    if not os.path.exists(mark):
        raise SystemExit(f"{name} was not reached: lbd ended with {lbd.process.returncode}")
    lbd.end(signal.SIGKILL if action == "kill" else signal.SIGTERM)
    if action == "kill" and lbd.process.returncode != -signal.SIGKILL:
        raise SystemExit(f"{name}: lbd ended with {lbd.process.returncode}, not of its failpoint")


def part_points(count):
    """lbd is killed, and where that is possible fails, at each of its points, COUNT times."""
    traffic, done = Traffic("p"), 0
    points = points_of("lbd")
    for turn in range(count):
        for name, actions in points:
            action = "error" if "error" in actions and turn % 3 == 1 else "kill"
            crash_at(traffic, name, action)
            done += 1
    return f"{done} crashes of lbd, {count} at each point"


# --- points of lbrun ------------------------------------------------------------------------------
def arm(run, name, action):
    """env_file is the only way for these variables into a job."""
    once, path = f"{HOME}/once-{run}", f"{HOME}/{run}.env"
    os.makedirs(once, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as env:
        env.write(f"LB_FAILPOINT={name}:{action}\nLB_FAILPOINT_ONCE={once}\n")
    return f"run.env_file={path}", f"{once}/{name}"


def part_lbrun(count):
    """lbrun is killed, or fails, at each of its points, in COUNT runs each; lbd dies, too."""
    # stage.* end the process that drains, and need a stage: tests/system/stage.t, make check-stage
    points = [point for point in points_of("lbrun") if not point[0].startswith("stage.")]
    lbd, marks = Lbd(), {}
    for turn in range(count):
        stopped = None
        for name, actions in points:
            run = f"r{turn}-{name.replace('.', '-')}"
            action = "error" if "error" in actions and turn % 3 == 1 else "kill"
            setting, marks[run] = arm(run, name, action)
            steps = 10
            sets = (setting, "restart.policy.launch_fail=relaunch")
            if name == "stop.seen":
                stopped, steps = run, 10**6     # it runs for as long as it takes to hold it
            elif name.startswith("prune."):
                steps, sets = 200, (*sets, "checkpoint.keep_latest_k=2")
            elif name.startswith("cache."):
                os.makedirs(f"{T}/cache", exist_ok=True)
                sets = (*sets, f"cache.folder={T}/cache")
            if not submit(run, steps=steps, sets=sets):
                raise SystemExit(f"{run}: not accepted")
            await_true("there is room", lambda: live() < 10)
        lbd = lbd.again()
        await_state(stopped, "running")
        ask("hold", stopped)
        await_state(stopped, "held")
        ask("release", stopped)
        lbd = lbd.again()
        for run in [run for run in marks if run.startswith(f"r{turn}-")]:
            await_true(f"{run}: its point is reached", lambda: os.path.exists(marks[run]))
        ask("kill", stopped)
    lbd.kill()
    return f"{len(marks)} crashes of lbrun, {count} at each point"


# --- kills at any moment --------------------------------------------------------------------------
def lose_node(times):
    """slurmd dies under its trainers, which live on, and is away until Slurm has given them up."""
    def node_is(pattern):
        return re.search(rf"State={pattern}\s", shows("scontrol", "show", "node", node))

    for _ in range(times):
        # whichever: on a busy host so few jobs run at a time that the first node takes them all
        node = await_true("a job runs", lambda: shows("squeue", "-h", "-t", "R", "-o", "%N").split(),
                          pause_s=0.2)[0]
        cluster("kill-node", node)
        # as Slurm does by itself after SlurmdTimeout; a short one would lose nodes to a busy host
        shows("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")
        await_true("Slurm has given it up", lambda: node_is(r"DOWN\S*"), pause_s=0.2)
        time.sleep(3)           # the next attempts meet those that live on
        cluster("start-node", node)
        shows("scontrol", "update", f"nodename={node}", "state=resume")
        await_true(f"{node} is back", lambda: node_is("(IDLE|MIXED|ALLOCATED)"), pause_s=0.2)


def part_kills(count):
    """SIGKILL of lbd at random moments; nodes are lost meanwhile."""
    traffic, moments, kills = Traffic("k", most=8, seed=2), random.Random(3), 0
    nodes = max(1, count // 50) if SCHEDULER == "slurm" else 0
    losing = concurrent.futures.ThreadPoolExecutor().submit(lose_node, nodes)
    while kills < count or not losing.done():
        lbd = Lbd()
        end = time.monotonic() + moments.random() ** 2 * 1.5
        traffic.turn()
        while time.monotonic() < end:
            traffic.turn()
        lbd.kill()
        kills += 1
    losing.result()
    return f"{kills} kills of lbd at random moments, {nodes} nodes lost"


# --- the cluster ----------------------------------------------------------------------------------
def controller_pid():
    return int(open(f"{CLUSTER}/run/slurmctld.pid").read())


def newest_job():
    """The last job that the controller says it has accepted."""
    with open(f"{CLUSTER}/log/slurmctld.log", errors="replace") as log:
        jobs = re.findall(r"_slurm_rpc_submit_batch_job: JobId=(\d+)", log.read())
    return len(jobs), jobs[-1] if jobs else None


def part_accept(count):
    """slurmctld is killed within milliseconds of having accepted a job, before it saved that."""
    lbd, lost = Lbd(), 0
    for n in range(count):
        pid = controller_pid()
        submit(f"a{n}-first", steps=6, pause_ms=20)     # is saved at once; what follows is not
        await_state(f"a{n}-first", "queued", "running", *FINAL)
        before, _ = newest_job()
        submit(f"a{n}", steps=6, pause_ms=20)
        job = await_true("the job is accepted",
                         lambda: newest_job()[0] > before and newest_job()[1], pause_s=0.001)
        os.kill(pid, signal.SIGKILL)
        cluster("start-ctld")
        lost += "JobId" not in shows("scontrol", "show", "job", job)
        await_true("there is room", lambda: live() < 8)
    lbd.kill()
    return f"{count} kills of slurmctld right after an accept, {lost} jobs lost"


def freeze(daemon, prefix, count):
    lbd = Lbd()
    for n in range(count):
        cluster("signal", daemon, "STOP")
        try:
            submit(f"{prefix}{n}", steps=6, pause_ms=20)
            if n % 2:           # as long as lbd has patience, or shorter
                await_true("lbd gives up on Slurm", is_slurm_away)
            if n % 4 == 3:
                lbd = lbd.again()
        finally:
            cluster("signal", daemon, "CONT")
        await_true("there is room", lambda: live() < 8)
    lbd.kill()


def is_slurm_away():
    ok, text = lbctl("version", "--json")
    return ok and json.loads(text)["lbd"]["slurm_down_since"]


def part_freeze(count):
    """slurmctld is frozen while a job is submitted: what arrives late is a ghost."""
    freeze("slurmctld", "f", count)
    return f"{count} submissions to a frozen slurmctld"


def part_munge(count):
    """munged is frozen while a job is submitted: libslurm blocks for ever."""
    freeze("munged", "m", count)
    return f"{count} submissions with munged frozen"


def part_forget(count):
    """slurmctld forgets every job, one that waits or one that runs, and numbers begin at 1 again."""
    lbd = Lbd()
    for n in range(count):
        run, nodes = f"c{n}", "nodename=n[1-2]"
        is_waiting = n % 2 == 0         # the one that runs is found lost after three silent minutes
        if is_waiting:
            shows("scontrol", "update", nodes, "state=drain", "reason=full")
        submit(run, steps=40)
        await_state(run, "queued" if is_waiting else "running")
        if n % 4 > 1:
            lbd = lbd.again()
        cluster("signal", "slurmctld", "KILL")
        cluster("start-ctld", "-c")
        shows("scontrol", "update", nodes, "state=resume")
        await_true("lbd sees Slurm again", lambda: not is_slurm_away())
    lbd.kill()
    return f"{count} cold starts of slurmctld (-c)"


# --- disks ----------------------------------------------------------------------------------------
# The leak checker of a sanitized build is a tracer itself.
TRACED = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def disk_rounds(most):
    """(call, error, N): every N; or a few, and each early sync, for there a commit is made, or not."""
    rounds = [(call, error, nth) for nth in range(1, 200) for call in ("pwrite64", "fdatasync")
              for error in ("ENOSPC", "EIO")]
    if most >= 100:
        return rounds
    syncs = [("fdatasync", "EIO", nth) for nth in range(1, 17)]
    return syncs + random.Random(5).sample([r for r in rounds if r[2] < 12], most)


def part_disk(most):
    """Writes and syncs of the ledger fail, each N-th one, until none is reached any more."""
    quiet, done, ended = {}, 0, 0
    for call, error, nth in disk_rounds(most):
        if quiet.get((call, error), 0) >= 3:    # three N in a row that were not reached
            continue
        trace = f"{T}/strace.out"
        files = [w for end in ("", "-wal", "-journal") for w in ("-P", f"{HOME}/ledger.db{end}")]
        lbd = Lbd(front=("strace", "-f", "-qq", "-o", trace, *files, "-e", f"trace={call}",
                         "-e", f"inject={call}:error={error}:when={nth}"), env=TRACED)
        run = f"d-{call}-{error.lower()}-{nth}"
        if lbd.is_ready and submit(run, "local", steps=4, pause_ms=0):
            await_true(f"{run} ends, or lbd", lambda: lbd.is_dead() or states().get(run) in FINAL)
        died = lbd.is_dead()
        ended += died
        if died and lbd.process.returncode < 0:
            raise SystemExit(f"lbd crashed (signal {-lbd.process.returncode}) after {run}")
        stop_traced(lbd)
        is_hit = "(INJECTED)" in open(trace).read()
        quiet[call, error] = 0 if is_hit else quiet.get((call, error), 0) + 1
        done += is_hit
    return f"{done} failed writes and syncs of the ledger, lbd ended on {ended}"


def stop_traced(lbd):
    """strace keeps signals for itself: its child is told."""
    if not lbd.is_dead():
        pid = lbd.process.pid
        for child in open(f"/proc/{pid}/task/{pid}/children").read().split():
            os.kill(int(child), signal.SIGTERM)
    lbd.end(signal.SIGCONT)


def broken_spool(path, call, error, nth):
    """An lbrun for which three of these calls on its spool fail, from the N-th on."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o755), "w") as script:
        script.write(f'#!/bin/sh\nexport ASAN_OPTIONS={TRACED["ASAN_OPTIONS"]}\n'
                     f'exec strace -D -f -qq -o {path}.trace -P "${{2%/job.sh}}/spool.jsonl" -e trace={call} '
                     f'-e inject={call}:error={error}:when={nth}..{nth + 2} {B}/lbrun "$@"\n')


def part_spool(count):
    """The disk below lbrun's spool is full for a while, from the N-th write or sync on."""
    lbd, done = Lbd(), 0
    rounds = [(call, error, nth) for nth in range(1, 100) for call in ("write", "fdatasync")
              for error in ("ENOSPC", "EIO")]
    for call, error, nth in rounds[:count]:
        run = f"s-{call}-{error.lower()}-{nth}"
        front = f"{HOME}/lbrun-{run}"
        broken_spool(front, call, error, nth)
        configure(front)
        lbd = lbd.again()
        submit(run, "local", steps=8, pause_ms=10)
        await_state(run, *FINAL)
        # strace may be ended with the job before it has written; lbrun tells of what it met, too
        said = open(f"{front}.trace").read() + open(f"{HOME}/runs/{run}/attempts/1/out.log").read()
        is_hit = "(INJECTED)" in said or "cannot write the spool" in said
        if call == "write" and nth == 1 and not is_hit:
            raise SystemExit(f"{run}: no write of the spool failed")
        done += is_hit
    lbd.end()
    return f"{count} lbruns with a full or broken disk below the spool, {done} met it"


# --- controls: what must be found when a protection is missing ------------------------------------
def part_copy(_):
    """Slurm runs a job twice, as after a node failure: a second lbrun comes to one attempt."""
    lbd = Lbd()
    submit("copied", "local", steps=40, pause_ms=50)
    await_state("copied", "running")
    await_true("its trainer steps", lambda: "ack" in witness("copied"))
    second = subprocess.Popen([LBRUN, "--attempt", f"{HOME}/runs/copied/attempts/1"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    await_true("the copy has gone away, or done its work",
               lambda: second.poll() is not None or "two" in witness("copied"))
    second.terminate()
    second.wait()
    lbd.kill()
    return "1 job that ran twice"


def pass_old_numbers():
    """A controller that was killed gives numbers again by which its nodes remember other jobs: they refuse."""
    for _ in range(NUMBERS if SCHEDULER == "slurm" else 0):
        shows("scancel", shows("sbatch", "--hold", "--parsable", "--output=/dev/null", "--wrap=true").strip())


def part_gap(_):
    """lbd dies between Slurm's accept and its own record of it, and comes back seconds later."""
    pass_old_numbers()
    lbd = Lbd({"LB_FAILPOINT": "submit.answer:kill"})
    submit("gap", steps=40, pause_ms=50)
    await_true("lbd is dead", lbd.is_dead)

    def has_job():
        mend_nodes()
        return "start" in witness("gap") or "JobHeldUser" in shows("squeue", "-h", "-o", "%r")

    await_true("the job runs, or waits for lbd", has_job)
    return "1 submission that lbd did not live to record"


def witness(run):
    try:
        return open(f"{WITNESS}/{run}.log").read()
    except FileNotFoundError:
        return ""


def main():
    os.makedirs(WITNESS, exist_ok=True)
    configure()
    did = globals()[f"part_{sys.argv[1]}"](int(sys.argv[2]))
    configure()
    if os.environ.get("SETTLE") != "later" or sys.argv[1] == "end":
        return settle(sys.argv[1], did)
    return tabulate(sys.argv[1], did)


def part_end(_):
    """Nothing more is broken."""
    return "every run is over, and its history looked at"


if __name__ == "__main__":
    sys.exit(main())
