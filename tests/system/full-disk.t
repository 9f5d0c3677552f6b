#!/bin/sh
# SPDX-License-Identifier: MIT
# A disk that is full for a while, below lbrun's spool: a trainer goes on, what it told meanwhile is
# written in its turn, once; and one that dies of it is started again. Below lbd: no run is given
# up.
. "$(dirname "$0")/lib.sh"
. "$suite/attempt.sh"

cat >"$T/whole.py" <<'END'
import json, sys
for number, line in enumerate(open(sys.argv[1], "rb"), 1):
    assert line.endswith(b"\n") and json.loads(line)["seq"] == number, number
END

# A file system of its own that is full for a while, if this user may make one; else a limit.
cat >"$T/full.py" <<END
import os, sys
sys.path.insert(0, "$src/docs")
import lb_client as lb
acks = kept = 0
while not os.path.exists("$T/enough"):
    acks += 1
    if not lb.send("step", step=acks, text="x" * 100):
        kept += 1
        assert "kept" in lb.errors[0], lb.errors
    if kept == 50: open("$T/met", "w").close()
lb.send("bye", status="done")
open("$T/seen", "w").write("%d %d" % (acks, kept))
END
fresh
cat >"$T/fill.sh" <<'END'
# the file system of the attempt is full until the trainer has met it; lbrun's exit status is ours
mount -t tmpfs -o size=2m tmpfs "$F" && cp "$T/attempt.json" "$F/" || exit 99
sh -c 'until grep -q "\"step\":20[,}]" "$F/spool.jsonl"; do sleep 0.05; done
	dd if=/dev/zero of="$F/fill" bs=64k
	dd if=/dev/zero of="$F/fill" bs=1 oflag=append conv=notrunc
	until [ -e "$T/met" ]; do sleep 0.05; done
	[ -z "$CRASH" ] || until [ -e "$T/crashed" ]; do sleep 0.05; done
	rm "$F/fill"
	touch "$T/enough"' >"$T/fill.log" 2>&1 &
SLURMD_NODENAME=n1 "$B/lbrun" --attempt "$F" >"$T/full.log" 2>&1
status=$?
wait
mkdir -p "$T/kept" && cp "$F/spool.jsonl" "$F/exit.json" "$T/kept/"
exit $status
END
full() {	# TRAINER: in a mount namespace
	rm -rf "$T/met" "$T/enough" "$T/kept" "$T/crashed"
	attempt 1 "[\"python3\",\"$1\"]" "${2:-0}"
	mv "$F/attempt.json" "$T/attempt.json"
	export F T
	unshare -m sh "$T/fill.sh"
}
if unshare -m true 2>/dev/null; then
	CRASH=
	export CRASH
	exits 0 "a disk that is full for a while: the trainer runs on, to its end" full "$T/full.py"
	read -r steps kept <"$T/seen"
	ok "it met it ($steps lines, $kept of them kept in memory)" [ "$kept" -ge 50 ]
	is "$(grep -o '"type":"step","step":[0-9]*' "$T/kept/spool.jsonl" | sed 's/.*://' | md5sum)" \
		"$(seq "$steps" | md5sum)" "every line is there, in order, exactly once"
	ok "and numbered without gaps" python3 "$T/whole.py" "$T/kept/spool.jsonl"
	like "$(cat "$T/full.log")" 'the spool can be written again' "both are said"

	# one that dies of it, as others do
	cat >"$T/dies.py" <<-END
		import os, sys
		sys.path.insert(0, "$src/docs")
		import lb_client as lb
		launch = os.environ["LB_LAUNCH"]
		if launch == "3": sys.exit(0)
		if launch == "2": sys.exit(1)	# of its own
		step = 0
		while lb.send("step", step=step): step += 1
		open("$T/met", "w").close()
		open("$T/crashed", "w").close()
		sys.exit(1)
	END
	CRASH=yes
	fresh
	exits 0 "two launches that die, where one may: that of the full disk does not count" full "$T/dies.py" 1
	is "$(grep '"type":"launch_end"' "$T/kept/spool.jsonl" | sed 's/.*"cause":"\([a-z]*\)".*/\1/' | xargs)" \
		"error error completed" "a third is made"
	is "$(grep -c '"counts":false' "$T/kept/spool.jsonl")" 1 "lbd is told which does not"

	# Where checkpoints go no file can be made, as with a quota: the spool lies elsewhere.
	cat >"$T/saves.py" <<-END
		import os
		with open(os.environ["LB_RUN_DIR"] + "/launches", "a") as f: f.write("x")
		open(os.environ["LB_CHECKPOINT_DIR"] + "/model.pt", "w").write("x")
	END
	cat >"$T/inodes.sh" <<-'END'
		mount -t tmpfs -o nr_inodes=2 tmpfs "$C" && touch "$C/fill" || exit 99
		sh -c 'lbrun=$PPID
			until grep -q no_space "$F/spool.jsonl"; do kill -0 $lbrun || exit; sleep 0.05; done; sleep 2
			rm "$C/fill"; mount -o remount,nr_inodes=9 "$C"' 2>/dev/null &
		exec "$B/lbrun" --attempt "$F" >"$T/inodes.log" 2>&1
	END
	fresh
	attempt 1 "[\"python3\",\"$T/saves.py\"]" 1
	export C R
	exits 0 "checkpoints that cannot be written end no run" unshare -m sh "$T/inodes.sh"
	is "$(cat "$R/launches")" xx "the next launch waits until they can"
	like "$(grep '"no_space"' "$F/spool.jsonl")" 'checkpoints.*No space left' "lbd is told"
