# SPDX-License-Identifier: MIT
"""cost.py - the sweep behind cost.sh: a table in Markdown, and a plot in SVG.

    cost.py LBWORKER FOLDER OUT      FOLDER holds text.tokens, fma_peak and stream

Floors of a step: flop = (6 M + 6 L D T) x tokens / FMA peak, attention counted causally; bytes = 40 a
parameter / bandwidth: forward and backward read each weight, backward writes each gradient, AdamW reads
four arrays and writes three. They do not overlap much, so a step cannot be far below their sum.
"""
import math
import os
import re
import subprocess
import sys
import time

THREADS, STEPS, BYTES_A_PARAMETER = 2, 4, 40
SWEEPS = [  # title, what grows, points (label, family, flavour, batch, sequence)
    ("model", "parameters, batch 4 x 64", [
        ("llama 4M", "llama", "bytes-4M", 4, 64), ("Pythia 70M", "neox", "70M", 4, 64),
        ("GPT-2 124M", "gpt2", "124M", 4, 64), ("Pythia 160M", "neox", "160M", 4, 64)]),
    ("sequence", "tokens in a sequence, Pythia 70M, batch 2",
     [(str(t), "neox", "70M", 2, t) for t in (64, 128, 256, 512)]),
    ("batch", "sequences of 64 tokens, Pythia 70M",
     [(str(b), "neox", "70M", b, 64) for b in (1, 2, 4, 8, 16)]),
]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def options(folder, family, flavor, batch, seq):
    pairs = {"model.name": family, "model.flavor": flavor, "job.dump_folder": folder + "/run",
             "training.dataset_path": folder + "/text.tokens", "training.seq_len": seq,
             "training.local_batch_size": batch, "training.steps": STEPS,
             "training.threads": THREADS, "lr_scheduler.warmup_steps": 1, "metrics.log_freq": 1,
             "metrics.peak_tflops": 1, "checkpoint.interval": 0}
    return [word for k, v in pairs.items() for word in ("--" + k, str(v))]


def measure(worker, folder, point):
    """Parameters, causal FLOP a token, and seconds of the best step but the first."""
    config = folder + "/empty.toml"
    open(config, "w").close()
    plan = run(worker, "plan", config, *options(folder, *point))
    parameters = int(re.search(r": (\d+) parameters", plan).group(1))
    flop = float(re.search(r"\(PaLM\), ([0-9.e+-]+) causal", plan).group(1)) * 1e9
    # The last checkpoint, which every training writes, is not of interest: it is killed before.
    rates = []
    with subprocess.Popen([worker, "train", config, *options(folder, *point)],
                          stdout=subprocess.PIPE, text=True) as trainer:
        for line in trainer.stdout:
            found = re.match(r"step (\d+)/\d+ .* (\d+) tokens/s", line)
            if found and int(found.group(1)) > 1:
                rates.append(int(found.group(2)))
            if found and int(found.group(1)) == STEPS:
                trainer.kill()
    return parameters, flop, point[2] * point[3] / max(rates)


def main():
    worker, folder, out = sys.argv[1:4]
    peaks, streams, rows = [], [], []
    for sweep, _, points in SWEEPS:
        peaks.append(float(run(folder + "/fma_peak", str(THREADS))))
        streams.append(float(run(folder + "/stream", str(THREADS))))
        for label, *point in points:
            rows.append((sweep, label, point, *measure(worker, folder, point)))
    peak, stream = max(peaks) * 1e9, max(streams) * 1e9
    rows = [(sweep, label, tokens, parameters, seconds, flop * tokens / peak,
             BYTES_A_PARAMETER * parameters / stream)
            for sweep, label, point, parameters, flop, seconds in rows
            for tokens in [point[2] * point[3]]]
    head = (f"{time.strftime('%Y-%m-%d %H:%MZ', time.gmtime())}, {cpu()}, {THREADS} threads, fp32; FMA "
            f"peak {peak * 1e-9:.0f} GF/s (lowest {min(peaks):.0f}), memory {stream * 1e-9:.0f} GB/s, "
            f"load {os.getloadavg()[0]:.1f}")
    write_table(f"{out}/cost.md", head, rows)
    write_plot(f"{out}/cost.svg", head, rows)
    print(open(f"{out}/cost.md").read() + f"plot: {out}/cost.svg")


def cpu():
    with open("/proc/cpuinfo") as f:
        names = re.findall(r"model name\s*: (.*)", f.read())
    return names[0] if names else "unknown CPU"


def write_table(path, head, rows):
    with open(path, "w") as f:
        f.write(f"{head}\n\n| grows | at | tokens | step s | tokens/s | FLOP floor s | byte floor s "
                "| floors / step |\n|---|---|---|---|---|---|---|---|\n")
        for sweep, label, tokens, _, seconds, flop, moved in rows:
            f.write(f"| {sweep} | {label} | {tokens} | {seconds:.3f} | {tokens / seconds:.0f} | "
                    f"{flop:.3f} | {moved:.3f} | {(flop + moved) / seconds:.2f} |\n")


WIDTH, HEIGHT, MARGIN = 330, 300, 48
CURVES = [("step", "#1f5fa8", 4, ""), ("FLOP floor", "#c0392b", 5, "5 3"),
          ("byte floor", "#2e8b57", 6, "2 3")]


def write_plot(path, head, rows):
    low = min(min(r[4:7]) for r in rows) / 1.5
    high = max(max(r[4:7]) for r in rows) * 1.5

    def y_of(seconds):
        share = math.log(seconds / low) / math.log(high / low)
        return 40 + (1 - share) * (HEIGHT - 40 - MARGIN)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{3 * WIDTH}" height="{HEIGHT}" '
             'font-family="sans-serif" font-size="10">',
             '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="{MARGIN}" y="14">Seconds a step. {head}</text>']
    for i, (sweep, title, points) in enumerate(SWEEPS):
        mine = [r for r in rows if r[0] == sweep]
        xs = [i * WIDTH + MARGIN + k * (WIDTH - MARGIN - 30) / (len(mine) - 1)
              for k in range(len(mine))]
        parts += [f'<text x="{xs[0]:.0f}" y="32" font-weight="bold">{sweep}: {title}</text>']
        for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1):
            y = y_of(10 ** power)
            parts += [f'<line x1="{xs[0]:.0f}" x2="{xs[-1]:.0f}" y1="{y:.1f}" y2="{y:.1f}" '
                      f'stroke="#ddd"/><text x="{xs[0] - 6:.0f}" y="{y + 3:.1f}" '
                      f'text-anchor="end">{10 ** power:g}</text>']
        for x, row in zip(xs, mine):
            parts += [f'<text x="{x:.0f}" y="{HEIGHT - 30}" text-anchor="middle">{row[1]}</text>']
        for name, color, column, dash in CURVES:
            line = " ".join(f"{x:.1f},{y_of(r[column]):.1f}" for x, r in zip(xs, mine))
            parts += [f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2" '
                      f'stroke-dasharray="{dash}"/>']
    for k, (name, color, _, dash) in enumerate(CURVES):
        x = MARGIN + 120 * k
        parts += [f'<line x1="{x}" x2="{x + 24}" y1="{HEIGHT - 10}" y2="{HEIGHT - 10}" stroke="{color}" '
                  f'stroke-width="2" stroke-dasharray="{dash}"/>'
                  f'<text x="{x + 30}" y="{HEIGHT - 7}">{name}</text>']
    with open(path, "w") as f:
        f.write("\n".join(parts) + "\n</svg>\n")


if __name__ == "__main__":
    main()
