#!/bin/sh
# SPDX-License-Identifier: MIT
# Batch scripts under lbrun meet what they meet under sbatch: environment, arguments, files,
# signals, arrays; and they are relaunched, followed and killed like any run.
. "$(dirname "$0")/lib.sh"

cluster_start 2
lbd_start
mkdir "$T/work"
cd "$T/work" || exit 1

# --- the same environment, folder and arguments as from sbatch ------------------------------------
cat >env.slurm <<'END'
#!/bin/bash
#SBATCH --job-name=env -N1 --ntasks=2 --cpus-per-task=1 --mem=100M --time=5
#SBATCH --output=%x-%j.out --error=%x-%j.err
#SBATCH --gpus-per-task=1 --mem-bind=verbose,mask_mem:0x1 --cpu-freq=low-high:ondemand --propagate=NOFILE,RLIMIT_AS
printf '%s\n' "$0: $*" >"$1"
cd . && pwd >>"$1"
env | sort >>"$1"
ulimit -a >>"$1"
echo "out $SLURM_JOB_ID"
echo "err $SLURM_JOB_ID" >&2
END
# unknown since Slurm 26.05
sbatch --test-only --mem-bind=sort --wrap=true 2>&1 | grep -q unrecognized || sed -i 's/--mem-bind=/&sort,/' env.slurm
# shellcheck disable=SC3045 # dash knows -S
ulimit -S -n 900	# is to arrive,
# shellcheck disable=SC3045
ulimit -S -s 4096	# and this is not
export MINE='a value; with $(signs)'
job=$(sbatch --parsable env.slurm "$T/theirs" 'x y')
wait_for '[ -s "env-$job.err" ] && [ -z "$(squeue -h)" ]' 60	# the same node is free again
lbctl submit --name env env.slurm -- "$T/ours" 'x y' >/dev/null
run_reaches env completed 60
mine=$(lbctl status env --json | json attempts.0.job_id)
# What differs for good reason: ids and times, what lbrun adds, where the script's copy lies, how
# Slurm 20.11 writes a mask.
same() {
	sed -E -e 's,^[^ ]*slurm_script: [^ ]*,SCRIPT:,' -e '/^(LB_|_=|OLDPWD=|SHLVL=)/d' \
		-e "s,\\b($job|$mine)\\b,ID,g" \
		-e 's,(mask_mem:)0x,\1,' -e '/^SLURM_(TASK_PID|JOB_START|JOB_END|JOB_SLUID|TOPOLOGY)/d' "$1"
}
is "$(same "$T/ours")" "$(same "$T/theirs")" \
	"environment, folder, arguments and limits are sbatch's"
like "$(cat "$T/ours")" '^open files .* 900$' "a limit that --propagate names arrives"
is "$(stat -c %a "$LB_HOME/runs/env/env.json")" 600 "nobody else reads the submitter's environment"
is "$(head -n 1 "env-$mine.out")" "out $mine" "its output is where the script says"
is "$(head -n 1 "env-$mine.err")" "err $mine" "and its errors"
like "$(lbctl logs env)" "out $mine" "lbctl logs finds it there"
mv "env-$mine.out" moved.out
like "$(lbctl logs env 2>&1)" "^lbctl: no output: .*/env-$mine.out, where the job writes it, is not here: it was moved" "… and says so where it was moved"

# --- a failing script is launched again ----------------------------------------------------------
cat >once.slurm <<'END'
#!/bin/bash
#SBATCH --mem=100M
[ -e "$LB_RUN_DIR/tried" ] && exit 0
touch "$LB_RUN_DIR/tried"
exit 3
END
lbctl submit --name again once.slurm >/dev/null
run_reaches again completed 60
is "$(lbctl status again --json | json attempts.0.launches.#)" 2 \
	"a script that failed is launched again"

