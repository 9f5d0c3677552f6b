#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs on the private Slurm, as a person sees them: resources, ranks on two nodes, secrets, ends.
. "$(dirname "$0")/lib.sh"

cluster_start 2
# what Slurm would fill a number into
LB_HOME="$T/100%job's home"
mkdir "$LB_HOME"
lbd_start

# --- what was asked for is what the job has --------------------------------------------------
lbctl submit --name asked --set slurm.nodes=2 --set slurm.ntasks_per_node=2 \
	--set slurm.cpus_per_task=1 --set slurm.mem=512M --set slurm.time=30m \
	--set slurm.gpus_per_node=1 --set slurm.comment=hello \
	-- sh -c 'echo "I am $SLURM_PROCID of $SLURM_NTASKS"' >/dev/null
run_reaches asked completed 60
job=$(lbctl status asked --json | json attempts.0.job_id)
shown=$(scontrol show job -o "$job")
like "$shown" 'NumNodes=2 .*NumTasks=4 .*CPUs/Task=1' "nodes and tasks"
like "$shown" 'TimeLimit=00:30:00' "time limit"
like "$shown" 'MinMemoryNode=512M' "memory"
like "$shown" 'TresPerNode=(gres[:/])?gpu:1' "GPUs"
like "$shown" 'Requeue=0' "Slurm does not requeue it: lbd relaunches"
like "$shown" 'JobName=lb-asked' "the job has the run's name"
like "$shown" 'Comment=lbd1:[0-9a-f]*:[0-9a-f]* hello' "and its token, and the person's comment"
is "$(lbctl status asked --json | json attempts.0.nodes)" '["n1", "n2"]' "the nodes are known"
is "$(lbctl logs asked | grep -o '\[.*I am .*' | sort)" '[n1:0] I am 0 of 4
[n1:1] I am 1 of 4
[n2:2] I am 2 of 4
[n2:3] I am 3 of 4' "each rank's output has node and rank in front"

lbctl submit --name tasks -n 2 -- sh -c 'echo "of $SLURM_NTASKS tasks"' >/dev/null
run_reaches tasks completed 60
like "$(lbctl logs tasks)" 'of 2 tasks' "a command has as many tasks as options of sbatch say"

ok "a command whose output goes elsewhere" lbctl submit --name elsewhere --output=elsewhere.%j -- echo "it is here"
run_reaches elsewhere completed 60
like "$(cat elsewhere.*)" 'it is here' "has it there"
like "$(lbctl logs elsewhere)" 'it is here' "and lbctl logs shows it"
exits 0 "variables by name" lbctl submit --name exports --export=FOO=bar -- true
like "$err" '--export means nothing to a command: .*env_file' "are no command's, and where they belong is said"

exits 0 "a file of its own for errors" lbctl submit --name errors --error=errors.%j -- true
like "$err" '--error means nothing to a command: .*--output' "is not a command's either"
exits 0 "a file to read" lbctl submit --name reads --input=/etc/passwd -- cat
like "$err" '--input means nothing to a command' "nor that"

# --- a job that cannot be --------------------------------------------------------------------
# Slurm takes backslashes out of names of files.
mkdir "$T/here/b\\s"
exits 2 "runs below a folder with a backslash are refused" env LB_HOME="$T/here/b\\s" LB_SOCKET="$T/b.sock" sh -c \
	'lbctl daemon start >/dev/null && lbctl submit --name b -- true; rc=$?; lbctl daemon stop >/dev/null; exit $rc'
like "$err" 'b.s/runs/b: Slurm can write no output below a name with a backslash' "in words"
exits 6 "a partition that is not there is refused at once" \
	lbctl submit --name nowhere --set slurm.partition=nowhere -- true
scontrol create partitionname=fleeting nodes=n1 maxtime=60 state=up
lbctl submit --name nowhere --hold --set slurm.partition=fleeting -- true >/dev/null
run_reaches nowhere held 30
scontrol delete partitionname=fleeting
lbctl release nowhere >/dev/null
run_reaches nowhere failed 30
like "$(lbctl status nowhere --json | json text)" 'partition' \
	"a partition that is not there: Slurm's word"

# --- secrets -----------------------------------------------------------------------------------
printf 'API_KEY=canary-7f3a9\n' >"$T/secrets"
chmod 600 "$T/secrets"
lbctl submit --name secret --set "run.env_file=$T/secrets" \
	-- sh -c 'printf %s "$API_KEY" | sha256sum >"$LB_RUN_DIR/seen"' >/dev/null
run_reaches secret completed 30
is "$(cut -c1-64 "$LB_HOME/runs/secret/seen")" \
	"$(printf %s canary-7f3a9 | sha256sum | cut -c1-64)" \
	"the trainer has its secret"
job=$(lbctl status secret --json | json attempts.0.job_id)
is "$(grep -rl canary-7f3a9 "$LB_HOME" "$T/lbd.log")" "" \
	"nothing else below \$LB_HOME has, nor the log"
is "$(scontrol show job "$job" | grep -c canary)" 0 "nor does Slurm show it"
is "$(lbctl status secret --json | grep -c canary)" 0 "nor does lbd"
chmod 644 "$T/secrets"
exits 2 "an env_file that others may read is refused" \
	lbctl submit --set "run.env_file=$T/secrets" -- true
like "$err" '0600|chmod' "and the mend is named"

