# SPDX-License-Identifier: MIT
"""fidelity.py LBWORKER FOLDER - what each recipe costs in validation loss, beside the noise of seeds.

Every recipe trains the same small model on the same data, with each seed; one result is one file in FOLDER, so that an
interrupted study goes on where it was. A gap is a recipe's loss minus that of bf16 with the same seed, in per cent of
bf16's; printed are its mean and a 95 % interval (Student's t over the seeds) beside the spread of seeds under bf16. A
gap whose interval holds 0 is "not distinguishable". The last rows are controls that must show: the study is worth
nothing if they do not.
"""
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

lbworker, folder = sys.argv[1], sys.argv[2]
SEEDS = int(os.environ.get("LB_BENCH_SEEDS", 3))
STEPS = int(os.environ.get("LB_BENCH_STEPS", 120))
# bounds in per cent, after the papers behind the recipes
BOUNDS = {"none": 0.1, "tensorwise": 0.25, "delayed": 0.5, "rowwise": 0.25, "rowwise_with_gw_hp": 0.25,
          "blockwise": 0.25, "mxfp8": 0.25, "int8": 0.5, "mxfp4": 1.5, "nvfp4": 1.5, "nvfp4-four-over-six": 1.5}
CONTROLS = {"control: e2m1, one scale a tensor": "e2m1 tensor", "control: int4 toward zero": "int4 row zero"}
T95 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365}  # two-sided, by degrees of freedom

CONFIGS = {"llama": '[model]\nname = "llama"\nflavor = "debugmodel"\n',
           "gpt2": '[model]\nname = "gpt2"\nflavor = "debugmodel"\n'}


def config(model):
    path = os.path.join(folder, f"{model}.toml")
    with open(path, "w") as f:
        f.write(CONFIGS[model] + f"""
[job]
dump_folder = "{folder}/out"
[optimizer]
lr = 2e-3
[lr_scheduler]
warmup_steps = {STEPS // 10}
[training]
dataset_path = "{folder}/train.tokens"
local_batch_size = 8
seq_len = 64
steps = {STEPS}
[checkpoint]
enable = false
[validation]
enable = true
dataset_path = "{folder}/validation.tokens"
freq = {STEPS}
steps = 16
""")
    return path


def recipes():
    listed = subprocess.run([lbworker, "recipes"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^([a-z]\S*): ", listed, re.M)
    rows = {name: name for name in ["bf16"] + [n for n in names if n != "bf16"]}
    slots = [("forward", "x"), ("forward", "w"), ("input", "g"), ("input", "w"), ("weight", "g"), ("weight", "x")]
    for number, (name, slot) in enumerate(CONTROLS.items()):
        path = os.path.join(folder, f"control-{number}.toml")
        with open(path, "w") as f:
            for product in ("forward", "input", "weight"):
                f.write(f"[{product}]\n" + "".join(f'{o} = "{slot}"\n' for p, o in slots if p == product))
        rows[name] = path
    return rows


def validation_loss(model, recipe, seed):
    """Of one training; read from its file where it is there already."""
    kept = os.path.join(folder, "results", f"{model}-{os.path.basename(recipe)}-{seed}-{STEPS}.json")
    if os.path.exists(kept):
        with open(kept) as f:
            return json.load(f)["loss"]
    out = subprocess.run([lbworker, "train", config(model), "--quantize.recipe", recipe, "--training.seed", str(seed),
                          "--device.name", "cpu"], capture_output=True, text=True)
    found = re.findall(r"^validation at step \d+: loss ([0-9.]+), perplexity", out.stdout, re.M)
    loss = float(found[-1]) if out.returncode == 0 and found else math.nan  # diverged
    if not found and out.returncode not in (0, 3):
        sys.exit(out.stderr)
    os.makedirs(os.path.dirname(kept), exist_ok=True)
    with open(kept + ".part", "w") as f:
        json.dump({"model": model, "recipe": recipe, "seed": seed, "steps": STEPS, "loss": loss}, f)
    os.replace(kept + ".part", kept)
    return loss


def verdict(name, mean, half):
    if math.isnan(mean):
        return "diverged"
    if abs(mean) <= half:
        said = "not distinguishable"
    else:
        said = "worse" if mean > 0 else "better"
    bound = BOUNDS.get(name)
    if bound is not None and mean - half > bound:
        said += f", over its bound of {bound} %"
    if name in CONTROLS:
        said += ", as it must" if mean > half else ", A CONTROL THAT DOES NOT SHOW"
    return said


def study(model):
    rows = recipes()
    loss = {}
    # by seed first: an interrupted study has whole seeds
    for seed in range(SEEDS):
        for name, recipe in rows.items():
            loss[name, seed] = validation_loss(model, recipe, seed)
    base = [loss["bf16", seed] for seed in range(SEEDS)]
    noise = 100 * statistics.stdev(base) / statistics.mean(base)
    print(f"\n{model}: {STEPS} steps, {SEEDS} seeds; bf16 {statistics.mean(base):.4f}, seeds alone {noise:.2f} %\n")
    print("| recipe | gap to bf16, % | 95 % interval | verdict |\n|---|---|---|---|")
    shown = True
    for name in rows:
        gaps = [100 * (loss[name, seed] - base[seed]) / base[seed] for seed in range(SEEDS)]
        mean = statistics.mean(gaps)
        half = T95.get(SEEDS - 1, 2.0) * statistics.stdev(gaps) / math.sqrt(SEEDS)
        said = "reference" if name == "bf16" else verdict(name, mean, half)
        shown = shown and "DOES NOT SHOW" not in said
        print(f"| {name} | {mean:+.3f} | {mean - half:+.3f} … {mean + half:+.3f} | {said} |")
    return shown


print(f"# {time.strftime('%Y-%m-%d')}, validation loss; a gap beside the noise of seeds")
results = [study(model) for model in os.environ.get("LB_BENCH_MODELS", "llama gpt2").split()]
sys.exit(0 if all(results) else 1)