# Its status is that of its last command, of a pipeline that of tee: 0, though its trainer failed.
cat >steps.sh <<'END'
[ "$LB_LAUNCH" = 1 ] && last=5 || last=9
for step in $(seq $last); do echo "step $step/9 loss 1"; done
[ $last = 9 ] || { printf 'Traceback (most recent call last):\nValueError: bad shape\n' >&2; exit 3; }
END
printf '#!/bin/bash\n#SBATCH --mem=100M\nsrun sh steps.sh\necho done\n' >behind.slurm
printf '#!/bin/bash\n#SBATCH --mem=100M\nsh steps.sh 2>&1 | tee steps.log\n' >tee.slurm
for how in behind tee; do
	lbctl submit --name $how $how.slurm >/dev/null
	run_reaches $how completed 60
	is "$(lbctl status $how --json | json attempts.0.launches.#)" 2 "$how: so is one whose trainer failed, with status 0"
	like "$(lbctl events $how)" 'launch 1: error: .*, though its script ended with status 0 .*; ValueError: bad' "… which is told"
done

# One that sees to that itself, and tells no steps by which its second start could be known.
printf 'echo try >>"$LB_RUN_DIR/tries"; [ $(wc -l <"$LB_RUN_DIR/tries") != 1 ]\n' >second.sh
printf '#!/bin/bash\n#SBATCH --mem=100M\nwhile ! srun sh second.sh; do :; done\n' >while.slurm
lbctl submit --name while while.slurm >/dev/null
run_reaches while completed 60
is "$(lbctl status while --json | json attempts.0.launches.#)" 1 "a script that starts its trainer again itself has not failed"

# A monitor that is ended when the trainer is done.
printf 'for step in 1 2 3; do echo "step $step loss 1"; done; echo x >>"$LB_RUN_DIR/tries"\n' >three.sh
cat >monitor.slurm <<'END'
#!/bin/bash
#SBATCH --mem=100M --cpus-per-task=2
srun --overlap --mem=0 sh -c 'touch "$LB_RUN_DIR/watches"; exec sleep 1000' &
until [ -e "$LB_RUN_DIR/watches" ]; do sleep 0.1; done
srun --overlap --mem=0 sh three.sh
kill %1
wait
END
# One whose trainer ends with a status that means something to it.
printf 'echo "step 1/3 loss 1"; echo x >>"$LB_RUN_DIR/tries"; exit 3\n' >stops.sh
printf '#!/bin/bash\n#SBATCH --mem=100M\nsrun sh stops.sh\nrc=$?\n[ $rc != 3 ] || rc=0\nexit $rc\n' >early.slurm
lbctl submit --name early early.slurm >/dev/null
lbctl submit --name monitor monitor.slurm >/dev/null
run_reaches monitor completed 60
is "$(wc -l <"$LB_HOME/runs/monitor/tries")" 1 "… nor has one that ends its monitor when its trainer is done"
run_reaches early completed 60
is "$(wc -l <"$LB_HOME/runs/early/tries")" 1 "… nor one that makes its status itself"

# What runs beside the trainer is ended by the script itself: srun calls that Killed.
cat >beside.slurm <<'END'
#!/bin/bash
#SBATCH --mem=100M -n1
srun --overlap --mem=0 -n1 sh -c 'touch up; exec sleep 1000' &
until [ -e up ]; do sleep 0.05; done
srun --overlap --mem=0 -n1 sh -c 'for step in 1 2 3; do echo "step $step/3 loss 1"; done'
kill %1
wait
echo done
END
lbctl submit --name beside beside.slurm >/dev/null
run_reaches beside completed 60
like "$(lbctl logs beside)" 'task 0: Killed' "a step that the script ends is killed by its srun"
is "$(lbctl status beside --json | json attempts.0.launches.#)" 1 "… which does not fail the trainer"

