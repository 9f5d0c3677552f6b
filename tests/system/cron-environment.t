#!/bin/sh
# SPDX-License-Identifier: MIT
# What a script of cron meets is what lbd(8) says, byte for byte, and nothing else: what a login
# gives, of lbd's own environment what lbctl submit takes along, then the file "environment", then
# the crontab's lines. Names and values are such as people have: empty, of several lines, in quotes,
# no UTF-8, shell functions.
. "$(dirname "$0")/lib.sh"

cat >"$T/front.py" <<'END'
# An lbd that was started with all this.
import os, sys
env = dict(os.environb)
env.update({
    b"PYTHONPATH": b"/a b:'c':\"$(d)`e`\\", b"VIRTUAL_ENV": b"", b"LD_LIBRARY_PATH": b"/lib\xe9\xff",
    b"CONDA_PREFIX": b"two\nlines\n", b"CONDA_DEFAULT_ENV": b"=", b"TZ": b":UTC", b"LC_ALL": b"C.UTF-8",
    b"MODULEPATH": b"/m1:/m2", b"LOADEDMODULES": b" ", b"NCCL_DEBUG": b"", b"NCCL_odd.name": b"x=y",
    b"NCCL_%41": b"%", b"UCX_\xe9": b"\xff\n", b"FI_ a": b"\t", b"MASTER_ADDR": b"stale", b"GLOO_X": b"kept",
    b"SECRET": b"1", b"AWS_KEY": b"2", b"BASH_FUNC_module%%": b"() { :; }", b"sp ace": b"3", b"XNCCL_A": b"4",
    b"PATHS": b"5", b"LB_CRON": b"of another", b"EDITOR": b"vi"})
os.execvpe(sys.argv[1], sys.argv[1:], env)
END
mkdir -p "$LB_HOME/cron"
# shellcheck disable=SC2016 # as it stands
printf '%s\n' '# for all jobs' 'FROM_FILE=plain' '  export EXPORTED=yes' 'BLANKS  =  in front' \
	'SINGLE='"'a \"b\" \$c'" 'DOUBLE="it'"'"'s"' 'HALF="open' 'EMPTY=' 'QUOTED_EMPTY=""' 'TRAILS=x  ' \
	'EQUALS=a=b=c' 'MASTER_ADDR=of the file' 'BOTH=file' 'DOLLAR=$HOME #no comment' 'BACK=a\nb' \
	>"$LB_HOME/cron/environment"
printf 'LATIN=\351\377\nCARRIAGE=a\rb\nDOS=c\r\nTAB=\tx\ty\n' >>"$LB_HOME/cron/environment"
cat >"$LB_HOME/cron/crontab" <<'END'
BOTH=crontab
LINE="of the crontab"
NAME=tell
0 0 1 1 * ./tell.py
LINE=below
END
cat >"$LB_HOME/cron/tell.py" <<'END'
#!/usr/bin/python3
#SBATCH --mem=100M
import os
data = open("/proc/self/environ", "rb").read()	# not os.environ: the bytes as they came
path = os.environ["LB_RUN_DIR"] + "/env"
with open(path + ".new", "wb") as f: f.write(data)
os.rename(path + ".new", path)
END
chmod 755 "$LB_HOME/cron/tell.py"

cat >"$T/compare.py" <<'END'
"""compare.py ENVIRON: each line a difference from what the manual promises."""
import os, pwd, sys
SCHEDULERS = (b"TMPDIR", b"HOSTNAME", b"ENVIRONMENT", b"CUDA_VISIBLE_DEVICES", b"CUDA_DEVICE_ORDER")
me = pwd.getpwuid(os.getuid())
want = {
    # a login
    "HOME": me.pw_dir, "USER": me.pw_name, "LOGNAME": me.pw_name, "SHELL": me.pw_shell,
    # lbd's own
    "PATH": os.environ["PATH"],
    "PYTHONPATH": b"/a b:'c':\"$(d)`e`\\", "VIRTUAL_ENV": "", "LD_LIBRARY_PATH": b"/lib\xe9\xff",
    "CONDA_PREFIX": "two\nlines\n", "CONDA_DEFAULT_ENV": "=", "TZ": ":UTC", "LC_ALL": "C.UTF-8",
    "MODULEPATH": "/m1:/m2", "LOADEDMODULES": " ", "NCCL_DEBUG": "", "NCCL_odd.name": "x=y",
    "NCCL_%41": "%", b"UCX_\xe9": b"\xff\n", "FI_ a": "\t", "GLOO_X": "kept",
    # the file
    "FROM_FILE": "plain", "EXPORTED": "yes", "BLANKS": "in front", "SINGLE": 'a "b" $c', "DOUBLE": "it's",
    "HALF": '"open', "EMPTY": "", "QUOTED_EMPTY": "", "TRAILS": "x  ", "EQUALS": "a=b=c",
    "MASTER_ADDR": "of the file", "DOLLAR": "$HOME #no comment", "BACK": r"a\nb", "LATIN": b"\xe9\xff",
    "CARRIAGE": "a\rb", "DOS": "c", "TAB": "x\ty",
    # the lines above the entry
    "BOTH": "crontab", "LINE": "of the crontab", "LB_CRON": "tell"}
