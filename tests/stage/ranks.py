# SPDX-License-Identifier: MIT
# ranks.py LAST - trainer.py on several nodes: each rank saves its own file into its node's folder, rank 0 the
# layout's mark once all have done so. Whoever starts from a checkpoint looks at each byte of all ranks'
# files, and writes what is wrong into $STAGE_LOG.
import json, os, socket, sys, time, zipfile

last = int(sys.argv[1])
layout = os.environ.get("STAGE_LAYOUT", "dcp")
pause = float(os.environ.get("STAGE_PAUSE", "0"))
die_at = int(os.environ.get("STAGE_DIE_AT", "-1"))
rank, ranks = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
folder, source = os.environ["LB_CHECKPOINT_DIR"], os.environ.get("LB_RESUME_FROM")
launch = f"{os.environ['LB_ATTEMPT']}.{os.environ['LB_LAUNCH']}"
place = {"dcp": "step-{}", "folder": "ckpt_{}", "numpy": "."}[layout]
names = {"dcp": "__{0}_0.distcp", "folder": "w-{0}.bin", "numpy": "model_rank{0}_{1}.npz"}[layout]


def log(**fields):
    with open(os.environ["STAGE_LOG"], "a") as out:
        out.write(json.dumps(fields) + "\n")


def content(step, name):
    unit = f"{step}/{name};".encode()
    return unit * (200000 // len(unit) + 1)


def barrier(step):
    base = f"{os.environ['STAGE_LOG']}-{launch}-{step}-"
    open(base + str(rank), "w").close()
    for r in range(ranks):
        while not os.path.exists(base + str(r)):
            time.sleep(0.005)


def tell(**message):
    if rank == 0:
        try:
            lb.sendall((json.dumps(message) + "\n").encode())
        except OSError:
            pass


def save(step):
    path = os.path.join(folder, place.format(step))
    name = names.format(rank, step)
    os.makedirs(path, exist_ok=True)
    if layout != "folder":
        with zipfile.ZipFile(f"{path}/{name}", "w") as z:
            z.writestr("w.npy", content(step, name))
    else:
        with open(f"{path}/{name}", "wb") as out:
            out.write(content(step, name))
    if not source and step == die_at and rank == ranks - 1:
        os.kill(os.getpid(), 9)
    barrier(step)
    if rank > 0:
        return
    if layout == "dcp":
        with open(f"{path}/.metadata", "wb") as out:
            out.write(content(step, ".metadata"))
    log(saved=step)
    told = f"{path}/{name}" if layout == "numpy" else path
    tell(type="checkpoint", step=step, path=os.path.normpath(told))


def load(path):
    where = os.path.dirname(path) if layout == "numpy" else path
    step = int("".join(c for c in os.path.basename(path).split(".")[0].split("_")[-1].split("-")[-1] if c.isdigit()))
    want = [names.format(r, step) for r in range(ranks)] + ([".metadata"] if layout == "dcp" else [])
    for name in want:
        try:
            if layout != "folder" and name != ".metadata":
                with zipfile.ZipFile(f"{where}/{name}") as z:
                    data = z.read("w.npy")
            else:
                data = open(f"{where}/{name}", "rb").read()
        except OSError as why:
            data = str(why)
        if data != content(step, name):
            log(wrong=f"{path}/{name}")
            sys.exit(9)
    return step


if rank == 0:
    lb = socket.socket(socket.AF_UNIX)
    lb.connect(os.environ["LB_SOCKET"])
start = load(source) if source else 0
if rank == 0:
    log(started=start, source=source or "")
for step in range(start + 1, last + 1):
    tell(type="step", step=step)
    if pause:
        time.sleep(pause)
    save(step)
