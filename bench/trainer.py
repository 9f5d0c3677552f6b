# SPDX-License-Identifier: MIT
"""trainer.py - the rows behind trainer.sh, in Markdown.

    trainer.py LBWORKER FOLDER ROUNDS speed|shared|steps
                            FOLDER holds text.tokens, fma_peak, perhaps peer_llmc

The share of the peak is that of a step's arithmetic alone: 6 flop per multiplied parameter and token, and
12 L D T for attention, of which a causal one needs half; memory traffic makes 1 unreachable.
"""
import contextlib
import fnmatch
import os
import re
import resource
import statistics
import subprocess
import sys
import time

MULTIPLIED, LAYERS, WIDTH, THREADS, STEPS, SKIPPED = 123568128, 12, 768, 2, 7, 2
NEIGHBOURS = 2
SHAPES = [(4, 64), (2, 512), (1, 1024)]
SETS = {  # what keeps each program from wider instructions
    "avx512": {"LB_CPU_ISA": "avx512", "ATEN_CPU_CAPABILITY": "avx512", "OPENBLAS_CORETYPE": "SKYLAKEX"},
    "avx2": {"LB_CPU_ISA": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "OPENBLAS_CORETYPE": "HASWELL",
             "ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
}
worker, folder, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
here = os.path.dirname(os.path.abspath(__file__))


def cpu(key):
    with open("/proc/cpuinfo") as f:
        found = re.search(rf"^{key}\s*: (.*)", f.read(), re.M)
    return found.group(1) if found else ""


def run(command, environment):
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
    with open(folder + "/log", "a") as f:
        f.write(done.stderr)
    return done.stdout


def seconds(text):
    return [float(word) for word in text.split()[SKIPPED:] if re.fullmatch(r"[0-9.]+", word)]


def train(environment, model, batch, seq, *more, steps=STEPS):
    with open(folder + "/config.toml", "w") as f:
        f.write(f'[model]\nname = "{model}"\nflavor = "124M"\n[checkpoint]\ninterval = 0\n'
                "[metrics]\nlog_freq = 1\npeak_tflops = 1\n")
    text = run([worker, "train", folder + "/config.toml", "--job.dump_folder", folder + "/run",
                "--training.dataset_path", folder + "/text.tokens", "--training.seq_len", str(seq),
                "--training.local_batch_size", str(batch), "--training.steps", str(steps),
                "--training.threads", str(THREADS), "--lr_scheduler.warmup_steps", "1", *more],
               environment)
    return [batch * seq / int(rate) for rate in re.findall(r"(\d+) tokens/s", text)]


def lbworker(environment, model, batch, seq):
    steps = train(environment, model, batch, seq)
    subprocess.run(["rm", "-rf", folder + "/run"], check=True)
    return steps[SKIPPED:]


def torch(mode):
    def measure(environment, model, batch, seq):
        more = {"OMP_NUM_THREADS": str(THREADS), "OMP_PROC_BIND": "true"}
        if os.environ.get("LB_BENCH_BLAS"):
            more["LD_LIBRARY_PATH"] = os.environ["LB_BENCH_BLAS"]
        return seconds(run([os.environ["LB_BENCH_TORCH"], here + "/peer_torch.py", model, mode,
                            str(batch), str(seq), str(STEPS), str(THREADS)], environment | more))
    return measure


def llmc(environment, model, batch, seq):
    if model != "gpt2":
        return []
    return seconds(run([folder + "/peer_llmc", str(batch), str(seq), str(SKIPPED + 2)],
                       environment | {"OMP_NUM_THREADS": str(THREADS), "OMP_PROC_BIND": "true"}))


def peak(environment):
    return float(run([folder + "/fma_peak", str(THREADS)], environment) or "nan")


def operations(environment, model, batch, seq):
    """Milliseconds of one step by operation, the longest first."""
    train(environment, model, batch, seq, "--profiling.enable_profiling", "true",
          "--profiling.profile_freq", "4")
    text = run([worker, "trace", "summary", folder + "/run"], environment)
    subprocess.run(["rm", "-rf", folder + "/run"], check=True)
    return text.strip()


@contextlib.contextmanager
def neighbours(count):
    """So many programs that want a core each."""
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for program in busy:
            program.kill()
            program.wait()


def shared(rows):
    """What each program keeps of its speed beside two neighbours: alone and beside them in turn."""
    heading("program", "tokens/s alone", f"beside {NEIGHBOURS}", "kept")
    peers = programs()
    for name, model, batch, seq in rows:
        alone, beside = ({peer: [] for peer in peers} for _ in range(2))
        for _ in range(rounds):
            for peer, measure in peers.items():
                alone[peer] += measure(SETS[name], model, batch, seq)
                with neighbours(NEIGHBOURS):
                    beside[peer] += measure(SETS[name], model, batch, seq)
        for peer in peers:
            if alone[peer] and beside[peer]:
                quiet, busy = (batch * seq / statistics.median(of[peer]) for of in (alone, beside))
                print(f"| {name} | {model} | {batch} x {seq} | {peer} | {quiet:.0f} | {busy:.0f} | "
                      f"{busy / quiet:.2f} |", flush=True)


def cpu_seconds(environment, model, batch, seq, steps):
    """Of a whole training of so many steps: CPU seconds, and the seconds of each step by the clock."""
    used = [resource.getrusage(resource.RUSAGE_CHILDREN)]
    by_clock = train(environment, model, batch, seq, steps=steps)
    used.append(resource.getrusage(resource.RUSAGE_CHILDREN))
    subprocess.run(["rm", "-rf", folder + "/run"], check=True)
    before, after = (u.ru_utime + u.ru_stime for u in used)
    return after - before, by_clock


def first_steps(rows):
    """The second step beside the eight after it, by the clock and by the CPU time of trainings that end there."""
    heading("second step s", "mean of the next eight s", "the second by the clock", "second step CPU s",
            "mean of the next eight CPU s", "the second by CPU time")
    for name, model, batch, seq in rows:
        second, later, second_cpu, later_cpu = ([] for _ in range(4))
        for _ in range(rounds):
            (one, _), (two, _), (ten, by_clock) = (
                cpu_seconds(SETS[name], model, batch, seq, steps) for steps in (1, 2, 10))
            second.append(by_clock[1])
            later.append(statistics.mean(by_clock[2:]))
            second_cpu.append(two - one)
            later_cpu.append((ten - two) / 8)
        cells = [statistics.median(times) for times in (second, later, second_cpu, later_cpu)]
        print(f"| {name} | {model} | {batch} x {seq} | {cells[0]:.2f} | {cells[1]:.2f} | "
              f"{cells[0] / cells[1]:.2f} x | {cells[2]:.2f} | {cells[3]:.2f} | "
              f"{cells[2] / cells[3]:.2f} x |", flush=True)


def row(name, environment, model, batch, seq, peers):
    measured, peaks, loads = {peer: [] for peer in peers}, [], []
    for _ in range(rounds):
        peaks.append(peak(environment))
        loads.append(os.getloadavg()[0])
        for peer, measure in peers.items():
            measured[peer] += measure(environment, model, batch, seq)
    flop = 6 * MULTIPLIED + 6 * LAYERS * WIDTH * seq
    mine = measured["lbworker"]
    for peer, steps in measured.items():
        if not steps:
            continue
        best, median = (batch * seq / pick(steps) for pick in (min, statistics.median))
        print(f"| {name} | {model} | {batch} x {seq} | {peer} | {best:.0f} | {median:.0f} | "
              f"{best * flop / (max(peaks) * 1e9):.2f} | {min(steps) / min(mine):.2f} | "
              f"{statistics.median(steps) / statistics.median(mine):.2f} | {max(peaks):.0f} | "
              f"{min(loads):.1f}-{max(loads):.1f} |", flush=True)


def heading(*columns):
    print(f"{time.strftime('%Y-%m-%d %H:%MZ', time.gmtime())}, {cpu('model name')}, {os.cpu_count()} CPUs, "
          f"{THREADS} threads, fp32, load {os.getloadavg()[0]:.1f}\n\n"
          f"| instructions | model | tokens | {' | '.join(columns)} |\n" + "|---" * (3 + len(columns)) + "|")


def programs():
    peers = {"lbworker": lbworker}
    if os.environ.get("LB_BENCH_TORCH"):
        version = run([os.environ["LB_BENCH_TORCH"], "-c", "import torch; print(torch.__version__)"], {})
        if int(version.split(".")[0] or 0) >= 2:
            peers[f"PyTorch {version.split('+')[0].strip()} compiled"] = torch("compiled")
        peers[f"PyTorch {version.split('+')[0].strip()} eager"] = torch("eager")
    if os.path.exists(folder + "/peer_llmc"):
        peers["llm.c"] = llmc
    return peers


def speed(rows):
    heading("program", "best tokens/s", "median", "of the peak", "lbworker is faster, best", "median",
            "peak GF/s", "load")
    peers = programs()
    for name, model, batch, seq in rows:
        row(name, SETS[name], model, batch, seq, peers)
    for name, model, batch, seq in rows:
        print(f"\nBy operation, {name}, {model}, {batch} x {seq}:\n\n"
              f"{operations(SETS[name], model, batch, seq)}")


def main():
    flags = cpu("flags").split()
    sets = [s for s in SETS if {"avx512": "avx512f"}.get(s, s) in flags]
    wanted = os.environ.get("LB_BENCH_ROWS", "*").split()
    rows = [(name, model, batch, seq) for name in sets for model in ("gpt2", "llama")
            for batch, seq in SHAPES
            if any(fnmatch.fnmatch(f"{name}/{model}/{batch}x{seq}", w) for w in wanted)]
    {"speed": speed, "shared": shared, "steps": first_steps}[sys.argv[4]](rows)


if __name__ == "__main__":
    main()
