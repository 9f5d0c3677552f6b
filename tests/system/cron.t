#!/bin/sh
# SPDX-License-Identifier: MIT
# Periodic jobs by a clock that runs many times as fast (and lbd with it, at the cost of a whole
# processor, which waits for milliseconds of that clock): the nights the clocks change, what was
# missed, lbd killed while jobs are due; the rights of the folder, its mistakes, and what people do.
. "$(dirname "$0")/lib.sh"

faketime=$(ls /usr/lib/*/faketime/libfaketime.so.1 2>/dev/null)
[ -n "$faketime" ] || bail_out "libfaketime is missing: apt-get install libfaketime"
plan 72
export ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0:detect_leaks=0"
export TZ=Europe/Berlin
cron=$LB_HOME/cron
mkdir "$cron"

# lbd, whose clock begins at $1 (local time) and runs $2 times as fast.
lbd_at() {
	LB_DEBUGGER="env LD_PRELOAD=$faketime FAKETIME_FMT=%s FAKETIME=@$(date -d "$1" +%s)x$2" \
		lbd_start
}
lbd_dies() {
	kill -9 "$lbd_pid"
	wait "$lbd_pid" 2>/dev/null
}
runs() {	# PREFIX
	lbctl ls --all --cron --json | python3 -c '
import json, sys
print(*sorted(r["name"] for r in json.load(sys.stdin) if r["name"].startswith(sys.argv[1])))' "$1"
}
job() { lbctl cron --json | json "entries.$1"; }	# the path of a field
has_run() { lbctl status "$1" >/dev/null 2>&1; }

# --- the clocks change ----------------------------------------------------------------------------
cat >"$cron/crontab" <<'END'
NAME=fixed
30 2 * * * true
NAME=wild
30 * * * * true
END
lbd_at "2026-03-29 01:31:00" 300
wait_for 'has_run wild-20260329T0130Z' 60
is "$(runs fixed)" fixed-20260329T0100Z "a time that is left out in spring: once, right after"
is "$(runs wild)" wild-20260329T0130Z "what follows the clock does"
lbd_dies
lbd_at "2026-10-25 00:25:00 UTC" 300
wait_for 'has_run wild-20261025T0130Z' 60
is "$(runs fixed-20261025)" fixed-20261025T0030Z "a time that comes twice in autumn: once"
is "$(runs wild-20261025)" "wild-20261025T0030Z wild-20261025T0130Z" "what follows the clock: twice"
is "$(runs fixed | wc -w)" 3 "of the months between, one night was made up for"
lbd_dies

# --- killed while jobs are due --------------------------------------------------------------------
cat >"$cron/crontab" <<'END'
CATCH_UP=all
OVERLAP=queue
* * * * * /bin/true
END
# First by a clock as slow as ours: the job is known before its first minute, however slowly lbd
# starts.
lbd_at "2026-11-01 12:00:30" 1
wait_for 'lbctl cron | grep -q "^true "' 20
lbd_stop
# Each lbd begins half a minute after the last time that is known: how far a fast clock gets is the
# machine's affair.
from_s=$(date -d "2026-11-01 12:00:30" +%s)
for _ in 1 2 3 4 5; do
	lbd_at "@$from_s" 120
	wait_for "has_run true-$(date -u -d "@$((from_s + 180))" +%Y%m%dT%H%M)Z" 60
	lbd_dies
	from_s=$(sqlite3 "$LB_HOME/ledger.db" "SELECT max(scheduled_s) + 30 FROM cron_ticks WHERE entry = 'true'")
done
is "$(sqlite3 "$LB_HOME/ledger.db" "SELECT min(scheduled_s), count(*) >= 15,
	count(*) = (max(scheduled_s) - min(scheduled_s)) / 60 + 1, count(*) = count(DISTINCT scheduled_s)
	FROM cron_ticks WHERE entry = 'true'")" "1793530860|1|1|1" "every minute is there, and once"
is "$(sqlite3 "$LB_HOME/ledger.db" "SELECT count(*) FROM cron_ticks t LEFT JOIN runs r ON r.name = t.run
	WHERE t.state = 'submitted' AND r.id IS NULL")" 0 "each has its run"
is "$(sqlite3 "$LB_HOME/ledger.db" "SELECT count(*) FROM runs r LEFT JOIN cron_ticks t ON r.name = t.run
	WHERE r.name LIKE 'true-%' AND t.entry IS NULL")" 0 "and each run its tick"

# --- killed while a job is being submitted --------------------------------------------------------
mkdir "$T/beside"
ln -s "$B/lbrun" "$T/beside/lbrun"
cat >"$T/beside/lbworker" <<END
#!/bin/sh
: >"$T/asked"
while [ -e "$T/asks" ]; do sleep 0.1; done
END
chmod +x "$T/beside/lbworker"
printf '[runs]\nlbrun = "%s"\n' "$T/beside/lbrun" >"$LB_HOME/lbd.toml"
printf '[model]\n' >"$cron/night.toml"
echo '* * * * * night.toml' >"$cron/crontab"
: >"$T/asks"
lbd_at "2026-11-02 11:00:56" 1
wait_for '[ -e "$T/asked" ]' 30
lbctl cron >/dev/null	# its turn is over
lbd_dies
rm "$T/asks"
lbd_at "2026-11-02 11:01:10" 1
ok "what lbd died over is submitted by the next one" wait_for 'has_run night-20261102T1001Z' 20
run_reaches night-20261102T1001Z completed 30
lbd_stop
# Days later that is a time at which nobody was there.
days_later() {	# CATCH_UP DAY WANTED
	printf 'CATCH_UP=%s\n6 11 * * * night.toml\n' "$1" >"$cron/crontab"
	: >"$T/asks"
	rm "$T/asked"
	lbd_at "2026-11-$2 11:05:56" 1
	wait_for '[ -e "$T/asked" ]' 30
	lbctl cron >/dev/null
	lbd_dies
	rm "$T/asks"
	lbd_at "2026-11-$(($2 + 2)) 11:00:10" 1
	case $3 in
	"") wait_for '[ "$(job 0.last.state)" = skipped ]' 30 ;;
	*) run_reaches "$3" completed 30 ;;
	esac
	is "$(runs night-202611"$2"T1006)$(runs night-202611$(($2 + 1)))" "$3" \
		"days later it is for CATCH_UP=$1 to say"
	ok "what there was of it is gone" [ ! -e "$LB_HOME/runs/night-202611$2T1006Z" ]
	lbd_stop
}
days_later none 12 ""
days_later one 14 night-20261115T1006Z

# --- more than one at a time ----------------------------------------------------------------------
printf 'CATCH_UP=none\nOVERLAP=queue\nNAME=burst\n* * * * * sleep 1000\n' >"$cron/crontab"
lbd_at "2026-11-18 11:00:05" 1
wait_for 'lbctl cron | grep -q "^burst"' 20
lbd_stop
lbd_at "2026-11-18 11:03:30" 1
wait_for 'has_run burst-20261118T1001Z' 20
lbd_dies
is "$(sqlite3 "$LB_HOME/ledger.db" "SELECT count(*) > 1, min(text) FROM cron_ticks
	WHERE entry = 'burst' AND state = 'waiting'")" "1|the one before it still runs" \
	"of those that came together all but the first wait for another, and are no left-overs"

# --- nothing can be written -----------------------------------------------------------------------
printf 'CATCH_UP=none\nNAME=full\n6 11 * * * true\n' >"$cron/crontab"
sqlite3 "$LB_HOME/ledger.db" "INSERT INTO cron_ticks (entry, scheduled_s, state, run, text, time_ms)
		VALUES ('full', 1795000000, 'waiting', '', '', 1795000000000);
	CREATE TRIGGER no_room BEFORE UPDATE ON cron_ticks WHEN NEW.state = 'skipped'
		BEGIN SELECT RAISE(ABORT, 'no room'); END"
lbd_at "2026-11-20 11:00:10" 1
wait_for '[ "$(timeout 5 lbctl cron --json | json entries.0.last.state)" = waiting ]' 20
ok "who cannot write what passes by does not try for ever" timeout 10 lbctl cron
lbd_dies
sqlite3 "$LB_HOME/ledger.db" "DROP TRIGGER no_room"
lbd_at "2026-11-20 11:00:30" 1
ok "it passes by once there is room" wait_for '[ "$(job 0.last.state)" = skipped ]' 20
lbd_stop

# --- one that came while the one before was being submitted ---------------------------------------
cat >"$T/beside/lbworker" <<END
#!/bin/sh
case "\$*" in *--check*) ;; *) exec sleep 1000 ;; esac
: >"$T/asked"
while [ -e "$T/asks" ]; do sleep 0.1; done
END
cut="cut-names-are-for-the-names-of-their-runs-and-may-then-meet"
{
	printf 'OVERLAP=replace\nNAME=busy\n1 12 * * * night.toml\n'
	printf "NAME=$cut-%s\\n1 12 * * * night.toml\\n" a b
} >"$cron/crontab"
: >"$T/asks"
rm "$T/asked"
lbd_at "2026-11-02 12:00:56" 1
lbctl cron run busy >"$T/run" &
asker=$!
wait_for '[ -e "$T/asked" ]' 30
wait_for '[ "$(job 0.last.state)" = waiting ]' 30
rm "$T/asks"
wait $asker
run_reaches "$(cat "$T/run")" running 30
wait_for 'lbctl cron | grep -q "^cut.*refused"' 30
wait_for '[ -n "$(runs cut-)" ]' 30 # which is still being submitted
run_reaches "$(runs cut-)" running 30
ok "one whose run has the name of another's leaves it alone" \
	[ -e "$LB_HOME/runs/$(runs cut-)/spec.toml" ]
lbctl kill --now "$(runs cut-)" --yes >/dev/null
lbd_stop
lbd_at "2026-11-02 12:01:30" 1
ok "takes its place, where that is wanted" run_reaches "$(cat "$T/run")" killed 20
lbd_stop
rm "$LB_HOME/lbd.toml" "$cron/night.toml"

# --- a submission fails beside one that waits -----------------------------------------------------
cat >"$cron/crontab" <<'END'
OVERLAP=queue
NAME=queues
* * * * * sleep 1000
OVERLAP=skip
NAME=fails
31 12 * * * true
END
lbd_at "2026-11-02 12:29:20" 1
wait_for 'lbctl cron | grep -q "^queues "' 20
lbd_stop
export LB_FAILPOINT=run.written:error@2
lbd_at "2026-11-02 12:29:50" 60
unset LB_FAILPOINT
wait_for '[ "$(job 1.last.state)" = refused ]' 60
lbctl cron disable queues
lbctl kill "queues-*" --yes >/dev/null
wait_for '[ "$(job 0.last.state)" = skipped ]' 60
is "$(runs queues- | wc -w)" 1 "what waits is not started once its entry is disabled"
lbd_stop
is "$(sqlite3 "$LB_HOME/ledger.db" "SELECT count(*) FROM cron_ticks
	WHERE entry = 'queues' AND scheduled_s = $(date -d '2026-11-02 12:31' +%s)")" 1 \
	"a submission that fails costs no other its time"

# --- a run that has the number of one that was removed --------------------------------------------
printf 'NAME=twice\nTIMEOUT=10m\n*/30 * * * * sleep 1000\n' >"$cron/crontab"
lbd_at "2026-11-02 12:39:00" 1
wait_for 'lbctl cron | grep -q "^twice "' 20
lbd_stop
lbd_at "2026-11-02 12:59:30" 240
wait_for '[ "$(job 0.last.run_state)" = killed ]' 60
lbctl rm --yes "$(runs twice-)" >/dev/null
wait_for '[ "$(job 0.last.run_state)" = running ]' 60
wait_for '[ "$(job 0.last.run_state)" = killed ]' 60
lbd_stop
is "$(sqlite3 "$LB_HOME/ledger.db" "SELECT ended_ms - created_ms >= 600000 FROM runs
	WHERE name LIKE 'twice-%' ORDER BY id DESC LIMIT 1")" 1 "has a TIMEOUT of its own"
# also one that comes before the next turn
printf 'NAME=again\nTIMEOUT=10m\n0 0 1 1 * sleep 1000\nNAME=later\n51 12 * * * true\n' >"$cron/crontab"
lbd_at "2026-11-02 12:39:20" 1
wait_for 'lbctl cron | grep -q "^later "' 20
run=$(lbctl cron run again)
run_reaches "$run" running 20
lbd_stop
lbd_at "2026-11-02 12:48:05" 20
lbctl kill --now --yes "$run" >/dev/null
run_reaches "$run" killed 20
lbctl rm --yes "$run" >/dev/null
run=$(lbctl cron run again)
wait_for 'has_run later-20261102T1151Z' 30
is "$(run_state "$run")" running "however soon it comes"
lbctl kill --now --yes "$run" >/dev/null
lbd_stop

# --- a line that was taken out --------------------------------------------------------------------
printf 'NAME=clock\n*/10 * * * * true\n' >"$T/clock"
(cat "$T/clock" && printf 'NAME=returns\n5 14 * * * true\n') | tee "$T/both" >"$cron/crontab"
lbd_at "2026-11-02 13:59:30" 1
wait_for 'lbctl cron | grep -q "^returns "' 20
lbd_stop
cp "$T/clock" "$cron/crontab"
lbd_at "2026-11-02 13:59:50" 120
wait_for 'has_run clock-20261102T1310Z' 60
cp "$T/both" "$cron/crontab"
wait_for 'has_run clock-20261102T1320Z' 60
is "$(runs returns-)" "" "has not missed what came meanwhile"
lbd_stop

# --- one at a time, and not too long --------------------------------------------------------------
cat >"$cron/crontab" <<'END'
NAME=slow
* * * * * sleep 1000
NAME=long
TIMEOUT=3m
0 13 * * * sleep 1000
TIMEOUT=0
OVERLAP=replace
NAME=newest
* * * * * sleep 1000
END
lbd_at "2026-11-02 12:59:00" 1
wait_for 'lbctl cron | grep -q "^newest "' 20
lbd_stop
lbd_at "2026-11-02 12:59:30" 60
wait_for '[ "$(job 0.last.state)" = skipped ]' 60
is "$(job 0.last.text)" "the one before it still runs" "a job that still runs is not started again"
wait_for '[ "$(job 1.last.run_state)" = killed ]' 60
like "$(lbctl events "$(runs long-)")" "longer than its TIMEOUT" \
	"one that takes too long is ended"
ok "the next one takes its place, where that is wanted" wait_for '[ "$(runs newest- | wc -w)" -ge 2 ]' 60
rm "$cron/crontab"
lbctl kill "slow-*" "newest-*" --yes >/dev/null
lbd_stop

# --- the folder, and people -----------------------------------------------------------------------
mkdir -m 755 "$cron/cron.hourly" "$cron/cron.daily"
printf '#!/bin/sh\n#LB OVERLAP=queue\n#SBATCH --time=10 --partition=night --export=WORD=counts\necho "made it: $WORD"\n' >"$cron/cron.hourly/tidy.slurm"
printf '#!/bin/sh\necho open\n' >"$cron/cron.hourly/open.sh"
printf '[run]\nname = "x"\ncommand = ["true"]\n' >"$cron/cron.daily/spec.toml"
printf '#!/bin/sh\nsbatch --begin=now+1hour cron-hourly.slurm\nfor f in cron.hourly/*; do sbatch $f; done\n' \
	>"$cron/cron.hourly/cron-hourly.slurm"
ln -s /bin/true "$cron/cron.hourly/link.sh"
chmod 755 "$cron"/cron.hourly/*.s* 2>/dev/null
chmod 777 "$cron/cron.hourly/open.sh"
echo 'not for cron' >"$cron/cron.hourly/README"
printf '#!/bin/sh\n' | tee "$cron/cron.hourly/tidy.sh.off" >"$cron/cron.hourly/nightly"
printf '61 * * * * x\n' >"$cron/crontab"
printf '[notify]\nhook = ["tee", "-a", "%s"]\n' "$T/told" >"$LB_HOME/lbd.toml"
lbd_start
wait_for '[ "$(lbctl cron --json | json entries.#)" = 2 ]' 20
out=$(lbctl cron 2>&1)
like "$out" "^tidy +17 \* \* \* \*" "a script in cron.hourly is due each hour"
like "$out" "^spec +25 6 \* \* \*" "a run spec in cron.daily each day"
like "$out" "crontab:1: minute .61.: is out of range; 0-59" "a bad line is told with its place"
like "$out" "chmod g?o?-w .*open.sh" "a script that others may write is refused, with the way out"
like "$out" "cron.hourly/nightly: only \*.sh, .* rename it" \
	"a script that is called otherwise is told of"
is "$(echo "$out" | grep -c 'README\|sh\.off')" 0 "what is none is left alone"
like "$out" "link.sh: must be a regular file" "so is a link"
like "$out" "is itself a cron that submits itself" "so is the cron that lbd replaces"
like "$(lbctl events)" "cron_problem .*crontab:1" "people are told of problems"
is "$(lbctl events | grep -c 'cron_problem .*crontab:1')" 1 "once"
wait_for 'grep -qs "crontab:1: minute" "$T/told"' 20
like "$(cat "$T/told")" '"next":"mend what lbctl cron shows"' "with what to do next"
ok "a job can be started now" lbctl cron run spec
run=$(lbctl cron --json | json entries.1.last.run)
like "$run" '^spec-[0-9]{8}T[0-9]{6}Z$' "it has a run of its own"
wait_for '[ "$(run_state "$run")" = completed ]' 20
# the same hours of work again, to the same limit, and no other time of it meanwhile
printf '[run]\ncommand = ["sleep", "1000"]\n[slurm]\ntime = "2s"\nsignal_before = 0\n' >"$cron/cron.daily/spec.toml"
wait_for 'run=$(lbctl cron run spec)' 20	# a run of each second
run_reaches "$run" failed 20
like "$(lbctl status "$run")" "attempt 1: timeout" "what runs into its time limit without a checkpoint is not tried again"
exits 3 "what does not exist cannot" lbctl cron run nothing
like "$err" "there is no such entry in $cron" "and that is said"
ok "it can be disabled" lbctl cron disable tidy
like "$(lbctl cron)" "^tidy .* disabled by $(id -un)" "by whom is said"
lbd_stop
lbd_start
wait_for '[ "$(lbctl cron --json | json entries.#)" = 2 ]' 20
is "$(job 0.enabled)" false "and lbd does not forget it"
lbctl cron enable tidy
is "$(job 0.enabled)" true "it can be enabled again"
lbctl cron run tidy >/dev/null
run=$(job 0.last.run)
wait_for '[ "$(run_state "$run")" = completed ]' 20
like "$(lbctl logs "$run")" '^made it: counts$' \
	"what a script says to sbatch counts; what makes no sense here does no harm"
lbd_stop

# --- the clock is set while jobs run --------------------------------------------------------------
cat >"$T/saves" <<'END'
#!/bin/sh
trap 'sleep 1; : >"$1/saved"; exit 0' TERM
while :; do sleep 0.1; done
END
chmod +x "$T/saves"
now=$(($(date +%s) / 60 * 60 + 57))	# the minute is over soon
printf 'NAME=due\n%s * * * true\nTIMEOUT=1h\nNAME=long\n0 0 29 2 * sleep %s\n' \
	"$(date -d "@$((now + 3600))" '+%M %H')" "$mark" >"$cron/crontab"
lbd_start
long=$(lbctl cron run long)
lbctl submit --name limited --set slurm.time=1h -- "$T/saves" "$T" >/dev/null
run_reaches limited running 20
run_reaches "$long" running 20
lbd_stop
set_clock() { echo "@$1" >"$T/clock.new" && mv "$T/clock.new" "$T/clock"; }
set_clock "$now"
LB_DEBUGGER="env LD_PRELOAD=$faketime FAKETIME_FMT=%s FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 \
	FAKETIME_TIMESTAMP_FILE=$T/clock" lbd_start
lbctl cron >/dev/null
set_clock $((now + 7200))
wait_for '[ -n "$(runs due)" ]' 20
is "$(run_state "$long")" running "a TIMEOUT is not over because the clock was set"
is "$(run_state limited)" running "nor is a time limit"
lbd_stop
python3 - "$LB_HOME"/local/*.json <<'END'
import json, sys
for path in sys.argv[1:]:
    job = json.load(open(path))
    if job["time_seconds"] == 3600:
        job["start"] -= 7200
        json.dump(job, open(path, "w"))
END
lbd_start
wait_for '[ -e "$T/saved" ]' 20
passed "one that passed while no lbd ran leaves the trainer its half minute"
lbctl kill --now limited "$long" >/dev/null
run_reaches limited killed 20
lbctl rm --yes limited >/dev/null
lbd_stop

# --- at once, with why not, and with an environment -----------------------------------------------
rm -r "$cron"
mkdir -m 755 "$cron" "$cron/cron.daily"
export PYTHONPATH=/from/lbd SECRET_TOKEN=x
lbd_start
unset PYTHONPATH SECRET_TOKEN
show='echo "$FOO,$BOTH,$PYTHONPATH,${SECRET_TOKEN:-none},$LB_CRON,$(cd && pwd)"'
printf '#!/bin/sh\n%s\n' "$show" | tee "$cron/cron.daily/env.sh" >"$cron/cron.daily/plain.sh"
printf '#!/bin/sh\n#SBATCH --time=5\n%s\n' "$show" >"$cron/cron.daily/batch.slurm"
printf '#!/bin/bash\nSELF=$(readlink -f "$0")\nsbatch --begin=now+1day "$SELF"\n' >"$cron/cron.daily/again.sh"
printf '#!/no/such/python\n' >"$cron/cron.daily/lost.sh"
chmod 755 "$cron/cron.daily/env.sh" "$cron/cron.daily/again.sh" "$cron/cron.daily/lost.sh"
printf '# for all\nexport FOO=file\nBOTH="of file"\n' >"$cron/environment"
printf 'FOO=line\nNAME=word\n@daily cron.daily/env.sh\nNAME=never\n0 3 31 2 * true\n@daily ~/x.sh\nNAME=astray\n@daily ok.sh\nNAME=spec\n@daily no.toml\nPATH=%s\nNAME=found\n@daily ok.sh 2\nNAME=far\n@daily nvidia-smi\n' "$T/bin:$PATH" >"$cron/crontab"
mkdir "$T/bin"
printf '#!/bin/sh\n' >"$T/bin/ok.sh"
chmod +x "$T/bin/ok.sh"
names=$(lbctl cron --json 2>&1 | python3 -c 'import json, sys
print(*sorted(e["name"] for e in json.load(sys.stdin)["entries"]))')
is "$names" "again astray batch env far found lost never plain spec word" "what was dropped there is listed at once"
out=$(lbctl cron 2>&1)
like "$out" "plain.sh: not executable: chmod \+x $cron/cron.daily/plain.sh" "what is not executable says so"
like "$out" "again.sh: this script submits itself again" "what submits itself is recognised"
like "$out" "lost.sh: its first line names /no/such/python" "an interpreter that is not there"
like "$out" 'crontab:5: "0 3 31 2 \*" is never due' "a day that never comes"
like "$out" "crontab:6: '~': there is no shell here; .*/home/ada/x.sh" "a folder that only a shell knows"
like "$out" "ok.sh: there is no such file in $cron, nor in a folder of PATH" "a script that lies nowhere"
like "$out" "no.toml: there is no such file in $cron\$" "nor a run spec"
like "$out" "^astray .*cannot run" "cannot run"
unlike "$out" "^(far|found) .*cannot run" "one in the PATH of its job can, and what only nodes may have"
like "$out" "^plain .*cannot run" "and the table says of which"
exits 2 "such a job is not started by hand either" lbctl cron run plain
like "$err" "not executable" "with the same words"
said() {	# ENTRY: the line that its run printed
	lbctl cron run "$1" >"$T/run" || return
	run_reaches "$(cat "$T/run")" completed 30
	lbctl logs "$(cat "$T/run")" | grep ','
}
home=$(cd && pwd)
like "$(said env)" "file,of file,/from/lbd,none,env,$home" "a script has what lbd has and cron/environment"
like "$(said batch)" "file,of file,/from/lbd,none,batch,$home" "a batch script, too"
like "$(said word)" "line,of file,/from/lbd,none,word,$home" "lines of the crontab count more"
chmod +x "$cron/cron.daily/plain.sh"
like "$(said plain)" "file,of file" "what is mended runs at once"
lbctl submit --name mine -- true >/dev/null
is "$(lbctl ls | awk 'NR > 1 { print $1 }')" mine "lbctl ls shows what people submitted"
ok "and by name any" lbctl ls "$(cat "$T/run")"
like "$(lbctl ls --cron)" "^$(cat "$T/run") " "--cron shows the others"
of() { lbctl ls --json | python3 -c '
import json, sys
print([run["cron"] for run in json.load(sys.stdin) if run["name"] == sys.argv[1]])' "$1"; }
is "$(of mine)" "[None]" "JSON has all runs"
like "$(of "$(cat "$T/run")")" "^\['[a-z.]+'\]$" "and says which are periodic, by their entry"
lbd_stop
