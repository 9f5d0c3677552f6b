#!/bin/sh
# SPDX-License-Identifier: MIT
# The disk below the ledger is full: an order that cannot be written down is refused in one line and
# does nothing; a switch file does without the ledger. Once there is room again all is as before.
. "$(dirname "$0")/lib.sh"
need prlimit util-linux

printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
cluster_start 1
lbd_start
lbctl submit --name g -- sleep 6543 >/dev/null
for run in a b c d e; do
	lbctl submit --name $run --set run.scheduler=local --set watch.kill_grace=1s -- sleep 6543 >/dev/null
done
for run in a b c d e g; do run_reaches $run running 30; done
lbctl hold e >/dev/null
run_reaches e held 20
trainer() { lbctl status "$1" --json | json attempts.0.launches.0.pid; }
for run in a b c d; do wait_for "[ \"\$(trainer $run)\" -gt 0 ]" 20; done
pids=$(for run in a b c d; do trainer $run; done)

# A size limit stands for a full disk: lbd takes both alike.
prlimit --pid $lbd_pid --fsize=1:
for verb in kill stop hold save; do
	exits 9 "$verb is refused" lbctl $verb a
	like "$err" "nothing was done: .*; a switch does without the ledger: touch $LB_HOME/switches/a.$verb" \
		"$verb: why, and what works"
	diag "$err"
	is "$(printf '%s\n' "$err" | wc -l)" 1 "$verb: in one line"
done
# Where no switch can be left either nobody is sent to do so.
printf 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && lbctl kill a 2>"$2"' >"$T/only-read.sh"
printf 'mount -t tmpfs -o nr_inodes=1 none "$1" && lbctl kill a g 2>"$2"' >"$T/no-inodes.sh"
if unshare -rm true 2>/dev/null; then
	for how in only-read no-inodes; do
		unshare -rm sh "$T/$how.sh" "$LB_HOME/switches" "$T/said"
		like "$(cat "$T/said")" '^lbctl: ' "$how: where nothing can be written that is said"
		unlike "$(cat "$T/said")" touch "$how: and no advice that cannot be followed"
	done
	like "$(cat "$T/said")" "^lbctl: g: nothing was done: .*; meanwhile this ends its job: scancel $(job_of g)\$" \
		"what Slurm can do is said"
	scancel "$(job_of g)"
	wait_for '[ -z "$(squeue -h)" ]' 30
	passed "and does it"
fi
exits 9 "so is a kill of all" lbctl kill --yes ALL
exits 9 "and a release" lbctl release e
exits 9 "and a submission" lbctl submit --name f -- true
exits 0 "questions are answered" lbctl ls
touch "$LB_HOME/switches/b.kill"
wait_for '! lives "$(echo $pids | cut -d" " -f2)"' 20
passed "a switch ends the job meanwhile"
sleep 3		# long enough for lbd to do what it must not
prlimit --pid $lbd_pid --fsize=unlimited:
run_reaches b killed 30
passed "and lbd writes it down when it can"
for run in a c d; do is "$(run_state $run)" running "$run runs"; done
is "$(run_state e)" held "the held run is held"
exits 3 "the run that was refused is none" lbctl status f
ok "their trainers have heard nothing" lives "$(echo "$pids" | sed -n 1p)"
ok "no order lies about" sh -c "! ls '$LB_HOME'/runs/[acd]/attempts/1/order '$LB_HOME'/runs/a/attempts/1/save 2>/dev/null"
for run in a c d; do
	is "$(lbctl events $run | grep -Ec ' (kill|stop|hold|save) ')" 0 "no event of $run says so"
done
lbd_kill9
lbd_start
is "$(run_state a)" running "nor does a new lbd know of one"
exits 0 "now the same order is obeyed" lbctl kill a
run_reaches a killed 20
done_testing
