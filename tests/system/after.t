#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs follow runs by name: through relaunches and restarts of those before them, and deaths of lbd.
. "$(dirname "$0")/lib.sh"

printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
# Ends as the file of its run's name says, and waits for it.
cat >"$T/job" <<'END'
#!/bin/sh
await "$1/$LB_RUN"
read -r status <"$1/$LB_RUN"
rm "$1/$LB_RUN"
exit "$status"
END
chmod +x "$T/job"
mkdir "$T/ends"
finish() { echo "$2" >"$T/ends/.$1" && mv "$T/ends/.$1" "$T/ends/$1"; }	# RUN STATUS
submit() {	# NAME OPTION…
	name=$1
	shift
	lbctl submit --name "$name" --set restart.backoff_first=0 --set restart.in_place=0 "$@" -- \
		"$T/job" "$T/ends" >/dev/null
}
waits_for() { lbctl status "$1" --json | json waits_for; }

lbd_start
submit prep
submit train --after-ok prep
submit always --after prep --after train
run_reaches prep running 20
is "$(run_state train) $(waits_for train)" "created the end of prep, which is running" \
	"a run waits, and says for whom"
like "$(lbctl ls)" 'train +created .*the end of prep' "in the list, too"
like "$(lbctl status always)" 'waits for +the end of prep' "and to people"
exits 2 "a run that does not exist cannot be followed" lbctl submit --after prepp -- true
like "$err" 'run.after: there is no run prepp' "which is said"
exits 2 "nor a colleague's" lbctl submit --after ada/first -- true
like "$err" 'run.after: only runs of your own can be waited for, not those of colleagues' "in words of its own"

finish prep 3
wait_for '[ "$(lbctl status prep --json | json attempts.#)" = 2 ]' 20
is "$(run_state train)" created "a relaunch of the one before is waited for"
lbd_kill9
lbd_start
wait_for '[ "$(waits_for train)" != null ]' 20
is "$(lbctl status train --json | json attempts.#)" 0 "so it is when lbd died"
finish prep 0
run_reaches train running 20
is "$(run_state prep) $(run_state always)" "completed created" \
	"then it goes on, and the next one waits for it"
lbctl kill --now train
run_reaches always running 20
finish always 0
run_reaches always completed 20
passed "after a kill goes on who waits for any end"

lbctl submit --name pauses --set restart.backoff_first=30m --set restart.in_place=0 -- false >/dev/null
run_reaches pauses backoff 20
submit later --after pauses
is "$(waits_for later)" "the end of pauses, which is in backoff" "so does who waits for one that is to be tried again"
lbctl kill --now later pauses >/dev/null

# --- the one before does not complete ---------------------------------------------------------
submit late --after-ok train
run_reaches late failed 20
like "$(lbctl status late --json | json text)" \
	'run.after_ok: train was to complete first, and is killed' \
	"who waits for completion fails, and says why"
lbctl restart train >/dev/null
lbctl restart late >/dev/null
wait_for '[ "$(run_state train)" = running ]' 20
is "$(run_state late)" created "both started again: it waits again"
lbctl hold late
run_reaches late held 20
lbctl release late
finish train 0
run_reaches late running 20
finish late 0
run_reaches late completed 20
passed "held and released meanwhile, it is done in the end"
done_testing
