# SPDX-License-Identifier: MIT
"""batch.py FOLDER - submits every script of FOLDER by sbatch and by lbctl, and compares the jobs.

Comments in a script say how: "#ENV NAME=VALUE…" the environment, "#CLI …" options of the command
line, "#ARGS …" arguments of the script; below refused/ "#WANT …" is what lbctl must say, and
"#ONLY lbctl" marks what sbatch takes, "#UNTIL RELEASE" what it takes from then on. Speaks TAP lines without numbers: "ok NAME", "not ok NAME"."""
import glob
import json
import os
import re
import shlex
import subprocess
import sys
import time

HOME = os.environ["LB_HOME"]
THROUGH_COMMANDS = os.environ.get("LB_TEST_SLURM") == "commands"
BY_SBATCH = THROUGH_COMMANDS or os.environ.get("SUBMIT_WITH") == "sbatch"
RELEASE = subprocess.run(["sbatch", "--version"], stdout=subprocess.PIPE, text=True).stdout.split()[-1]
IDS_AND_TIMES = {"JobId", "ArrayJobId", "Priority", "Reason", "RunTime", "SubmitTime", "EligibleTime",
		 "AccrueTime", "StartTime", "EndTime", "LastSchedEval", "Scheduler", "PreemptTime",
		 "SuspendTime", "SecsPreSuspend", "SubmitLine", "SLUID"}


def words(script, mark):
	return [w for line in re.findall("^#%s (.*)$" % mark, script, re.M) for w in shlex.split(line)]


def call(command, script):
	env = dict(os.environ, **dict(w.split("=", 1) for w in words(script, "ENV")))
	return subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
			      timeout=30)


def report(good, name, *lines):
	print("ok" if good else "not ok", name)
	for line in lines if not good else ():
		print("#", line)


def by_sbatch(path, script):
	return call(["sbatch", "--parsable", "--hold", *words(script, "CLI"), path, *words(script, "ARGS")], script)


def by_lbctl(path, script, name):
	return call(["lbctl", "submit", "--name", name, *words(script, "CLI"), path, "--",
		     *words(script, "ARGS")], script)


def show():
	"""All jobs, by id: field → value. Times and ids within values are made alike."""
	jobs = {}
	text = subprocess.run(["scontrol", "show", "job", "-d"], stdout=subprocess.PIPE, text=True).stdout
	for record in text.strip().split("\n\n"):
		pairs = re.findall(r"(?:^|\s)([A-Z][A-Za-z:/]*(?:\([a-z]\))?)=((?:(?!\s[A-Z][A-Za-z:/]*=).)*)",
				   record.replace("\n", " "))
		fields = {k: v.strip() for k, v in pairs}
		number = fields.get("JobId", "")
		# The test's folder has a name by chance, in which the number may stand, too.
		fields = {k: re.sub(r"(?<!\d)%s(?!\d)" % number, "%j", re.sub(r"/lb\.\w{6}/", "/", v))
			  if k.startswith("Std") else v for k, v in fields.items() if k not in IDS_AND_TIMES}
		jobs[number] = fields
	return jobs


def alike(fields, is_ours):
	"""What lbd adds, and says that it adds: its token, and Requeue=0 since lbd itself relaunches.
	Reason and Priority are of the moment: sbatch's jobs are held, lbd's were and are released.
	What sbatch is given by lbd lies in the attempt's folder: Command shows that path."""
	fields = dict(fields)
	fields.pop("Requeue", None)
	fields["AllocNode:Sid"] = fields.get("AllocNode:Sid", "").split(":")[0]
	if THROUGH_COMMANDS:	# scontrol release of 24.11 sets it to 0
		fields.pop("OOMKillStep", None)
	if BY_SBATCH:
		fields["Command"] = re.sub(r"^\S+", "SCRIPT", fields["Command"])
	if is_ours:
		comment = re.sub(r"^lbd1:\S*\s*", "", fields.get("Comment", ""))
		fields.pop("Comment", None)
		if comment:
			fields["Comment"] = comment
	return fields


