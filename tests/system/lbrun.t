#!/bin/sh
# SPDX-License-Identifier: MIT
# lbrun alone, without lbd: every way in which a trainer can end, misbehave or be ended.
. "$(dirname "$0")/lib.sh"
. "$suite/attempt.sh"

run() { SLURMD_NODENAME=n1 timeout $((60 * patience)) "$B/lbrun" --attempt "$F" >"$F/out.log" 2>&1; }
start() {
	SLURMD_NODENAME=n1 "$B/lbrun" --attempt "$F" >"$F/out.log" 2>&1 &
	lbrun_pid=$!
}
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p" "$F/exit.json"; }
# The line of the spool that matches all of these.
spool() {
	sed 's/\\"/'"'"'/g' "$F/spool.jsonl" >"$T/spool"
	for pattern; do
		grep -e "$pattern" "$T/spool" >"$T/spool.next"
		mv "$T/spool.next" "$T/spool"
	done
	cat "$T/spool"
}
living() {
	for pid in $(own_processes); do
		[ "$pid" = $$ ] || tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline"
	done
}
nobody() { [ -z "$(living)" ]; }

# checkpoint STEP [CONTENT]: valid when its content is abc
checkpoint() {
	name=$(printf 'step-%08d' "$1")
	mkdir -p "$C/$name"
	printf %s "${2:-abc}" >"$C/$name/w"
	printf '{"format":1,"step":%d,"tokens":0,"world_size":1,"config_hash":"","attempt":0,"files":
		[{"name":"w","bytes":3,"xxh3_128":"06b05ab6733a618578af5f94892f3950"}]}' \
		"$1" >"$C/$name/manifest.json"
}

# --- endings ---------------------------------------------------------------------------------
fresh
attempt 1 '["true"]'
exits 0 "a trainer that ends well" run
is "$(field cause) $(field exit_code) $(field launches)" "completed 0 1" "is completed"
is "$(field last_seq)" "$(wc -l <"$F/spool.jsonl")" "the exit record counts the lines of the spool"
ok "the socket is gone" [ ! -e "$F/sock" ]

fresh
attempt 1 '["sh","-c","exit 3"]'
exits 3 "a trainer's exit status is lbrun's" run
is "$(field cause) $(field exit_code)" "error 3" "and recorded"

fresh
attempt 1 '["sh","-c","kill -SEGV $$"]'
exits 139 "a crash" run
is "$(field cause) $(field signal)" "crash 11" "is recorded with its signal"

fresh
attempt 1 '["/no/such/program"]' 3
exits 143 "a program that is not there" run
like "$(cat "$F/exit.json")" '"launch_fail".*"launches":1.*cannot start /no/such/program: there is no /no"' \
	"is a failed launch, and not tried again"

fresh
attempt 1 '["true"]'
sed "s|\"workdir\":\"$R\"|\"workdir\":\"$T/gone\"|" "$F/attempt.json" >"$T/x" &&
	mv "$T/x" "$F/attempt.json"
exits 143 "a working directory that is not there" run
like "$(cat "$F/exit.json")" '"launch_fail".*cannot change to the working directory' "is said"

fresh
attempt 1 '["sh","-c","exit 9"]' 3
exits 9 "an exit status that means never again" run
is "$(field launches)" 1 "is obeyed"

fresh
attempt 1 '["sh","-c","true"]'
: >"$F/attempt.json"
exits 70 "an attempt.json that cannot be read" run
ok "one line says so" [ "$(wc -l <"$F/out.log")" = 1 ]

# --- bytes -----------------------------------------------------------------------------------
fresh
cat >"$T/args.py" <<'END'
import os, sys
open(sys.argv[1], "wb").write(b"\0".join(os.fsencode(a) for a in sys.argv[2:]))
END
attempt 1 "[\"python3\",\"$T/args.py\",\"$T/seen\",\"a\\nb\",\"\\\"'\",\"\$(id)\`id\`;|&\",{\"hex\":\"ff80fe\"},\"\",\"*\"]"
run
printf 'a\nb\0"'"'"'\0$(id)`id`;|&\0\377\200\376\0\0*' >"$T/want"
ok "arguments reach the trainer byte for byte" cmp "$T/seen" "$T/want"

