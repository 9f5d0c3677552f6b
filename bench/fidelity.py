# SPDX-License-Identifier: MIT
"""fidelity.py - what each row of few bits costs in validation loss, beside the noise of seeds.

    fidelity.py rows FOLDER MODEL SEED STEPS   writes a config for each row; prints those that have no result yet
    fidelity.py table FOLDER STEPS             prints tables, and writes FOLDER/fidelity.svg

A row is a recipe, or another way to keep weights and moments; all train the same small model on the same data, with
each seed. A gap is a row's loss minus that of bf16 products with the same seed, in per cent of that; printed are its
mean and a 95 % interval (Student's t over the seeds) beside the spread of seeds under bf16. A gap whose interval
holds 0 is "not distinguishable". The last rows are controls that must show: the study is worth nothing otherwise.
"""
import glob
import math
import os
import re
import statistics
import subprocess
import sys
import time

SEEDS = int(os.environ.get("LB_BENCH_SEEDS", 3))
MODELS = os.environ.get("LB_BENCH_MODELS", "llama gpt2").split()
REFERENCE = "bf16"
# only these rows beside the reference; NAME.toml: a recipe of one's own. Nothing: all there are
CHOSEN = os.environ.get("LB_BENCH_ROWS", "").split()
# bounds in per cent, after the papers behind the rows
BOUNDS = {"none": 0.1, "tensorwise": 0.25, "delayed": 0.5, "rowwise": 0.25, "rowwise_with_gw_hp": 0.25,
          "blockwise": 0.25, "mxfp8": 0.25, "int8": 0.5, "mxfp4": 1.5, "nvfp4": 1.5, "nvfp4-four-over-six": 1.5,
          "compute-bf16": 0.1, "weights-stochastic": 0.25, "weights-kahan": 0.1, "moments-bf16": 0.25,
          "moments-8bit": 0.25}
SLOTS = [("forward", "x"), ("forward", "w"), ("input", "g"), ("input", "w"), ("weight", "g"), ("weight", "x")]
# recipes that must be seen to be worse
CONTROLS = {"control-e2m1-tensor": "e2m1 tensor", "control-int4-toward-zero": "int4 row zero"}
# beside recipes: settings
LR = "[optimizer]\nlr = 1e-3\n"
SETTINGS = {"compute-bf16": "# compute in bf16\n",
            "weights-stochastic": LR + "bf16_stochastic_round = true\n",
            "weights-kahan": LR + "kahan_sum = true\n",
            "moments-bf16": LR + 'moments = "bfloat16"\n',
            "moments-8bit": LR + 'moments = "8bit"\n',
            "weights-kahan-moments-8bit": LR + 'kahan_sum = true\nmoments = "8bit"\n'}
CONTROL_SETTINGS = {"control-weights-nearest": "# weights in bf16, to nearest\n"}
SHOWS = 0.25  # a control shows when it is worse than this, in per cent, with every seed
T95 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365}  # two-sided, by degrees of freedom


