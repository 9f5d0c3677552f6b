#!/bin/sh
# SPDX-License-Identifier: MIT
# lbd through Slurm's commands: no command that is killed, silent, cut off, slow or talking nonsense
# makes lbd believe that a job is gone, or submit one twice.
. "$(dirname "$0")/lib.sh"
. "$suite/scheduler.sh"

export MC_MESSAGETIMEOUT=4 MC_KILLWAIT=2 MC_MINJOBAGE=3600
cluster_start 1
mkdir "$T/bin"
for name in squeue sbatch scancel scontrol sinfo; do
	cat >"$T/bin/$name" <<END
#!/bin/sh
echo "\$*" >>"$T/asked.$name"
real=$(command -v $name)
fault=\$(cat "$T/fault.$name" 2>/dev/null)
[ "\$fault" != random ] || fault=\$(od -An -N1 -tu1 /dev/urandom | awk '
	{ split("empty cut killed kill-me garbage fails", f, " "); print f[int(\$1 / 8) + 1] }')
case \$fault in
empty) exit 0 ;;
fails) exit 1 ;;
kill-me) kill -KILL \$\$ ;;			# before it did anything
killed)	\$real "\$@" >/dev/null 2>&1; kill -KILL \$\$ ;;
silent) \$real "\$@" >/dev/null 2>&1; exit 0 ;;
cut)	\$real "\$@" | head -c -100; exit 0 ;;
short)	\$real "\$@" | sed '\$d'; exit 0 ;;		# the last line is missing
twice)	\$real "\$@"; \$real "\$@" | tail -n 1; exit 0 ;;
garbage) head -c 3000 /dev/urandom; exit 0 ;;
node-fail) \$real "\$@" | sed 's/PENDING  /NODE_FAIL/'; exit 0 ;;
slow)	sleep 60 ;;
backup)	\$real "\$@" | sed 's/^\(Slurmctld(primary) at .*\) is UP/\1 is DOWN/'; exit 0 ;;
long)	# a list of nodes, in its column and without one
	case "\$*" in
	*NodeList*) \$real "\$@" | sed "s/.\{256\}\$/\$(head -c 256 "$T/list")/"; exit 0 ;;
	*%N*) \$real "\$@" | sed "s/ .*/ \$(cat "$T/list")/"; exit 0 ;;
	esac ;;
other-*) echo "\${fault#other-}"; exit 0 ;;
partly)	[ "\$1" = release ] || exec \$real "\$@"
	printf '%s\n' '7_0: Job has already finished' '7_1,3: No error' '7_2: Access/permission denied' >&2
	exit 1 ;;
untold) [ "\$2" != config ] || exit 1 ;;
hollow)	echo fails >"$T/fault.squeue"; exit 0 ;;	# nothing is done, and that cannot be seen
of-*)	\$real "\$@" | sed "s/^\(SLURM_VERSION *= \).*/\1\${fault#of-}/"; exit 0 ;;
esac
exec \$real "\$@"
END
	chmod +x "$T/bin/$name"
done
PATH=$T/bin:$PATH
fault() { echo "$2" >"$T/fault.$1"; }	# COMMAND FAULT
mend() { rm -f "$T"/fault.*; }

echo 'sleep 1000' | script sleeps
# Long enough for commands that start on a busy machine, but where one is slow on purpose.
usual=$((3000 * patience))
ask_by() { client_start slurm "$B/lbd-slurm-commands" "$1"; }	# DEADLINE_MS
ask_by $usual
a=$(token)
ok "a job is submitted" submit_job "$a" sleeps
a_ref=$ref
b=$(token)
submit_job "$b" sleeps
ask poll
is "$(field_of "$a" 6) $(field_of "$b" 6)" "held held" "two are held"
start=$(field_of "$a" 13)
ok "when the controller was started is told" [ "$start" -gt 0 -a "$start" -le "$(field_of "$a" 5)" ]
fault scontrol backup
wait_for 'ask poll && [ "$(field_of "$a" 13)" -gt "$start" ]' 20 &&
	passed "a backup was started long before it took over: what it forgot is not known"
mend

# A controller that died before it had saved a job gives its number to the next one.
fault sbatch "other-$(echo "$a_ref" | cut -d' ' -f2)"
submit_job "$(token)" sleeps
is "$result" unclear "a submission whose number has a job of another token: unclear"
mend
ask poll
is "$(field_of "$a" 6)" held "and that one is left alone"

# --- what squeue says ---------------------------------------------------------------------------
for what in empty cut short twice killed kill-me garbage fails slow; do
	[ $what != slow ] || { client_stop; ask_by 3000; }
	fault squeue $what
	ask poll
	is "$result" down "squeue: $what: a poll is no answer"
	ask cancel "$a_ref"
	is "$result" down "and no job is touched"
	ask release "$a_ref"
	is "$result" down "nor called gone"
	mend
done
client_stop
ask_by $usual
wait_for 'ask poll && [ "$result" = ok ]' 20
is "$(field_of "$a" 6) $(field_of "$b" 6)" "held held" "afterwards both are there, held"

