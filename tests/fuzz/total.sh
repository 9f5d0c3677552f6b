#!/bin/sh
# SPDX-License-Identifier: MIT
# total.sh [-u TOTAL -s SECONDS] PROGRAM... - how many inputs these fuzz targets have had, in all
# runs together; with -u they run, one after the other for SECONDS each, until it is so many. It may
# be interrupted at any time and started again.
set -u
here=$(cd "$(dirname "$0")" && pwd -P)
B=${B:?}
until=0 seconds=60
while getopts u:s: option; do
	case $option in
	u) until=$OPTARG ;;
	s) seconds=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
count() { cat "$B/counts/$1" 2>/dev/null || echo 0; }
name_of() { basename "$1" | sed 's/^fuzz_//'; }
total() {
	sum=0
	for program; do sum=$((sum + $(count "$(name_of "$program")"))); done
	echo $sum
}

trap 'interrupted=1' INT TERM
interrupted=
while [ "$(total "$@")" -lt "$until" ]; do
	for program; do
		said=$(RUNS='' sh "$here/run.sh" "$seconds" "$program")
		echo "$said" | grep -v '^1\.\.'
		case $said in *"not ok"*) exit 1 ;; esac
		[ -z "$interrupted" ] || break 2
		[ "$(total "$@")" -lt "$until" ] || break
	done
done
for program; do printf '%14d  %s\n' "$(count "$(name_of "$program")")" "$(name_of "$program")"; done
printf '%14d  inputs in all\n' "$(total "$@")"