else
	diag "no mount namespaces for this user: a limit instead of a full disk"
fi

fresh
cat >"$T/most.py" <<END
import os, sys
sys.path.insert(0, "$src/docs")
import lb_client as lb
acks = kept = lost = 0
for step in range(12000):
    if lb.send("step", step=step): acks += 1
    elif "is kept" in lb.errors[0]: kept += 1
    else: lost += 1
open("$T/seen", "w").write("%d %d %d" % (acks, kept, lost))
os.kill(os.getppid(), 15)	# else lbrun waits for room
END
attempt 1 "[\"python3\",\"$T/most.py\"]"
sh -c 'ulimit -f 16; exec "$@"' sh env SLURMD_NODENAME=n1 \
	"$B/lbrun" --attempt "$F" >"$F/out.log" 2>&1
read -r acks kept lost <"$T/seen"
ok "a spool that cannot grow: what lbrun keeps has a bound ($kept), beyond it lines are refused ($lost)" [ \
	"$acks" -gt 0 -a "$kept" -gt 1000 -a "$kept" -le 10000 -a "$lost" -gt 0 ]
is "$(grep -c '"from":"trainer"' "$F/spool.jsonl")" "$acks" "what was acknowledged is there, and no more"
ok "what is there is whole" python3 "$T/whole.py" "$F/spool.jsonl"
like "$(cat "$F/out.log")" 'too many lines wait for the spool' "that it overflowed is said"
like "$(cat "$F/out.log")" 'lines could not be written to the spool: lost' "and what was lost"

# lbd itself meets a full disk when it prepares an attempt: the run waits, and is not given up.
need strace strace
need sqlite3 sqlite3
LB_DEBUGGER="strace -f -qq -o $T/strace.out -e trace=mkdir -e inject=mkdir:error=ENOSPC:when=1..2
	-P $LB_HOME/runs/waits/attempts/1"
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
lbd_start
exits 0 "a run is accepted" lbctl submit --name waits --set run.scheduler=local -- true
run_reaches waits completed 30
is "$(run_state waits)" completed "a run whose attempt met a full disk is tried again"
like "$(grep -c INJECTED "$T/strace.out")" '^2$' "the disk was full for it, twice"
is "$(lbctl status waits --json | json attempts.#)" 1 "and that took it no attempt"

# A ledger is made anew, and there is room for its log, but none to bring that into the file: the
# file alone, which is put in place, would be a part of it. First without a fault, to count the
# writes.
lbctl daemon stop >/dev/null	# strace would not pass a signal on
lbd_stop
db=$LB_HOME/ledger.db
mv "$db" "$T/first.db"
before=$(cksum <"$db.bak")
recover() { strace -f -qq -y -o "$T/recover.out" -e trace=pwrite64 "$@" -P "$db.new" lbd --recover --home "$LB_HOME"; }
exits 0 "recover" recover -P "$db.new-wal"
like "$out" 'made anew: 1 runs' "finds the run"
writes=$(sed '/-wal>/q' "$T/recover.out" | grep -c 'pwrite64(.*/ledger.db.new>')
rm "$db"
exits 9 "no room to bring the log into the new file" recover -e "inject=pwrite64:error=ENOSPC:when=$((writes + 1))+"
like "$err" 'ledger.db.new: disk full' "is said"
ok "nothing is put in place" [ ! -e "$db" ]
is "$(cksum <"$db.bak")" "$before" "the backup stays as it is"
exits 0 "with room again it is made" lbctl recover
is "$(sqlite3 -readonly "$db" 'SELECT name, state FROM runs')" "waits|completed" "and whole"

# A ledger that takes nothing for a while: who asks lbd is told.
need prlimit util-linux
LB_DEBUGGER=
lbd_start
lbctl submit --name told --set run.scheduler=local -- \
	sh -c 'i=0; until [ -e go ]; do i=$((i + 1)); echo "step $i/9 loss 1"; sleep 0.1; done' >/dev/null
run_reaches told running 20
prlimit --pid "$lbd_pid" --fsize=1:unlimited
wait_for 'lbctl daemon status | grep -q "^ledger  *cannot be written since .*ago: .*ledger.db: "' 20
for asked in ls "status told"; do
	# shellcheck disable=SC2086 # words
	exits 0 "lbctl $asked" lbctl $asked
	like "$err" '^lbctl: the ledger cannot be written since .* ago (.*ledger.db: .*): runs are shown as they were then$' "says so, too"
done
prlimit --pid "$lbd_pid" --fsize=unlimited
touch go
run_reaches told completed 20
unlike "$(lbctl daemon status)$(lbctl ls 2>&1)" 'ledger' "and that it is over"
lbctl daemon stop >/dev/null
lbd_stop

# As many processes as one may have (ulimit -u): libuv would abort when it needs its threads first.
exits 9 "no thread can be had" timeout 60 strace -f -qq -o "$T/threads.out" -e trace=clone3,clone \
	-e inject=clone3,clone:error=EAGAIN lbd --foreground --home "$LB_HOME"
like "$err" 'no thread can be started: .*ulimit -u' "lbd says so when it is started"

# sshfs and exFAT have none.
exits 9 "a file system without sockets" timeout 60 strace -f -qq -o "$T/bind.out" -e trace=bind \
	-e inject=bind:error=EPERM lbd --foreground --home "$LB_HOME"
like "$err" 'lbd.sock: .*takes no sockets: set LB_HOME' "lbd says what to do"

done_testing