# kill -9 of srun reaches no rank: those are ended before there are others, and no task's but those.
cat >orphan.sh <<'END'
[ "$SLURM_ARRAY_TASK_ID$LB_LAUNCH" != 22 ] || { kill -0 "$(cat pid)" || echo gone; kill -0 "$(cat look)" && echo stays; exit 0; } >found 2>&1
[ $SLURM_ARRAY_TASK_ID = 1 ] || echo $$ >pid
while [ $SLURM_ARRAY_TASK_ID = 2 ] || [ ! -e found ]; do sleep 0.1; done
END
printf '#!/bin/bash\n#SBATCH --mem=100M --array=1,2\nsrun --overlap --mem=0 sh "$PWD/orphan.sh" $SLURM_ARRAY_TASK_ID\n' >orphan.slurm
lbctl submit --name orphan orphan.slurm >/dev/null
wait_for '[ -s pid ]' 60
# a person who has a look at that job stays
job=$(squeue -h -n orphan.slurm -t R -o '%K %A' | sed -n 's/^2 //p')
srun --jobid="$job" --overlap --mem=0 -n1 sh -c 'echo $$ >look; while :; do sleep 0.1; done' 2>/dev/null &
looker=$!
wait_for '[ -s look ]' 60
# its helper first, which would end them
pgrep -f "^srun --overlap --mem=0 sh $PWD/orphan.sh 2" | sort -rn | xargs kill -9
run_reaches orphan completed 60
like "$(cat found)" 'gone' "ranks of an srun that was killed are gone before there are others"
like "$(cat "$LB_HOME/runs/orphan/attempts/1/task-2/spool.jsonl")" 'steps_left.*[0-9]_2\.0 lived on without srun; ended' "… which is told"
like "$(cat found)" 'stays' "… but not whom a person started beside them"
wait $looker
is "$(lbctl status orphan --json | json attempts.#)" 1 "… in the same job, and another task's are left alone"

# --- --wrap, and what a relaunch waits for --------------------------------------------------------
wrapped='echo "$SLURM_JOB_NAME $SLURM_NTASKS" "$@"; echo "a  b" >&2'
job=$(sbatch --parsable -n2 --mem=100M -o theirs.out -e theirs.err --wrap "$wrapped")
wait_for '[ -s theirs.err ]' 60
lbctl submit --name wrapped -n2 --mem=100M -oours.out -eours.err --wrap "$wrapped" >/dev/null
run_reaches wrapped completed 60
is "$(cat ours.out ours.err | grep -v '^lbrun: ')" "$(cat theirs.out theirs.err)" "--wrap does what it does with sbatch"
exits 2 "--wrap beside a script" lbctl submit --wrap true once.slurm
like "$err" 'wrap: excludes a batch script' "… is refused"

# The second attempt waits neither for the time nor for the job that the first has waited for.
before=$(sbatch --parsable --mem=100M -o /dev/null --wrap true)
begun=$(date +%s)
TZ=Asia/Tokyo lbctl submit --name abroad --begin=2037-01-01T18:00:00 -- true >/dev/null
run_reaches abroad queued 20
is "$(TZ=UTC scontrol show job "$(lbctl status abroad --json | json attempts.0.job_id)" | sed -n 's/.*EligibleTime=//p')" \
	2037-01-01T09:00:00 "a time is meant in the zone of who submits, as by sbatch"
lbctl kill abroad >/dev/null
lbctl submit --name late --deadline=now+8 --time=10 --mem=100M --set restart.backoff_first=1s -- true >/dev/null
lbctl submit --name begin --begin=now+12 --deadline=now+1hour --time=5 --dependency="afterany:$before" --mem=100M \
	--set restart.in_place=0 --set restart.backoff_first=1s \
	--wrap 'scontrol show job $SLURM_JOB_ID >"$LB_RUN_DIR/job.$LB_ATTEMPT"; [ "$LB_ATTEMPT" = 2 ] || exit 3' >/dev/null
run_reaches begin completed 90
ok "--begin is kept by the first attempt" test $(($(date +%s) - begun)) -ge 12
is "$(lbctl status begin --json | json attempts.#)" 2 "… there is a second one"
like "$(cat "$LB_HOME/runs/begin/job.2")" 'Dependency=\(null\)' "… which waits for nothing that the first has waited for"
# released moments later, however busy the machine
when() { date -d "$(grep -o "$1=[^ ]*" "$LB_HOME/runs/begin/job.2" | cut -d= -f2)" +%s; }
ok "… nor for its time" test $(($(when EligibleTime) - $(when SubmitTime))) -lt 10

is "$(grep -oh 'Deadline=[^ ]*' "$LB_HOME"/runs/begin/job.? | uniq | wc -l)" 1 "… and whose deadline is the same moment"
wait_for 'lbctl status late | grep -q "its deadline has passed: 2"' 30 && passed "a run whose deadline has passed says so"
lbctl kill late >/dev/null

