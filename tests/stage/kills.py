# SPDX-License-Identifier: MIT
# kills.py LBRUN KILLS [SEED] - a run whose lbrun is killed again and again while its trainer saves to a stage,
# at random moments and at each failpoint of the stage's way; now and then the node is lost, and with it the
# stage. Every launch must start from a whole checkpoint (the trainer looks at each byte), and none older than
# the newest that the spool called valid, nor, while the node lives, than any that a launch started from
# before. One line at the end: how many of what.
import json, os, random, shutil, signal, subprocess, sys, tempfile, time

lbrun, kills, seed = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
trainer = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trainer.py")
dice = random.Random(seed)
points = ["chunk", "copied", "sealed", "aside", "placed", "cleared", "drop"]
top = tempfile.mkdtemp(prefix="lb-stage.")
run, stage, log = top + "/run", top + "/stage", top + "/log"
os.makedirs(run + "/checkpoints")
os.makedirs(stage)
count = {"kills": 0, "points": 0, "lost nodes": 0, "from the stage": 0, "from what is shared": 0,
         "from nothing": 0, "too old": 0, "wrong": 0}


def attempt(number, last):
    folder = f"{run}/attempts/{number}"
    os.makedirs(folder)
    with open(folder + "/attempt.json", "w") as out:
        json.dump({"version": 1, "token": f"{number:032d}", "run": "r1", "number": number,
                   "command": ["python3", "-S", trainer, str(last)], "workdir": run, "run_dir": run,
                   "checkpoint_dir": run + "/checkpoints", "lbd_socket": None, "launcher": "none",
                   "kill_grace_ms": 3000, "in_place": 0, "never_on_exit_codes": [9],
                   "checkpoint_stage": stage, "keep_latest_k": 3,
                   "stage_rate": dice.choice([0, 0, 2000000, 10000000])}, out)
    return folder


def told(folder):
    """The newest step that counts, by the spool."""
    try:
        with open(folder + "/spool.jsonl") as lines:
            steps = [json.loads(line)["line"].get("step") or 0 for line in lines
                     if '"checkpoint_valid"' in line and '"valid":true' in line]
    except OSError:
        return 0
    return max(steps, default=0)


def lines():
    try:
        with open(log) as text:
            return [json.loads(line) for line in text]
    except OSError:
        return []


def descendants(pid):
    found, out = [pid], []
    while found:
        pid = found.pop()
        out.append(pid)
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as text:
                found += [int(child) for child in text.read().split()]
        except OSError:
            pass
    return out


number, promised, seen = 0, 0, 0
environment = dict(os.environ, STAGE_LOG=log, STAGE_BYTES="400000", STAGE_PAUSE="0.05",
                   STAGE_LAYOUT="folder", SLURMD_NODENAME="n1")
while count["kills"] < kills:
    number += 1
    folder = attempt(number, 10**9)
    point = dice.choice(points) if dice.random() < 0.4 else None
    if point:
        environment["LB_FAILPOINT"] = f"stage.{point}:kill@{dice.randint(1, 4)}"
        count["points"] += 1
    else:
        environment.pop("LB_FAILPOINT", None)
    with open(folder + "/out.log", "w") as out:
        child = subprocess.Popen([lbrun, "--attempt", folder], stdout=out, stderr=out, env=environment)
    until = time.time() + 30
    while time.time() < until and len(lines()) == seen and child.poll() is None:
        time.sleep(0.01)
    time.sleep(dice.uniform(0, 0.8))
    family = descendants(child.pid)
    for pid in family:
        try:
            with open(f"/proc/{pid}/comm") as text:
                name = text.read().strip()
            if name == "lbrun" or dice.random() < 0.5:
                os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    child.wait()
    for pid in family:  # the trainer dies with lbrun
        while os.path.exists(f"/proc/{pid}") and open(f"/proc/{pid}/stat").read().split()[2] not in "ZX":
            time.sleep(0.005)
    count["kills"] += 1
    for line in lines()[seen:]:
        if "started" in line:
            count["from the stage" if line["source"].startswith(stage) else
                  "from what is shared" if line["source"] else "from nothing"] += 1
            if line["started"] < promised:
                count["too old"] += 1
                print(f"attempt {number}: from step {line['started']}, {promised} counted", flush=True)
        if "wrong" in line:
            count["wrong"] += 1
            print(f"attempt {number}: {line}", flush=True)
    seen = len(lines())
    newest = [line["started"] for line in lines() if "started" in line][-1:]
    promised = max([promised, told(folder)] + newest if not count["wrong"] else [0])
    if dice.random() < 0.15:
        shutil.rmtree(stage)
        os.makedirs(stage)
        count["lost nodes"] += 1
        promised = max([told(f"{run}/attempts/{n}") for n in range(max(1, number - 60), number + 1)])
print(f"{count['kills']} kills, seed {seed}: " + ", ".join(f"{v} {k}" for k, v in count.items() if k != "kills"))
shutil.rmtree(top)
sys.exit(1 if count["wrong"] or count["too old"] else 0)
