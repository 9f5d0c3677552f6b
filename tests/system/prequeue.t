#!/bin/sh
# SPDX-License-Identifier: MIT
# restart.prequeue: the next attempt's job waits, held, behind the running one; it takes over after
# a crash, and goes when the run does not go on. lbd may die meanwhile.
. "$(dirname "$0")/lib.sh"

jobs() { squeue -h -o "%i %T %r" | sort -n; }
waiting() { squeue -h -t PENDING -o "%i %r" | awk '$2 == "JobHeldUser" { print $1 }'; }
finish() { echo "$2" >"$T/.end" && mv "$T/.end" "$T/end.$1"; }	# ATTEMPT STATUS
in_line() { wait_for "[ \"\$(waiting | wc -w)\" = $1 ]" 20; }

printf '[poll]\ninterval = "200ms"\nidle_interval = "500ms"\n' >"$LB_HOME/lbd.toml"
cluster_start 2
lbd_start

# A trainer that ends as the file says, as soon as there is one.
cat >"$T/train.sh" <<END
touch $T/began.\$LB_ATTEMPT
await $T/end.\$LB_ATTEMPT
exit \$(cat $T/end.\$LB_ATTEMPT)
END
lbctl submit --name a --set restart.prequeue=true --set restart.in_place=0 \
	--set restart.backoff_first=0 -- sh "$T/train.sh" >/dev/null
run_reaches a running 30
in_line 1
second=$(waiting)
ok "a second job waits behind the first" \
	wait_for 'lbctl events a | grep -Eq "prequeued +job $second waits behind attempt 1"' 20
is "$(attempts a)" 1 "it is no attempt yet"
is "$(lbctl status a --json | json state)" running "the run runs"

# A new lbd knows of it and makes no third one.
lbd_kill9
lbd_start
lbctl submit --name marker -- true >/dev/null
run_reaches marker completed 30
is "$(waiting)" "$second" "lbd died: the same job waits on, alone"

finish 1 3
run_reaches a running 30 2
is "$(job_of a 1)" "$second" "after a crash the job that waited is the next attempt"
in_line 1
third=$(waiting)
ok "and another one waits" [ "$third" -gt "$second" ]

# Somebody releases it: it may not start beside the trainer that runs. It goes, and is not missed.
# (Where it starts before lbd has seen that, it takes the run over, as any later attempt does.)
partition DOWN
scontrol release "$third"
wait_for '[ -z "$(squeue -h -j "$third" -o %T 2>/dev/null)" ]' 20
is "$(lbctl status a --json | json attempts.1.state)" running \
	"a prequeued job that somebody released is cancelled"
is "$(cd "$T" && echo began.*)" "began.1 began.2" "no trainer of it ever began"
partition UP

lbctl kill --now a >/dev/null
run_reaches a killed 20

for how in complete kill hold; do
	rm -f "$T"/end.*
	lbctl submit --name "$how" --set restart.prequeue=true -- sh "$T/train.sh" >/dev/null
	run_reaches "$how" running 30
	in_line 1
	case $how in
	complete) finish 1 0; run_reaches complete completed 20 ;;
	kill) lbctl kill --now kill >/dev/null; run_reaches kill killed 20 ;;
	hold) lbctl hold hold >/dev/null; run_reaches hold held 60 ;;
	esac
	wait_for '[ -z "$(squeue -h)" ]' 20
	is "$(jobs)" "" "$how: the job that waited is cancelled"
done

# The files of the job that went are not those of the one that has its number now.
finish 2 0
lbctl release hold >/dev/null
run_reaches hold completed 30
is "$(attempts hold)" 2 "the attempt that has the number of one that was dropped runs"
done_testing
