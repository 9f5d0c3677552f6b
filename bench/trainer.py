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


def run(arguments, environment):
    done = subprocess.run(arguments, capture_output=True, text=True, env=os.environ | environment)
    with open(folder + "/log", "a") as f:
        f.write(done.stderr)
    if done.returncode != 0:    # a peer that died would be missing without a word
        print(f"# {' '.join(arguments)} ended with {done.returncode}", flush=True)
    return done.stdout


def seconds(text):
    return [float(word) for word in text.split()[SKIPPED:] if re.fullmatch(r"[0-9.]+", word)]


def command(model, batch, seq, steps):
    with open(folder + "/config.toml", "w") as f:
        f.write(f'[model]\nname = "{model}"\nflavor = "124M"\n[checkpoint]\ninterval = 0\n'
                "[metrics]\nlog_freq = 1\npeak_tflops = 1\n")
    return [worker, "train", folder + "/config.toml", "--job.dump_folder", folder + "/run",
            "--training.dataset_path", folder + "/text.tokens", "--training.seq_len", str(seq),
            "--training.local_batch_size", str(batch), "--training.steps", str(steps),
            "--training.threads", str(THREADS), "--lr_scheduler.warmup_steps", "1"]


def train(environment, model, batch, seq, *more):
    text = run(command(model, batch, seq, STEPS) + list(more), environment)
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


def step_times(environment, model, batch, seq, steps):
    """Of each step of a new training: seconds by the clock, and CPU seconds of all threads."""
    program = subprocess.Popen(command(model, batch, seq, steps), stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.DEVNULL, env=os.environ | environment)
    by_clock, used = [], []
    for line in program.stdout:
        rate = re.match(r"step .* (\d+) tokens/s", line)
        if rate:
            with open(f"/proc/{program.pid}/stat") as f:
                user, system = f.read().rsplit(") ")[1].split()[11:13]
            by_clock.append(batch * seq / int(rate.group(1)))
            used.append((int(user) + int(system)) / os.sysconf("SC_CLK_TCK"))
    program.wait()
    subprocess.run(["rm", "-rf", folder + "/run"], check=True)
    return by_clock, [after - before for before, after in zip(used, used[1:])]


def first_steps(rows):
    """The second step beside the eight after it, by the clock and by CPU time, which others on the machine lengthen
    less."""
    heading("second step s", "median of the next eight s", "by the clock",
            "second step CPU s", "median of the next eight CPU s", "by CPU time")
    for name, model, batch, seq in rows:
        runs = [step_times(SETS[name], model, batch, seq, 10) for _ in range(rounds)]
        second, later, second_cpu, later_cpu = (
            statistics.median(times) for times in zip(*(
                (clock[1], statistics.median(clock[2:]), cpu[0], statistics.median(cpu[1:]))
                for clock, cpu in runs)))
        print(f"| {name} | {model} | {batch} x {seq} | {second:.2f} | {later:.2f} | {second / later:.2f} x | "
              f"{second_cpu:.2f} | {later_cpu:.2f} | {second_cpu / later_cpu:.2f} x |", flush=True)


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