# --- output ----------------------------------------------------------------------------------
fresh
cat >"$T/noise.py" <<'END'
import os, sys, time
os.write(1, b"one\ntwo")
os.write(2, b"oops\n")
time.sleep(0.3)	# an unfinished line is shown meanwhile
os.write(2, b"late\n")	# must not continue it
time.sleep(0.1)
os.write(1, b" three\n\xff\x00\xc3\n")
os.write(1, b"x" * 20000 + b"\n")
os.write(1, "\u20ac".encode() * 5000 + b"\n")
os.write(2, b"no newline at the end")
END
attempt 1 "[\"python3\",\"$T/noise.py\"]"
run
is "$(grep -avc '^\[n1:0\] ' "$F/out.log")" 0 "every line of the output has its prefix"
is "$(grep -ac '^\[n1:0\] late$' "$F/out.log")" 1 "stdout and stderr do not share a line"
is "$(sed 's/^\[n1:0\] //' "$F/out.log" | grep -ac 'x\{20000\}')" 1 "a long line stays one line"
is "$(grep -ac "$(printf '\342\202\254%.0s' $(seq 50))" "$F/out.log")" 1 \
	"no character is cut in two"

fresh
attempt 1 '["sh","-c","yes 0123456789012345678901234567890123456789 | head -c 100000000"]'
start
peak=0
while [ ! -e "$F/exit.json" ] && kill -0 $lbrun_pid 2>/dev/null; do
	p=$(sed -n 's/.*"pid":\([0-9]*\).*/\1/p' "$F/claim" 2>/dev/null)
	rss=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/${p:-0}/status" 2>/dev/null)
	[ "${rss:-0}" -le "$peak" ] || peak=$rss
done
wait $lbrun_pid
is "$(grep -c '^\[n1:0\] 0123456789012345678901234567890123456789$' "$F/out.log")" 2439024 \
	"100 MB of output arrive"
diag "peak RSS $peak kB"
if nm "$B/lbrun" 2>/dev/null | grep -q __asan_init; then limit=200000; else limit=5120; fi
ok "lbrun does not grow with them" [ "$peak" -gt 0 -a "$peak" -le "$limit" ]

# --- relaunch in place -----------------------------------------------------------------------
fresh
checkpoint 10
checkpoint 20
checkpoint 30 abX
mkdir "$C/step-00000040.tmp-1"
cat >"$T/crash.sh" <<'END'
echo "$LB_LAUNCH ${LB_RESUME_FROM:-scratch}" >>"$1"
[ -S "$LB_SOCKET" ] || echo "without a socket" >>"$1"
rm -f "$LB_SOCKET" # as who cleans /tmp, or scratch, of what is old
[ "$LB_LAUNCH" -gt 2 ] || kill -SEGV $$
END
attempt 1 "[\"sh\",\"$T/crash.sh\",\"$T/seen\"]" 2
exits 0 "a trainer that crashes twice is started again, in place" run
is "$(cat "$T/seen")" "1 $C/step-00000020
2 $C/step-00000010
3 $C/step-00000020" "from the newest that is valid, and from the one before when that did no good"
is "$(field launches)" 3 "three launches"
like "$(spool checkpoint_valid '"step":30')" '"valid":false' "the bad one is told"
ok "and kept" [ -e "$C/step-00000030/w" ]
like "$(spool launch_start '"number":2')" '"resumed_from_step":10' "each start says from where"

fresh
attempt 1 '["sh","-c","exit 1"]' 2
exits 1 "launches without progress" run
is "$(field launches)" 3 "are limited"

fresh
checkpoint 10
cat >"$T/progress.sh" <<'END'
n=$((LB_LAUNCH + 10))
[ $n -lt 15 ] || exit 0
cp -r "$LB_CHECKPOINT_DIR/step-00000010" "$LB_CHECKPOINT_DIR/step-000000$n"
sed -i "s/\"step\":10/\"step\":$n/" "$LB_CHECKPOINT_DIR/step-000000$n/manifest.json"
exit 1
END
attempt 1 "[\"sh\",\"$T/progress.sh\"]" 1
exits 0 "a trainer that makes checkpoints may fail as often as it likes" run
is "$(field launches)" 5 "five launches"

