#!/bin/sh
# SPDX-License-Identifier: MIT
# An order to end reaches a run in every state its job can be in, by command and, with lbd dead, by
# switch file: starting, completing, sent back by an administrator, with a spare behind it, an array
# with pending tasks. A save needs no lbd either. News say who and why.
. "$(dirname "$0")/lib.sh"

me=$(id -un) S=$LB_HOME/switches R=$LB_HOME/runs
tasks() { squeue -h -r -o '%j %T %r' | grep -c "^lb-$1-.*${2:-}"; }
is_out_of_slurm() { wait_for "[ \"\$(tasks $1)\" = 0 ]" 30; }
starts() { grep -cs '' "$R/$1/starts"; }
is_up() { wait_for "[ \"\$(starts $1)\" = 1 ]" 30; }
cause() { json cause <"$R/$1/attempts/1/exit.json"; }

# Ends, with an error, when there is a file "end" in the folder of its run.
cat >"$T/train.sh" <<'SH'
echo $$ >>"$LB_RUN_DIR/starts"
await "$LB_RUN_DIR/end"
exit 3
SH
cat >"$T/saver.py" <<'PY'
import os, socket
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["LB_SOCKET"])
s.sendall(b'{"type":"hello","rank":0,"world":1,"pid":%d}\n' % os.getpid())
print(1, file=open(os.environ["LB_RUN_DIR"] + "/starts", "w"), flush=True)
for line in s.makefile():
    print(line, file=open(os.environ["LB_RUN_DIR"] + "/orders", "a"), flush=True)
PY
cat >"$T/array.slurm" <<'SH'
#!/bin/bash
#SBATCH --array=1-22%2 --mem=10M -n1 --nodelist=n1 --output=/dev/null
echo $$ >>"$LB_RUN_DIR/starts"
exec sleep 6543
SH
cat >"$T/hook" <<'SH'
#!/bin/sh
cat >>"$1"
echo >>"$1"
SH
# A job is completing for as long as there is a file of its number. These have a node of their own:
# one of Slurm 20.11 runs one epilog at a time, and no other job of it ends meanwhile.
cat >"$T/epilog" <<SH
#!/bin/sh
while [ -e "$T/completing.\$SLURM_JOB_ID" ]; do sleep 0.2; done
SH
chmod +x "$T/hook" "$T/epilog"
echo "Epilog=$T/epilog" >"$T/extra.conf"
cat >"$LB_HOME/lbd.toml" <<END
[poll]
interval = "200ms"
[notify]
hook = ["$T/hook", "$T/news"]
END

train() {	# NAME OPTION…
	name=$1
	shift
	lbctl submit --name "$name" --set watch.kill_grace=1s --set restart.in_place=0 \
		--set restart.backoff_first=0 --set slurm.nodelist=n1 "$@" -- sh "$T/train.sh" >/dev/null
}
# Until its claim is taken and it stands before the start of its trainer, for a while.
train_slowly() {	# NAME
	mkdir "$T/once-$1"
	printf 'LB_FAILPOINT=%s\nLB_FAILPOINT_ONCE=%s\n' trainer.before:delay:2s "$T/once-$1" \
		>"$T/env-$1"
	chmod 600 "$T/env-$1"
	train "$1" --set "run.env_file=$T/env-$1"
	wait_for "[ -e '$T/once-$1/trainer.before' ]" 30
}
make_complete() {	# NAME JOB
	: >"$T/completing.$2"
	: >"$R/$1/end"
	wait_for "[ \"\$(squeue -h -j $2 -o %T)\" = COMPLETING ]" 30
}
send_back() {	# JOB
	scontrol update jobid="$1" requeue=1
	scontrol requeuehold "$1"
}

MC_CONF_EXTRA=$T/extra.conf MC_CPUS=32 MC_KILLWAIT=2 cluster_start 2
lbd_start
for how in command switch; do
	train completing-$how --set slurm.nodelist=n2
	train requeued-$how
	train spare-$how --set restart.prequeue=true
	lbctl submit --name array-$how --job-name=lb-array-$how-x "$T/array.slurm" >/dev/null
done
train stopped
train held
lbctl submit --name saver -- python3 "$T/saver.py" >/dev/null
for run in completing-command completing-switch requeued-command requeued-switch spare-command \
	spare-switch stopped held saver; do is_up $run; done
for how in command switch; do
	wait_for "[ \"\$(starts array-$how)\" = 2 ] && [ \"\$(tasks array-$how PENDING)\" = 20 ]" 30
	wait_for "[ \"\$(tasks spare-$how JobHeldUser)\" = 1 ]" 30
done

# --- by command -----------------------------------------------------------------------------------
lbctl stop stopped --reason "good enough" >/dev/null
lbctl hold held --reason "maintenance" >/dev/null
train_slowly starting-command
lbctl kill starting-command --reason "too early" >/dev/null
partition DOWN		# a second attempt would wait
send_back "$(job_of requeued-command)"
make_complete completing-command "$(job_of completing-command)"
wait_for '[ "$(lbctl status requeued-command --json | json attempts.#)" = 2 ]' 30
lbctl kill --yes '*-command' --reason "enough" >/dev/null
rm "$T"/completing.*
for run in starting completing requeued spare array; do
	run_reaches $run-command killed 30
	is_out_of_slurm $run-command && passed "by command: $run"
done
partition UP

# --- by switch, with lbd dead ---------------------------------------------------------------------
completing=$(job_of completing-switch) requeued=$(job_of requeued-switch)
train_slowly starting-switch
lbd_kill9
touch "$S/saver.save" "$S/starting-switch.kill"
make_complete completing-switch "$completing"
send_back "$requeued"
wait_for '[ "$(tasks requeued-switch PENDING)" = 1 ]' 30
echo enough >"$S/*-switch.kill"
is_out_of_slurm array-switch && passed "by switch: an array, with its 20 pending tasks"
for run in starting spare; do
	wait_for "[ -e '$R/$run-switch/attempts/1/exit.json' ]" 30
	is "$(cause $run-switch)" killed "… $run"
done
# Who lets the others go now starts nothing.
scontrol release "$(squeue -h -t PENDING -o '%i %j' | sed -n 's/ lb-spare-switch-.*//p')"
scontrol release "$requeued"
rm "$T"/completing.*
for run in starting spare requeued completing; do is_out_of_slurm $run-switch; done
passed "… what an administrator sent back, and a spare, end before they start"
wait_for "grep -q save '$R/saver/orders'" 30 && passed "a save is asked for"
lbd_start
for run in starting completing requeued spare array; do
	run_reaches $run-switch killed 30
	is "$(lbctl status $run-switch --json | json attempts.#)" 1 "$run: killed for good"
done
is "$(for run in completing requeued spare array; do starts $run-switch; done | xargs)" "1 1 1 2" \
	"no trainer was started again"
wait_for '[ "$(squeue -h -o %j | cut -d- -f2)" = saver ]' 20
passed "no job of theirs is left"
is "$(run_state saver)" running "the save ended nothing"

# --- the news -------------------------------------------------------------------------------------
news() { grep -F "\"run\":\"$1\"" "$T/news" | grep -F "\"kind\":\"$2\"" | json text; }
is_told() {	# RUN KIND TEXT
	wait_for "grep -F '\"run\":\"$1\"' '$T/news' | grep -qF '\"kind\":\"$2\"'" 60
	like "$(news "$1" "$2")" "$3" "the news of $1 says who and why"
}
is_told starting-command killed "$me: too early"
is_told stopped killed "stopped by $me: good enough"
is_told held held "put on hold by $me: maintenance"
is_told array-switch killed "$me: enough"
done_testing
