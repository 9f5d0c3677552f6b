#!/bin/sh
# SPDX-License-Identifier: MIT
# The node that lbrun is on falls silent, with all its processes, in the middle of a save: the other
# nodes end their ranks and say so, and the run goes on elsewhere in seconds, not when Slurm knows.
# What wakes up counts nowhere. And where only the heartbeats fail and lbrun lives, no launch trains
# beside another.
. "$(dirname "$0")/lib.sh"
. "$suite/lost.sh"

lost_start 6 3 # those of the lost job are free only when Slurm's own messages to the lost node have timed out

# Behind the first step of a launch none of an older one is made.
in_turn() { awk '{ split($1, n, "."); at = n[1] * 1000 + n[2]; if (at < newest) exit 1; newest = at }' "$T/steps.$1"; }
# The folder of a checkpoint that is being written.
torn() { find "$checkpoints" -path '*/step-*' -name weights -exec dirname {} \; | while read -r c; do [ -e "$c/complete" ] || echo "$c"; done; }

# --- it is frozen --------------------------------------------------------------------------------
ok "a run on three nodes" lbctl submit --name r "$T/job.toml"
trains r 1.1
touch "$T/slow.r"
checkpoints=$LB_HOME/runs/r/checkpoints
wait_for '[ -n "$(torn)" ]' 20
torn=$(torn)
step=${torn##*-}
wait_for '[ "$(wc -l <"$torn/weights")" -gt 2 ]' 20
on_node n1 STOP
frozen_ms=$(now_ms)
rm "$T/slow.r"
wait_for 'grep -q "^2.1 0 " "$T/steps.r"' 60
back_ms=$(($(now_ms) - frozen_ms))
diag "$((back_ms / 1000)).$((back_ms % 1000 / 100)) s from the silence of lbrun's node to the first new step (node_timeout ${timeout_s} s)"
ok "it goes on elsewhere in seconds" in_time $back_ms 20000
events=$(lbctl events r)
like "$events" "node_lost +n1: the node of lbrun was not heard for [0-9]+ s by 2 of 2 others" "it is told which node, and who says so"
like "$events" "attempt_end +attempt 1: node_fail: the node of lbrun was not heard" "and how the attempt ended"
like "$events" "node_suspect +n1 is avoided for .*: node_fail" "the node is avoided"
is "$(echo "$events" | grep -c ' is avoided ')" 1 "and no other"
is "$(grep -c '^2.1 [0-9]* n1 ' "$T/steps.r")" 0 "the next attempt is without it"
unlike "$(sinfo -h -N -n n1 -o %T)" down "while Slurm does not call it lost"
is "$(grep '^2.1 0 ' "$T/steps.r" | head -n 1 | cut -d ' ' -f 4)" "$((step - 4))" "it begins from the newest whole checkpoint"
wait_for '[ -e "$torn/complete" ]' 20
is "$(cat "$torn/weights")" 2 "what was torn is not written on by the next attempt"
aside=$(find "$checkpoints" -path "*set-aside*/step-$step/weights")
is "$(head -n 1 "$aside")" 1 "it was set aside"

silent=$(steps_of r 1.1 n1)
told=$(lbctl events r | wc -l)
on_node n1 CONT
wait_for '[ -z "$(of_launch r 1.1)" ]' 20
ok "it wakes up: its ranks end in a moment" [ "$(steps_of r 1.1 n1)" -le $((silent + 2 * patience)) ]
is "$(cat "$torn/weights")" 2 "what it still had to write does not reach the checkpoint of the next attempt"
trains r 2.1 40
is "$(run_state r) $(attempts r)" "running 2" "the run goes on undisturbed"
is "$(lbctl events r | sed "1,${told}d" | grep -v ' checkpoint ')" "" "what woke up is not told of"
lbctl kill r >/dev/null
run_reaches r killed 30
lbctl nodes forgive n1 >/dev/null

# --- only the heartbeats fail --------------------------------------------------------------------
# The search before the next launch takes longer than lbrun may be silent.
hold_s=$((timeout_s + 10))
mkdir "$T/once"
: >"$T/once/search.look"
printf 'LB_FAILPOINT=%s\nLB_FAILPOINT_ONCE=%s\n' "search.look:delay:${hold_s}s" "$T/once" >"$T/env"
chmod 600 "$T/env"
wait_for '[ "$(sinfo -h -t idle -o %D)" -gt 2 ]' 60
ok "a run on three nodes" lbctl submit --name p --set "run.env_file=$T/env" "$T/job.toml"
trains p 1.1
rm "$T/once/search.look"
host=$(sed -n 's/^1.1 0 \(n[0-9]*\) .*/\1/p' "$T/steps.p" | head -n 1)
for pid in $(of_node "$host"); do
	case $(cat "/proc/$pid/comm") in lbrun-listener | lbrun-beater) kill -STOP "$pid" ;; esac
done
cut_ms=$(now_ms)
wait_for 'grep -q "^[12].[12] 2 " "$T/steps.p" && ! tail -n 1 "$T/steps.p" | grep -q "^1.1 "' 90
diag "$((($(now_ms) - cut_ms) / 1000)) s from the last heartbeat to the first new step, $hold_s s of them in the search"
ok "the search was held" [ -e "$T/once/search.look" ]
trains p 1.2 $((10 * (timeout_s + 10)))
ok "no launch trains beside another" in_turn p
is "$(find "$LB_HOME/runs/p/attempts/1/unheard" -name 'n?' | wc -l)" 2 "two nodes left notes"
is "$(attempts p)" 1 "of a launch that is over: they end nothing"
unlike "$(lbctl events p)" "node_lost|node_suspect" "and blame nobody"
lbctl kill p >/dev/null
run_reaches p killed 30
done_testing
