#!/bin/sh
# SPDX-License-Identifier: MIT
# One machine without Slurm: runs share its GPUs in turn, through every death of lbd.
. "$(dirname "$0")/lib.sh"

cat >"$LB_HOME/lbd.toml" <<'END'
[poll]
interval = "200ms"
[local]
gpu_ids = [1, 3]
cpus = 1
END
printf 'CANARY=7a11y-ho\n' >"$T/secrets"
chmod 600 "$T/secrets"

# Says what it sees, and stays until it is told to end. Its child has a session of its own.
cat >"$T/stays" <<'END'
#!/bin/sh
echo "$LB_RUN sees <$CUDA_VISIBLE_DEVICES> ${CANARY:-}" >>"$1/seen"
setsid sleep 4321 </dev/null >/dev/null 2>&1 &
echo $! >"$1/child.$LB_RUN"
until [ -e "$1/end.$LB_RUN" ]; do sleep 0.05; done
END
chmod +x "$T/stays"
train() {	# NAME OPTION…
	name=$1
	shift
	lbctl submit --name "$name" "$@" -- "$T/stays" "$T" >/dev/null
}
waits_for() { lbctl status "$1" --json | json waits_for; }
seen() { sed -n "s/^$1 sees //p" "$T/seen"; }
lives() { grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status"; }

lbd_start
train a --set slurm.gpus_per_node=1 --set slurm.cpus_per_task=1
run_reaches a running 20
wait_for '[ -s "$T/child.a" ]' 20
is "$(seen a)" "<1> " "the first run has the first of the GPUs that lbd.toml gives"
train b --set slurm.gpus_per_node=2 --set "run.env_file=$T/secrets"
train c --set slurm.gpus_per_node=1
run_reaches b queued 20
wait_for '[ "$(waits_for b)" = "Resources: 1 of 2 GPUs free" ]' 20
like "$(lbctl status b)" 'waits for +Resources: 1 of 2 GPUs free' "the second needs both: it waits, and says for what"
wait_for '[ "$(waits_for c)" = Priority ]' 20
passed "the third would fit, and does not overtake it"
exits 2 "a run that could never start is refused" lbctl submit --name d --set slurm.gpus_per_node=3 -- true
like "$err" 'slurm.gpus_per_node: the job wants 3 GPUs, this machine has 2' "with the numbers"
exits 2 "so is one for two machines" lbctl submit --set slurm.nodes=2 --set run.launcher=none -- true
exits 2 "and one that needs srun" lbctl submit --set slurm.ntasks_per_node=2 -- true
exits 3 "nothing is left of them" lbctl status d

# --- lbd dies ---------------------------------------------------------------------------------
child=$(cat "$T/child.a")
trainer=$(lbctl status a --json | json attempts.0.launches.0.pid)
for _ in 1 2 3; do
	lbd_kill9
	lbd_start
done
wait_for '[ "$(waits_for b)" = "Resources: 1 of 2 GPUs free" ]' 20
passed "after three deaths of lbd the GPU is still taken"
ok "by the trainer that runs on" lives "$trainer"
is "$(lbctl status a --json | json attempts.#)$(lbctl status b --json | json attempts.#)" 11 "no run got another job"
lbd_kill9
: >"$T/end.a"
wait_for '! lives "$trainer" && ! lives "$child"' 20
lbd_start
run_reaches a completed 20
passed "what ended while lbd was away is known by its record"
run_reaches b running 20
wait_for '[ -n "$(seen b)" ]' 20
is "$(seen b)" "<1,3> 7a11y-ho" "then the next one has its turn, once, with its secrets"
is "$(grep -rl 7a11y-ho "$LB_HOME" | grep -v '/out\.log$')" "" "which are nowhere below LB_HOME"

# --- waiting runs are stopped and held ------------------------------------------------------------
lbctl hold c >/dev/null
run_reaches c held 20
lbctl release c >/dev/null
run_reaches c queued 20
lbctl kill c --reason "not needed" >/dev/null
run_reaches c killed 20
is "$(seen c)" "" "a run that waits can be held, released and killed; it never started"
# shellcheck disable=SC2034 # wait_for reads it
child=$(cat "$T/child.b")
lbctl kill --now b >/dev/null
run_reaches b killed 20
wait_for '! lives "$child"' 20
passed "after a kill nothing of a run lives, in whatever session"

# --- the time limit ---------------------------------------------------------------------------
cat >"$T/short" <<'END'
#!/bin/sh
[ "$LB_ATTEMPT" = 1 ] || exit 0
trap '' TERM
until [ -e "$1/end.never" ]; do sleep 0.05; done
END
chmod +x "$T/short"
lbctl submit --name short --set slurm.time=4s --set slurm.signal_before=2s --set watch.kill_grace=1s \
	-- "$T/short" "$T" >/dev/null
run_reaches short completed 60
is "$(lbctl status short --json | json attempts.0.cause)" timeout "a time limit is kept, also by one that ignores SIGTERM"
is "$(lbctl status short --json | json attempts.#)" 2 "and the run goes on in the next job"
done_testing