fresh
checkpoint 10 abX
attempt 1 "[\"sh\",\"-c\",\"echo started >$T/seen\"]" 2
exits 143 "checkpoints, but none is valid" run
like "$(cat "$F/exit.json")" '"error".*no valid checkpoint in' "ends with an error that says so"
ok "and nothing is started" [ ! -e "$T/seen" ]

fresh
attempt 1 '["false"]'
run
attempt 2 '["true"]'
run
like "$(spool '"note"')" 'starts from the beginning' "a later attempt without checkpoint says so"

# --- one trainer only ------------------------------------------------------------------------
fresh
attempt 1 "[\"sh\",\"-c\",\"echo started >>$T/seen\"]"
i=0
while [ $i -lt 50 ]; do
	"$B/lbrun" --attempt "$F" >>"$T/fifty" 2>&1 &
	echo $! >>"$T/seen.pids"
	i=$((i + 1))
done
bad=0
while read -r pid; do wait "$pid" || bad=1; done <"$T/seen.pids"
is "$(wc -l <"$T/seen") $bad" "1 0" "fifty at once: one trainer, and all exit 0"
is "$(grep -c 'claimed already' "$T/fifty")" 49 "the others say why they do nothing"

attempt 2 "[\"sh\",\"-c\",\"echo again >>$T/seen\"]"
attempt 3 '["true"]'
run
attempt 2 "[\"sh\",\"-c\",\"echo again >>$T/seen\"]"
exits 0 "an attempt older than a claimed one" run
ok "does nothing" [ ! -e "$F/claim" ]

fresh
attempt 1 "[\"sh\",\"-c\",\"echo up >$T/seen; sleep 300\"]"
start
wait_for '[ -s "$T/seen" ]' 10
mkdir -p "$R/attempts/2"
echo '{}' >"$R/attempts/2/claim"
wait_for '[ -e "$F/exit.json" ]' 10 || kill -KILL $lbrun_pid
wait $lbrun_pid
like "$(cat "$F/exit.json")" '"lost".*fenced: attempt 2' "a newer claim ends a running attempt"
ok "with all its processes" nobody

# --- ending it -------------------------------------------------------------------------------
# A trainer that will not go: ignores SIGTERM, has children in other sessions, one of them stopped.
cat >"$T/stubborn.py" <<'END'
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def leave(stopped):
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    open(sys.argv[1], "a").write("x")
    if stopped:
        os.kill(os.getpid(), signal.SIGSTOP)
    while True:
        time.sleep(100)
leave(False)
leave(True)
open(sys.argv[1], "a").write("x")
if len(sys.argv) > 2:
    os.kill(os.getpid(), signal.SIGSTOP)
while True:
    time.sleep(100)
END
order() { printf '{"version":1,"order":"%s","by":"ada","text":"too slow"}' "$1" >"$F/order"; }

for how in running stopped; do
	fresh
	[ $how = running ] && arg= || arg=',"stop"'
	attempt 1 "[\"python3\",\"$T/stubborn.py\",\"$T/seen\"$arg]" 5 1000
	start
	wait_for '[ "$(cat "$T/seen" 2>/dev/null)" = xxx ]' 10
	order kill
	began=$(now_ms)
	kill -TERM $lbrun_pid
	wait $lbrun_pid
	took=$(($(now_ms) - began))
	ok "a $how trainer that ignores SIGTERM: nobody is left" nobody
	like "$(cat "$F/exit.json")" '"killed".*kill ordered by ada: too slow' \
		"the record says who and why"
	diag "grace 1000 ms, all dead after $took ms"
	ok "after the grace" [ $took -ge 990 ]
	ok "and soon" in_time $took 3000
done

fresh
attempt 1 "[\"python3\",\"$T/stubborn.py\",\"$T/seen\"]" 5 60000
start
wait_for '[ "$(cat "$T/seen" 2>/dev/null)" = xxx ]' 10
order kill_now
began=$(now_ms)
kill -QUIT $lbrun_pid
wait $lbrun_pid
took=$(($(now_ms) - began))
ok "SIGQUIT: nobody is left" nobody
diag "SIGQUIT: all dead after $took ms"
ok "at once" in_time $took 1000
is "$(field cause)" killed "killed"