def batch_script(job):
	return subprocess.run(["scontrol", "write", "batch_script", job, "-"], stdout=subprocess.PIPE,
			      text=True).stdout.rstrip("\n")


def unwrapped(text, script):
	"""Ours is sbatch's with lbrun as its interpreter and a line that names the attempt."""
	first = script.split("\n", 1)[0]
	body = re.sub(r"^#LB attempt .*\n", "", text.split("\n", 1)[1] + "\n", count=1, flags=re.M)
	if BY_SBATCH:	# its options were on the command line: they are hidden from sbatch in the script
		body = re.sub(r"^#lbd#", "#", body, flags=re.M)
	return (first + "\n" + body).rstrip("\n")


def compare(paths):
	ours, theirs = {}, {}
	for path in paths:
		script = open(path, newline="").read()
		name = os.path.basename(path)[:-6]
		theirs[path] = by_sbatch(path, script)
		ours[path] = by_lbctl(path, script, "b-" + name)
	deadline = time.time() + 60
	while time.time() < deadline and any(r["state"] in ("created", "submitting") for r in json.loads(
			subprocess.run(["lbctl", "ls", "--json"], stdout=subprocess.PIPE, text=True).stdout)):
		time.sleep(0.1)
	jobs = show()
	tokens = {re.match(r"lbd1:\w*:(\w*)", f["Comment"]).group(1): n for n, f in jobs.items()
		  if f.get("Comment", "").startswith("lbd1:")}
	for path in paths:
		compare_one(path, ours[path], theirs[path], jobs, tokens)


def compare_one(path, ours, theirs, jobs, tokens):
	name = os.path.basename(path)[:-6]
	script = open(path, newline="").read()
	if theirs.returncode:	# this cluster lacks something: then both are refused, lbd's by the run's end
		why = ours.stderr
		if ours.returncode == 0:
			text = subprocess.run(["lbctl", "status", "b-" + name, "--json"], text=True,
					      stdout=subprocess.PIPE).stdout
			why = json.loads(text)["state"]
		report(ours.returncode or why == "failed", "both refuse %s: %s" % (name, theirs.stderr.strip()),
		       "sbatch: " + theirs.stderr.strip(), "lbd: " + why)
		return
	attempt = "%s/runs/b-%s/attempts/1/attempt.json" % (HOME, name)
	token = json.load(open(attempt))["token"] if os.path.exists(attempt) else None
	if token not in tokens:
		report(False, name, ours.stdout + ours.stderr, subprocess.run(
			["lbctl", "events", "b-" + name], stdout=subprocess.PIPE, text=True).stdout)
		return
	here, there = tokens[token], theirs.stdout.strip()
	a, b = alike(jobs[here], True), alike(jobs[there], False)
	differences = ["%s: sbatch %s, lbd %s" % (k, b.get(k), a.get(k))
		       for k in sorted(set(a) | set(b)) if a.get(k) != b.get(k)]
	if unwrapped(batch_script(here), script) != script.rstrip("\n"):
		differences.append("the batch script: " + batch_script(here))
	report(not differences, name, *differences)


def refused(paths):
	for path in paths:
		script = open(path, newline="").read()
		name = os.path.basename(path)[:-6]
		want = re.search("^#WANT (.*?)\r?$", script, re.M).group(1)
		ours = by_lbctl(path, script, "r-" + name)
		lines = ours.stderr.strip().split("\n")
		report(ours.returncode == 2 and len(lines) == 1 and want in lines[0],
		       "refused: " + name, "status %d, wanted %s" % (ours.returncode, want), *lines)
		takes_it_since = words(script, "UNTIL")
		if "#ONLY lbctl" not in script and not (takes_it_since and RELEASE >= takes_it_since[0]):
			theirs = by_sbatch(path, script)
			report(theirs.returncode != 0, "by sbatch, too: " + name, theirs.stdout)


def main():
	folder = os.path.abspath(sys.argv[1])
	compare(sorted(glob.glob(folder + "/*.slurm")))
	refused(sorted(glob.glob(folder + "/refused/*.slurm")))


if __name__ == "__main__":
	main()