# --- a script that requeues itself
# -------------------------------------------------------------------- The usual idiom; Slurm
# refuses, for bringing it back is lbd's, and status 0 is not the end of the work.
cat >requeue.slurm <<'END'
#!/bin/bash
#SBATCH --mem=100M --signal=B:USR1@60 --time=10
trap 'scontrol requeue $SLURM_JOB_ID; exit 0' USR1
[ "$LB_ATTEMPT" = 1 ] || { scontrol show job "$SLURM_JOB_ID" >"$LB_RUN_DIR/shown"; exit 0; }
touch "$LB_RUN_DIR/ready"
while :; do sleep 0.1; done
END
exits 0 "a script with the idiom of requeueing is taken" lbctl submit --name requeue requeue.slurm
like "$err" '^lbctl: requeue.slurm:3: scontrol requeue: lbd brings the run back' "… and its owner is told"
wait_for '[ -e "$LB_HOME/runs/requeue/ready" ]' 60
scancel --batch --signal=USR1 "$(lbctl status requeue --json | json attempts.0.job_id)"
run_reaches requeue completed 90
is "$(lbctl status requeue --json | json attempts.#)" 2 "it is not completed by that: it goes on in another job"
is "$(lbctl status requeue --json | json attempts.0.cause)" timeout "… as at its time limit"
like "$(cat "$LB_HOME/runs/requeue/shown")" '^JobId=' "… and scontrol does all else that it does"
sed "s,scontrol requeue,$(command -v scontrol) requeue," requeue.slurm >whole.slurm
lbctl submit --name whole whole.slurm >/dev/null 2>&1
wait_for '[ -e "$LB_HOME/runs/whole/ready" ]' 60
scancel --batch --signal=USR1 "$(lbctl status whole --json | json attempts.0.job_id)"
run_reaches whole completed 90
is "$(lbctl status whole --json | json attempts.0.cause)" timeout "… also where it calls scontrol by its whole path"

# --- a script that submits itself again
# -------------------------------------------------------------------- The other idiom: a second
# training in the same folder, of which lbd would know nothing.
cat >chain.slurm <<'END'
#!/bin/bash
#SBATCH --mem=100M --signal=B:USR1@60 --time=10 --job-name=chain
again() {
	sbatch --parsable --dependency=afterany:$SLURM_JOB_ID \
		"$SLURM_SUBMIT_DIR/chain.slurm" >"$LB_RUN_DIR/number"
	sbatch --parsable "$SLURM_SUBMIT_DIR/other.slurm" >"$LB_RUN_DIR/other"
	exit 0
}
trap again USR1
[ "$LB_ATTEMPT" = 1 ] || exit 0
touch "$LB_RUN_DIR/ready"
while :; do sleep 0.1; done
END
cat >other.slurm <<'END'
#!/bin/bash
#SBATCH --mem=100M --output=/dev/null
env | grep ^LB_ >"$LB_RUN_DIR/others"
END
exits 0 "a script that submits itself is taken" lbctl submit --name chain chain.slurm
like "$err" '^lbctl: chain.slurm:4: sbatch of this script: lbd brings the run back' "… and its owner is told"
wait_for '[ -e "$LB_HOME/runs/chain/ready" ]' 60
first=$(lbctl status chain --json | json attempts.0.job_id)
scancel --batch --signal=USR1 "$first"
run_reaches chain completed 90
is "$(lbctl status chain --json | json attempts.#)" 2 "it goes on in another job of lbd's"
is "$(lbctl status chain --json | json attempts.0.cause)" timeout "… as at its time limit"
is "$(cat "$LB_HOME/runs/chain/number")" "0$first" "… what it submitted is no job: it gets its own number"
is "$(squeue -h -t all -n chain -o %i | wc -l)" 2 "… and there is none beside the two"
other=$(cat "$LB_HOME/runs/chain/other")
ok "… another script is Slurm's" test -n "$other" -a "$other" != "$first"
wait_for '[ -n "$(squeue -h -t CD -j "$other" -o %i 2>/dev/null)" ]' 60
like "$(cat "$LB_HOME/runs/chain/others")" '^LB_RUN=chain$' "… which knows where it comes from"
unlike "$(cat "$LB_HOME/runs/chain/others")" '^LB_(SOCKET|CHECKPOINT_DIR)=' "… and neither speaks nor saves for this run"

