#!/bin/sh
# SPDX-License-Identifier: MIT
# What people are told of before it goes wrong: a training that its job's limit will cut short, a
# run that should run and does not. Once each, whatever happens to lbd, with all that one wants to
# know.
. "$(dirname "$0")/lib.sh"

printf '#!/bin/sh\ncat >>"$1"\necho >>"$1"\n' >"$T/hook"
chmod +x "$T/hook"
cat >"$LB_HOME/lbd.toml" <<END
[poll]
interval = "200ms"
idle_interval = "500ms"
[notify]
hook = ["$T/hook", "$T/news"]
not_running_after = "2s"
END
cluster_start 1
lbd_start

news() { grep -s "\"kind\":\"$1\"" "$T/news" | grep "\"run\":\"$2\"" | head -n 1 | json "$3"; }
told() { grep -s "\"kind\":\"$1\"" "$T/news" | grep -c "\"run\":\"$2\""; }

cat >"$T/train.py" <<END
import os, sys, time
sys.path.insert(0, "$src/docs")
import lb_client as lb
lb.send("hello", rank=0, world=1, pid=os.getpid())
lb.send("phase", name="train")
for step in range(1, 100000):
    lb.send("step", step=step, target_step=100000, loss=2.5)
    if os.path.exists("$T/crash"):
        os.rename("$T/crash", "$T/crashed")
        os.abort()
    time.sleep(0.1)
END
# the limit that the job has, whoever set it
scontrol update partitionname=debug defaulttime=5
lbctl submit --name slow --set restart.backoff_first=0 \
	--set restart.in_place=0 \
	-- python3 "$T/train.py" >/dev/null
wait_for '[ "$(told eta_past_limit slow)" = 1 ]' 30
like "$(news eta_past_limit slow what)" \
	'at its pace it needs [0-9]+h.* more, its job ends in [0-9]+' \
	"a training that its job cannot hold"
is "$(news eta_past_limit slow attempt) $(news eta_past_limit slow node) $(news eta_past_limit slow loss)" \
	"1 n1 2.5" "with attempt, node and loss"
like "$(news eta_past_limit slow job)" '^[0-9]+$' "and the job's number"
like "$(news eta_past_limit slow next)" 'slurm.time' "and what may be done"
lbd_kill9
lbd_start
lbctl submit --name kept --begin=now+1hour -- true >/dev/null
# shellcheck disable=SC2034 # the condition has it
seen=$(($(uptime_ms) + 12000))	# by then polls have shown its release for long
: >"$T/crash"
wait_for '[ "$(told eta_past_limit slow)" = 2 ]' 40
is "$(grep '"eta_past_limit"' "$T/news" | tail -n 1 | json attempt)" 2 \
	"once for each attempt, although lbd died"
is "$(news backoff slow cause) $(news backoff slow node) $(news backoff slow loss) $(news backoff slow attempt)" \
	"crash n1 2.5 1" "the end of an attempt is told with its cause and its own node"
lbctl kill --now slow >/dev/null
run_reaches slow killed 20

wait_for 'scontrol update nodename=n1 state=drain reason=broken; [ "$(sinfo -h -t drain -o %D)" = 1 ]' 30
lbctl submit --name waits -- sleep 1000 >/dev/null
lbctl submit --name follows --after waits -- true >/dev/null
wait_for '[ "$(told not_running waits)" = 1 ]' 30
like "$(news not_running waits what)" \
	"it has not run for [0-9]+s: its job [0-9]+ is PENDING: [A-Za-z]+" \
	"a run that should run and does not, with Slurm's reason"
like "$(news not_running waits next)" 'scontrol show job' "and what may be done"
wait_for '[ "$(uptime_ms)" -ge $seen ]' 30
job=$(job_of kept)
lbd_kill9
scontrol hold "$job"
cluster_signal slurmctld TERM
wait_for '! scontrol ping | grep -q UP' 30
"$src/etc/minicluster" start-ctld "$cluster" || bail_out "slurmctld does not come back"
lbd_start
lbctl submit --name later -- sleep 1000 >/dev/null
wait_for '[ "$(told not_running later)" = 1 ]' 30
is "$(told not_running waits)" 1 "it is told once, although lbd died"
is "$(told not_running follows)" 0 "not of one that is to wait until another has ended"
like "$(squeue -h -j "$job" -o %r)" ^JobHeld "and what somebody holds in Slurm stays held, whatever is started anew"
done_testing
