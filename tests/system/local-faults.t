#!/bin/sh
# SPDX-License-Identifier: MIT
# The faults of faults.t that need no Slurm, on one machine without it: lbd and lbrun die at each of
# their failpoints and at any moment, disks fill up, while runs flow and people order; afterwards
# history.py holds what the trainers saw against the ledger.
#
# Environment: how often each (0: not at all)
#   POINTS LBRUN_POINTS KILLS DISK SPOOL
. "$(dirname "$0")/lib.sh"
need strace strace
need sqlite3 sqlite3
SRC=$src SCHEDULER=local SETTLE=later CLUSTER=
export SRC SCHEDULER SETTLE CLUSTER

faults() { python3 -B "$src/tests/faults/faults.py" "$@"; }
part() {	# COUNT PART NAME
	[ "$1" = 0 ] || ok "$3" faults "$2" "$1" || context
}
part "${POINTS:-1}" points "lbd dies at each of its failpoints"
part "${LBRUN_POINTS:-1}" lbrun "lbrun dies at each of its failpoints"
part "${KILLS:-20}" kills "lbd is killed at any moment"
part "${DISK:-4}" disk "the disk below the ledger is full, or broken"
part "${SPOOL:-2}" spool "the disk below the spool is full, or broken"
part 1 end "no run is lost, none has two trainers, no line is missing or doubled"

# Two trainers for one attempt are found, were there no claim to prevent them.
unset SETTLE
LB_HOME=$T/copy
mkdir "$LB_HOME"
FAULTS_LBRUN=$B/controls/lbrun python3 -B "$src/tests/faults/faults.py" copy 1 >"$T/control.out" 2>&1
like "$(cat "$T/control.out")" "TWO TRAINERS" "a job that runs twice is found, where nothing prevents it"
diag "$(cat "$T/table")"
done_testing
