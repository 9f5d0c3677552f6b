#!/bin/sh
# SPDX-License-Identifier: MIT
# A minute of faults that a seed draws, all kinds at once, judged by witnesses alone:
# tests/faults/chaos.py. `make chaos MINUTES=60` is the same file. Then the negative control: a job
# that runs twice, with an lbrun whose claims of attempts are taken out; the witnesses must see two
# trainers.
#
# Environment: MINUTES (1), SEED (drawn)
if [ -z "${DISK:-}" ]; then
	# A disk that may be filled, seen by this test alone and gone with its last process.
	DISK=none
	unshare --mount mount -t tmpfs none /mnt 2>/dev/null && DISK=own
	export DISK
	[ $DISK = none ] || exec unshare --mount sh "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"
SRC=$src
MINUTES=${MINUTES:-1}
SEED=${SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
MC_MESSAGETIMEOUT=5
export SRC MC_MESSAGETIMEOUT
cluster_start 2
CLUSTER=$cluster
export CLUSTER

# The home lies on a disk of its own; what the trainers write down does not.
[ "$DISK" = none ] ||
	mount -t tmpfs -o "size=$((64 + 8 * MINUTES))m,mode=755" none "$LB_HOME" ||
	bail_out "no disk of its own"
mkdir "$T/witness"
ln -s "$T/witness" "$LB_HOME/witness"
# cleanup() cannot remove what is mounted. What people want to look at is kept beside it.
leave_home() {
	status=$?
	if [ "$DISK" = own ]; then
		[ -z "${LB_KEEP:-}" ] || cp -a "$T/home" "$T/home.kept"
		umount -l "$T/home"
	fi
	(exit "$status")
	cleanup
}
trap leave_home EXIT

chaos() {	# SECONDS SEED
	python3 -B "$src/tests/faults/chaos.py" "$@"
}

diag "seed $SEED"
[ "$DISK" = own ] || diag "no file system can be mounted here: no disk is filled"
if chaos $((60 * MINUTES)) "$SEED" >"$T/chaos.out" 2>&1; then
	passed "every promise is kept in $MINUTES minutes of chaos"
	diag "$(tail -n 2 "$T/chaos.out")"
else
	failed "every promise is kept in $MINUTES minutes of chaos"
	diag "$(cat "$T/chaos.out")"
fi

LB_HOME=$T/control
mkdir "$LB_HOME"
FAULTS=copy FAULTS_LBRUN=$B/controls/lbrun chaos 60 "$SEED" >"$T/control.out" 2>&1
like "$(grep -v "^---" "$T/control.out")" "TWO TRAINERS" "without claims the same faults do damage, and it is found" &&
	diag "control: $(tail -n 1 "$T/control.out")"

done_testing
