#!/bin/sh
# SPDX-License-Identifier: MIT
# The signal before the time limit reaches trainers behind srun, torchrun and mpirun, which pass on
# none as it is: all ranks get the time for a last checkpoint, and the next attempt begins with it
# at once.
#
# torchrun and mpirun are the real ones where the machine has them. Elsewhere scripts of the same
# names do what those were seen to do with signals; the names of the tests say which it was.
. "$(dirname "$0")/lib.sh"
cluster_start 1
lbd_start

# Two ranks that know nothing of lowbits; each takes three seconds for its part of the checkpoint.
cat >"$T/rank.py" <<'END'
import os, pathlib, signal, subprocess, sys, time

env = os.environ
rank = next(env[k] for k in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID") if k in env)
root = pathlib.Path(env["LB_CHECKPOINT_DIR"])
start = int(env.get("LB_RESUME_FROM", "step-0").rsplit("-", 1)[1])
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
helper = 0
if sys.argv[1:] != ["alone"]:	# a loader of data: without it no rank can go on
    rank_pid = os.getpid()
    helper = os.fork()
    if helper == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        while os.getppid() == rank_pid:
            time.sleep(0.1)
        os._exit(0)
folder = root / f"step-{start + 5}"
folder.mkdir(parents=True, exist_ok=True)
(folder / f"works.{rank}").touch()
if start:
    sys.exit(0)
while not asked:
    time.sleep(0.05)
for _ in range(30):
    time.sleep(0.1)
    if helper and os.waitpid(helper, os.WNOHANG)[0]:
        sys.exit("my helper is gone")
(folder / f"part.{rank}").touch()
if all((folder / f"part.{r}").exists() for r in "01"):
    (folder / "complete").touch()
END

# both NAME LAUNCHER WHAT COMMAND…: two ranks behind it, from the first signal to the end of the
# run.
both() {
	name=$1 launcher=$2 what=$3
	shift 3
	printf '[run]\nname = "%s"\nlauncher = "%s"\ncommand = [%s]\n' "$name" "$launcher" \
		"$(printf '"%s", ' "$@")" >"$T/$name.toml"
	cat >>"$T/$name.toml" <<-'END'
	[slurm]
	ntasks_per_node = 2
	time = "20m"
	signal_before = "5m"
	[checkpoint]
	pattern = "step-{step}"
	complete_when = "complete"
	END
	lbctl submit "$T/$name.toml" >/dev/null || failed "$what: cannot be submitted"
	folder=$LB_HOME/runs/$name/checkpoints/step-5
	wait_for "[ -e $folder/works.0 ] && [ -e $folder/works.1 ]" 60 || return
	# Slurm does just this when the time has come.
	scancel --batch --signal=USR1 "$(lbctl status "$name" --json | json attempts.0.job_id)"
	run_reaches "$name" completed 60
	status=$(lbctl status "$name" --json)
	ok "$what: each rank saved its part" [ -e "$folder/part.0" -a -e "$folder/part.1" ]
	is "$(echo "$status" | json attempts.0.cause)" timeout "$what: the first attempt ended for its time limit"
	is "$(echo "$status" | json attempts.#) $(echo "$status" | json attempts.1.resumed_from_step)" "2 5" \
		"$what: the second one went on from there"
	like "$(lbctl events "$name")" "next attempt in 0s" "$what: at once"
}

# find_launcher PROGRAM [ARG…]: does it run here? Else the script of that name in warned/.
find_launcher() {
	if "$@" >"$T/probe" 2>&1; then
		path=$1 what="$1 (real)"
	else
		path=$src/tests/system/warned/$1 what="$1 (a stand-in: no working $1 here)"
	fi
}

echo 'import os' >"$T/probe.py"
both srun srun "srun in front of lbrun's ranks" python3 "$T/rank.py"
# Only Slurm can reach those ranks, and it signals every process of theirs.
both own-srun none "srun in the command" srun -n 2 --overlap python3 "$T/rank.py" alone
# --redirects and --tee are its defaults, which version 1.13 cannot read with Python 3.11.
find_launcher torchrun --log_dir "$T/torch" --redirects 1 --tee 1 --nproc_per_node 2 "$T/probe.py"
both torchrun none "$what" "$path" --log_dir "$T/torch" --redirects 1 --tee 1 --nproc_per_node 2 "$T/rank.py"
# It would start daemons of its own by srun, for the node's name is not this host's.
find_launcher mpirun --mca plm isolated --mca ras ^slurm --oversubscribe -np 2 true
case $what in *real*) set -- --mca plm isolated --mca ras ^slurm --oversubscribe ;; *) set -- ;; esac
both mpirun none "$what" "$path" "$@" -np 2 python3 "$T/rank.py"
done_testing
