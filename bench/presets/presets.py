#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""presets.py - what lbworker answers to torchtitan's configuration files, as they lie in public.

    presets.py collect GIT OWNER/NAME FOLDER    every version of every preset in a repository's history
    presets.py try FOLDER [LBWORKER]            one line for each, and how many of each answer

FOLDER holds OWNER+NAME/COMMIT/PATH; the same content counts once, torchtitan's own first. Nothing of
it is kept here: presets.tsv beside this file names each by repository, commit and path, with its
answer, and docs/bench/PRESETS.md has the counts.

Answers: `taken` as it stands; `with a dataset`, once --dataset names tokens; `refused` for a feature
that lbworker(1) says it has not; `refused wrongly`: anything else.
"""
import collections
import concurrent.futures
import hashlib
import os
import re
import subprocess
import sys

UPSTREAM = "pytorch+torchtitan"
NOT_PRESETS = ("pyproject.toml", "Cargo.toml", "ruff.toml", "uv.toml")

# What a line of refusal is about. The first that matches, looked for in "key: text".
FEATURES = [
    (r"^parallelism\.\w*degree|^parallelism\.enable_async", "several ranks"),
    (r"^model\.name: ", "another model"),
    (r"^model\.flavor: ", "another model, or a flavor of a fork"),
    (r"^float8\.|^quantize\.|^mx\.|^model\.converters", "low bits"),
    (r"^training\.(dtype|mixed_precision_reduce)", "weights or sums in bfloat16"),
    (r"^training\.enable_cpu_offload", "offloading to the CPU"),
    (r"^optimizer\.early_step", "the update within backward"),
    (r"^optimizer\.name", "another optimizer"),
    (r"custom_(args_module|config_module|import)", "code that the file brings"),
    (r"^metrics\.enable_wandb", "Weights & Biases"),
    (r"^model\.norm_type", "another norm"),
    (r"^fault_tolerance\.", "torchft"),
    (r"^checkpoint\.(interval_type|load_step|create_seed|enable_first)", "a form of checkpoints"),
    (r"^training\.warmup_pct", "warm-up as a share of all steps"),
    (r": is \S+ by another name, which says otherwise", "a key by two names that differ"),
]


def git(repo, *words):
    return subprocess.run(["git", "-C", repo, *words], capture_output=True, check=True).stdout


def collect(repo, name, folder):
    log = git(repo, "log", "--format=C %H", "--raw", "--no-abbrev", "--no-renames",
              "--diff-filter=AM", "HEAD", "--", "*.toml").decode(errors="replace")
    seen, commit, count = set(), "", 0
    for line in log.splitlines():
        if line.startswith("C "):
            commit = line[2:]
        if not line.startswith(":"):
            continue
        meta, path = line.split("\t", 1)
        blob = meta.split()[3]
        if blob in seen or os.path.basename(path) in NOT_PRESETS or "/." in "/" + path:
            continue
        seen.add(blob)
        try:
            text = git(repo, "cat-file", "blob", blob)
        except subprocess.CalledProcessError:
            continue                # not in this copy of the repository
        if b"[training]" not in text and b"[model]" not in text:
            continue
        to = os.path.join(folder, name.replace("/", "+"), commit[:12], path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(to, "wb") as out:
            out.write(text)
        count += 1
    print(f"{name}: {count} versions")


def presets(folder):
    """(repository, commit, path, file) of each content."""
    seen = set()
    for name in sorted(os.listdir(folder), key=lambda n: (n != UPSTREAM, n)):
        top = os.path.join(folder, name)
        for where, folders, files in os.walk(top):
            folders.sort()
            for f in sorted(files):
                path = os.path.join(where, f)
                with open(path, "rb") as text:
                    digest = hashlib.sha1(text.read()).digest()
                if digest not in seen:
                    seen.add(digest)
                    commit, inside = os.path.relpath(path, top).split(os.sep, 1)
                    yield name, commit, inside, path


def refusals(lbworker, path, *options):
    """None when it is taken; else "key: what" of each refusal."""
    done = subprocess.run([lbworker, "train", path, "--check", *options], capture_output=True,
                          text=True, errors="replace", check=False)
    if done.returncode == 0:
        return None
    lines = [l[len("lbworker: "):] for l in done.stderr.splitlines() if l.startswith("lbworker: ")]
    return [re.sub("^" + re.escape(path) + r"(:\d+)?: ", "", l) for l in lines] or ["no word"]


def feature_of(line, own_keys):
    if "parsing" in line or "Error while" in line:
        return "not TOML"
    if re.search(r": unknown (key|section)", line):
        return None if line.split(":")[0] in own_keys else "a key that torchtitan has not"
    for pattern, feature in FEATURES:
        if re.search(pattern, line):
            return feature
    return None


def main_try(folder, lbworker):
    every = list(presets(folder))

    def ask(preset):
        path = preset[3]
        if refusals(lbworker, path) is None:
            return []
        return refusals(lbworker, path, "--dataset", "x", "--validation.dataset_path", "x")

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(ask, every))
    # Keys of files that torchtitan itself trains a Llama with, and of nobody else.
    own_keys = {l.split(":")[0] for p, a in zip(every, answers) if p[0] == UPSTREAM and a
                and all(re.search(": unknown (key|section)", l) for l in a) for l in a}
    counts, features = collections.Counter(), collections.Counter()
    for (name, commit, path, _), lines in zip(every, answers):
        kinds = sorted({feature_of(l, own_keys) or "?" + l for l in lines or []})
        if lines is None:
            answer = "with a dataset"
        elif not lines:
            answer = "taken"
        else:
            answer = "refused wrongly" if any(k[0] == "?" for k in kinds) else "refused"
        counts[answer] += 1
        features.update(kinds if answer == "refused" else [])
        print(name.replace("+", "/", 1), commit, path, answer, "; ".join(kinds), sep="\t")
    print(f"{len(every)} files", file=sys.stderr)
    for answer, count in counts.most_common():
        print(f"{count:5} {answer}", file=sys.stderr)
    for feature, count in features.most_common():
        print(f"      {count:5} for {feature}", file=sys.stderr)
    return 1 if counts["refused wrongly"] else 0


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "collect":
        collect(*sys.argv[2:])
    elif len(sys.argv) in (3, 4) and sys.argv[1] == "try":
        sys.exit(main_try(sys.argv[2], sys.argv[3] if len(sys.argv) == 4 else "build/lbworker"))
    else:
        sys.exit(__doc__)
