#!/bin/sh
# SPDX-License-Identifier: MIT
# Every failpoint, and each way in which Slurm and disks fail, against the real programs; afterwards
# history.py holds what the trainers saw against the ledger: no run is lost, none has two trainers,
# no line of progress is missing or there twice. Here each of them once or so, and one look at the
# end; `make faults` is the same file with larger counts.
#
# Environment: how often each (0: not at all)
#   POINTS LBRUN_POINTS WORKER_POINTS    failpoints of lbd, lbrun, lbworker
#   KILLS                 kills of lbd; now and then a node is lost meanwhile
#   ACCEPT FREEZE MUNGE FORGET    slurmctld killed, frozen; munged frozen; slurmctld -c
#   DISK SPOOL            failed writes and syncs of the ledger (100 or more: every one); of spools
#   SETTLE=now            in pieces, each with an lbd and a history of its own
. "$(dirname "$0")/lib.sh"
need strace strace
need sqlite3 sqlite3
SRC=$src
MC_MESSAGETIMEOUT=5
# jobs that a controller wrongly believes to run must not take the place of others
MC_CPUS=64
export SRC MC_MESSAGETIMEOUT MC_CPUS
cluster_start 2
CLUSTER=$cluster
export CLUSTER

faults() { python3 -B "$src/tests/faults/faults.py" "$@"; }
SETTLE=${SETTLE:-later}
export SETTLE
part() {	# COUNT PIECE PART NAME
	left=$1
	while [ "$left" -gt 0 ]; do
		piece=$(($2 < left ? $2 : left))
		left=$((left - piece))
		[ "$SETTLE" = later ] || LB_HOME=$T/$3-$left
		mkdir -p "$LB_HOME"
		ok "$4" faults "$3" "$piece" || context
		[ "$SETTLE" = later ] || diag "$(tail -n 1 "$T/table")"
	done
	LB_HOME=$T/home
}
# The counts of all pieces of a part, added up.
totals() {
	awk '{
		for (i = 2; i <= NF; i++) {
			number = word = $i
			sub(/^[a-z]*=/, "", number)
			if (number !~ /^[0-9]+$/)
				continue
			sub(/[0-9]+$/, "", word)
			$i = word (sum[$1, i] += number)
		}
		if (!($1 in line))
			part[++parts] = $1
		line[$1] = $0
	} END { for (i = 1; i <= parts; i++) print line[part[i]] }' "$T/table"
}
# first: the jobs of other parts, forgotten while they run, would be lost for three minutes
part "${FORGET:-1}" 10 forget "slurmctld forgets all jobs, and their numbers begin anew"
part "${POINTS:-1}" 5 points "lbd dies at each of its failpoints"
part "${LBRUN_POINTS:-1}" 10 lbrun "lbrun dies at each of its failpoints"
part "${KILLS:-5}" 100 kills "lbd is killed at any moment, and nodes are lost"
part "${ACCEPT:-1}" 20 accept "slurmctld dies right after an accept"
part "${FREEZE:-2}" 20 freeze "slurmctld is frozen during a submission"
part "${MUNGE:-2}" 20 munge "munged is frozen during a submission"
part "${DISK:-4}" 1000 disk "the disk below the ledger is full, or broken"
part "${SPOOL:-2}" 20 spool "the disk below the spool is full, or broken"
[ "$SETTLE" != later ] ||
	part 1 1 end "no run is lost, none has two trainers or jobs, no line is missing or doubled"
[ "${WORKER_POINTS:-1}" = 0 ] || ok "a trainer dies at each point of a save, and no checkpoint is hurt" \
	sh "$src/tests/faults/checkpoint.sh" 0 "${WORKER_POINTS:-1}"

diag "$(totals)"
unset SETTLE

# --- tests of these tests -------------------------------------------------------------------
# Without a protection the same fault does the damage, and it is found; with it there is none.
control() {	# PART WORDS NAME VARIABLE=PROGRAM…
	LB_HOME=$T/$1
	mkdir "$LB_HOME"
	ok "$3: the programs as they are stand it" faults "$1" 1
	LB_HOME=$T/$1-control
	mkdir "$LB_HOME"
	env "$4" python3 -B "$src/tests/faults/faults.py" "$1" 1 >"$T/control.out" 2>&1
	like "$(cat "$T/control.out")" "$2" "$3: without their protection the damage is found"
	LB_HOME=$T/$1
}
control copy "TWO TRAINERS" "a job runs twice" "FAULTS_LBRUN=$B/controls/lbrun"
control gap "TWO JOBS" "an accepted job is not recorded" "FAULTS_LBD=$B/controls/lbd"

# A history that is only slightly wrong, of the run that stood it, is found to be wrong.
damaged() {	# WORDS SQL
	cp "$LB_HOME/ledger.db" "$T/damaged/ledger.db"
	sqlite3 "$T/damaged/ledger.db" "$2"
	python3 -B "$src/tests/faults/history.py" "$T/damaged" "$LB_HOME/witness" \
		"$CLUSTER/log/jobcomp.txt" | grep -q "^BROKEN .*$1"
}
mkdir "$T/damaged"
some="(SELECT id FROM metrics ORDER BY run_id, id LIMIT 1 OFFSET 3)"
again="INSERT INTO metrics SELECT run_id, id + 50000, attempt_id, 99999, launch, step, time_ms, loss,
	fields FROM metrics WHERE id = $some"
known=$(awk '$2 == "ack" && $3 == "submit" { print $4; exit }' "$LB_HOME/witness/orders.log")
again=$(echo "$again" | tr '\n\t' '  ')
while IFS='|' read -r words sql name; do
	ok "the checker finds $name" damaged "$words" "$sql"
done <<END
PROGRESS|DELETE FROM metrics WHERE id = $some|a line that is missing
PROGRESS|UPDATE metrics SET step = step + 1 WHERE id = $some|a line that is another one
PROGRESS|$again|a line that is there twice
LOST: acknowledged|UPDATE runs SET name = 'x' WHERE name = '$known'|a run that is gone
LOST: still|UPDATE runs SET state = 'running' WHERE id = 1|a run that never ended
LOST: killed|UPDATE runs SET state = 'killed' WHERE wanted = 'run'|a run that nobody killed
TWO JOBS|UPDATE attempts SET job_id = job_id + 1000 WHERE started_ms > 0|jobs that nobody recorded
END

done_testing