# --- a pending run, and one that is killed while it runs ------------------------------------------
lbctl submit --name pending --set slurm.nodelist=n1 --set slurm.exclude=n1 -- true >/dev/null 2>&1
lbctl submit --name big --set slurm.nodes=2 --set slurm.mem=2G -- sleep $mark >/dev/null
run_reaches big running 30
lbctl submit --name waits --set slurm.mem=2G -- true >/dev/null
run_reaches waits queued 30
ok "a pending run is killed" lbctl kill waits --reason "not needed"
run_reaches waits killed 20
is "$(lbctl status waits --json | json attempts.0.start_time)" null "it never started"
ok "a running one is killed" lbctl kill --now big
run_reaches big killed 30
wait_for '[ "$(squeue -h | grep -vc pending)" = 0 ]' 30
passed "no job is left"
wait_for '! pgrep -f "^sleep $mark\$"' 30
passed "no process is left"
exits 1 "wait tells a killed run by its status" lbctl wait big

# --- the number of the job ------------------------------------------------------------------------
told=$(lbctl submit --json --name told -- true | json job_id)
run_reaches told completed 30
is "$(lbctl status told --json | json attempts.0.job_id)" "$told" "who submits is told the job's number"

# lbd dies once Slurm has the job: nobody was told, nothing is noted, the attempt's files are not
# there.
for point in job.told submit.answer attempt.files release.call; do
	run=$(printf %s "$point" | tr . -)
	lbd_stop
	LB_FAILPOINT=$point:kill lbd_start
	lbctl submit --name "$run" -- true >/dev/null 2>&1
	wait "$lbd_pid"
	is $? 137 "lbd dies at $point"
	lbd_start
	run_reaches "$run" completed 60
	is "$(jobs_of "$run")" 1 "and the next one goes on with the same job"
done

# --- a job that a program of the run submits -----------------------------------------------------
# It inherits the environment, and with it what was meant for the run alone.
cat >child.slurm <<'END'
#!/bin/bash
#SBATCH --mem=100M --output=/dev/null
env | grep ^LB_ >"$1.told"
PYTHONPATH=$2 python3 -c 'from lb_client import send; print(send("step", step=900, loss=1.0))' >"$1.said"
touch "$1.done"
END
cat >parent.py <<'END'
import subprocess, sys, time, os
for name, sbatch in ("by-name", "sbatch"), ("by-path", sys.argv[2]):
    # as submitit does: what Slurm says of this job is not for that one
    env = {k: v for k, v in os.environ.items() if k == "SLURM_CONF" or not k.startswith("SLURM_")}
    subprocess.run([sbatch, "child.slurm", name, sys.argv[1]], check=True, env=env)
    while not os.path.exists(name + ".done"): time.sleep(0.1)
END
lbctl submit --name parent --set slurm.mem=100M -- python3 parent.py "$src/docs" "$(command -v sbatch)" >/dev/null
run_reaches parent completed 60
like "$(cat by-name.told)" '^LB_RUN=parent$' "a job that a run's program submits knows where it comes from"
unlike "$(cat by-name.told)" '^LB_(SOCKET|CHECKPOINT_DIR|RESUME_FROM|RANK|ATTEMPT)=' "… and is told nothing of what was for the run"
like "$(cat by-path.told)" '^LB_SOCKET=' "one that another sbatch submits is,"
is "$(cat by-path.said) $(lbctl status parent --json | json step)" "None null" "… but does not report as the run"

# --- a comment that somebody replaces while nobody looks -----------------------------------------
comment_goes() { scontrol update jobid="$tagged" comment="please be quick"; }
comment_is_back() { squeue -h -j "$tagged" -o %k | grep -q '^lbd1:.* please be quick$'; }
lbctl submit --name tagged -- sleep $mark >/dev/null
run_reaches tagged running 30
tagged=$(job_of tagged)
lbd_stop
comment_goes
lbd_start
wait_for comment_is_back 20
passed "a job whose comment was replaced while lbd was down is known by its number"
kill -STOP "$lbd_pid"
kill -KILL "$(pgrep -P "$lbd_pid" lbd-slurm)"
comment_goes
kill -CONT "$lbd_pid"
wait_for comment_is_back 20
passed "… or while its helper was"
ok "… it is killed" lbctl kill tagged
run_reaches tagged killed 30
is "$(jobs_of tagged)" 1 "… and none was submitted beside it"
wait_for '[ -z "$(squeue -h)" ]' 30

# An sbatch reads them: there is no job before they are there.
[ "${LB_TEST_SLURM:-}" != commands ] || done_testing

# They cannot be written at first: the job stays held until they are.
lbd_stop
LB_FAILPOINT=attempt.files:error lbd_start
lbctl submit --name full -- true >/dev/null
run_reaches full completed 30
is "$(jobs_of full)" 1 "a full disk, for a moment: the same job runs"

dies_without_files() { # dies_without_files RUN: Slurm has its job, held
	lbd_stop
	LB_FAILPOINT=attempt.files:kill lbd_start
	lbctl submit --name "$1" -- true >/dev/null 2>&1
	wait "$lbd_pid"
}

# Somebody else releases it before lbd is back: its files are written all the same.
dies_without_files behind
partition DOWN
scontrol release "$(squeue -h -t PENDING -o %i)"
lbd_start
wait_for '[ -e "$LB_HOME/runs/behind/attempts/1/job.sh" ]' 20
passed "a job that somebody released while lbd was away gets its files"
partition UP
run_reaches behind completed 60
is "$(jobs_of behind)" 1 "and runs"

# They can never be written: the attempt ends in words, as one that cannot be submitted.
dies_without_files bent
echo '[run' >"$LB_HOME/runs/bent/spec.toml"
lbd_start
run_reaches bent failed 30
like "$(lbctl status bent)" 'bent/spec.toml:1: ' "a held job whose spec is gone is not started, and why is told"
wait_for '[ -z "$(squeue -h)" ]' 30
passed "it is cancelled"
done_testing
