#!/bin/sh
# SPDX-License-Identifier: MIT
# Orders as files, as lbd sees them: what counts, what does not, who did it and why.
. "$(dirname "$0")/lib.sh"

S=$LB_HOME/switches
me=$(id -un)
printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
lbd_start

is "$(stat -c %a "$S")" 700 "the folder is the owner's alone where there is no team"
ok "a README explains it" grep -q 'touch ALL.kill' "$S/README"

for run in a b c1 c2 d; do
	lbctl submit --name $run --set watch.kill_grace=1s --set watch.stop_grace=1s -- sleep 6543 \
		>/dev/null
done
lbctl submit --name g1 --set run.group=sweep -- sleep 6543 >/dev/null
lbctl submit --name g2 --set run.group=sweep -- sleep 6543 >/dev/null
for run in a b c1 c2 d g1 g2; do run_reaches $run running 30; done

# --- what does not count -----------------------------------------------------------------------
refused() {	# NAME WHAT
	wait_for "lbctl events | grep -q '$1 does not count: $2'" 10
}
ln -s /etc/passwd "$S/a.kill"
refused a.kill 'a symbolic link'
rm "$S/a.kill"
echo x >"$T/file" && ln "$T/file" "$S/a.kill"
refused a.kill 'a file with several names'
rm "$S/a.kill"
mkfifo "$S/a.kill"
refused a.kill 'only an ordinary file'
rm "$S/a.kill"
mkdir "$S/a.kill"
refused a.kill 'a folder'
rmdir "$S/a.kill"
touch "$S/a.kil"
refused a.kil 'its name ends in none'
chmod 777 "$S"
wait_for "lbctl events | grep -q 'everybody can write to it.*chmod 700'" 10
touch "$S/a.kill"
sleep 1.5	# everybody looks every second; nothing that could be waited for may come of it
rm "$S/a.kill" && chmod 700 "$S"
is "$(run_state a)" running "none of them was an order"
is "$(lbctl events a | grep -c kill)" 0 "nor is there an event of the run"

# --- what counts ---------------------------------------------------------------------------------
printf 'wrong\033[31m data\n' >"$T/a.kill"
mv "$T/a.kill" "$S/a.kill"
run_reaches a killed 20
like "$(lbctl events a)" "$me +kill +switch a.kill: wrong.\[31m data" "who and why is on record"
like "$(lbctl status a --json | json text)" "^killed by $me: wrong" "and in its status"
lbd_kill9
lbd_start
is "$(run_state a)" killed "it stays killed"
exits 4 "it cannot be restarted while the switch is there" lbctl restart a
like "$err" "the switch a.kill stands against it, left by $me: wrong.*rm $S/a.kill" \
	"and why is told"
rm "$S/a.kill"
exits 0 "it can once it is gone" lbctl restart a
run_reaches a running 20

touch "$S/c*.stop"
run_reaches c1 killed 20
run_reaches c2 killed 20
like "$(lbctl status c1 --json | json text)" "stop(ped)? by $me" "a glob stops both"
exits 4 "what it matches is not submitted" lbctl submit --name c3 -- true
rm "$S/c*.stop"

touch "$S/sweep@group.hold"
run_reaches g1 held 20
run_reaches g2 held 20
is "$(lbctl ls --group sweep | grep -c held)" 2 "a group is held, and listed"
exits 4 "a switch is stronger than a release" lbctl release g1
lbd_kill9
lbd_start
is "$(run_state g1)" held "it stays held"
rm "$S/sweep@group.hold"
run_reaches g1 running 20
run_reaches g2 running 20
like "$(lbctl events g1)" "lbd +release +the switch that held it is gone" "it ends with the switch"
touch "$S/d.save"
wait_for '[ ! -e "$S/d.save" ]' 10
like "$(lbctl events d)" "$me +save +switch d.save" "a save is asked for once"
touch "$S/$me@user.kill"
for run in a b d g1 g2; do run_reaches $run killed 20; done
passed "all runs of a user"
rm "$S/$me@user.kill"
touch "$S/ALL.hold"
exits 0 "a run that is submitted while ALL are held" lbctl submit --name late -- sleep 6543
run_reaches late held 20
is "$(lbctl status late --json | json attempts.#)" 0 "never gets a job"
rm "$S/ALL.hold"
run_reaches late running 20
done_testing
