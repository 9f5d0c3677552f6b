#!/bin/sh
# SPDX-License-Identifier: MIT
# One machine without Slurm: runs share its GPUs in turn, through every death of lbd.
. "$(dirname "$0")/lib.sh"

cat >"$LB_HOME/lbd.toml" <<'END'
[poll]
interval = "200ms"
[local]
gpu_ids = [1, 3]
cpus = 1
END
printf 'CANARY=7a11y-ho\n' >"$T/secrets"
chmod 600 "$T/secrets"

# Says what it sees, and stays until it is told to end. Its child has a session of its own.
cat >"$T/stays" <<'END'
#!/bin/sh
echo "$LB_RUN sees <$CUDA_VISIBLE_DEVICES> ${CANARY:-}" >>"$1/seen"
setsid sleep 4321 </dev/null >/dev/null 2>&1 &
echo $! >"$1/child.$LB_RUN"
await "$1/end.$LB_RUN"
END
chmod +x "$T/stays"
train() {	# NAME OPTION…
	name=$1
	shift
	lbctl submit --name "$name" "$@" -- "$T/stays" "$T" >/dev/null
}
waits_for() { lbctl status "$1" --json | json waits_for; }
seen() { sed -n "s/^$1 sees //p" "$T/seen"; }

lbd_start
train a --set slurm.gpus_per_node=1 --set slurm.cpus_per_task=1
run_reaches a running 20
wait_for '[ -s "$T/child.a" ]' 20
is "$(seen a)" "<1> " "the first run has the first of the GPUs that lbd.toml gives"
train b --set slurm.gpus_per_node=2 --set "run.env_file=$T/secrets"
train c --set slurm.gpus_per_node=1
run_reaches b queued 20
wait_for '[ "$(waits_for b)" = "Resources: 1 of 2 GPUs free" ]' 20
like "$(lbctl status b)" 'waits for +Resources: 1 of 2 GPUs free' \
	"the second needs both: it waits, and says for what"
wait_for '[ "$(waits_for c)" = Priority ]' 20
passed "the third would fit, and does not overtake it"
exits 6 "a run that could never start is refused" lbctl submit --name d \
	--set slurm.gpus_per_node=3 -- true
like "$err" 'slurm.gpus_per_node: the job wants 3 GPUs, this machine has 2' "with the numbers"
exits 6 "so is one for two machines" lbctl submit --set slurm.nodes=2 -- true
like "$err" 'slurm.nodes: the job wants 2 nodes, this machine is one' "by that name"
exits 6 "and one that needs srun" lbctl submit --set slurm.ntasks_per_node=2 -- true
exits 3 "nothing is left of them" lbctl status d
exits 2 "nodes cannot be checked" lbctl check --nodes n1 --dry-run
like "$err" 'check: --nodes: there is no Slurm here, .* this machine alone' "for there is this one"
exits 0 "which is checked" lbctl check a --dry-run
unlike "$out$err" 'nodelist' "by no words that nobody typed"
exits 3 "because of a run that is there" lbctl check nobody --dry-run

for ask in --set=slurm. --; do
	out=$(lbctl submit --dry-run --json ${ask}partition=12 -- train.py 2>"$T/err")
	is "$(printf %s "$out" | json resources.partition) $(printf %s "$out" | json resources.nodes)" '12 1' \
		"${ask}partition: a dry run shows what is asked for"
	out=$(lbctl submit --dry-run --json "$(printf %s "${ask}gpus_per_node=2" | sed '/^--g/s/_/-/g')" -- train.py)
	is "$(printf %s "$out" | json resources.gpus_per_node) $(printf %s "$out" | json resources.cpus_per_task)" '2 null' \
		"${ask}: likewise GPUs, and nothing else"
done
for gpus in --set=slurm.gpus_per_node=2 --gpus-per-node=2 --gres=gpu:2; do
	like "$(lbctl submit --dry-run --json $gpus --set=run.launcher=torchrun -- train.py | json torchrun)" \
		'"--nproc_per_node=2"' "$gpus: torchrun starts a rank for each"
done

