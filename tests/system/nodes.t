#!/bin/sh
# SPDX-License-Identifier: MIT
# A node dies under a run: the run goes on elsewhere, the team remembers the node, and forgives it
# when told to. Memory never keeps a job from running at all.
. "$(dirname "$0")/lib.sh"

node_of() { lbctl status "$1" --json | json "attempts.$2.nodes.0"; }
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
# patience: Slurm starts a job on the node that is free in less
printf '[poll]\ninterval = "200ms"\nidle_interval = "500ms"\n[nodes]\npatience = "%ss"\n' $((2 * patience)) >"$LB_HOME/lbd.toml"
cluster_start 2
lbd_start

lbctl submit --name a -- sleep 1000 >/dev/null
run_reaches a running 30
bad=$(node_of a 0)
good=$([ "$bad" = n1 ] && echo n2 || echo n1)
diag "attempt 1 runs on $bad"
"$src/etc/minicluster" kill-node "$cluster" "$bad"
run_reaches a running 60 2
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

# Nothing else is free: it would be, for those who wait long enough, but the node that is mistrusted
# is idle.
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
run_reaches xid running 60 2
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
	'[ "$LB_LAUNCH$SLURMD_NODENAME" != 1n2 ] || kill -SEGV $$
	until [ "$LB_LAUNCH" = 2 ] && [ -e "$LB_RUN_DIR/go" ]; do sleep 0.1; done' >/dev/null
wait_for '[ "$(lbctl status pair --json | json attempts.0.launches.#)" = 2 ]' 60
like "$(score_of n2)" '^(none|\[0\.0\])$' "a crash that may be the trainer's own counts for no other run"
touch "$LB_HOME/runs/pair/go"
run_reaches pair completed 60
is "$(score_of n2)" "[0.5]" "once the run has got on, the node of the rank that a signal killed has all of the blame"
like "$(score_of n1)" '^(none|\[0\.0\])$' "the other node has none"

# A job that begins nowhere: neither node is avoided for it by others, and it is told whose fault
# that is.
lbctl nodes forgive n1 n2 >/dev/null
printf '#!/bin/sh\n#SBATCH --mem=10M -n1 --output=%s/nowhere/%%j.out\nexec sleep 1000\n' "$T" >"$T/nowhere.sh"
lbctl submit --name nowhere --set restart.backoff_first=0 "$T/nowhere.sh" >/dev/null 2>&1
wait_for 'lbctl events nowhere | grep -q "attempt_end .*--output.* the job itself is at fault"' 90
passed "an output that no node can make is the job's fault"
ok "which is told only of a second node" [ "$(lbctl events nowhere | grep -m 2 attempt_end | grep -c 'at fault')" -le 1 ]
is "$(score_of n1) $(score_of n2)" "[0.0] [0.0]" "and is held against no node"
unlike "$(lbctl nodes --json)" 'avoided_until":[0-9]' "so other runs avoid none"
mkdir "$T/nowhere"
run_reaches nowhere running 90
is "$(score_of n1) $(score_of n2)" "[0.0] [0.0]" "once its folder is there it begins, and nobody is blamed for that, either"
lbctl kill --now nowhere >/dev/null
run_reaches nowhere killed 20

# --- GPUs that complain, by a stand-in for the driver's library, which has a folder for each node -
for node in n1 n2; do
	lbctl nodes forgive "$node" >/dev/null 2>&1
	mkdir -p "$T/gpus/$node"
	echo '93 70000 81559 650000 1755 61 0 0 0 0' | tee "$T/gpus/$node/gpu0" >"$T/gpus/$node/gpu1"
