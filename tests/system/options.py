# SPDX-License-Identifier: MIT
"""options.py COUNT SEED - pairs and triples of sbatch's options, drawn by SEED: each job is submitted by
sbatch and by lbctl, and what Slurm has made of the two is compared, field by field.

Prints one line for each combination that differs, then how many were compared. Where sbatch refuses, or
Slurm, lbctl has to, too."""
import itertools
import json
import os
import random
import subprocess
import sys
import time

from batch import alike, show

TOLD_EACH = 5		# every fifth is asked of --dry-run, too

# What counts: nodes, tasks, CPUs, GPUs, memory, where and when. Two values where the size matters.
OPTIONS = [
	["--nodes=1", "--nodes=2", "--nodes=1-2"], ["--ntasks=1", "--ntasks=4", "--ntasks=6"],
	["--ntasks-per-node=1", "--ntasks-per-node=3"], ["--ntasks-per-core=1", "--ntasks-per-core=2"],
	["--ntasks-per-socket=1", "--ntasks-per-socket=2"], ["--ntasks-per-gpu=1", "--ntasks-per-gpu=2"],
	["--cpus-per-task=1", "--cpus-per-task=2"], ["--cpus-per-gpu=1", "--cpus-per-gpu=2"],
	["--gpus=1", "--gpus=4"], ["--gpus-per-node=1", "--gpus-per-node=2"], ["--gpus-per-task=1"],
	["--gpus-per-socket=1"], ["--gres=gpu:1", "--gres=gpu:2"],
	["--mem=64", "--mem=1G", "--mem=0"], ["--mem-per-cpu=16"], ["--mem-per-gpu=32"],
	["--hint=nomultithread", "--hint=multithread", "--hint=compute_bound", "--hint=memory_bound"],
	["--threads-per-core=1", "--threads-per-core=2"], ["--cores-per-socket=1", "--cores-per-socket=2"],
	["--sockets-per-node=1"], ["--extra-node-info=1:2", "--extra-node-info=1:2:1", "--extra-node-info=*:1"],
	["--mincpus=1", "--mincpus=3"], ["--overcommit"], ["--exclusive", "--exclusive=user"],
	["--oversubscribe"], ["--contiguous"], ["--spread-job"], ["--use-min-nodes"],
	["--nodelist=n1", "--nodelist=n[1-2]"], ["--exclude=n2"], ["--constraint=fast", "--constraint=fast&big"],
	["--distribution=cyclic", "--distribution=block:cyclic", "--distribution=plane=2"],
	["--core-spec=1", "--thread-spec=1"], ["--time=10", "--time=1-0"], ["--time-min=5"],
	["--begin=2030-01-01T00:00:00"], ["--deadline=2031-01-01"], ["--signal=B:USR1@60", "--signal=TERM"],
	["--array=0-3", "--array=1-9:2%2"], ["--licenses=idl:1"], ["--nice=5", "--nice"], ["--tmp=1"],
	["--switches=1@5"], ["--wait-all-nodes=1"], ["--no-kill"], ["--reboot"],
	["--dependency=afterany:1", "--dependency=singleton"], ["--mail-type=FAIL,END"],
	["--gres-flags=disable-binding", "--gres-flags=enforce-binding"], ["--gpu-bind=closest"],
	["--job-name=x"], ["--comment=hello"], ["--open-mode=append"], ["--output=o-%j"], ["--error=e-%A_%a"],
	["--kill-on-invalid-dep=yes"], ["--cpu-freq=low"], ["--profile=task"], ["--mem-bind=local"],
]


def combinations(count, dice):
	"""Pairs and triples, half of each; those of sizes three times as often as the rest."""
	seen = set()
	while len(seen) < count:
		pool = OPTIONS[:25] if dice.random() < 0.75 else OPTIONS
		chosen = dice.sample(pool, dice.choice((2, 3)))
		words = tuple(dice.choice(values) for values in chosen)
		if words not in seen:
			seen.add(words)
			yield words