# A node that is lost ends many jobs at once.
fault squeue node-fail
ask poll
is "$(field_of "$a" 10) $(field_of "$b" 10) $(wc -l <"$T/asked.sinfo")" "NODE_FAIL NODE_FAIL 1" \
	"which nodes failed is asked once for all jobs that they ended"
mend

# A large job's nodes, which are not in a row, do not fit into a column.
printf 'n[%s]' "$(seq -s , 1 2 999)" >"$T/list"
fault squeue long
ask poll
is "$(field_of "$a" 12)" "$(cat "$T/list")" "squeue tells all nodes of a large job"
mend

# --- commands that change something ---------------------------------------------------------------
for what in empty silent killed kill-me garbage fails slow; do
	t=$(token)
	[ $what != slow ] || { client_stop; ask_by $((1500 * patience)); }
	fault sbatch $what
	submit_job "$t" sleeps
	is "$result" unclear "sbatch: $what: whether there is a job is not known"
	mend
	wait_for 'ask poll "$t" && [ "$result" = ok ]' 20
	case $what in silent | killed) want=held ;; *) want= ;; esac
	is "$(field_of "$t" 6)" "$want" "the next poll knows: ${want:-none}"
done
client_stop
ask_by $usual
is "$(squeue -h -t all | wc -l)" 4 "four jobs, and no more"

# what is released here does not start: Slurm holds running jobs, too, and lets them run
partition DOWN
for what in empty killed kill-me fails; do
	fault scontrol $what
	ask release "$a_ref"
	is "$result" unclear "scontrol release: $what: unclear"
	mend
	ask release "$a_ref"
	is "$result" ok "and once more: ok"
	scontrol uhold "$(echo "$a_ref" | cut -d' ' -f2)"
	is "$(squeue -h -j "$(echo "$a_ref" | cut -d' ' -f2)" -o %r)" JobHeldUser "held again"
done
fault scontrol hollow
ask release "$a_ref"
is "$result" unclear "a release of which nobody can see what came: unclear"
mend
fault scontrol partly
ask release "$a_ref"
like "$result $rest" '^refused .*denied' "an array of which a task is not let go: refused"
mend
partition UP
fault scontrol garbage
submit_job "$(token)" sleeps
is "$result" down "scontrol ping: garbage: nothing is submitted"
mend
fault scontrol backup
submit_job "$(token)" sleeps
is "$result" ok "scontrol ping: down, while others are answered, as to who asks too often: submitted"
mend
ask cancel "$ref"
for what in empty kill-me fails garbage; do
	fault scancel $what
	ask cancel "$a_ref"
	is "$result" unclear "scancel: $what: unclear"
	mend
done
fault scancel hollow
ask cancel "$a_ref"
is "$result" unclear "scancel: hollow: unclear"
mend
ask cancel "$a_ref"
is "$result" ok "then it is cancelled"
ask cancel "$a_ref"
is "$result" gone "and gone only now"
client_stop

# --- what a person may have set -------------------------------------------------------------------
# shellcheck disable=SC2030 # for this client alone
start_with_settings() {
	export LANG=de_DE.UTF-8 LC_ALL=de_DE.UTF-8 SQUEUE_FORMAT=%i SQUEUE_FORMAT2=name \
		SQUEUE_SORT=-i SQUEUE_STATES=RUNNING SQUEUE_PARTITION=none SQUEUE_ARRAY=1 \
		SQUEUE_USERS=nobody SLURM_TIME_FORMAT=relative SLURM_CLUSTERS=elsewhere \
		SCANCEL_INTERACTIVE=1 SCANCEL_STATE=SUSPENDED SCANCEL_VERBOSE=3 \
		SLURM_BITSTR_LEN=4 SCONTROL_ALL=0 TZ=Pacific/Chatham
	ask_by $usual
	unset LANG LC_ALL SQUEUE_FORMAT SQUEUE_FORMAT2 SQUEUE_SORT SQUEUE_STATES SQUEUE_PARTITION \
		SQUEUE_ARRAY SQUEUE_USERS SLURM_TIME_FORMAT SLURM_CLUSTERS SCANCEL_INTERACTIVE \
		SCANCEL_STATE SCANCEL_VERBOSE SLURM_BITSTR_LEN SCONTROL_ALL TZ
}
start_with_settings
t=$(token)
ok "a submission, whatever variables are set" submit_job "$t" sleeps
ask poll
is "$result $(field_of "$t" 3-6)" "ok $ref held" "the same job in a poll, with its time"
ask release "$ref"
is "$result" ok "a release"
ask cancel "$ref"
is "$result" ok "a cancel"
# A job of the same person that tries to look like lines of an answer.
sbatch -H -o /dev/null --comment "lbd1:
last_update_time=1 records=0
$t" "$T/sleeps" >/dev/null
sbatch -H -o /dev/null --comment 'ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€ä€' "$T/sleeps" >/dev/null
ask poll
is "$result $(field_of "$b" 6)" "ok held" "comments of other jobs change nothing"

