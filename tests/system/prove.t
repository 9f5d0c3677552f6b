#!/bin/sh
# SPDX-License-Identifier: MIT
# What a failing test leaves behind: its whole output and its folder's logs, after the summary.
. "$(dirname "$0")/lib.sh"

cat >"$T/bad.t" <<END
. "$src/tests/system/lib.sh"
lbd_start
diag "before the failure"
is one two "this differs"
done_testing
END
printf '%s\n' 'echo 1..1' 'echo ok 1' >"$T/good.t"
unset LB_RECORD LB_RECORDS LB_RUNNER LB_AGAIN LB_NOT_OK

# what prove sets for the tests it starts must not reach the prove within
proved() { env -u HARNESS_ACTIVE LB_SRC="$src" sh "$src/tests/prove.sh" "$@"; }

exits 1 "a failing test fails the whole" proved 2 sh "$T/good.t" "$T/bad.t"
shown=$(printf '%s\n' "$out" | sed -n '/^=== /,$p')
like "$shown" '^# before the failure' "its output stands at the end"
like "$shown" '^not ok 1 - this differs' "with the case that failed"
like "$shown" '^--- lbd.log' "and the logs of its folder"
like "$shown" ' serves ' "which say what lbd did"
like "$(printf '%s\n' "$out" | tail -n 6)" '^not ok 1 - this differs' "and the case once more, among the last lines"
is "$(printf '%s\n' "$shown" | grep -c '^=== good')" 0 "nothing of a test that passed"
exits 0 "when all pass, so does the whole" proved 1 sh "$T/good.t"
is "$(printf '%s\n' "$out" | grep -c '^===')" 0 "and nothing follows the summary"
exits 1 "what fails again fails the whole" env LB_AGAIN=1 LB_SRC="$src" \
	env -u HARNESS_ACTIVE sh "$src/tests/prove.sh" 2 sh "$T/good.t" "$T/bad.t"
printf '%s\n' 'echo 1..1' "mkdir $T/once 2>/dev/null || { echo ok 1; exit; }" 'echo not ok 1' 'exit 1' \
	>"$T/unsteady.t"
exits 1 "who fails once has failed" proved 2 sh "$T/unsteady.t" "$T/good.t"
rmdir "$T/once"
exits 0 "but may be tried again, alone" env LB_AGAIN=1 LB_SRC="$src" \
	env -u HARNESS_ACTIVE sh "$src/tests/prove.sh" 2 sh "$T/unsteady.t" "$T/good.t"
like "$out" '^unsteady: .*unsteady.t failed beside others' "which is said"
like "$out" '^=== unsteady.t.unsteady' "with what it printed when it failed"
printf '%s\n' 'echo 1..1' "mkdir $T/gave-up 2>/dev/null || { echo ok 1; exit; }" 'echo "Bail out! once"' 'exit 1' \
	>"$T/gives-up.t"
exits 1 "who gives up keeps others from being run: no second try makes that good" env LB_AGAIN=1 LB_SRC="$src" \
	env -u HARNESS_ACTIVE sh "$src/tests/prove.sh" 1 sh "$T/gives-up.t" "$T/good.t"

# --- the same tests again and again ---------------------------------------------------------------
printf '%s\n' 'echo 1..1' 'echo "not ok 1 - shaky"' >"$T/shaky.t"
steady() { env TIMES=2 LOAD=1 DONE="$T/steady" sh "$src/tests/steady.sh" "$T/good.t" "$T/shaky.t"; }
exits 1 "alone, beside others and on one processor: a failure is told" steady
is "$(printf '%s\n' "$out" | tail -n 1)" "steady: 2 tests, 5 runs passed, 5 failed" "with how many there were"
like "$(cat "$T"/steady.failed/shaky.t.beside.2)" 'not ok 1 - shaky' "what it printed is kept"
exits 1 "an interrupted sitting goes on" steady
is "$(wc -l <"$T/steady")" 10 "nothing is run twice"

printf '%s\n' 'echo 1..1' 'echo ok 1' 'exit 3' >"$T/good.t"
exits 1 "a test that ends badly after its last case fails, too" proved 1 sh "$T/good.t"
done_testing
