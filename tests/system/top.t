#!/bin/sh
# SPDX-License-Identifier: MIT
# lbctl top on a terminal (tests/system/terminal.py): whole screens, every key, sizes, a slow line,
# lbd gone and back, ten thousand runs; and without a terminal.
. "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import pyte' 2>/dev/null || bail_out "pyte is missing (Debian package python3-pyte)"

LANG=C.UTF-8 TERM=xterm TZ=UTC
export LANG TERM TZ
unset LC_ALL COLUMNS NO_COLOR
# terminal COLUMNSxLINES [VAR=VALUE…] COMMAND…; orders by standard input
terminal() {
	size=$1
	shift
	/usr/bin/python3 "$src/tests/system/terminal.py" "$size" env "$@"
}

# --- pictures that stand still -----------------------------------------------------------------
/usr/bin/python3 - "$T/still" "$T/many" <<'END'
import json, sys
now = 1795000000
run = {"state": "running", "owner": "ada", "group": "g", "step": 500, "target_step": 1000, "loss": 2.5,
       "tokens_per_s": 1000.0, "median_tokens_per_s": 1000.0, "created": now - 9000, "attempt": 1, "launch": 1,
       "launched": now - 1000, "last_step_time": now - 1, "step_s": 1.0, "losses": [4, 3.5, 3, 2.5],
       "checkpoint": {"step": 400, "path": "p", "valid": True, "time": now - 100}}
runs = [dict(run, name="fine-1"), dict(run, name="stuck-1", last_step_time=now - 180, step_s=2.0, attempt=2,
                                     limit=now + 9000, nodes="n[01-02]", gpu_use=[93, 0, 100, None]),
        dict(run, name="ünïcode", created=now - 8000, group=None),
        {"name": "late-1", "state": "queued", "waits_for": "Resources", "created": now - 60, "attempt": 1},
        {"name": "dead-1", "state": "failed", "cause": "oom", "text": "evil \u001b[2J", "ended": now - 60}]
json.dump({"time": now, "runs": runs, "gone": []}, open(sys.argv[1], "w"))
many = [dict(run, name=f"run-{i:05}", created=now - i) for i in range(10000)]
json.dump({"time": now, "runs": many, "gone": []}, open(sys.argv[2], "w"))
END

# picture NAME COLUMNSxLINES [VAR=VALUE…]: the replayed screen, beside tests/golden/top/NAME
picture() {
	name=$1 size=$2
	shift 2
	printf 'wait fine-1\nwait Enter\nscreen %s\nkey q\nended\n' "$T/$name" |
		terminal "$size" "$@" lbctl top --replay "$T/still" >"$T/said" 2>&1
	[ -z "${LB_GOLDEN:-}" ] || cp "$T/$name" "$src/tests/golden/top/$name"
	ok "the screen is as it should be: $name" diff -u "$src/tests/golden/top/$name" "$T/$name"
	is "$(tail -n 1 "$T/said")" 0 "q ends it: $name"
}
picture small 80x24
picture wide 200x60
picture plain 80x24 LANG=C TERM=vt100
picture monochrome 132x30 NO_COLOR=1

like "$(COLUMNS=80 lbctl top --replay "$T/still" </dev/null)" '^stuck-1 +running +500/1000.*no step for' \
	"without a terminal it is one picture"
unlike "$(lbctl top --replay "$T/still" | od -An -c)" ' 033 ' "without escape sequences, also of others"
like "$(COLUMNS=120 lbctl top --demo | head -n 2)" 'demonstration' "the demonstration needs no lbd"
printf 'wait demonstration\nkey q\nended\n' >"$T/orders"
is "$(terminal 100x30 lbctl top --demo <"$T/orders")" 0 "nor on a terminal"

# --- ten thousand ------------------------------------------------------------------------------
cat >"$T/orders" <<'END'
wait 10000.runs
key \x1bOF
wait ^run-09999
key /
wait ^/_
key 0423
wait ^run-00423
key \r
wait 1.of.10000
key q
ended
END
exits 0 "ten thousand runs: to the end, and one of them found" terminal 80x24 lbctl top --replay "$T/many" \
	<"$T/orders" || :
is "$out" 0 "and it ends"

# --- a live lbd --------------------------------------------------------------------------------
exits 5 "without lbd it says so" lbctl top
cat >"$T/trainer" <<'END'
#!/bin/sh
# Two ranks' lines, a step every 0.2 s, a checkpoint when it is asked to end.
i=0
while :; do
	i=$((i + 1))
	echo "[rank0]: step $i/5000 loss 2.$((9 - i % 10))"
	echo "[rank1]: hello from the other"
	sleep 0.2
