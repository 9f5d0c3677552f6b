#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086 # names of users and runs that hold no blanks
# Stopping things as a team: an owner, a member and an outsider, three ordinary users on a private
# cluster. Each of the three ways in which a run is ended (lbd, lbrun, the start of the job) is
# shown alone, with trainers that do not want to end.
. "$(dirname "$0")/lib.sh"
. "$suite/users.sh"

as_member() { as $member "$@"; }
as_outsider() { as $outsider "$@"; }

play_owner
printf '[team]\ngroup = "%s"\n[poll]\ninterval = "200ms"\n' $team >"$LB_HOME/lbd.toml"
chown -R $owner "$LB_HOME"
MC_CPUS=16 MC_KILLWAIT=3 MC_CONF_EXTRA=$T/private.conf
export MC_CPUS MC_KILLWAIT MC_CONF_EXTRA
echo PrivateData=accounts,events,jobs,nodes,partitions,reservations,usage,users >"$MC_CONF_EXTRA"
cluster_start 2
lbd_start
S=$LB_HOME/switches
is "$(stat -c '%a %U %G' "$S")" "3770 $owner $team" \
	"the switches are the owner's, the team's, and sticky"

# What a site keeps to itself is not there, and in nobody's way.
as $owner lbctl submit --name later --set slurm.extra='["--begin=now+1hour"]' -- true >/dev/null
run_reaches later queued 30
exits 0 "why a run waits, where others' jobs, nodes and partitions are private" as $owner lbctl why later
like "$out" '^ *ahead ' "is told"
unlike "$out" 'denied' "without a complaint"
as $owner lbctl kill --now later >/dev/null

cat >"$T/trainer.py" <<'PY'
import os, signal, socket, sys, time
run, how = os.environ["LB_RUN_DIR"], sys.argv[1]
def deaf():
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(s, signal.SIG_IGN)
def away(depth):			# double fork, a session of its own, deaf
    if os.fork() == 0:
        os.setsid()
        if depth: away(depth - 1)
        while True: time.sleep(100)
if how != "polite": deaf()
if how == "family": away(3)
if how == "checkpoint":			# says that it writes one, reads its orders, and does not end
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ["LB_SOCKET"])
    s.sendall(b'{"type":"hello","rank":0,"world":1,"pid":1}\n{"type":"phase","name":"checkpoint"}\n')
if how == "fails": sys.exit(3)
open(f"{run}/up-{os.environ.get('SLURM_PROCID', '0')}", "w").close()
if how == "stopped": os.kill(os.getpid(), signal.SIGSTOP)
while how == "spinning": pass
while True: time.sleep(100)
PY

train() {	# NAME HOW OPTION…
	name=$1 how=$2
	shift 2
	as $owner lbctl submit --name $name --set watch.kill_grace=1s --set restart.in_place=0 \
		"$@" \
		-- python3 "$T/trainer.py" $how >/dev/null
}
is_up() { wait_for "[ -e $LB_HOME/runs/$1/up-0 ]" 60; }
# Everything of a run ("": of any), on all nodes: they are this machine.
living() { naming "$LB_HOME/runs/$1"; }
is_gone() { wait_for "[ -z \"\$(living $1)\" ]" "${2:-30}"; }
not_in_slurm() { wait_for '[ -z "$(squeue -h)" ]' 30; }
exit_cause() { json cause <"$LB_HOME/runs/$1/attempts/1/exit.json"; }

# --- lbrun alone: lbd is dead --------------------------------------------------------------------
all="polite deaf stopped spinning family checkpoint"
for how in $all; do train $how $how; done
train ranks family --set slurm.nodes=2
for how in $all ranks; do is_up $how; done
lbd_kill9
exits 6 "an outsider leaves no switch" as_outsider lbctl kill polite
exits 0 "a member kills everything, with lbd dead" as_member lbctl kill --yes ALL \
	--reason "all wrong"
like "$out" "lbd cannot be reached; the switch $S/ALL.kill is there" \
	"lbctl leaves the switch, and says so"