# The next one first; it is cancelled when there is nothing left to do. Or the job is, when it is.
cat >first.slurm <<'END'
#!/bin/bash
#SBATCH --mem=100M --time=10
next=$(sbatch --parsable --dependency=afterany:$SLURM_JOB_ID "$0")
trap 'scancel "$next"; touch "$LB_RUN_DIR/behind"; exit 0' USR1
[ "$LB_ATTEMPT" = 1 ] || touch "$LB_RUN_DIR/again"
touch "$LB_RUN_DIR/ready"
while :; do sleep 0.1; done
END
sed 's,scancel "$next",[ -e "$LB_RUN_DIR/again" ] || scancel "$SLURM_JOB_ID"; sleep 5; scancel "$next",' first.slurm >own.slurm
for how in first own; do
	lbctl submit --name $how $how.slurm >/dev/null 2>&1
	wait_for '[ -e "$LB_HOME/runs/$how/ready" ]' 60
	scancel --batch --signal=USR1 "$(lbctl status $how --json | json attempts.0.job_id)"
done
run_reaches first completed 60
ok "a script that cancels its next job cancels none" test -e "$LB_HOME/runs/first/behind"
is "$(lbctl status first --json | json attempts.#)" 1 "… and is over"
wait_for '[ -e "$LB_HOME/runs/own/again" ]' 60
is "$(lbctl status own --json | json attempts.0.cause)" timeout "one that cancels its own goes on in the next"
lbctl kill --now own >/dev/null

# a shell that makes its PATH anew, a script that comes by standard input, and one that is not to be
# taken for a part of its job
sed 's,^#!/bin/bash$,& -l,; s,chain,login,' chain.slurm >login.slurm
sed 's,"\(.*/\)chain.slurm",<"\1input.slurm",; s,=chain,=input,' chain.slurm >input.slurm
sed 's,^again() {$,&\n\tid=$SLURM_JOB_ID; unset ${!SLURM_JOB@},; s,afterany:$SLURM_JOB_ID,afterany:$id,; s,chain,cleared,' \
	chain.slurm >cleared.slurm
for how in login input cleared; do
	lbctl submit --name $how $how.slurm >/dev/null 2>&1
	wait_for '[ -e "$LB_HOME/runs/$how/ready" ]' 60
	scancel --batch --signal=USR1 "$(lbctl status $how --json | json attempts.0.job_id)"
	run_reaches $how completed 90
	is "$(lbctl status $how --json | json attempts.0.cause)" timeout "$how: it goes on in another job of lbd's"
	is "$(squeue -h -t all -n $how -o %i | wc -l)" 2 "… and there is none beside the two"
done

# A program does so at a signal, in a script whose output is a file of srun's, and as it is; then it
# goes on until Slurm ends its job, as Lightning does.
cat >saves.py <<'END'
import os, signal, subprocess, sys
if os.environ["LB_ATTEMPT"] == "1":
    subprocess.call(["scontrol", "requeue", os.environ["SLURM_JOB_ID"]])
    signal.pause()
END
printf '#!/bin/sh\n#SBATCH --mem=100M --signal=USR1@60\nsrun -o saves.log python3 saves.py\n' >saves.slurm
lbctl submit --name steps saves.slurm >/dev/null
lbctl submit --name bare --set slurm.mem=100M -- python3 saves.py >/dev/null
for how in steps bare; do
	run_reaches $how completed 90
	is "$(lbctl status $how --json | json attempts.#)" 2 "$how: a trainer that asks for a requeue is not completed"
	is "$(lbctl status $how --json | json attempts.0.cause)" preempted "… but ended, as a requeue would"
done

sed 's,--parsable --dependency[^ ]*,--begin=now+1day,; s,chain,nightly,' chain.slurm >nightly.slurm
lbctl submit --dry-run nightly.slurm >/dev/null 2>"$T/told"
like "$(cat "$T/told")" 'nightly.slurm:4: sbatch of this script for a later time: .*man lbctl, cron' \
	"one that comes back every night is told of cron"
sed "s,sbatch,$(command -v sbatch),; s,chain,whole," chain.slurm >whole.slurm
like "$(lbctl submit --dry-run whole.slurm 2>&1 >/dev/null)" \
	'whole.slurm:4: sbatch of this script by its whole path, .*take the line out' "a call that is not taken so is told"

