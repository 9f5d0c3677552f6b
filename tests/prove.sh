#!/bin/sh
# SPDX-License-Identifier: MIT
# prove.sh JOBS RUNNER TEST… - run tests under prove(1), JOBS at a time, each as `RUNNER TEST`.
# When one fails, all that it printed and the logs of its folder come last, after prove's summary:
# a failure that cannot be had again, on a machine that is gone, must have left its cause. Its cases
# are also added to $LB_NOT_OK, for who runs several of these beside one another.
#
# LB_AGAIN=1: what failed beside others is run once more, alone. Passes it then, it does not fail
# the whole, but is called unsteady, with all that it printed when it failed: there is a race to
# mend. For machines whose load nobody knows; a person's own run has no second try.
set -u
here=$(cd "$(dirname "$0")" && pwd -P)

# One test, called by prove. lib.sh leaves the logs of a failed test's folder in $LB_RECORD.logs.
record() {	# RUNNER TEST
	LB_RECORD=$LB_RECORDS/$(basename "$2")
	export LB_RECORD
	# shellcheck disable=SC2086 # RUNNER holds words
	{
		$1 "$2" 2>&1
		echo $? >"$LB_RECORD.status"
	} | tee "$LB_RECORD"
	status=$(cat "$LB_RECORD.status")
	if [ "$status" = 0 ] && ! grep -q '^not ok' "$LB_RECORD"; then
		rm -f "$LB_RECORD" "$LB_RECORD.logs"
	fi
	rm -f "$LB_RECORD.status"
	return "$status"
}

# Of those that failed, forgets the ones that pass alone, but for what is printed of them.
try_again() {
	for file in "$LB_RECORDS"/*; do
		case $file in *.logs | *.unsteady) continue ;; esac
		again=
		for test; do
			[ "${test##*/}" != "${file##*/}" ] || again=$test
		done
		[ -n "$again" ] || continue
		# shellcheck disable=SC2086 # RUNNER holds words
		if LB_RECORD='' $LB_RUNNER "$again" >"$LB_RECORDS.again" 2>&1 &&
			! grep -q '^not ok' "$LB_RECORDS.again"; then
			mv "$file" "$file.unsteady"
			echo "unsteady: $again failed beside others, and passed alone"
		else
			status=1
		fi
	done
}

print_failures() {
	for file in "$LB_RECORDS"/*; do
		[ -e "$file" ] || continue
		printf '\n=== %s\n' "${file##*/}"
		cat "$file"
	done
}

# What matters of it once more: some are shown the last lines alone.
print_short() {
	for file in "$LB_RECORDS"/*; do
		case $file in *.logs | *.unsteady) continue ;; esac
		[ -e "$file" ] || continue
		cases=$(grep -A 3 '^not ok\|^Bail out!' "$file" | tail -n 30)
		printf '\n=== %s failed:\n%s\n' "${file##*/}" \
			"$(printf '%s\n' "${cases:-$(tail -n 5 "$file")}" | cut -c 1-300)"
	done
}

if [ "$1" = --record ]; then
	record "$2" "$3"
	exit
fi

jobs=$1 LB_RUNNER=$2
shift 2
LB_RECORDS=$(mktemp -d "${TMPDIR:-/tmp}/lb-records.XXXXXX") || exit 1
trap 'rm -rf "$LB_RECORDS" "$LB_RECORDS.sh" "$LB_RECORDS.again" "$LB_RECORDS.bin"' EXIT
trap 'exit 130' HUP INT TERM
export LB_RECORDS LB_RUNNER
# Tests take the system's python3. In front of it may stand a script that looks for another (pyenv),
# and that other may load much by itself: each start then takes a tenth of a second instead of a
# hundredth, hundreds of times.
if [ -x /usr/bin/python3 ] && [ "$(command -v python3)" != /usr/bin/python3 ]; then
	mkdir "$LB_RECORDS.bin" && ln -s /usr/bin/python3 "$LB_RECORDS.bin/python3"
	PATH=$LB_RECORDS.bin:$PATH
	export PATH
fi
# Nor does each line that a test's Python prints need a write of its own, whatever a container's
# environment says: text.t took four times as long.
unset PYTHONUNBUFFERED
# prove splits --exec at blanks, so RUNNER's words travel in the environment
cat >"$LB_RECORDS.sh" <<END
exec sh "$here/prove.sh" --record "\$LB_RUNNER" "\$1"
END
prove -j "$jobs" --timer --exec "sh $LB_RECORDS.sh" "$@"
status=$?
# After a "Bail out!" others were never run: no second try may call that a success.
if [ $status != 0 ] && [ "${LB_AGAIN:-0}" = 1 ] && [ -n "$(ls "$LB_RECORDS")" ] &&
	! grep -qs '^Bail out!' "$LB_RECORDS"/*; then
	status=0
	try_again "$@"
fi
print_failures
print_short | tee -a "${LB_NOT_OK:-/dev/null}"
exit $status