def settings():
    """Each row as lines of TOML: sections that the configuration below has not."""
    listed = subprocess.run(["lbworker", "recipes"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^([a-z]\S*): ", listed, re.M)
    rows = {name: f'[quantize]\nrecipe = "{name}"\n' for name in [REFERENCE] + [n for n in names if n != REFERENCE]}
    rows |= SETTINGS
    for name in CONTROLS:
        rows[name] = f'[quantize]\nrecipe = "{name}.toml"\n'
    rows |= CONTROL_SETTINGS
    if not CHOSEN:
        return rows
    chosen = {REFERENCE: rows[REFERENCE]}
    for name in CHOSEN:
        if name.endswith(".toml"):
            chosen[os.path.basename(name)[:-len(".toml")]] = f'[quantize]\nrecipe = "{os.path.abspath(name)}"\n'
        elif name in rows:
            chosen[name] = rows[name]
        else:
            sys.exit(f"fidelity: LB_BENCH_ROWS: there is no row {name}; there are {', '.join(rows)}, or NAME.toml")
    return chosen


def config(folder, model, steps, name, row):
    more = 'mixed_precision_param = "bfloat16"\n' if name == "compute-bf16" else ""
    if "weights" in name:
        more += 'dtype = "bfloat16"\n'
    return f"""{row}{"" if "[optimizer]" in row else LR}
[model]
name = "{model}"
flavor = "debugmodel"
[lr_scheduler]
warmup_steps = {steps // 5}
[training]
dataset_path = "{folder}/train.tokens"
local_batch_size = 8
seq_len = 64
steps = {steps}
threads = 1
{more}[metrics]
log_freq = {steps // 5}
peak_tflops = 1
[checkpoint]
interval = 0
[validation]
enable = true
dataset_path = "{folder}/validation.tokens"
freq = {steps}
steps = 16
"""


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def print_rows(folder, model, seed, steps):
    missing = []
    for name, slot in CONTROLS.items():
        write(f"{folder}/rows/{name}.toml", "".join(
            f"[{product}]\n" + "".join(f'{o} = "{slot}"\n' for p, o in SLOTS if p == product)
            for product in ("forward", "input", "weight")))
    for name, row in settings().items():
        row = row.replace(f'"{name}.toml"', f'"{folder}/rows/{name}.toml"')
        write(f"{folder}/rows/{model}-{steps}-{name}.toml", config(folder, model, steps, name, row))
        if loss_of(folder, model, seed, steps, name) is None:
            missing.append(name)
    print(",".join(missing))


def loss_of(folder, model, seed, steps, name):
    """NAN: it diverged; None: it has not been trained."""
    said = ""
    for path in sorted(glob.glob(f"{folder}/lb/runs/{model}-{seed}-{steps}-{name}/attempts/*/out.log")):
        with open(path, errors="replace") as f:
            said += f.read()
    found = re.findall(rf"validation at step {steps}: loss ([0-9.]+), perplexity", said)
    if found:
        return float(found[-1])
    return math.nan if "diverged" in said else None


def verdict(name, mean, half, least):
    if math.isnan(mean):
        said = "diverged"
    elif abs(mean) <= half:
        said = "not distinguishable"
    else:
        said = "worse" if mean > 0 else "better"
    bound = BOUNDS.get(name)
    if bound is not None and not math.isnan(mean):
        said += f"; bound {bound} %: " + ("broken" if mean - half > bound else
                                          "holds" if mean + half <= bound else "open, too few seeds")
    if name in CONTROLS or name in CONTROL_SETTINGS:
        shows = math.isnan(mean) or least > SHOWS
        said += f"; {least:+.2f} at least, as it must be" if shows else ", A CONTROL THAT DOES NOT SHOW"
    return said


class Row:
    """Losses of one row, seed by seed, beside those of the reference."""

    def __init__(self, name, losses, base):
        self.name = name
        self.gaps = [100 * (loss - b) / b for loss, b in zip(losses, base)]
        self.mean = statistics.mean(self.gaps)
        spread = statistics.stdev(self.gaps) if len(self.gaps) > 1 else math.nan
        self.half = T95.get(len(self.gaps) - 1, 2.0) * spread / math.sqrt(len(self.gaps))
        self.said = "reference" if name == REFERENCE else verdict(name, self.mean, self.half, min(self.gaps))


def study(folder, model, steps):
    """Prints the table; returns the rows and the noise, or None where seeds are missing."""
    loss = {name: [loss_of(folder, model, seed, steps, name) for seed in range(SEEDS)] for name in settings()}
    if SEEDS < 2:
        sys.exit("fidelity.py: LB_BENCH_SEEDS: at least 2, to know the noise of seeds")
    missing = sum(v is None for row in loss.values() for v in row)
    if missing:
        print(f"{model}: {missing} of {SEEDS * len(loss)} trainings are still missing")
        return None
    base = loss[REFERENCE]
    noise = 100 * statistics.stdev(base) / statistics.mean(base)
    print(f"\n{model}: {steps} steps, {SEEDS} seeds; bf16 {statistics.mean(base):.4f}, seeds alone {noise:.2f} %\n")
    print("| row | gap to bf16, % | 95 % interval | verdict |\n|---|---|---|---|")
    rows = [Row(name, losses, base) for name, losses in loss.items()]
    for r in rows:
        print(f"| {r.name} | {r.mean:+.3f} | {r.mean - r.half:+.3f} … {r.mean + r.half:+.3f} | {r.said} |")
    return rows, noise


def plot(path, studies):
    """A line for each row: its interval and mean, beside the band of seeds. The axis is signed and by powers."""
    left, wide, high, line = 190, 420, 26, 17
    unit = 0.01  # linear below, logarithmic beyond

    def x_of(gap, at):
        gap = max(-100.0, min(100.0, gap))
        return at + wide / 2 + math.copysign(math.log10(1 + abs(gap) / unit), gap) / 4.001 * wide / 2

    rows = max(len(s[0]) for s in studies.values())
    height = high + rows * line + 40
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + len(studies) * (wide + 20)}" height="{height}" '
           'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>']
    for i, (model, (listed, noise)) in enumerate(studies.items()):
        at = left + i * (wide + 20)
        out.append(f'<text x="{at + wide / 2}" y="16" text-anchor="middle" font-weight="bold">{model}: gap of '
                   f'validation loss to bf16, %</text>')
        a, b = x_of(-noise, at), x_of(noise, at)
        out.append(f'<rect x="{a:.1f}" y="{high}" width="{b - a:.1f}" height="{rows * line}" fill="#eee"/>')
        for tick in (-10, -1, -.1, 0, .1, 1, 10):
            x = x_of(tick, at)
            out.append(f'<path d="M{x:.1f} {high}V{high + rows * line}" stroke="#ccc"/><text x="{x:.1f}" '
                       f'y="{high + rows * line + 14}" text-anchor="middle">{tick:g}</text>')
        for k, r in enumerate(listed):
            y = high + k * line + line / 2
            if i == 0:
                out.append(f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{r.name}</text>')
            if math.isnan(r.mean):
                out.append(f'<text x="{at + wide - 4}" y="{y + 4}" text-anchor="end">diverged</text>')
                continue
            a, b, x = x_of(r.mean - r.half, at), x_of(r.mean + r.half, at), x_of(r.mean, at)
            colour = "#c33" if r.mean > r.half else "#286"
            out.append(f'<path d="M{a:.1f} {y}H{b:.1f}" stroke="{colour}" stroke-width="2"/>'
                       f'<circle cx="{x:.1f}" cy="{y}" r="3" fill="{colour}"/>')
    out.append(f'<text x="{left}" y="{height - 6}">grey: one standard deviation of seeds; lines: 95 % intervals; red: '
               'worse than bf16</text></svg>')
    write(path, "\n".join(out) + "\n")


def print_table(folder, steps):
    print(f"# {time.strftime('%Y-%m-%d')}, validation loss; a gap beside the noise of seeds")
    studies = {model: study(folder, model, steps) for model in MODELS}
    whole = {model: s for model, s in studies.items() if s}
    if whole:
        plot(f"{folder}/fidelity.svg", whole)
    return all("DOES NOT SHOW" not in r.said for s in whole.values() for r in s[0])


if sys.argv[1] == "rows":
    print_rows(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
else:
    sys.exit(0 if print_table(sys.argv[2], int(sys.argv[3])) else 1)
