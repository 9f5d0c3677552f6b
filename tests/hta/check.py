#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check.py - traces beside HolisticTraceAnalysis (make check-hta): it reads those of a training on two emulated GPUs, and
`lbworker trace summary` says of them, and of invented ones with streams that overlap, what it says: compute, idle and the rest of each
rank, and how much of communication is hidden behind compute.

    check.py LBWORKER [FOLDER OF THE EMULATED CUDA LIBRARY] [--worlds N]
"""
import argparse
import glob
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import warnings

from hta.trace_analysis import TraceAnalysis

logging.disable(logging.WARNING)
warnings.simplefilter("ignore")
ROUND = 0.02  # percent of the whole: shares and milliseconds are printed with so many digits
failed = 0


def ok(good, what):
    global failed
    print(("ok - " if good else "not ok - ") + what, flush=True)
    failed += not good


def summary(lbworker, folder):
    """{rank: {part: ms}}, as lbworker prints it."""
    text = subprocess.run([lbworker, "trace", "summary", folder], check=True, capture_output=True, text=True).stdout
    rows, names = {}, None
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["rank"]:
            names = words[1:]
        elif names and words[0].isdigit() and len(words) == len(names) + 2 and words[-1] == "%":
            rows[int(words[0])] = dict(zip(names, map(float, words[1:-1])))
    return rows


def slack(path, whole_us):
    """HTA rounds each span's times to microseconds: in percent of the whole."""
    with open(path) as file:
        spans = [e for e in json.load(file)["traceEvents"] if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    return ROUND + 100 * sum(e["ts"] % 1 != 0 for e in spans) / whole_us


def same(lbworker, folder, files, what):
    ours = summary(lbworker, folder)
    analysis = TraceAnalysis(trace_files=files, trace_dir=folder)
    times = analysis.get_temporal_breakdown(visualize=False)
    hidden = analysis.get_comm_comp_overlap(visualize=False)
    worst, telling, may_be = 0.0, [], ROUND
    for _, row in times.iterrows():
        rank, mine = int(row["rank"]), ours[int(row["rank"])]
        whole = row["kernel_time(us)"]
        may_be = max(may_be, slack(files[rank], whole))
        pairs = {
            "idle": (row["idle_time(us)"], mine["idle"] * 1e3),
            "compute": (row["compute_time(us)"], (mine["compute"] + mine["overlap"]) * 1e3),
            "rest": (row["non_compute_time(us)"], (mine["communication"] + mine["copy"]) * 1e3),
        }
        for name, (theirs, our) in pairs.items():
            worst = max(worst, 100 * abs(theirs - our) / whole)
            telling.append(f"rank {rank} {name}: HTA {theirs / 1e3:.3f} ms, lbworker {our / 1e3:.3f} ms")
    for _, row in hidden.iterrows():
        mine = ours[int(row["rank"])]
        exchange = mine["communication"] + mine["overlap"]
        our = 100 * mine["overlap"] / exchange if exchange else 0
        worst = max(worst, abs(row["comp_comm_overlap_pctg"] - our))
        telling.append(f"rank {int(row['rank'])} hidden: HTA {row['comp_comm_overlap_pctg']:.2f} %, lbworker {our:.2f} %")
    ok(worst <= may_be and len(ours) == len(times), f"{what}: at most {worst:.4f} % apart")
    if worst > may_be or "-v" in sys.argv:
        print("\n".join("# " + line for line in telling))


def invent(folder, rng):
    """Two ranks with kernels on three streams, which overlap as they like."""
    files = {}
    for rank in range(2):
        events, correlation = [], 1
        for stream, names in ((7, ["gemm", "rmsnorm"]), (20, ["ncclDevKernel_SendRecv"]), (9, ["Memcpy HtoD (Pinned -> Device)"])):
            at = rng.uniform(1000, 1400)
            for _ in range(rng.randint(20, 60)):
                length = rng.randint(1, 90)
                name = rng.choice(names)
                cat = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
                args = {"device": 0, "stream": stream, "correlation": correlation}
                events.append({"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": stream, "ts": round(at), "dur": length, "args": args})
                events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 0, "tid": 0,
                               "ts": round(at) - 5, "dur": 2, "args": {"correlation": correlation}})
                correlation += 1
                at += length + rng.choice([0, 0, rng.randint(1, 60)])
        events.append({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 0, "tid": 0, "ts": 900, "dur": 9000, "args": {}})
        path = os.path.join(folder, f"rank{rank}.1.pt.trace.json")
        with open(path, "w") as out:
            json.dump({"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}, out)
        files[rank] = path
    return files


def train(lbworker, emulated, folder):
    """Two ranks on emulated GPUs, arrays between them by the stand-in of NCCL: the traces of one step."""
    script = f". tests/ranks/training.sh; ranks_tokens {lbworker} {folder}; ranks_config {folder} 8 20 0 >{folder}/small.toml"
    subprocess.run(["sh", "-c", script], check=True)
    env = dict(os.environ, LB_CUDA_LIBRARY=f"{emulated}/liblbcuda-emulated.so", LB_NCCL_LIBRARY=f"{emulated}/liblbnccl-standin.so")
    subprocess.run([lbworker, "train", f"{folder}/small.toml", "--device", "cuda", "--ranks", "2", "--training.steps", "4",
                    "--job.dump_folder", f"{folder}/out", "--checkpoint.enable", "false", "--profiling.enable_profiling", "true",
                    "--profiling.profile_freq", "4"], check=True, env=env, stdout=subprocess.DEVNULL)
    where = f"{folder}/out/profile_traces/iteration_4"
    return where, {rank: glob.glob(f"{where}/rank{rank}.*")[0] for rank in range(2)}


def main():
    words = argparse.ArgumentParser()
    words.add_argument("lbworker")
    words.add_argument("emulated", nargs="?")
    words.add_argument("--worlds", type=int, default=5)
    words.add_argument("-v", action="store_true")
    options = words.parse_args()
    for world in range(options.worlds):
        with tempfile.TemporaryDirectory() as folder:
            same(options.lbworker, folder, invent(folder, random.Random(world)), f"invented traces {world}")
    if options.emulated and os.path.exists(f"{options.emulated}/liblbcuda-emulated.so"):
        with tempfile.TemporaryDirectory() as folder:
            where, files = train(options.lbworker, options.emulated, folder)
            same(options.lbworker, where, files, "a training on two emulated GPUs")
    else:
        print("# left out: a training, for there is no emulated CUDA library (make CUDA=1 gpu-parts)")
    sys.exit(failed > 0)


main()