# --- batch scripts --------------------------------------------------------------------------------
cat >"$T/script" <<'END'
#!/bin/sh
#SBATCH --time=7 --mem=1G --cpus-per-task=1 --gpus-per-node=1 --signal=B:USR1@90
echo "script sees <$CUDA_VISIBLE_DEVICES> $SLURM_MEM_PER_NODE"
END
exits 6 "a script that wants too much is refused" lbctl submit --gpus-per-node=3 "$T/script"
like "$err" 'the job wants 3 GPUs, this machine has 2' "with the numbers"
exits 6 "and a warning that is another signal" lbctl submit --signal=B:USR2@90 "$T/script"
exits 6 "and one that would wait for a job of Slurm" lbctl submit --dependency=afterok:7 "$T/script"
like "$err" 'lbctl submit --after-ok RUN' "with what waits for a run"
exits 0 "what names parts of a cluster is told" lbctl submit --dry-run -p gpu -A project --qos=high "$T/script"
like "$err" '^lbctl: without Slurm this means nothing: --account, --partition, --qos$' "in a line"
exits 0 "so is an output that is kept with the run" lbctl submit --dry-run -o none/out.txt --error=err.txt "$T/script"
like "$err" '^lbctl: without Slurm this means nothing: --error, --output$' "and nothing is said of folders of nodes"
like "$out" '  output = .*/attempts/1/out.log' "and it is told where it is"
printf '#!/bin/sh\nset -eu\n#SBATCH --time=5\n' >"$T/late.slurm"
exits 0 "so are options that nobody reads" lbctl submit --dry-run "$T/late.slurm"
like "$err" 'late.slurm:3: #SBATCH behind the first command is not read' "with their place"
exits 0 "of a sweep" lbctl submit --dry-run --name parts --sweep lr=1,2 --set slurm.partition=gpu -- echo "{lr}"
is "$err" "lbctl: without Slurm this means nothing: --partition" "once"
umask 007
exits 0 "of a command" sh -c 'ulimit -Sn 234; exec "$@"' sh \
	lbctl submit --name parts --set slurm.partition=gpu -- sh -c "umask >$T/mask; ulimit -Sn >$T/files"