fresh
attempt 1 "[\"sh\",\"-c\",\"echo up >$T/seen; sleep 300\"]" 5 1000
start
wait_for '[ -s "$T/seen" ]' 10
order stop
wait_for '[ -e "$F/exit.json" ]' 10 || kill -KILL $lbrun_pid
wait $lbrun_pid
like "$(cat "$F/exit.json")" '"killed".*stop ordered' "an order without a signal is found"

fresh
attempt 1 "[\"sh\",\"-c\",\"echo up >$T/seen\"]"
order kill
run
ok "an attempt with an order does not start" [ ! -e "$T/seen" ]
is "$(field cause) $(field launches)" "killed 0" "killed"

fresh
attempt 1 "[\"sh\",\"-c\",\"trap 'exit 0' TERM; echo up >$T/seen; while :; do sleep 0.1; done\"]" 5
start
wait_for '[ -s "$T/seen" ]' 10
kill -TERM $lbrun_pid
wait $lbrun_pid
is "$? $(field cause)" "143 lost" "SIGTERM without an order: the scheduler must say what it was"

# Soon Slurm sends SIGKILL, too: a controller that is slow to say what it was is not waited for.
fresh
mkdir "$T/slow" && printf '#!/bin/sh\nsleep 7\necho "JobId=77 Reason=TimeLimit Dependency=(null)"\n' >"$T/slow/scontrol"
chmod +x "$T/slow/scontrol"
attempt 1 "[\"sh\",\"-c\",\"echo up >$T/seen; exec sleep $mark\"]" 5
SLURMD_NODENAME=n1 SLURM_JOB_ID=77 PATH="$T/slow:$PATH" "$B/lbrun" --attempt "$F" >"$F/out.log" 2>&1 &
lbrun_pid=$!
wait_for '[ -s "$T/seen" ]' 10
kill -TERM $lbrun_pid
wait $lbrun_pid
is "$? $(field cause)" "143 lost" "the record is there before it can be too late"

fresh
# Slurm sends SIGCONT to all processes of a job, then SIGTERM, in whatever order: a script goes on
# behind what it has started.
attempt 1 "[\"sh\",\"-c\",\"sleep $mark & echo \$! >$T/seen.pid; mv $T/seen.pid $T/seen; wait; exit 0\"]"
start
wait_for '[ -s "$T/seen" ]' 10
pkill -CONT -P $lbrun_pid
kill "$(cat "$T/seen")"
wait_for '! pgrep -f "sleep $mark"' 10
kill -TERM $lbrun_pid
wait $lbrun_pid
is "$? $(field cause)" "143 lost" "a script that ended before SIGTERM came to lbrun, too, has not completed"

fresh
attempt 1 "[\"sh\",\"-c\",\"trap 'exit 0' TERM; echo up >$T/seen; while :; do sleep 0.1; done\"]" 5
start
wait_for '[ -s "$T/seen" ]' 10
kill -USR1 $lbrun_pid
wait $lbrun_pid
is "$(field cause) $(field exit_code)" "timeout 0" "a warning ends it, which is no completion"

fresh
cat >"$T/nested.sh" <<'END'
sh -c 'sh -c "trap \"sleep 0.5; echo asked; exit\" TERM; echo up >$0; while :; do sleep 0.1; done" "$0"; :' "$1"
:
END
attempt 1 "[\"sh\",\"$T/nested.sh\",\"$T/seen\"]" 0 20000
start
wait_for '[ -s "$T/seen" ]' 10
order kill
kill -TERM $lbrun_pid
wait $lbrun_pid
like "$(cat "$F/out.log")" '^\[n1:0\] asked$' "a trainer behind two shells is asked, too"

