# SPDX-License-Identifier: MIT
# attempt.sh - after lib.sh, for tests of lbrun without lbd: a run's folder, and attempts in it.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # lib.sh sets, and tests use

R=$T/run
C=$R/checkpoints
mkdir -p "$R" "$C"

# attempt NUMBER 'JSON OF THE COMMAND' ['"key":value,…']: attempt.json; sets F.
attempt() {
	F=$R/attempts/$1
	mkdir -p "$F"
	printf '{"version":1,"token":"%032d","run":"r1","number":%d,"command":%s,"workdir":"%s",
		"run_dir":"%s","checkpoint_dir":"%s","lbd_socket":null,"launcher":"none",
		"kill_grace_ms":%s,"in_place":%s,"never_on_exit_codes":[9]}' \
		"$1" "$1" "$2" "$R" "$R" "$C" "${4:-3000}" "${3:-0}" >"$F/attempt.json"
}
fresh() { rm -rf "$R"; mkdir -p "$C"; rm -f "$T"/seen*; }
