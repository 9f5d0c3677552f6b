#!/bin/sh
# SPDX-License-Identifier: MIT
# Behind an attempt that lost a node, lbrun moves away what that one may still write: torn
# checkpoints that nobody has touched since, and nothing that others keep in the same folder. So it
# does where launch after launch gets nowhere: the trainer may look for the newest one itself.
. "$(dirname "$0")/lib.sh"
. "$suite/attempt.sh"

run() {
	sed -i 's|}$|,"checkpoint_layout":"lbworker"}|' "$F/attempt.json"
	SLURMD_NODENAME=n1 timeout $((60 * patience)) "$B/lbrun" --attempt "$F" >"$F/out.log" 2>&1
}
# ended NUMBER CAUSE [RESUME]: an attempt of one launch
ended() {
	attempt "$1" '["true"]'
	[ -z "${3:-}" ] || sed -i "s|}\$|,\"resume\":\"$3\"}|" "$F/attempt.json"
	printf '{"version":1,"token":"%032d","host":"n9","boot_id":"x","pid":1}' "$1" >"$F/claim"
	printf '{"version":1,"token":"%032d","cause":"%s","exit_code":1,"launches":1}' "$1" "$2" >"$F/exit.json"
}
torn() { # torn STEP WHEN: its manifest, which comes last, is missing
	mkdir -p "$C/step-$1"
	echo abc >"$C/step-$1/w"
	touch -d "$2" "$C/step-$1/w" "$C/step-$1"
}
whole() {
	torn "$1" '1 hour ago'
	printf abc >"$C/step-$1/w"
	printf '{"format":1,"step":10,"tokens":0,"world_size":1,"config_hash":"","attempt":0,"files":
		[{"name":"w","bytes":3,"xxh3_128":"06b05ab6733a618578af5f94892f3950"}]}' >"$C/step-$1/manifest.json"
}
again() {
	fresh
	whole 00000010
	torn 00000020 '1 minute ago'
}
moved() { (cd "$C" && find . -path './set-aside-*/*' -name 'step-*') | sed 's|^\./||' | sort | tr '\n' ' '; }

again
torn 00000030 '1 minute' # another run's, in the same folder: written behind the claim of this attempt
mkdir "$C/step-00000040" # begun by it just now
touch -d '1 minute' "$C/step-00000040"
ended 1 node_fail
attempt 2 '["true"]'
ok "behind an attempt that lost a node" run
is "$(moved)" "set-aside-2.0/step-00000020 " "what is torn is moved away, but not what somebody writes now"
ok "nor what is whole" [ -e "$C/step-00000010/manifest.json" ]

again
ended 1 error
attempt 2 '["true"]'
run
is "$(moved)" "" "behind one that lost none, nothing"

again
ended 1 node_fail
mkdir "$F/task-3" && cp "$F/claim" "$F/exit.json" "$F/task-3"
attempt 2 '["true"]'
sed -i 's|}$|,"is_script":true}|' "$F/attempt.json"
all=$C C=$C/task-3
whole 00000010
torn 00000020 '1 minute ago'
C=$all
SLURM_ARRAY_TASK_ID=3 run
is "$(moved)" "" "a task of an array moves none that is not its own"
C=$C/task-3
is "$(moved)" "set-aside-2.0/step-00000020 " "and those that are"
C=$all

again
ended 1 node_fail
ended 2 error
attempt 3 '["true"]'
run
is "$(moved)" "" "the attempt behind it has seen to that"

again
ended 1 node_fail
ended 2 error "$C/step-00000010"
attempt 3 '["true"]'
run
is "$(moved)" "set-aside-3.0/step-00000020 " "not where a person chose its checkpoint"

# looks_itself: a trainer that takes the newest, whole or not
cat >"$T/looks_itself" <<END
#!/bin/sh
[ -e $C/\$(cd $C && ls -d step-* | tail -n 1)/manifest.json ]
END
chmod +x "$T/looks_itself"
fails_of_torn() { # fails_of_torn MORE: members of attempt.json
	again
	attempt 1 "[\"$T/looks_itself\"]" 5
	sed -i "s|}\$|,$1}|" "$F/attempt.json"
	run
}
fails_of_torn '"max_without_progress":3'
is "$(moved)" "set-aside-1.2/step-00000020 " "what is torn is moved away behind two launches that got nowhere"
is "$(json cause <"$F/exit.json") $(json launches <"$F/exit.json")" "completed 3" "… and the trainer goes on from the one before"
like "$(cat "$F/out.log")" '1 unfinished checkpoint newer than the newest whole one' "… which is said"
fails_of_torn '"max_without_progress":2'
is "$(moved)" "set-aside-1.1/step-00000020 " "… or behind the last but one that the run has"
fails_of_torn '"max_without_progress":1'
is "$(moved)" "" "… not behind none"
again
rm "$C/step-00000010/manifest.json"
attempt 1 "[\"$T/looks_itself\"]" 5
sed -i 's|}$|,"max_without_progress":3}|' "$F/attempt.json"
run
is "$(moved)" "" "nor where none is whole"
done_testing