# One that asks for it at once, each time, would flood the scheduler: its pauses grow as any
# other's.
cat >flood.slurm <<'END'
#!/bin/bash
#SBATCH --mem=100M
scontrol requeue $SLURM_JOB_ID
END
lbctl submit --name flood --set restart.backoff_first=2s flood.slurm >/dev/null 2>&1
wait_for '[ "$(lbctl status flood --json | json attempts.#)" -ge 4 ]' 90
pauses=$(lbctl events flood | sed -n 's/.*next attempt in \([0-9]*\)s.*/\1/p' | head -n 3 | tr '\n' ' ')
# up to a fifth less than said, and cut to whole seconds
like "$pauses" "^0 [12] [34] $" "a script that requeues itself at once comes back at once, then slower and slower"
like "$(run_state flood)" "^(backoff|submitting|queued|running)$" "… and is never given up for that"
lbctl kill --now flood >/dev/null

# As TorchX's scripts do: how often it may is counted by Slurm, where Slurm requeues.
cat >bounded.slurm <<'END'
#!/bin/bash
#SBATCH --mem=100M --output=bounded.log
echo "count ${SLURM_RESTART_COUNT-none}"
echo "${SLURM_RESTART_COUNT-none}" >>"$LB_RUN_DIR/counts"
[ 2 -gt "${SLURM_RESTART_COUNT:-0}" ] || exit 0
scontrol requeue "$SLURM_JOB_ID"
exit 1
END
lbctl submit --name bounded --set restart.backoff_first=1s bounded.slurm >/dev/null 2>&1
run_reaches bounded completed 60
is "$(tr '\n' ' ' <"$LB_HOME/runs/bounded/counts")" "none 1 2 " "SLURM_RESTART_COUNT is as if Slurm had requeued it"
is "$(grep -c ^count bounded.log) $(lbctl logs bounded | grep -c ^count)" "3 3" "… and a file for the output of all attempts has all, once"

# --- a warning reaches the script alone -----------------------------------------------------------
cat >warned.slurm <<'END'
#!/bin/bash
#SBATCH --mem=100M --signal=B:USR1@60 --time=10
trap 'echo warned; exit 0' USR1
touch "$LB_RUN_DIR/ready"
while :; do sleep 0.1; done
END
lbctl submit --name warned warned.slurm >/dev/null
wait_for '[ -e "$LB_HOME/runs/warned/ready" ]' 60
scancel --batch --signal=USR1 "$(lbctl status warned --json | json attempts.0.job_id)"
run_reaches warned completed 60
passed "a signal for the batch script reaches it"

# One that nobody takes care of; also where Slurm sends it to ranks alone.
sed '/^trap/d; s/^touch/[ "$LB_ATTEMPT" = 1 ] || exit 0; &/' warned.slurm >heedless.slurm
sed 's/B:USR1/USR2/; s/^while.*/srun sleep 1000/' heedless.slurm >ranks.slurm
for how in heedless ranks; do
	lbctl submit --name $how $how.slurm >/dev/null
	wait_for '[ -e "$LB_HOME/runs/$how/ready" ]' 60
	job=$(lbctl status $how --json | json attempts.0.job_id)
	[ $how = ranks ] || scancel --batch --signal=USR1 "$job"
	[ $how = heedless ] || wait_for 'scancel --signal=USR2 "$job.0"; [ "$(lbctl status ranks --json | json attempts.0.cause)" != null ]' 60
	run_reaches $how completed 60
	is "$(lbctl status $how --json | json attempts.0.cause) $(lbctl status $how --json | json attempts.0.launches.#)" \
		"timeout 1" "$how: who ends at the signal goes on in another job, as after the limit"
done

