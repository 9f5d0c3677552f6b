#!/bin/sh
# SPDX-License-Identifier: MIT
# lbrun is the interpreter of a job's script, and the kernel reads little of a script's first line:
# programs in a folder whose path is long or has a blank work like any others, and the environment
# arrives whole. Where $LB_HOME is no way out either, lbd says so and does not start.
. "$(dirname "$0")/lib.sh"
programs=$B
long=$(printf '%0120d' 0)

cat >"$T/tell.py" <<'END'
#!/usr/bin/python3
#SBATCH --mem=100M
import os, sys
data = open("/proc/self/environ", "rb").read()
sys.exit(b"BASH_FUNC_module%%=() {  :\n}\0" not in data)
END
cat >"$T/submit.py" <<'END'
import os, subprocess, sys
env = {**os.environb, b"BASH_FUNC_module%%": b"() {  :\n}"}
sys.exit(subprocess.run(sys.argv[1:], env=env, stdout=subprocess.DEVNULL).returncode)
END
installed() {	# FOLDER: a copy of the programs there
	mkdir -p "$T/$1"
	cp "$programs/lbd" "$programs/lbrun" "$programs/lbctl" "$T/$1/"
	[ ! -e "$programs/lbd-slurm" ] || cp "$programs/lbd-slurm" "$T/$1/"
	B=$T/$1
}
runs() {	# NAME
	lbd_start
	ok "$1: a script is submitted" python3 "$T/submit.py" "$B/lbctl" submit --name "$1" "$T/tell.py"
	run_reaches "$1" completed 60
	passed "$1: it has run, and a function was in its environment"
	ok "$1: a command, too" "$B/lbctl" submit --name "$1-c" -- true
	run_reaches "$1-c" completed 60
	lbd_stop
}

cluster_start 1
cd "$T" || exit 1
for scheduler in slurm local; do
	printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
	[ $scheduler = slurm ] || { cluster_stop; SLURM_CONF=$T/none; }
	installed "with a blank"
	runs blank-$scheduler
	installed "$long/$long"
	runs long-$scheduler
	is "$(readlink "$LB_HOME/lbrun")" "$B/lbrun" "$scheduler: by a link of its own"
done

LB_HOME="$T/a home"
mkdir -m 700 "$LB_HOME"
exits 2 "both of them: refused" "$B/lbd" --home "$LB_HOME" --foreground
like "$err" "^lbd: .*runs.lbrun: no script can begin with .*at most 118 characters long and hold no blank" "with a line"
is "$(printf '%s\n' "$err" | wc -l)" 1 "and no more"
ok "lbrun at a short path is enough" sh -c 'printf "[runs]\nlbrun = \"/usr/bin/lbrun\"\n" >"$LB_HOME/lbd.toml" &&
	"$1/lbd" --home "$LB_HOME" --check-config' sh "$B"
done_testing