umask 022
is "$err" "lbctl: without Slurm this means nothing: --partition" "as well"
run_reaches parts completed 20
is "$(cat "$T/mask") $(cat "$T/files")" "0007 234" "it has the umask and limits of who submitted it, not those of lbd"
like "$(lbctl events parts)" 'created .*without Slurm this means nothing: --partition' "and it can be read later"
printf '#!/bin/sh\necho "in ${SLURM_JOB_ID:-no} ${SLURM_NNODES:-no} $SLURM_JOB_NAME ${LB_JOB_END_TIME:-no}" >%s\n' "$T/inside" >"$T/inside.slurm"
SLURM_JOB_ID=77 SLURM_NNODES=3 LB_JOB_END_TIME=1 lbctl submit --name inside "$T/inside.slurm" >/dev/null
run_reaches inside completed 20
is "$(cat "$T/inside")" "in no no inside.slurm no" "a job, of Slurm or not, in which its submitter sat is not its own"
exits 0 "what one machine has, a script may ask for" lbctl submit --name script --hold "$T/script"
lbctl release script >/dev/null
run_reaches script queued 20
job=$(lbctl status script --json | json attempts.0.job_id)
for want in time_seconds:420 warn_seconds:90 want_mem_mb:1024 want_gpus:1 want_cpus:1; do
	is "$(json ${want%:*} <"$LB_HOME/local/$job.json")" ${want#*:} "in its own words: ${want%:*}"
done
lbctl kill --now script >/dev/null
run_reaches script killed 20

# More than half of what it may take is no time to save, however the limit was said.
for limit in --set=slurm.time=3 --time=3; do
	lbctl submit --name "brief${limit%%=*}" $limit --hold -- true >/dev/null
	lbctl release "brief${limit%%=*}" >/dev/null
	run_reaches "brief${limit%%=*}" completed 20
	is "$(json warn_ms <"$LB_HOME/runs/brief${limit%%=*}/attempts/1/attempt.json") $(lbctl events "brief${limit%%=*}" | grep -c 'attempt_end')" \
		"0 1" "$limit: a command is not warned of a limit that is near from the start"
done

# --- a folder that is not there -------------------------------------------------------------------
mkdir "$T/gone"
(cd "$T/gone" && lbctl submit --name gone --set slurm.extra='["--hold"]' -- true) >/dev/null
rmdir "$T/gone"
lbctl release gone >/dev/null
run_reaches gone failed 20
like "$(lbctl status gone)" "cannot change to the working directory $T/gone: there is no $T/gone" \
	"a run whose folder has gone away says so"
lbctl submit --hold --name shut --set restart.backoff_first=1s -- true >/dev/null
mkdir -p "$LB_HOME/runs/shut/attempts/1/out.log"
lbctl release shut >/dev/null
run_reaches shut completed 30
like "$(lbctl events shut)" 'attempt 1: launch_fail: .*shut/attempts/1/out.log: Is a directory' \
	"so does one whose job could not be started, and is tried again"
printf '#!/bin/sh\n#SBATCH --chdir=none\ntrue\n' >"$T/chdir.slurm"
exits 0 "a script may name a folder that is not here" lbctl submit --name chdir "$T/chdir.slurm"
like "$err" '^lbctl: --chdir: there is no folder .*/none here; where the nodes have none' "and is told so"
run_reaches chdir failed 20
like "$(lbctl status chdir)" 'cannot change to the working directory .*/none: there is no ' "the run says it, too"

# There is no number of Slurm's, and no Slurm.
cat >"$T/again.slurm" <<'END'
#!/bin/bash
trap 'scontrol requeue $SLURM_JOB_ID; exit 0' USR1
[ "$LB_ATTEMPT" = 2 ] || kill -USR1 $$
END
sed 's/requeue $SLURM_JOB_ID/requeuehold "$SLURM_JOB_ID"/' "$T/again.slurm" >"$T/held.slurm"
cat >"$T/chain.slurm" <<'END'
#!/bin/bash
echo "step 1/9"
[ "$LB_ATTEMPT" = 2 ] && echo "step 9/9" || { echo "step 2/9"; sbatch --dependency=afterany:$SLURM_JOB_ID "$0"; }
END
for how in again held chain; do
	lbctl submit --name $how "$T/$how.slurm" >/dev/null 2>&1
	run_reaches $how completed 20
	is "$(lbctl status $how --json | json attempts.#)" 2 "$how: a script that brings itself back goes on in another job"
done

# --- lbd dies ---------------------------------------------------------------------------------
child=$(cat "$T/child.a")
trainer=$(lbctl status a --json | json attempts.0.launches.0.pid)
for _ in 1 2 3; do
	lbd_kill9
	lbd_start
done
wait_for '[ "$(waits_for b)" = "Resources: 1 of 2 GPUs free" ]' 20
passed "after three deaths of lbd the GPU is still taken"
ok "by the trainer that runs on" lives "$trainer"
is "$(lbctl status a --json | json attempts.#)$(lbctl status b --json | json attempts.#)" 11 \
	"no run got another job"
lbd_kill9
: >"$T/end.a"
wait_for '! lives "$trainer" && ! lives "$child"' 20
lbd_start
run_reaches a completed 20
passed "what ended while lbd was away is known by its record"
run_reaches b running 20
wait_for '[ -n "$(seen b)" ]' 20
is "$(seen b)" "<1,3> 7a11y-ho" "then the next one has its turn, once, with its secrets"
is "$(grep -rl 7a11y-ho "$LB_HOME" | grep -v '/out\.log$')" "" "which are nowhere below LB_HOME"

# --- waiting runs are stopped and held ------------------------------------------------------------
lbctl hold c >/dev/null
run_reaches c held 20
lbctl release c >/dev/null
run_reaches c queued 20
lbctl kill c --reason "not needed" >/dev/null
run_reaches c killed 20
is "$(seen c)" "" "a run that waits can be held, released and killed; it never started"
# shellcheck disable=SC2034 # wait_for reads it
child=$(cat "$T/child.b")
lbctl kill --now b >/dev/null
run_reaches b killed 20
wait_for '! lives "$child"' 20
passed "after a kill nothing of a run lives, in whatever session"

# --- the time limit ---------------------------------------------------------------------------
cat >"$T/short" <<'END'
#!/bin/sh
[ "$LB_ATTEMPT" = 1 ] || exit 0
trap '' TERM
await "$1/end.never"
END
chmod +x "$T/short"
lbctl submit --name short --set slurm.time=4s --set slurm.signal_before=2s \
	--set watch.kill_grace=1s \
	-- "$T/short" "$T" >/dev/null
run_reaches short completed 60
is "$(lbctl status short --json | json attempts.0.cause)" timeout \
	"a time limit is kept, also by one that ignores SIGTERM"
is "$(lbctl status short --json | json attempts.#)" 2 "and the run goes on in the next job"
lbctl submit --name cut --set slurm.time=2s --set slurm.signal_before=0 --set restart.policy.timeout=stop \
	-- sleep $mark >/dev/null
run_reaches cut failed 30
like "$(lbctl events cut)" "launch 1: timeout: the job's time limit came" "a launch that was not warned of it is told as that, too"

# --- the other ends of an attempt ---------------------------------------------------------------
# Steps for ever in its first attempt, ends five steps after that one's checkpoint in the next.
cat >"$T/train.py" <<END
import os, signal, sys, time
sys.path.insert(0, "$src/docs")
import lb_client as lb
how, folder = sys.argv[1], os.environ["LB_CHECKPOINT_DIR"]
step = int(os.environ.get("LB_RESUME_FROM", "step-0").rsplit("-", 1)[1])
last = step + 5 if os.environ["LB_ATTEMPT"] != "1" else 10 ** 9
lb.send("hello", rank=0, world=1, pid=os.getpid())
lb.send("phase", name="train")
while step < last:
    step += 1
    lb.send("step", step=step, loss=1.0)
    stop = lb.asked("stop")
    if step % 5 == 0 or stop:
        os.makedirs(f"{folder}/step-{step}")
        with open(f"{folder}/step-{step}/state", "w") as f: f.write(str(step))
        lb.send("checkpoint", step=step, path=f"{folder}/step-{step}")
    if stop:
        lb.send("bye", status="stopped")
        sys.exit(0)
    if step == 7 and last > 100:
        open(f"{os.environ['LB_RUN_DIR']}/up", "w").close()
        if how == "hang": os.kill(os.getpid(), signal.SIGSTOP)
        if how == "crash": os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(0.1)
lb.send("bye", status="done")
END
learn() {	# NAME OPTION…: a run without a second chance but by progress, or where nothing counts
	name=$1
	shift
	lbctl submit --name "$name" --set checkpoint.pattern="step-{step}" --set restart.in_place=0 \
		--set restart.max_without_progress=1 --set restart.backoff_first=1s --set watch.kill_grace=1s \
		"$@" -- python3 "$T/train.py" "$name" >/dev/null
}
went_on() {	# NAME CAUSE
	run_reaches "$1" completed 60
	status=$(lbctl status "$1" --json)
	is "$(echo "$status" | json attempts.#) $(echo "$status" | json attempts.0.cause)" "2 $2" \
		"$1: the attempt ended as $2, and another one followed"
	is "$(echo "$status" | json attempts.1.resumed_from_step)" \
		"${3:-$(echo "$status" | json attempts.0.launches.0.last_step)}" "$1: from the newest checkpoint"
}
learn limit --set slurm.time=8s --set slurm.signal_before=4s
learn crash
learn hang --set watch.step_timeout=4s
learn terminated
wait_for '[ -e "$LB_HOME/runs/terminated/up" ] && [ -e "$LB_HOME/runs/hang/up" ]' 30
pid_of() { lbctl status "$1" --json | json attempts.0.launches.0.pid; }
wait_for '[ "$(pid_of hang)" -gt 0 ]' 20
hung=$(pid_of hang)
# who shuts a machine down sends SIGTERM to everybody; nobody at lbd gave an order
kill -TERM "$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$LB_HOME/runs/terminated/attempts/1/claim")"
went_on limit timeout
like "$(lbctl events limit)" "the job's time limit is near" "the trainer was asked to save before the limit"
went_on crash crash 5
went_on hang hang 5
ok "nothing of what hung lives" sh -c "! kill -0 $hung 2>/dev/null"
like "$(ls "$LB_HOME"/runs/hang/attempts/1/)" 'stacks-' "where it hung is written down"
went_on terminated "$(lbctl status terminated --json | json attempts.0.cause)"
like "$(lbctl events terminated)" "ended by SIGTERM without an order" "and whose doing it was not"
done_testing
