#!/bin/sh
# SPDX-License-Identifier: MIT
# checkpoint.stage on several nodes: each rank saves to a folder of its node, and only what all
# nodes have brought to the shared one counts. Killed at each step between, and a node lost, every
# launch starts from a whole one. srun is a stand-in here; ranks-slurm.t has the real one.
. "$(dirname "$0")/lib.sh"
. "$suite/attempt.sh"
. "$suite/stage.sh"
trainer=$src/tests/stage/ranks.py
export SLURM_JOB_NUM_NODES=2 LOST="$T/lost"
PATH=$src/tests/stage:$PATH
mkdir "$T/lost"

staged() { # staged NUMBER LAST [IN_PLACE [RATE]]
	mkdir -p "$S/n1" "$S/n2"
	attempt "$1" "[\"python3\",\"$trainer\",\"$2\"]" "${3:-0}"
	sed -i "s|}\$|,\"checkpoint_stage\":\"$S/%n\",\"stage_rate\":${4:-0}}|; s|\"none\"|\"srun\",\"srun\":[\"--quiet\"]|" \
		"$F/attempt.json"
}
left() { find "$S" -mindepth 3 -maxdepth 3 2>/dev/null | wc -l; }

for layout in dcp folder numpy; do
	again
	STAGE_LAYOUT=$layout
	export STAGE_LAYOUT
	staged 1 3
	exits 0 "$layout: a training on two nodes ends" "$B/lbrun" --attempt "$F"
	is "$(hidden) $(left)" "0 0" "nothing is left in the stages of both"
	like "$(cat "$F/spool.jsonl")" '"checkpoint_valid".*"step":3.*"valid":true' "the last one is told to count"
	staged 2 4
	run
	is "$(log wrong)$(log started)" "0 3 " "the next launch finds every byte of both nodes"
done
STAGE_LAYOUT=dcp

# --- in place: the parts are brought together first ---------------------------------------------
again
staged 1 6 1 400000
STAGE_DIE_AT=5 run
is "$(log wrong)$(log started)" "0 4 " "after a crash the newest is sealed before the next launch"
like "$(log source)" " $C/step-4 \$" "which starts from there"

# --- killed at each step ------------------------------------------------------------------------
for point in stage.chunk:kill@2 stage.part:kill stage.part:error stage.gathered:kill stage.gathered:error \
	stage.copied:kill stage.sealed:kill stage.placed:kill stage.cleared:kill; do
	again
	mkdir -p "$T/once" && rm -f "$T/once"/*
	staged 1 3
	STAGE_PAUSE=0.1 LB_FAILPOINT=$point LB_FAILPOINT_ONCE=$T/once run
	staged 2 4
	run
	is "$(log wrong)$(hidden)" "0" "$point: the run goes on, from a whole one"
	ok "step 4 is there, of both nodes" [ -e "$C/step-4/__1_0.distcp" -a -e "$C/step-4/.metadata" ]
	ok "$point was reached" [ -n "$(ls "$T/once")" ]
done

# --- a node is lost in the middle ---------------------------------------------------------------
again
staged 1 99 0 400000
STAGE_PAUSE=1 start
wait_for "grep -q checkpoint_valid '$F/spool.jsonl'" 20
touch "$T/lost/n2"
lost=$(log saved | awk '{print $NF + 3}')
wait_for "grep -q 'saved.: $lost' '$STAGE_LOG'" 20
kill -9 "$lbrun_pid"
wait "$lbrun_pid" 2>/dev/null
sealed=$(find "$C" -maxdepth 1 -name 'step-*' | sed 's/.*-//' | sort -n | tail -1)
ok "marked ones are left on the other node" [ -n "$(find "$S/n1" -name .metadata)" ]
rm -rf "$S/n2"/* "$T/lost/n2"
staged 2 $((lost + 1))
run
is "$(log wrong)$(log started)" "0 $sealed " "the run goes on from the newest that was sealed ($sealed)"
like "$(cat "$F/spool.jsonl")" 'stage_stays.*n2: .* is not of the launch that wrote' "and says why from no newer one"
like "$(cat "$F/spool.jsonl")" 'stage_lost.*lies on' "and that one is lost"
ok "the end is whole" [ -e "$C/step-$((lost + 1))/__1_0.distcp" ]

again
staged 1 99 0 1
STAGE_PAUSE=0.3 start
wait_for "grep -q 'saved.: 3' '$STAGE_LOG'" 20
kill -9 "$lbrun_pid"
wait "$lbrun_pid" 2>/dev/null
staged 2 9
SLURM_JOB_NUM_NODES=1 run
like "$(cat "$F/spool.jsonl")" 'parts of it lie on 2 nodes, and the job has 1|"step":9' \
	"a job of fewer nodes takes no part for the whole"
is "$(log wrong)" "" "nor is any launch started from one"

# --- told to end --------------------------------------------------------------------------------
again
staged 1 99 0 1
STAGE_PAUSE=0.3 start
wait_for "grep -q 'saved.: 3' '$STAGE_LOG'" 20
kill -TERM "$lbrun_pid"
wait "$lbrun_pid" 2>/dev/null
ok "told to end, it drains the newest of both nodes, whatever the rate" \
	[ -e "$C/step-$(log saved | awk '{print $NF}')/__1_0.distcp" ]
is "$(left)" 0 "and leaves nothing behind"

done_testing
