# SPDX-License-Identifier: MIT
"""trainer.py WITNESS STEPS PAUSE_MS - a short training that bears witness.

Whatever happens is appended to WITNESS/RUN.log (of an array's task, WITNESS/RUN_TASK.log) by the
trainer itself, one write a line, before or after the fact as the word says; history.py holds that
against the ledger. A line:

    TIME_MS ATTEMPT LAUNCH PID WORD [STEP]

    start STEP    alive, and going on from this checkpoint (0: from nothing)
    two           somebody else is alive, too
    send, ack     a step is about to be told to lbrun; lbrun has taken it
    refused       lbrun could not take it, and said so; what it keeps in memory (a full disk) is not
    saving, saved a checkpoint is about to be written; it is complete
    done, stop    the last step is behind it; it was asked to end

Every fifth step is saved, as a folder with a mark inside. With CRASH_AT=STEP in the environment the
first launch of all dies there."""
import fcntl, os, sys, time
sys.path.insert(0, os.environ["LB_CLIENT"])
import lb_client as lb

witness, steps, pause_s = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) / 1000
run, attempt, launch = (os.environ[f"LB_{word}"] for word in ("RUN", "ATTEMPT", "LAUNCH"))
checkpoints = os.environ["LB_CHECKPOINT_DIR"]
name = "_".join(filter(None, (run, os.environ.get("SLURM_ARRAY_TASK_ID"))))
log = os.open(f"{witness}/{name}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def say(word, step=0):
    now_ms = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000
    os.write(log, f"{now_ms} {attempt} {launch} {os.getpid()} {word} {step}\n".encode())


def be_alone():
    alone = open(f"{witness}/{name}.lock", "w")
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("two")
    return alone        # held as long as this process lives


def tell(step):
    while True:
        say("send", step)
        if lb.send("step", step=step, loss=1.0 / step, target_step=steps):
            return say("ack", step)
        if "is kept" in lb.errors[0]:   # to be written in its turn
            return time.sleep(0.2)
        if "gone" in lb.errors[0] or "pipe" in lb.errors[0]:
            raise SystemExit(lb.errors[0])
        say("refused", step)
        time.sleep(0.2)


def save(step):
    folder = f"{checkpoints}/step-{step}"
    say("saving", step)
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/weights", "w") as weights:
        weights.write("w" * step)
    open(f"{folder}/complete", "w").close()
    say("saved", step)


def train():
    first = int(os.environ.get("LB_RESUME_FROM", "-0").rsplit("-", 1)[1])
    say("start", first)
    for step in range(first + 1, steps + 1):
        tell(step)
        if attempt == launch == "1" and os.environ.get("CRASH_AT") == str(step):
            os.kill(os.getpid(), 9)
        if step % 5 == 0 or step == steps:
            save(step)
        if lb.asked("stop"):
            say("stop", step)
            return lb.send("bye", status="stopped")
        time.sleep(pause_s)
    say("done", steps)
    lb.send("bye", status="done")


alone = be_alone()
try:
    train()
except OSError:         # lbrun is gone
    sys.exit(1)