def call(*command):
	return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)


def submit(number, words):
	theirs = call("sbatch", "--parsable", "--hold", *words, "job.slurm")
	ours = call("lbctl", "submit", "--name", "o-%d" % number, *words, "job.slurm")
	return theirs, ours


def state_of(name):
	return json.loads(call("lbctl", "status", name, "--json").stdout)["state"]


def wait_for_lbd():
	deadline = time.time() + 600
	while time.time() < deadline:
		runs = json.loads(call("lbctl", "ls", "--json").stdout)
		if not any(r["state"] in ("created", "submitting", "backoff") for r in runs):
			return
		time.sleep(0.2)
	raise SystemExit("lbd did not submit all of them")


def is_hopeless(ours):
	"""lbd says at once what Slurm shows as a reason to wait for ever."""
	return ours.returncode != 0 and "it could never start" in ours.stderr


def differences(number, theirs, ours, jobs, by_token):
	if theirs.returncode == 0 and is_hopeless(ours):
		return []
	name = "o-%d" % number
	if theirs.returncode:
		if ours.returncode or state_of(name) == "failed":
			return []
		return ["sbatch refuses (%s), lbd does not" % theirs.stderr.strip()]
	attempt = "%s/runs/%s/attempts/1/attempt.json" % (os.environ["LB_HOME"], name)
	if ours.returncode or not os.path.exists(attempt):
		return ["lbd refuses: %s" % (ours.stderr.strip() or state_of(name))]
	with open(attempt) as f:
		here = by_token.get(json.load(f)["token"])
	if here is None:
		return ["lbd's job was refused: %s" % call("lbctl", "events", name).stdout.strip().split("\n")[-1]]
	a, b = alike(jobs[here], True), alike(jobs[theirs.stdout.strip().split(";")[0]], False)
	return ["%s: sbatch %s, lbd %s" % (k, b.get(k), a.get(k))
		for k in sorted(set(a) | set(b)) if a.get(k) != b.get(k)]


def told(words, theirs, ours, jobs):
	"""--dry-run says how much the job has; Slurm knows."""
	if theirs.returncode or is_hopeless(ours):
		return []
	dry = call("lbctl", "submit", "--dry-run", "--json", *words, "job.slurm")
	if dry.returncode:
		return ["--dry-run: " + dry.stderr.strip()]
	totals, job = json.loads(dry.stdout)["totals"], jobs[theirs.stdout.strip().split(";")[0]]
	slurms = {"nodes": int(job["NumNodes"].split("-")[0]), "tasks": int(job["NumTasks"])}
	# Slurm may think of more nodes for them before it starts the job
	return ["--dry-run: %s=%d, Slurm %d" % (k, totals[k], slurms[k]) for k in slurms
		if totals[k] != slurms[k] and not (k == "nodes" and totals[k] < slurms[k])]


def main():
	count, seed = int(sys.argv[1]), int(sys.argv[2])
	drawn = list(combinations(count, random.Random(seed)))
	answers = [submit(i, words) for i, words in enumerate(drawn)]
	wait_for_lbd()
	jobs = show()
	by_token = {f["Comment"].split(":")[2].split(" ")[0]: n for n, f in jobs.items()
		    if f.get("Comment", "").startswith("lbd1:")}
	differing = refused = hopeless = 0
	for i, (theirs, ours) in enumerate(answers):
		found = differences(i, theirs, ours, jobs, by_token)
		if i % TOLD_EACH == 0:
			found += told(drawn[i], theirs, ours, jobs)
		refused += theirs.returncode != 0
		hopeless += theirs.returncode == 0 and is_hopeless(ours)
		differing += bool(found)
		if found:
			print(" ".join(drawn[i]), "|", "; ".join(found))
	print("compared %d combinations (%d of them refused by sbatch, %d more by lbd, for they could "
	      "never start), seed %d: %d differ" % (count, refused, hopeless, seed, differing))
	return differing != 0


if __name__ == "__main__":
	sys.exit(main())
