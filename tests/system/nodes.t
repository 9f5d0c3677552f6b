#!/bin/sh
# SPDX-License-Identifier: MIT
# A node dies under a run: the run goes on elsewhere, the team remembers the node, and forgives it
# when told to. Memory never keeps a job from running at all.
. "$(dirname "$0")/lib.sh"

node_of() { lbctl status "$1" --json | json "attempts.$2.nodes.0"; }
attempts() { lbctl status "$1" --json | json attempts.#; }
score_of() {	# NODE
	lbctl nodes --json | python3 -c 'import json, sys
print([round(n["score"], 2) for n in json.load(sys.stdin) if n["name"] == sys.argv[1]] or "none")' "$1"
}
avoids() {	# NODE
	lbctl nodes --json | python3 -c 'import json, sys
sys.exit(not any(n["name"] == sys.argv[1] and n["avoided_until"] for n in json.load(sys.stdin)))' "$1"
}

MC_SLURMDTIMEOUT=5
export MC_SLURMDTIMEOUT
printf '[poll]\ninterval = "200ms"\nidle_interval = "500ms"\n[nodes]\npatience = "2s"\n' >"$LB_HOME/lbd.toml"
cluster_start 2
lbd_start

lbctl submit --name a -- sleep 1000 >/dev/null
run_reaches a running 30
bad=$(node_of a 0)
good=$([ "$bad" = n1 ] && echo n2 || echo n1)
diag "attempt 1 runs on $bad"
"$src/etc/minicluster" kill-node "$cluster" "$bad"
wait_for '[ "$(attempts a)" = 2 ] && [ "$(run_state a)" = running ]' 60
is "$(lbctl status a --json | json attempts.0.cause)" node_fail \
	"a node died: the attempt's cause says so"
is "$(node_of a 1)" "$good" "the next attempt runs on the other node"
is "$(score_of "$bad")" "[1.0]" "the node is mistrusted"
ok "and avoided" avoids "$bad"
like "$(lbctl events a --json)" "node_suspect.*$bad is avoided for .*: node_fail" \
	"the event names node and cause"
like "$(scontrol show job -o | tail -n 1)" "ExcNodeList=$bad" \
	"the job was told to keep away from it"
like "$(lbctl nodes)" "^NODE +SCORE +AVOIDED FOR" "lbctl nodes shows a table"
lbctl kill --now a >/dev/null
run_reaches a killed 20

# Back in service, but not trusted: a new run goes to the other node, even though both are free.
"$src/etc/minicluster" start-node "$cluster" "$bad"
wait_for 'scontrol update nodename="$bad" state=resume; [ "$(sinfo -h -t idle -o %D)" = 2 ]' 30
lbd_kill9
lbd_start
lbctl submit --name b -- sleep 1000 >/dev/null
run_reaches b running 30
is "$(node_of b 0)" "$good" "another run keeps away from it, too; lbd started anew meanwhile"
lbctl kill --now b >/dev/null
run_reaches b killed 20

# A job that needs both nodes gets both.
lbctl submit --name both --set slurm.nodes=2 --set run.launcher=none -- true >/dev/null
run_reaches both completed 60
is "$(lbctl status both --json | json attempts.0.cause)" launch_fail \
	"with a node too few it cannot start"
is "$(lbctl status both --json | json attempts.0.launches.#)" 0 "… and does not"
is "$(attempts both)" 2 "so it is tried again without memory"
wait_for '[ "$(squeue -h | wc -l)" = 0 ]' 20
is "$(squeue -h | wc -l)" 0 "nothing is left in the queue"

# Nothing else is free: it would be, for those who wait long enough, but the node that is mistrusted is idle.
sbatch -w "$good" --exclusive -o /dev/null --wrap 'sleep 1000' >/dev/null
wait_for '[ "$(squeue -h -t RUNNING -w "$good" | wc -l)" = 1 ]' 30
lbctl submit --name idle -- sleep 1000 >/dev/null
run_reaches idle running 60
is "$(node_of idle "$(($(attempts idle) - 1))")" "$bad" "a job does not wait beside an idle node that only lbd keeps it from"
like "$(lbctl events idle)" "it kept away from $bad; now it may run anywhere" "… and says so"
lbctl kill --now idle >/dev/null
run_reaches idle killed 20
scancel -w "$good"
wait_for '[ "$(squeue -h | wc -l)" = 0 ]' 30

# Kills by hand bench nobody.
lbctl submit --name byhand --set restart.backoff_first=0 --set restart.max_without_progress=9 \
	-- sh -c '[ "$LB_LAUNCH$LB_ATTEMPT" = 41 ] && exec sleep 1000; kill -KILL $$' >/dev/null
wait_for '[ "$(lbctl status byhand --json | json attempts.0.launches.#)" = 4 ]' 60
like "$(score_of "$good")" '^(none|\[0\.0\])$' "four kills by hand are no reason to keep away from a node"
lbctl kill --now byhand >/dev/null
run_reaches byhand killed 20

# A line that tells of a broken node, and the crash that follows: that node is avoided, the other is
# not.
lbctl nodes forgive "$bad" >/dev/null
lbctl submit --name xid --set 'watch.node_error_regex=["Xid"]' \
	--set restart.backoff_first=0 \
	-- sh -c '[ "$LB_ATTEMPT" = 1 ] || exec sleep 1000; echo "NVRM: Xid 79"; exit 1' >/dev/null
wait_for '[ "$(attempts xid)" = 2 ] && [ "$(run_state xid)" = running ]' 60
is "$(score_of "$(node_of xid 0)")" "[1.0]" \
	"a line that tells of a broken node and the end that follows count against it"
ok "it is avoided" avoids "$(node_of xid 0)"
like "$(lbctl events xid)" 'node_error .*Xid 79' "and is an event"
lbctl kill --now xid >/dev/null
run_reaches xid killed 20
bad=$(node_of xid 0)

exits 0 "a node can be forgiven" lbctl nodes forgive "$bad"
is "$(score_of "$bad")" "[0.0]" "its score is gone"
ok "it is not avoided any more" sh -c "! lbctl nodes --json | grep -q 'avoided_until\":[0-9]'"
like "$(lbctl events --json)" "node_forgiven" "the event is kept"
exits 3 "a node that nobody knows" lbctl nodes forgive n77
like "$err" '^lbctl: n77: ' "is named"
exits 2 "forgive whom?" lbctl nodes forgive

# One rank of two is killed: its node alone is blamed, not half of it the other.
lbctl nodes forgive n1 >/dev/null 2>&1
lbctl nodes forgive n2 >/dev/null 2>&1
lbctl submit --name pair --set slurm.nodes=2 --set run.launcher=srun -- sh -c \
	'[ "$LB_LAUNCH$SLURMD_NODENAME" != 1n2 ] || kill -SEGV $$; exec sleep 1000' >/dev/null
wait_for '[ "$(lbctl status pair --json | json attempts.0.launches.#)" = 2 ]' 60
is "$(score_of n2)" "[0.5]" "the node of the rank that a signal killed has all of the blame"
like "$(score_of n1)" '^(none|\[0\.0\])$' "the other node has none"
lbctl kill --now pair >/dev/null
run_reaches pair killed 20
done_testing