# An array of which one waiting task has a record of its own.
t=$(token)
script stubborn <<'EOF'
trap '' TERM
while :; do sleep 1; done
EOF
submit_job "$t" stubborn --array=0-9%1
ask release "$ref"
job_reaches "$t" running 30
scontrol hold "${job_id}_7"
wait_for "[ \"\$(squeue -h -t PENDING -j ${job_id} | wc -l)\" -ge 1 ]" 20
wait_for 'ask poll && [ "$result" = ok ]' 20
is "$result $(grep -c "^job $asked $t " "$T/client.out") $(field_of "$t" 4,6)" "ok 1 $job_id running" \
	"an array is one job, whatever its tasks do"
ask signal "$ref" 15
is "$result" ok "a signal"
# What waited is over at once, and its record says no longer that it was an array's.
ask poll
is "$result $(field_of "$t" 4,6)" "ok $job_id running" "ends those that wait; the job is the task that will not go"
scancel "$job_id"
job_reaches "$t" ended 30
client_stop

# --- lbd, with commands that fail at random -------------------------------------------------------
printf '[slurm]\nthrough = "commands"\n[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
lbd_start
like "$(cat "$T/lbd.log")" 'through .*/lbd-slurm-commands' "lbd says how it speaks to Slurm"
for name in squeue sbatch scancel scontrol; do fault $name random; done
for i in 1 2 3 4 5; do
	lbctl submit --name "r$i" -- true >/dev/null || lbctl submit --name "r$i" -- true >/dev/null
done
lbctl submit --name long -- sleep 1000 >/dev/null || lbctl submit --name long -- sleep 1000 >/dev/null
for i in 1 2 3 4 5; do run_reaches "r$i" completed 120; done
run_reaches long running 120
lbctl kill long >/dev/null
run_reaches long killed 120
passed "six runs come to their ends"
mend
is "$(squeue -h -t all -o %j | grep -c '^lb-r[1-5]-\|^lb-long-')" 6 "with one job each"
# An answer that reads as a refusal ends an attempt before it has a job, and another is made.
is "$(echo "$LB_HOME"/runs/r[1-5]/attempts/*/claim | wc -w)" "$(echo "$LB_HOME"/runs/r[1-5]/attempts/*/exit.json | wc -w)" \
	"and every trainer that began has ended"
is "$(echo "$LB_HOME"/runs/r[1-5]/attempts/*/claim | wc -w)" 5 "one for each run"

# Tasks that some releases would forget as lbd releases the job: nobody trains with two of eight.
echo '#!/bin/sh' >"$T/tasks.slurm"
fault scontrol untold
ok "nobody waits for a release that is not told" \
	lbctl submit --name untold "$T/tasks.slurm" --gpus=4 --ntasks-per-gpu=2
fault scontrol of-23.11.4
run_reaches untold failed 60
like "$(lbctl events untold)" 'of 8 tasks .* keep 2' "the job is not made before it is"
# (a busy Slurm is not waited for)
wait_for 'lbctl submit --dry-run "$T/tasks.slurm" --gpus=4 --ntasks-per-gpu=2 >"$T/said" 2>&1
	[ $? = 6 ]' 30 && passed "tasks that this release would lose refuse it"
like "$(cat "$T/said")" 'ntasks-per-gpu=2: of 8 tasks .* keep 2 .* --ntasks' "with what serves"
ok "where none is lost the job is taken" lbctl submit --dry-run "$T/tasks.slurm" --gpus=1 --ntasks-per-gpu=2
mend
ok "other releases keep them" lbctl submit --dry-run "$T/tasks.slurm" --gpus=4 --ntasks-per-gpu=2
lbd_stop

# --- the choice -----------------------------------------------------------------------------------
mkdir "$T/inst"
for p in lbd lbctl lbrun lbworker lbd-slurm-commands; do cp "$B/$p" "$T/inst/"; done
B=$T/inst
PATH=$T/inst:$PATH
said_of() {	# SETTING: what lbd says of Slurm
	printf '[slurm]\nthrough = "%s"\n' "$1" >"$LB_HOME/lbd.toml"
	: >"$T/lbd.log"
	lbd_start
	lbd_stop
	grep -i slurm "$T/lbd.log"
}
like "$(said_of auto)" 'through .*/lbd-slurm-commands' "no lbd-slurm: commands serve by themselves"
cat >"$T/inst/lbd-slurm" <<'END'
#!/bin/sh
echo "$0: error while loading shared libraries: libslurm.so.99: cannot open shared object file" >&2
exit 127
END
chmod +x "$T/inst/lbd-slurm"
said_of auto >"$T/said"
like "$(cat "$T/said")" 'libslurm.so.99' "one whose library is not there: said which"
like "$(cat "$T/said")" 'through .*/lbd-slurm-commands' "and commands serve"
like "$(said_of library)" 'libslurm.so.99.*local' "unless the library is asked for"
printf '#!/bin/sh\nexit 0\n' >"$T/inst/lbd-slurm"
like "$(said_of library)" 'through .*/lbd-slurm$' "one that runs is taken"
done_testing
