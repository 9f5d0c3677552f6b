# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # lib.sh and attempt.sh set, and tests use
# What the tests of checkpoint.stage share, sourced behind attempt.sh: an lbrun of one attempt whose
# trainer writes down in $STAGE_LOG what it saved, found wrong and went on from. A test has its own
# staged(). Sets: STAGE_LOG, SLURMD_NODENAME, S (the stage).
S=$T/stage
export STAGE_LOG="$T/log" SLURMD_NODENAME=n1

again() { fresh; rm -rf "$S" "$STAGE_LOG"*; }
run() { timeout $((60 * patience)) "$B/lbrun" --attempt "$F" >"$F/out.log" 2>&1; }
start() {
	"$B/lbrun" --attempt "$F" >"$F/out.log" 2>&1 &
	lbrun_pid=$!
}
# log KEY: its values, in a row
log() { sed -n "s/.*\"$1\": \"\{0,1\}\([^\",}]*\).*/\1/p" "$STAGE_LOG" | tr '\n' ' '; }
# half-made ones in the shared folder
hidden() { find "$C" -mindepth 1 -maxdepth 1 -name '.lb-*' | wc -l; }
