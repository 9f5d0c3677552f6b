# SPDX-License-Identifier: MIT
"""The clock of orders.sh. Graces are 1 s; scancel, the peer, has the cluster's KillWait of 5 s."""
import json
import os
import shutil
import subprocess
import sys
import time

HOME, LBD, N = os.environ["LB_HOME"], sys.argv[1], int(sys.argv[2])
WATCHED = int(os.environ.get("WATCHED", "1000"))
TRAINERS = {
    "polite": ["sleep", "6543"],
    "ignores SIGTERM": ["sh", "-c", "trap '' TERM; : >up; while :; do sleep 6543; done"],
    "stopped": ["sh", "-c", ": >up; kill -STOP $$; sleep 6543"],
}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def processes(mark):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark.encode() + b"\0" in file.read():
                    found.append(pid)
        except OSError:
            pass
    return found


def until(condition, what, patience=120):
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"{what}: not within {patience} s")
        time.sleep(0.002)


def say(what, times, unit="ms", note=""):
    times = sorted(times)
    p50, p99 = times[len(times) // 2], times[min(len(times) - 1, int(len(times) * 0.99))]
    print(f"{what:58} p50 {p50:8.1f}  p99 {p99:8.1f} {unit}  n={len(times)}  {note}", flush=True)


def switch(name):
    with open(f"{HOME}/switches/{name}.kill", "x", encoding="ascii"):
        pass


def command(name):
    run("lbctl", "kill", name)


def scancel(name):
    run("scancel", "--name", name)


def up(name, mark, folder, trainer):
    until(lambda: trainer == "polite" or os.path.exists(f"{folder}/up"), f"{name} is up")
    until(lambda: any(cmd(pid).startswith(("sleep", "sh")) for pid in processes(mark)), f"{name} runs")


def cmd(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return os.path.basename(file.read().split("\0")[0])
    except OSError:
        return ""


def one(name, trainer, order):
    folder = f"{os.environ['T']}/work/{name}"
    os.makedirs(folder)
    os.chdir(folder)
    if order is scancel:
        mark = f"BENCH={name}"
        run("sbatch", "-J", name, "-o", "/dev/null", f"--export=ALL,{mark}", "--wrap",
            "exec " + " ".join("'" + word.replace("'", "'\\''") + "'" for word in TRAINERS[trainer]))
    else:
        mark = f"LB_RUN={name}"
        run("lbctl", "submit", "--name", name, "--set", "watch.kill_grace=1s", "--", *TRAINERS[trainer])
    up(name, mark, folder, trainer)
    pids = processes(mark)
    begin = time.perf_counter()
    order(name)
    until(lambda: not any(map(lives, pids)), f"{name} is dead")
    return 1000 * (time.perf_counter() - begin)


def running():
    count = 0
    for trainer in TRAINERS:
        for what, order in (("switch file", switch), ("lbctl kill", command), ("scancel", scancel)):
            times = []
            for _ in range(N if order is not scancel else max(2, N // 10)):
                count += 1
                times.append(one(f"k{count}", trainer, order))
            note = "peer, KillWait 5 s" if order is scancel else "target: grace of 1000 ms + 2000 ms"
            say(f"{what} to last process dead, trainer {trainer}", times, note=note)


def pending():
    run("scontrol", "update", "PartitionName=debug", "State=DOWN")
    for what, order in (("switch file", switch), ("lbctl kill", command)):
        times = []
        for i in range(N):
            name = f"p{what[0]}{i}"
            run("lbctl", "submit", "--name", name, "--", "true")
            until(lambda: '"queued"' in run("lbctl", "status", name, "--json"), "queued")
            begin = time.perf_counter()
            order(name)
            until(lambda: not run("squeue", "-h"), "gone")
            times.append(1000 * (time.perf_counter() - begin))
        say(f"{what} to pending job gone from squeue", times, note="target: 1000 ms")
    run("scontrol", "update", "PartitionName=debug", "State=UP")


def seen():
    """A save ends nothing: one trainer sees them all. The event's time is in the ledger."""
    run("lbctl", "submit", "--name", "seen", "--", "sleep", "6543")
    until(lambda: '"running"' in run("lbctl", "status", "seen", "--json"), "running")
    times = []
    for i in range(N):
        path = f"{HOME}/switches/seen.save"
        with open(path, "x", encoding="ascii") as file:
            left = os.fstat(file.fileno()).st_mtime
        until(lambda: not os.path.exists(path), "taken away")
        saves = [event["time"] for event in json.loads(run("lbctl", "events", "seen", "--json"))
                 if event["kind"] == "save" and event["actor"] != "lbrun"]
        times.append(1000 * (max(saves) - left))
    say("switch file to seen by lbd", times, note="target: 1000 ms")


def ticks(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            total += sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
    return total


def cpu_share(pids, seconds=20):
    before = ticks(pids)
    time.sleep(seconds)
    return 100 * (ticks(pids) - before) / os.sysconf("SC_CLK_TCK") / seconds


def both(what):
    shepherds = run("pgrep", "-f", f"lbrun --attempt {HOME}/runs/seen/").split()
    time.sleep(5)
    print(f"{'lbd, ' + what:58} {cpu_share([LBD]):8.2f} % of a core")
    print(f"{'lbrun, ' + what:58} {cpu_share(shepherds):8.2f} % of a core", flush=True)


def watching():
    with open(f"{HOME}/switches/w*.hold", "x", encoding="ascii"):
        pass
    for i in range(WATCHED):
        run("lbctl", "submit", "--name", f"w{i}", "--", "true")
    both(f"{WATCHED} held runs, one switch")
    for i in range(WATCHED):
        switch(f"nobody-{i}")
    both(f"{WATCHED} held runs, {WATCHED} more switches")


def socket():
    """A new connection for each question (`ls` of ten runs), alone and beside a colleague's 10,000."""
    script, flags = os.environ["T"] + "/press.py", os.environ["T"] + "/flags"
    if os.getuid() != 0:
        print("socket: left out: the colleague takes root to play")
        return
    shutil.copy(os.path.dirname(__file__) + "/../tests/system/press.py", script)
    os.chmod(script, 0o644)
    os.makedirs(flags)
    os.chmod(flags, 0o777)
    for i in range(10):
        run("lbctl", "submit", "--name", f"s{i}", "--", "true")
    until(lambda: run("lbctl", "ls", "--all").count("completed") >= 10, "completed")

    def owner(done):
        return subprocess.Popen([sys.executable, script, HOME, "others", done], stdout=subprocess.PIPE, text=True)

    def tell(what, answer):
        p50, p99, count = answer.split()
        print(f"{what:58} p50 {p50:>8}  p99 {p99:>8} ms  n={count}  target: p99 of 100 ms", flush=True)

    with open(f"{flags}/alone", "x", encoding="ascii"):
        tell("ls over the socket, a new connection each, alone", owner(f"{flags}/alone").communicate()[0])
    colleague = {"user": 51002, "group": 51002, "extra_groups": ["games"], "cwd": "/"}
    flood = ["env", "PATH=/usr/bin:/bin", "python3", script, HOME, "flood", f"{flags}/underway"]
    with subprocess.Popen(flood, stdout=subprocess.DEVNULL, **colleague) as flood:
        until(lambda: os.path.exists(f"{flags}/underway") or flood.poll() is not None, "the flood")
        asked = owner(f"{flags}/done")
        if flood.wait() != 0:
            sys.exit("the colleague's connections failed")
    with open(f"{flags}/done", "x", encoding="ascii"):
        tell("… while a colleague opens 10,000 connections", asked.communicate()[0])


PARTS = {"running": running, "pending": pending, "seen": seen, "watching": watching, "socket": socket}
for part in os.environ.get("PARTS", "socket seen watching running pending").split():
    PARTS[part]()