# One that saves at it, and ends as if all were well, has more to do: by the script's own trap, and
# where the signal is for the steps alone.
cat >warned.sh <<'END'
trap 'mkdir "$LB_CHECKPOINT_DIR/step-3" && echo x >"$LB_CHECKPOINT_DIR/step-3/model.pt"; exit 0' USR1
[ "$LB_ATTEMPT" = 1 ] || { echo "step 9/9 loss 1"; exit 0; }
echo "step 2/9 loss 1"
echo "step 3/9 loss 1"
touch "$LB_RUN_DIR/ready"
while :; do sleep 0.1; done
END
printf '#!/bin/bash\n#SBATCH --mem=100M --signal=B:USR1@60 --time=1\ntrap "kill -USR1 \\$pid; wait \\$pid; exit 0" USR1\nsh warned.sh & pid=$!\nwait $pid\n' >passes.slurm
printf '#!/bin/bash\n#SBATCH --mem=100M --signal=USR1@60 --time=1\nsrun sh warned.sh\n' >alone.slurm
for how in passes alone; do
	lbctl submit --name $how $how.slurm >/dev/null
	wait_for '[ -e "$LB_HOME/runs/$how/ready" ]' 60
	job=$(lbctl status $how --json | json attempts.0.job_id)
	case $how in passes) scancel --batch --signal=USR1 "$job" ;; *) scancel --signal=USR1 "$job" ;; esac
	run_reaches $how completed 60
	is "$(lbctl status $how --json | json attempts.0.cause)" timeout "$how: a trainer that ends at the signal with steps left has met its time limit"
	is "$(lbctl status $how --json | json attempts.1.resumed_from_step)" 3 "… and goes on"
done