done
END
chmod +x "$T/trainer"
printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
lbd_start
lbctl submit --name alpha -- "$T/trainer" >/dev/null
lbctl submit --name beta -- "$T/trainer" >/dev/null
wait_for '[ "$(lbctl status beta --json | json step)" -gt 2 ]' 30
wait_for '[ "$(lbctl status alpha --json | json step)" -gt 2 ]' 30
cat >"$T/orders" <<'END'
wait 2.run,
wait ^alpha.+running
key ?
wait goodput:.where
key q
key /
key alp
key \r
wait only."alp",.1.of.2
key \r
wait story.of.alpha
wait submitted
key q
key l
wait output.of.alpha
wait hello.from.the.other
key ]
wait rank.0
key q
key c
wait checkpoints.of.alpha
key q
key g
wait goodput.of.alpha
wait productive
key q
key t
wait the.team
key q
key s
wait stacks.of.alpha
wait [0-9]+.+trainer 30
key q
size 160x50
wait OF.MED.+LIMIT
size 60x10
wait ^alpha.+running
size 80x24
key k
wait kill.alpha.for.good
key n
wait nothing.was.done
key S
wait ask.alpha.for.a.checkpoint
key y
wait alpha
key k
key y
wait alpha.+killed 40
key \x1b
wait 1.run,
key q
ended
END
exits 0 "every key does what it says" terminal 80x24 lbctl top <"$T/orders" || diag "$out"
is "$out" 0 "and it ends"
run_reaches alpha killed 20
like "$(lbctl events alpha)" 'lbctl top' "the run was killed, and its events say by what"
is "$(run_state beta)" running "the other was not"

cat >"$T/orders" <<'END'
wait beta.+running
rest 6
key q
ended
END
terminal 200x60 lbctl top <"$T/orders" >"$T/said"
bytes=$(head -n 1 "$T/said")
ok "at rest at most 2 kB a second ($bytes in 6 s)" [ "$bytes" -le 12000 ]

mkfifo "$T/fifo"
terminal 80x24 lbctl top <"$T/fifo" >"$T/said" 2>&1 &
watcher=$!
exec 4>"$T/fifo"
printf 'wait ^beta.+running\nscreen %s\n' "$T/there" >&4
wait_for '[ -s "$T/there" ]' 20
lbd_kill9
printf 'wait old:.+lbd\nscreen %s\n' "$T/away" >&4
wait_for '[ -s "$T/away" ]' 20
lbd_start 4>&-
cat >&4 <<'END'
wait 1.run,.0.wait,.0.failed,.1.killed,.0.done$ 40
key q
ended
END
exec 4>&-
wait $watcher
is "$(cat "$T/said")" 0 "lbd may go away and come back meanwhile"

# --- a recording -------------------------------------------------------------------------------
printf 'wait beta\nkey \\r\nwait story\nkey q\nkey q\nended 60\n' |
	terminal 80x24 lbctl top --record "$T/record" >"$T/said"
ok "what is seen can be kept" [ -s "$T/record" ]
lbctl kill beta --yes >/dev/null
printf 'wait beta.+running\nkey \\r\nwait submitted\nkey q\nkey k\nkey y\nwait recording\nkey q\nended\n' >"$T/orders"
is "$(terminal 80x24 lbctl top --replay "$T/record" <"$T/orders")" 0 \
	"and be shown again, pages and all, with nothing to kill"
exits 2 "what is no recording is refused" lbctl top --replay "$T/trainer"
like "$err" 'no recording of lbctl top' "with a line that says so"

# --- a terminal that goes away --------------------------------------------------------------------
cat >"$T/gone.py" <<'END'
import os, pty, signal, sys, time
pid, fd = pty.fork()
if pid == 0:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.execlp("lbctl", "lbctl", "top", "--demo")
os.read(fd, 1)
os.close(fd)
limit = time.monotonic() + 5 * int(os.environ.get("LB_PATIENCE", "4"))
while os.waitpid(pid, os.WNOHANG)[0] == 0:
    if time.monotonic() > limit:
        os.kill(pid, signal.SIGKILL)
        sys.exit("it goes on")
    time.sleep(0.02)
END
ok "it ends with its terminal, also where SIGHUP is ignored" python3 "$T/gone.py"
done_testing