# Behind a pipe, a program that passes SIGTERM on, and with processes that load its data; or it is
# started as a rank by one that knows nothing of signals, and ends with that.
cat >"$T/polite.py" <<'END'
import ctypes, multiprocessing, signal, sys, time
asked = []
def rank(seen):
    signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
    if sys.argv[1] == "rank":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    else:
        loader = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(300,), daemon=True)
        loader.start()
    open(seen, "w").write("up")
    while not asked:
        time.sleep(0.05)
    time.sleep(0.5)
    print("asked", len(asked), "times", sys.argv[1] == "rank" or loader.is_alive(), flush=True)
    open(seen, "w").write("saved")
if __name__ == "__main__":
    if sys.argv[1] == "rank":
        p = multiprocessing.get_context("spawn").Process(target=rank, args=(sys.argv[2],))
        p.start()
        p.join()
    else:
        rank(sys.argv[2])
END
for how in rank loads; do
	fresh
	attempt 1 "[\"timeout\",\"300\",\"sh\",\"-c\",\"python3 $T/polite.py $how $T/seen | tee $T/seen.log\"]" 0 20000
	start
	wait_for '[ -s "$T/seen" ]' 20
	order kill
	kill -TERM $lbrun_pid
	wait $lbrun_pid
	is "$(cat "$T/seen" "$T/seen.log")" "savedasked 1 times True" "a trainer into tee that $how is asked once, and can save"
done

# A launcher that starts its ranks again: they know only what the launch was handed, here nothing.
fresh
checkpoint 4
mv "$C/step-00000004" "$R/ready"
cat >"$T/again.py" <<'END'
import json, os, socket, sys, time
if "LB_RESUME_FROM" in os.environ:
    open(sys.argv[1], "w").write(os.path.basename(os.environ["LB_RESUME_FROM"]))
    sys.exit()
lbrun = socket.socket(socket.AF_UNIX)
lbrun.connect(os.environ["LB_SOCKET"])
def tell(**line):
    lbrun.sendall(json.dumps(line).encode() + b"\n")
folder = os.environ["LB_CHECKPOINT_DIR"] + "/step-00000004"
for step in range(1, 6):
    tell(type="step", step=step, loss=1)
os.rename(os.environ["LB_RUN_DIR"] + "/ready", folder)
tell(type="checkpoint", step=4, path=folder)
print("E1127 failed (exitcode: -9) local_rank: 1 (pid: 7) of binary: python3", file=sys.stderr, flush=True)
while True:
    time.sleep(0.1)
    tell(type="step", step=1, loss=1)
END
attempt 1 "[\"python3\",\"$T/again.py\",\"$T/seen\"]" 1
exits 0 "ranks that are started again behind a checkpoint" run
is "$(cat "$T/seen")" step-00000004 "are ended, and start from that"
like "$(spool ranks_again)" 'its ranks were started again, behind the checkpoint of step 4' "which is told"
like "$(spool launch_end crash)" 'rank 1: killed by signal 9' "the rank's end is the cause"

# So does a loop of a batch script.
fresh
checkpoint 4
mv "$C/step-00000004" "$R/ready"
sed -i '/^print/d; s/^folder = .*/&\nif os.path.exists(folder): time.sleep(0.2); tell(type="step", step=1, loss=1); time.sleep(60)/; s/^while True:/raise RuntimeError("flaky")/; /^    time.sleep(0.1)/,$d' "$T/again.py"
printf '#!/bin/sh\nuntil python3 "$1" "$2"; do :; done\n' >"$R/slurm_script"
chmod +x "$R/slurm_script"
attempt 1 "[\"$R/slurm_script\",\"$T/again.py\",\"$T/seen\"]" 1
sed -i 's|}$|,"is_script":true}|' "$F/attempt.json"
exits 0 "a script that starts its trainer again behind a checkpoint" run
is "$(cat "$T/seen")" step-00000004 "goes on from that"

# How many steps there are is told by rank 0; what other ranks tell of theirs takes nothing back.
fresh
cat >"$R/slurm_script" <<END
#!/usr/bin/env python3
import os, signal, sys, time
sys.path.insert(0, "$src/docs")
import lb_client as lb
signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))
lb.send("hello", rank=0, world=2, pid=os.getpid())
lb.send("step", step=3, target_step=9, loss=1.0)
lb.send("step", step=3, rank=1, step_ms=5)
open("$T/seen", "w").write("up")
time.sleep(300)
END
chmod +x "$R/slurm_script"
attempt 1 "[\"$R/slurm_script\"]"
sed -i 's|}$|,"is_script":true}|' "$F/attempt.json"
start
wait_for '[ -s "$T/seen" ]' 20
kill -USR1 $lbrun_pid
wait $lbrun_pid
is "$(field cause)" timeout "a script that ends at the signal before its limit, with steps left, is not done"