# --- arrays ---------------------------------------------------------------------------------------
cat >array.slurm <<'END'
#!/bin/bash
#SBATCH --array=1-3%2 --mem=100M -n1 --output=%x_%A_%a.out
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT" | tee -a "$LB_RUN_DIR/done"
END
lbctl submit --name array array.slurm >/dev/null
run_reaches array completed 90
is "$(sort "$LB_HOME/runs/array/done")" 'task 1 of 3
task 2 of 3
task 3 of 3' "each task of an array runs, once"
is "$(lbctl logs array | grep -v ^lbrun)" 'task 1 of 3
task 2 of 3
task 3 of 3' "lbctl logs shows them by number"
is "$(lbctl status array --json | json attempts.#)" 1 "and all are one attempt"
# Of two tasks one has the number that means both: what ends its trainer is not for the other's.
cat >apart.sh <<'END'
trap 'touch asked.$1; exit 0' TERM
touch up.$1
until [ -e go ]; do sleep 0.1; done
END
cat >apart.slurm <<'END'
#!/bin/bash
#SBATCH --mem=100M -n1 --array=1,2
[ $SLURM_JOB_ID != $SLURM_ARRAY_JOB_ID ] || echo ${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID >first
srun sh apart.sh $SLURM_ARRAY_TASK_ID
END
lbctl submit --name apart apart.slurm >/dev/null
wait_for '[ -e up.1 ] && [ -e up.2 ] && [ -s first ]' 60
first=$(cat first)
scancel "$first"
wait_for '[ -e "asked.${first#*_}" ] && [ -z "$(squeue -h -j "$first" -t R,CG -o %i)" ]' 60
is "$(echo asked.*)" "asked.${first#*_}" "a task that is ended takes no other with it"
touch go
lbctl kill --now apart >/dev/null
mkdir -p "$LB_HOME/cron"
sed 's/ --output=.*//' array.slurm >"$LB_HOME/cron/nightly.slurm"
echo '@yearly nightly.slurm' >"$LB_HOME/cron/crontab"
wait_for 'lbctl cron run nightly >/dev/null 2>&1' 20
nightly=$(lbctl cron --json | json entries.0.last.run)
run_reaches "$nightly" completed 90
is "$(lbctl logs "$nightly" | grep -v ^lbrun)" 'task 1 of 3
task 2 of 3
task 3 of 3' "of one that cron starts, too, each line once"
lbctl submit --name later --array=1-40%1 array.slurm >/dev/null
wait_for '[ -s "$LB_HOME/runs/later/done" ]' 60
ok "an array is killed" lbctl kill --now later
run_reaches later killed 60
wait_for '[ -z "$(squeue -h)" ]' 60
passed "with its pending tasks"

# --- held, and what cannot be ---------------------------------------------------------------------
sed 's/^#SBATCH.*/& --hold/' once.slurm >held.slurm
lbctl submit --name held held.slurm >/dev/null
run_reaches held held 20
is "$(lbctl status held --json | json attempts.#)" 0 \
	"a script with --hold waits before there is a job"
lbctl release held
run_reaches held completed 60
# --- periodic ones --------------------------------------------------------------------------------
mkdir -p "$LB_HOME/cron/cron.daily" && chmod 755 "$LB_HOME/cron" "$LB_HOME/cron/cron.daily"
cat >"$LB_HOME/cron/crontab" <<END
SBATCH=--time=7 --comment="from a crontab"
NAME=line
0 0 1 1 * --mem=90M --time=8 sleep 1000
0 0 1 1 * --no-such=1 true
0 0 1 1 * --nodes=some true
END
printf '#!/bin/sh\n#LB SBATCH=--time=9\n#SBATCH --time=3 --mem=80M\nsleep 1000\n' \
	>"$LB_HOME/cron/cron.daily/script.sh"
for entry in line script; do
	wait_for "lbctl cron run $entry" 90 >/dev/null
	run=$(cd "$LB_HOME/runs" && echo "$entry"-2*)
	run_reaches "$run" running 60
	scontrol show job \
		"$(lbctl status "$run" --json | json attempts.0.job_id)" >"$T/shown.$entry"
	lbctl kill --now "$run" >/dev/null
done
like "$(cat "$T/shown.line")" 'TimeLimit=00:08:00' "a line of a crontab may have options of sbatch"
like "$(cat "$T/shown.line")" 'MinMemoryNode=90M' "several"
like "$(cat "$T/shown.line")" 'Comment=lbd1:[^ ]* from a crontab' \
	"and what stands above it holds, too"
like "$(cat "$T/shown.script")" 'TimeLimit=00:09:00' "so may a script, over its #SBATCH lines"
like "$(cat "$T/shown.script")" 'MinMemoryNode=80M' "whose others count"
like "$(lbctl cron 2>&1)" 'crontab:4: --no-such: there is no such option of sbatch' \
	"an unknown one is told with its line"
like "$(lbctl cron 2>&1)" 'crontab:5: --nodes: ' "so is a bad value"

exits 2 "what restart sets is judged at once" lbctl restart held \
	--set 'slurm.extra=["--nodes=none"]'
like "$err" 'nodes: "none"' "and named"
like "$(printf '#!/bin/sh\r\ntrue\r\n' | lbctl submit - 2>&1)" '^lbctl: standard input: has DOS line ends; dos2unix mends it$' \
	"a script that comes by a pipe from Windows is told so, not of a file"
like "$(printf '\357\273\277#!/bin/sh\ntrue\n' | lbctl submit - 2>&1)" '^lbctl: standard input:1: a byte order mark' "… nor of TOML"
like "$(lbctl submit --hold --name nowhere -o "nowhere/%j.out" once.slurm 2>&1)" \
	'--output: there is no folder .*/nowhere here; .*the job cannot begin' "an output that cannot be is told at once"
printed=$(lbctl submit -W --name waited --mem=100M --set 'restart.never_on_exit_codes=[7]' --wrap 'exit 7')
is "$? $printed $(run_state waited)" "7 waited failed" "-W waits, as sbatch does, for the exit status"
sed 's/^#SBATCH.*/& --wait/' once.slurm >wait.slurm
printed=$(lbctl submit --name patient wait.slurm)
is "$? $printed $(run_state patient)" "0 patient completed" "so does #SBATCH --wait; relaunches are waited for"
exits 2 "not for a sweep" lbctl submit -QW --sweep a=1,2 --comment='{a}' once.slurm
like "$err" 'sweep: excludes --wait' "… which says so, also in a group of letters"
SBATCH_WAIT=1 exits 2 "nor by the variable" lbctl submit --sweep a=1,2 --comment='{a}' once.slurm
like "$err" 'sweep: excludes --wait' "… which says so, too"
exits 2 "an unknown limit is refused" lbctl submit --propagate=CORE,FOO once.slurm
exits 2 "an unknown option is refused" lbctl submit --no-such=1 once.slurm
like "$err" 'unknown option --no-such' "and named"
like "$(lbctl submit --dry-run --gpus=2 once.slurm)" 'gpus = 2' "--dry-run shows what is asked for"
done_testing