if "LANG" in os.environ: want["LANG"] = os.environ["LANG"]
want = {os.fsencode(name): os.fsencode(value) for name, value in want.items()}
rows = [row.split(b"=", 1) for row in open(sys.argv[1], "rb").read().split(b"\0") if row]
got = {row[0]: row[1] for row in rows}
if b"SLURM_JOB_ID" in got:  # lbrun's sbatch, for a command
    got[b"PATH"] = got[b"PATH"].removeprefix(os.fsencode(os.path.dirname(sys.argv[1])) + b"/attempts/1/bin:")
for name, value in want.items():
    if got.get(name) != value: print(name, "is", got.get(name, b"not there")[:70], "not", value)
for name in got.keys() - want.keys():
    # the scheduler's own, and lbrun's
    if not name.startswith((b"SLURM_", b"SLURMD_", b"LB_")) and name not in SCHEDULERS:
        print(name, "is there:", got[name][:70])
if len(rows) != len(got): print("names that are there twice:", len(rows) - len(got))
END

told() {	# NAME
	LB_DEBUGGER="python3 $T/front.py"
	export LB_DEBUGGER
	lbd_start
	unset LB_DEBUGGER
	ok "$1: the script is started" lbctl cron run tell
	run=$(cd "$LB_HOME/runs" && echo tell*)
	run_reaches "$run" completed 60
	is "$(python3 "$T/compare.py" "$LB_HOME/runs/$run/env")" "" "$1: its environment is as promised"
	is "$(stat -c %a "$LB_HOME/runs/$run/env")" 644 "$1: so are the modes of its files"
	lbd_stop
	rm -rf "$LB_HOME/runs" "$LB_HOME"/ledger.db*
}

printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
told "this machine"
cluster_start 1
told Slurm
printf '[slurm]\nsubmit_with = "sbatch"\n' >>"$LB_HOME/lbd.toml"
told "by way of sbatch"

# --- examples that come along ------------------------------------------------------------------
mkdir -p "$T/prune/new" "$T/prune/old/deep" "$T/prune/kept"
touch "$T/prune/old/deep/f" "$T/prune/kept/f" "$T/prune/kept/new"
touch -d '100 days ago' "$T/prune/old/deep/f" "$T/prune/kept/f" "$T/prune/old/deep" "$T/prune/old" "$T/prune/kept"
ok "old outputs are pruned" env FOLDER="$T/prune" sh "$src/etc/cron/prune-outputs.sh"
is "$(cd "$T/prune" && find . | sort | tr '\n' ' ')" ". ./kept ./kept/new ./new " \
	"with the folders that this leaves empty; one that a job has just made stays"
mkdir "$T/gpus"
printf '#!/bin/sh\nprintf "0, 45, 0\\n1, [N/A], [N/A]\\n2, 95, 3\\n3, 9, [Not Supported]\\n"\n' >"$T/gpus/nvidia-smi"
chmod +x "$T/gpus/nvidia-smi"
is "$(cd "$T" && PATH=$T/gpus:$PATH sh "$src/etc/cron/node-check.sh" 2>&1 | grep GPU | sed 's/.*: GPU/GPU/')" \
	"GPU 2: 95 degrees
GPU 2: 3 uncorrected memory errors" "of GPUs that tell no temperature or errors nothing is said"
done_testing