# kill -9 of either half of lbrun
for half in guard shepherd; do
	fresh
	attempt 1 "[\"python3\",\"$T/stubborn.py\",\"$T/seen\"]"
	start
	wait_for '[ "$(cat "$T/seen" 2>/dev/null)" = xxx ]' 10
	victim=$lbrun_pid
	[ $half = guard ] || victim=$(sed -n 's/.*"pid":\([0-9]*\).*/\1/p' "$F/claim")
	kill -KILL "$victim"
	wait $lbrun_pid 2>/dev/null
	ok "kill -9 of the $half: nobody is left" wait_for nobody 5
	is "$(field cause)" lost "nobody can say why"
	is "$(tail -c 1 "$F/spool.jsonl" | od -An -c | tr -d ' ')" '\n' "the spool is whole"
done

# --- the socket ------------------------------------------------------------------------------
fresh
cat >"$T/garbage.py" <<'END'
import json, os, socket
def talk():
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ["LB_SOCKET"])
    return s, s.makefile("rb")
s, f = talk()
def ask(line):
    s.sendall(line + b"\n")
    return json.loads(f.readline())
def check(what, condition):
    print("yes" if condition else "NO", what, flush=True)
good = b'{"type":"step","step":1,"loss":2.5}'
check("good", ask(good)["type"] == "ack")
for line in (b"garbage", b"{", b"\xff\xfe", b"\x00", b'{"type":"step"}', b'{"type":"step","step":1e999}',
             b"[" * 60000, b'{"type":"step","step":1,"x":' + b"[" * 40 + b"]" * 40 + b"}",
             b'{"type":"step","step":1,"step":2}', b'{"type":"checkpoint","step":1,"path":""}'):
    check(repr(line[:20]), ask(line)["type"] == "error")
deep = b'{"type":"step","step":1,"x":' + b"[" * 31 + b"]" * 31 + b"}"
answer = ask(deep)
check("one level too deep for the spool", answer["type"] == "error")
many = b'{"type":"step","step":1,"x":[' + b"1e300," * 9000 + b"1]}"
check("a line that grows in the spool", ask(many)["type"] in ("ack", "error"))
check("good again", ask(good)["type"] == "ack")
s.sendall(b"x" * 70000)
check("too long", json.loads(f.readline())["type"] == "error")
try:
    gone = f.readline() == b""
except ConnectionResetError:
    gone = True
check("dropped", gone)
s, f = talk()
check("a new connection", ask(good)["type"] == "ack")
others = []
for i in range(100):
    o = socket.socket(socket.AF_UNIX)
    o.connect(os.environ["LB_SOCKET"])
    others.append(o)
check("a hundred more", ask(good)["type"] == "ack")
for o in others:
    o.close()
deaf = None
while deaf is None:
    d, _ = talk()
    try:
        for i in range(20000):
            d.sendall(good + b"\n")	# never reads an answer
        deaf = d
    except OSError:
        d.close()
s.close()
s, f = talk()
check("one that never reads harms nobody", ask(good)["type"] == "ack")
s.close()
s, f = talk()
# Far more than is read at a time, and the end at once.
s.sendall((b'{"type":"step","step":8,"text":"' + b"x" * 1000 + b'"}\n') * 150 +
          b'{"type":"step","step":7}\n{"type":"bye","status":"done"}\n')
os._exit(0)
END
attempt 1 "[\"python3\",\"$T/garbage.py\"]"
run
is "$(grep -c '\] NO' "$F/out.log")" 0 "garbage on the socket is answered, and harms nothing else"
is "$(grep -c '\] yes' "$F/out.log")" 19 "all of it"
[ "$(grep -c '\] yes' "$F/out.log")" = 19 ] || diag "$(cat "$F/out.log")"
like "$(spool '"step":7')" '"from":"trainer"' "last words before the end are read"
cat >"$T/whole.py" <<'END'
import json, sys
for number, line in enumerate(open(sys.argv[1], "rb"), 1):
    assert line.endswith(b"\n") and json.loads(line)["seq"] == number, number
