# SPDX-License-Identifier: MIT
# trainer.py LAST - a training that is all checkpoints: at each step a few files of a layout ($STAGE_LAYOUT),
# whose every byte tells the step. It looks at each byte of what it starts from, tells lbrun of each save,
# and writes a line of what it did into $STAGE_LOG.
import json, os, random, socket, sys, time, zipfile

last = int(sys.argv[1])
layout = os.environ.get("STAGE_LAYOUT", "folder")
size = int(os.environ.get("STAGE_BYTES", "300000"))
pause = float(os.environ.get("STAGE_PAUSE", "0"))
folder, source = os.environ["LB_CHECKPOINT_DIR"], os.environ.get("LB_RESUME_FROM")
die_at = int(os.environ.get("STAGE_DIE_AT", "-1"))
names = {"folder": ["w-0.bin", "w-1.bin", "state"], "deepspeed": ["mp_rank_00.pt.txt", "optim.txt"],
         "dcp": ["__0_0.distcp.txt", "__1_0.distcp.txt", ".metadata"]}


def log(**fields):
    with open(os.environ["STAGE_LOG"], "a") as out:
        out.write(json.dumps(fields) + "\n")


def content(step, name):
    unit = f"{step}/{name};".encode()
    return unit * (size // len(unit) + 1)


def place(step):
    if layout == "numpy":
        return f"{folder}/ckpt_{step}.npz"
    return {"folder": f"{folder}/ckpt_{step}", "deepspeed": f"{folder}/global_step{step}",
            "dcp": f"{folder}/step-{step}"}[layout]


def tell(**message):
    try:
        lb.sendall((json.dumps(message) + "\n").encode())
    except OSError:
        pass


def save(step):
    path = place(step)
    if layout == "numpy":
        with zipfile.ZipFile(path, "w") as z:
            z.writestr("w.npy", content(step, "w.npy"))
    else:
        os.makedirs(path, exist_ok=True)
        for name in names[layout]:
            with open(f"{path}/{name}", "wb") as out:
                data = content(step, name)
                out.write(data[:1000])
                out.flush()
                if start == 0 and step == die_at and name == names[layout][1]:
                    log(died=step)
                    os.kill(os.getpid(), 9)
                out.write(data[1000:])
    if layout == "deepspeed":
        with open(f"{folder}/latest", "w") as out:
            out.write(f"global_step{step}")
    log(saved=step, at=time.time())
    tell(type="checkpoint", step=step, path=path)


def load(path):
    step = int("".join(c for c in os.path.basename(path).split(".")[0] if c.isdigit()))
    if layout == "numpy":
        with zipfile.ZipFile(path) as z:
            found = {"w.npy": z.read("w.npy")}
    else:
        found = {n: open(f"{path}/{n}", "rb").read() for n in os.listdir(path)}
        if sorted(found) != sorted(names[layout]):
            log(wrong=path, has=sorted(found))
            sys.exit(9)
    for name, data in found.items():
        if data != content(step, name):
            log(wrong=path, file=name)
            sys.exit(9)
    return step


lb = socket.socket(socket.AF_UNIX)
lb.connect(os.environ["LB_SOCKET"])
start = load(source) if source else 0
log(started=start, source=source or "", at=time.time())
for step in range(start + 1, last + 1):
    tell(type="step", step=step)
    if pause:
        time.sleep(pause * random.uniform(0.5, 1.5))
    save(step)
