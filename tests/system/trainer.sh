# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# trainer.sh - what the tests of lbworker alone begin with: no lbd, no Slurm, a folder $T of their
# own.
#
# `worker` holds the pid of a trainer in the background, if there is one; it ends with the test.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
[ -x "$B/lbworker" ] || {
	echo "Bail out! $B/lbworker is not built"
	exit 1
}
T=$(mktemp -d "${TMPDIR:-/tmp}/lb-trainer.XXXXXX") || exit 1
worker=
cleanup() {
	[ -z "$worker" ] || kill -KILL "$worker" 2>/dev/null
	rm -rf "$T"
}
trap cleanup EXIT
trap 'exit 130' HUP INT TERM
unset LB_SOCKET LB_RUN LB_ATTEMPT LB_LAUNCH LB_RUN_DIR LB_CHECKPOINT_DIR LB_SHARED_DIR LB_RESUME_FROM

count=0
ok() { # ok STATUS NAME
	count=$((count + 1))
	if [ "$1" = 0 ]; then
		echo "ok $count - $2"
	else
		echo "not ok $count - $2"
		[ ! -s "$T/err" ] || sed 's/^/# stderr: /' "$T/err"
	fi
}

# $emulated: the CUDA backend as the host runs it, where it could be built; else the test is left
# out.
need_emulated() {
	emulated=$PWD/$B/liblbcuda-emulated.so
	case $B in /*) emulated=$B/liblbcuda-emulated.so ;; esac
	[ ! -e "$emulated" ] || return 0
	echo "1..0 # SKIP built without CUDA (nvcc was not found, or CUDA=0)"
	exit 0
}