END
ok "the spool is whole and numbered without gaps" python3 "$T/whole.py" "$F/spool.jsonl"

fresh
cat >"$T/client.py" <<END
import os, sys
sys.path.insert(0, "$src/docs")
import lb_client as lb
assert lb.send("hello", rank=0, world=1, pid=os.getpid()) > 0
assert lb.send("phase", name="train")
assert lb.send("step", step=1, loss=2.5, tokens_per_s=10.0)
if lb.send("nonsense") is not None or "nonsense" not in lb.errors[0]:
    sys.exit(5)
lb.send("step", step=float("nan"))	# nor does what cannot be said
open("$T/seen", "w").write("up")
step = 1
while not lb.asked("stop"):
    step += 1
    lb.send("step", step=step)
lb.send("bye", status="stopped")
END
attempt 1 "[\"python3\",\"$T/client.py\"]" 0 30000
start
wait_for '[ -s "$T/seen" ]' 10
order stop
kill -TERM $lbrun_pid
wait $lbrun_pid
is "$(field cause) $(field exit_code)" "killed 0" \
	"docs/lb_client.py reports, hears {\"type\":\"stop\"} and ends"
ok "the client is at most 20 lines" [ "$(wc -l <"$src/docs/lb_client.py")" -le 20 ]
ok "outside lbrun it does nothing" env -u LB_SOCKET python3 -c "
import sys; sys.path.insert(0, '$src/docs')
import lb_client; assert lb_client.send('step', step=1) is None and not lb_client.asked('stop')"

fresh
checkpoint 5
cat >"$T/told.py" <<END
import os, sys
sys.path.insert(0, "$src/docs")
import lb_client as lb
lb.send("checkpoint", step=5, path="checkpoints/step-00000005")
lb.send("checkpoint", step=6, path="$C/step-00000006")
END
attempt 1 "[\"python3\",\"$T/told.py\"]"
run
like "$(spool checkpoint_valid '"step":5')" '"valid":true' "a checkpoint that is told is looked at"
like "$(spool checkpoint_valid '"step":6')" '"valid":false' "and not believed"

# lbd is told that the spool grew.
fresh
cat >"$T/lbd.py" <<'END'
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("up", flush=True)
s.settimeout(20)
c, _ = s.accept()
sys.stdout.write(c.makefile().readline())
END
python3 "$T/lbd.py" "$T/lbd.sock" >"$T/poked" &
lbd_py=$!
wait_for '[ -s "$T/poked" ]' 10
attempt 1 '["true"]'
sed "s|\"lbd_socket\":null|\"lbd_socket\":\"$T/lbd.sock\"|" "$F/attempt.json" >"$T/x" &&
	mv "$T/x" "$F/attempt.json"
run
wait $lbd_py
is "$(sed 1d "$T/poked" | json args.run)" r1 "lbd is poked"

# An older attempt that left no record and may live on another host is given a moment, not for ever.
fresh
attempt 2 '["true"]'
mkdir -p "$R/attempts/1"
printf '{"version":1,"token":"%032d","host":"elsewhere","boot_id":"x","pid":1}' 1 \
	>"$R/attempts/1/claim"
began=$(now_ms)
exits 0 "an older attempt that may live" run
took=$(($(now_ms) - began))
ok "is waited for" [ $took -ge 4900 ]
ok "but not for ever" in_time $took 9000

# A folder too deep for a socket's address.
fresh
deep=$R/attempts/1/$(printf 'd%.0s' $(seq 100))
attempt 1 "[\"python3\",\"$T/told.py\"]"
mkdir -p "$deep"
mv "$F/attempt.json" "$deep"
F=$deep
exits 0 "a folder too deep for a socket" env TMPDIR="$T" "$B/lbrun" --attempt "$F"
ok "nothing is left of it elsewhere" sh -c "! ls -d $T/lb.??????"

done_testing