done
export NCCL_STANDIN="$T/gpus" LD_LIBRARY_PATH="$B/tests/nvml"
# complains XID: the first launch fails when its meter has heard of the XID, later ones go on.
cat >"$T/complains" <<'END'
#!/bin/sh
[ "$LB_ATTEMPT$LB_LAUNCH" = 11 ] || exec sleep 1000
here=$NCCL_STANDIN/$SLURMD_NODENAME
echo "1 $1" >"$here/next" && mv "$here/next" "$here/xid"
until grep -qs '"xid_count":1' "$LB_RUN_DIR"/attempts/1/usage/*; do sleep 0.05; done
exit 1
END
chmod +x "$T/complains"
lbctl submit --name broken --set restart.backoff_first=0 -- "$T/complains" 79 >/dev/null
run_reaches broken running 60 2
bad=$(node_of broken 0)
like "$(lbctl events broken)" "node_error .*$bad: XID 79 of GPU 1, hardware" "an XID of the hardware is an event"
ok "its node is avoided" avoids "$bad"
ok "and the run goes on elsewhere" [ "$(node_of broken 1)" != "$bad" ]
lbctl kill --now broken >/dev/null
run_reaches broken killed 20
lbctl nodes forgive "$bad" >/dev/null
lbctl submit --name wrong --set restart.backoff_first=0 -- "$T/complains" 31 >/dev/null
wait_for '[ "$(lbctl status wrong --json | json attempts.0.launches.#)" = 2 ]' 60
like "$(lbctl status wrong --json)" '"text":"[^"]*XID 31 of GPU 1, application' "an XID of the application explains the end"
like "$(score_of "$(node_of wrong 0)")" '^(none|\[0\.0\])$' "and is not held against the node"
lbctl kill --now wrong >/dev/null
run_reaches wrong killed 20

# Each rank of two has a meter of its own, on its node.
lbctl submit --name meters --set slurm.nodes=2 --set run.launcher=srun --set watch.usage_every=600ms -- sleep 1000 >/dev/null
# shellcheck disable=SC2034 # for the line below
spool=$LB_HOME/runs/meters/attempts/1/spool.jsonl
for rank in 0 1; do
	wait_for 'grep -q "\"type\":\"usage\",\"node\":\"n$((rank + 1))\",\"rank\":$rank,.*\"gpu\":1,\"use\":93" "$spool"' 30
	passed "rank $rank: its GPUs, on its node"
done
lbctl kill --now meters >/dev/null
run_reaches meters killed 20

# --- a partition that is removed ------------------------------------------------------------------
# Slurm ends its jobs, and says that a node failed.
echo 'PartitionName=fleeting Nodes=n[1-2] State=UP' >>"$SLURM_CONF"
scontrol reconfigure
lbctl submit --name moored --set slurm.partition=fleeting -- sleep 1000 >/dev/null
run_reaches moored running 30
moored=$(node_of moored 0)
lbctl nodes forgive "$moored" >/dev/null
sed -i /fleeting/d "$SLURM_CONF"
scontrol reconfigure
wait_for '[ "$(lbctl status moored --json | json attempts.0.cause)" = node_fail ]' 30
like "$(lbctl events moored)" 'because its partition was removed' "why the job ended is told"
is "$(score_of "$moored")" "[0.0]" "and is no fault of its node"
lbctl kill --yes --now moored >/dev/null
run_reaches moored killed 20

# --- a node that has left the cluster ----------------------------------------------------------
# Slurm refuses a job that is to keep away from it.
lbd_stop
python3 - "$LB_HOME/ledger.db" <<'END'
import sqlite3, sys, time
ledger = sqlite3.connect(sys.argv[1])
ledger.execute("UPDATE nodes SET score = 0, record = 0")
names = [row[1] for row in ledger.execute("PRAGMA table_info(nodes)")]
values = dict(zip(names, ledger.execute("SELECT * FROM nodes").fetchone()))
values.update(name="gone", score=1, record=1, score_ms=int(time.time() * 1000))
ledger.execute("INSERT INTO nodes (%s) VALUES (%s)" % (",".join(names), ",".join("?" * len(names))),
               [values[name] for name in names])
ledger.commit()
END
lbd_start
ok "one that has left is avoided" avoids gone
lbctl submit --name stays -- true >/dev/null
run_reaches stays completed 60
is "$(attempts stays)" 1 "no attempt is lost to its name"
like "$(lbctl events stays)" 'node_forgiven .*gone is not in the cluster any more' "and that it has left is told"
exits 1 "nobody keeps away from it any more" avoids gone
exits 6 "a name that a person gives is theirs to put right" lbctl submit --set slurm.exclude=gone -- true
done_testing