is_gone "" 30 && passed "lbd dead: nothing is left of any of the trainers"
not_in_slurm && passed "… nor of its job"
is "$(exit_cause stopped)" killed "lbrun said why"
lbd_start
for how in $all ranks; do run_reaches $how killed 20; done
like "$(lbctl events spinning)" "$member.s file +kill +switch ALL.kill: all wrong" "lbd learns who and why"
lbd_kill9
lbd_start
is "$(run_state family)" killed "it stays killed"
exits 4 "and is not restarted while the switch is there" as $owner lbctl restart family
like "$err" "ALL.kill stands against it, left by $member.s file: all wrong" "with who left it"
as_member rm "$S/ALL.kill"

# --- the start of the job alone: lbd is dead, and the job was in the queue ------------------------
partition DOWN
train late polite
run_reaches late queued 20
lbd_kill9
as_member touch "$S/late.kill"
partition UP
wait_for '[ -e "$LB_HOME/runs/late/attempts/1/exit.json" ]' 30
not_in_slurm
is "$(exit_cause late)" killed "a job that starts while its switch is there ends"
ok "before its trainer starts" [ ! -e "$LB_HOME/runs/late/up-0" ]
lbd_start
run_reaches late killed 20

# --- lbd alone: no lbrun yet, or one that is frozen -----------------------------------------------
partition DOWN
train pending polite
train onhold polite
run_reaches pending queued 20
run_reaches onhold queued 20
scontrol hold "$(lbctl status onhold --json | json attempts.0.job_id)"
begin=$(now_ms)
as_member touch "$S/pending.kill"
wait_for '[ "$(squeue -h | wc -l)" = 1 ]' 20
diag "a pending job was gone after $(($(now_ms) - begin)) ms"
run_reaches pending killed 10
as_member lbctl kill onhold --reason "with a command" >/dev/null
run_reaches onhold killed 10
not_in_slurm && passed "jobs that wait or are held are cancelled"
partition UP
train frozen polite
train fails fails
is_up frozen
# shellcheck disable=SC2046 # process ids
kill -STOP $(shepherds "$(lbctl status frozen --json | json attempts.0.job_id)")
run_reaches fails backoff 30
as_member touch "$S/frozen.kill" "$S/fails.kill"
run_reaches fails killed 10 && passed "a run in back-off is killed"
is_gone frozen 60 && passed "lbrun frozen: lbd cancels the job, and nothing is left"
run_reaches frozen killed 30
as_member rm "$S"/*.kill

# --- what is no order -----------------------------------------------------------------------------
train safe polite
is_up safe
exits 6 "an outsider does not kill by command" as_outsider lbctl kill safe
ok "nor by a file" \
	sh -c "! setpriv --reuid $outsider --regid $outsider --init-groups touch $S/safe.kill"
# Files of somebody else that get into the folder all the same: a member moves and links what they
# can, root what only root can.
mkdir -m 777 "$T/open"
as_outsider touch "$T/open/theirs"
as_outsider chmod 666 "$T/open/theirs"
exits 0 "a member moves a stranger's file into the folder" as_member mv "$T/open/theirs" \
	"$S/safe.kill"
wait_for 'lbctl events | grep -q "safe.kill does not count: its owner is not in the team"' 10
is "$(stat -c %U "$S/safe.kill")" $outsider "… it is the stranger's"
rm "$S/safe.kill"
as_member touch "$T/open/linked"
exits 0 "a file with two names, one of them in the folder" as_member ln "$T/open/linked" \
	"$S/safe.kill"
wait_for 'lbctl events | grep -q "safe.kill does not count: a file with several names"' 10
rm "$S/safe.kill"
as $owner touch "$T/open/owners" && chmod 666 "$T/open/owners"
exits 0 "… one of the owner's own" as $owner ln "$T/open/owners" "$S/safe.stop"
wait_for 'lbctl events | grep -q "safe.stop does not count: a file with several names"' 10
rm "$S/safe.stop"
as_member ln -s "$LB_HOME/lbd.toml" "$S/safe.kill"
wait_for 'lbctl events | grep -q "safe.kill does not count: a symbolic link"' 10
rm "$S/safe.kill"
as_member mkfifo "$S/safe.kill"
wait_for 'lbctl events | grep -q "safe.kill does not count: only an ordinary"' 10
rm "$S/safe.kill"
ok "what a member left, another cannot take away" sh -c "
	touch $S/keep.hold && chown $owner $S/keep.hold
	! setpriv --reuid $member --regid $member --init-groups rm -f $S/keep.hold"
rm "$S/keep.hold"
chmod 755 "$LB_HOME" && chmod 3777 "$S"
wait_for "lbctl events | grep -q 'everybody can write to it.*chmod 3770 $S'" 10
as_outsider touch "$S/safe.kill"
touch "$S/mark.kil"
# lbrun, too, has looked again by the time that a later order is obeyed
rm "$S/safe.kill" && chmod 3770 "$S" && chmod 2750 "$LB_HOME"
wait_for 'lbctl events | grep -q "mark.kil does not count"' 10
is "$(run_state safe)" running "none of it was an order"
as_member touch "$S/safe.kill"
run_reaches safe killed 20 && passed "a member's file is"

# A hold ends with its file, not with the membership of who left it (or a directory of users that
# does not answer).
train kept polite
is_up kept
as_member touch "$S/kept.hold"
run_reaches kept held 20
usermod -G '' $member
wait_for 'lbctl events | grep -q "kept.hold does not count: its owner is not in the team"' 30
is "$(run_state kept)" held "a member leaves the team: what their file holds stays on hold"
rm "$S/kept.hold"
run_reaches kept running 30 && passed "… until the file is taken away"
as $owner lbctl kill --now kept >/dev/null
run_reaches kept killed 20
usermod -G $team $member

# --- verbs and roles: every cell ------------------------------------------------------------------
cat >"$T/verbs.py" <<'PY'
import json, re, socket, sys
role = int(sys.argv[1])
names = {"ROLE_NONE": 0, "ROLE_MEMBER": 1, "ROLE_SUBMITTER": 2, "ROLE_OWNER": 3}
table = re.findall(r'X\(\w+,\s+"([^"]+)",\s+(ROLE_\w+),', open(sys.argv[2]).read())
assert len(table) > 15
wrong = 0
for verb, least in table:
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(sys.argv[3] + "/lbd.sock")
        try:
            s.sendall(json.dumps({"v": 1, "verb": verb, "args": {}}).encode() + b"\n")
        except BrokenPipeError:
            pass			# it may have said why before it hung up
        answer = json.loads(s.makefile().readline())
        refused = answer.get("error") == "refused"
    except PermissionError:
        refused = True
    if refused != (role < names[least]):
        print(f"{verb}: role {role}, least {least}, refused {refused}")
        wrong += 1
print(len(table), "verbs")
sys.exit(wrong > 0)
PY
cp "$src/common/run/verbs.h" "$T/verbs.h"
walk() { as "$2" env PATH=/usr/bin:/bin python3 "$T/verbs.py" "$1" "$T/verbs.h" "$LB_HOME"; }
ok "verbs: an outsider" walk 0 $outsider
chmod 755 "$LB_HOME" && chmod 666 "$LB_HOME/lbd.sock"
ok "verbs: an outsider who gets through" walk 0 $outsider
chmod 2750 "$LB_HOME" && chmod 660 "$LB_HOME/lbd.sock"
ok "verbs: a member" walk 1 $member
ok "verbs: the owner" walk 3 $owner
lbd_stop
sed -i 's/^group/may_submit = true\ngroup/' "$LB_HOME/lbd.toml"
lbd_start
ok "verbs: a member who may submit" walk 2 $member
exits 0 "… does" as_member lbctl submit --name theirs --set run.workdir=/tmp -- sleep 6543
run_reaches theirs running 30
is "$(lbctl status theirs --json | json owner)" $member "the run is theirs"
ok "all runs of a user can be killed" as $owner lbctl kill --now --yes $member@user
run_reaches theirs killed 20
not_in_slurm
done_testing
