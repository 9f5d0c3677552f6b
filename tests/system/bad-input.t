#!/bin/sh
# SPDX-License-Identifier: MIT
# Whatever is typed or sent: one clear line, the documented exit status, and nothing half-done.
. "$(dirname "$0")/lib.sh"

lbd_start

# refused STATUS ERE NAME COMMAND…: the status, one line on stderr that matches, nothing on stdout.
refused() {
	want=$1 pattern=$2 name=$3
	shift 3
	"$@" >"$T/out" 2>"$T/err"
	status=$?
	if [ "$status" = "$want" ] && [ ! -s "$T/out" ] && [ "$(wc -l <"$T/err")" = 1 ] &&
		grep -Eq -e "$pattern" "$T/err"; then
		passed "$name"
	else
		failed "$name"
		diag "status $status, expected $want; stderr should match $pattern:"
		diag "$(cat "$T/err" "$T/out")"
	fi
}

spec() {	# NAME, text on stdin
	cat >"$T/$1.toml"
}

# --- specs ----------------------------------------------------------------------------------
spec typo <<'EOF_SPEC'
[run]
command = ["true"]

[restart]
backof_first = "60s"
EOF_SPEC
refused 2 'typo.toml:5: restart.backof_first: .*"backoff_first"' "a typo in a key: file, line, nearest key" \
	lbctl submit "$T/typo.toml"

spec section <<'EOF_SPEC'
[run]
command = ["true"]
[slrum]
nodes = 2
EOF_SPEC
refused 2 'section.toml:3: .*slrum' "an unknown section" lbctl submit "$T/section.toml"

spec type <<'EOF_SPEC'
[run]
command = "true"
EOF_SPEC
refused 2 'type.toml:2: run.command: ' "a value of the wrong type" lbctl submit "$T/type.toml"

spec range <<'EOF_SPEC'
[run]
command = ["true"]
[slurm]
nodes = -3
EOF_SPEC
refused 2 'range.toml:4: slurm.nodes: ' "a value out of range" lbctl submit "$T/range.toml"

spec syntax <<'EOF_SPEC'
[run]
command = ["true"
EOF_SPEC
refused 2 'syntax.toml:[0-9]+: ' "a file that is no TOML" lbctl submit "$T/syntax.toml"

printf '' | spec empty
refused 2 'empty.toml' "an empty file" lbctl submit "$T/empty.toml"

printf '[run]\ncommand = ["a\377b"]\n' | spec latin1
refused 2 'latin1.toml' "a file that is not UTF-8" lbctl submit "$T/latin1.toml"

printf '\357\273\277#!/bin/sh\ntrue\n' >"$T/mark.sh"
refused 2 'mark.sh:1: a byte order mark' "a script behind a byte order mark" lbctl submit "$T/mark.sh"

refused 2 'standard input: is longer than 512 KiB' "more than a script can be from standard input" \
	sh -c 'head -c 600000 /dev/zero | lbctl submit -'
refused 2 'standard input: nothing to run' "nothing from standard input" sh -c 'lbctl submit - </dev/null'

printf '[model]\nname = "llama"\nflavour = "x"\n' | spec training
refused 2 'training.toml:3: model.flavour: .*"flavor"' "a typo in a training config, found by lbworker" \
	lbctl submit "$T/training.toml"

refused 2 'nowhere.toml' "a missing file" lbctl submit "$T/nowhere.toml"
refused 2 '--nme; did you mean --name' "an option that neither lbctl nor sbatch has" lbctl submit --nme x -- true
refused 2 'unknown option -7' "a letter likewise" lbctl submit -7 x -- true
refused 2 '' "a folder for a file" lbctl submit "$T"
refused 2 '' "neither file nor command" lbctl submit
refused 2 'no_such_key' "--set of an unknown key" lbctl submit --set restart.no_such_key=1 -- true
refused 2 'section.key=value' "--set without a value" lbctl submit --set nonsense -- true
in_removed() { # COMMAND... in a folder that is no more
	(mkdir "$T/removed" && cd "$T/removed" && rmdir "$T/removed" && exec "$@")
}
exits 0 "a current folder that was removed does not matter where another is given" \
	in_removed lbctl submit --dry-run --set "run.workdir=$T" -- true
refused 2 'run.workdir: in which folder.*--set run.workdir=' "else it is asked for" \
	in_removed lbctl submit -- true
refused 2 'snapshot: the current folder cannot be told' "as it is for a copy of the code" \
	in_removed lbctl submit --snapshot --set "run.workdir=$T" -- true
refused 2 'run.workdir: .*no such folder' "a workdir that is not there" \
	lbctl submit --set "run.workdir=$T/none" -- true
refused 2 'env_file' "an env_file that is not there" \
	lbctl submit --set "run.env_file=$T/none" -- true

# --- names ----------------------------------------------------------------------------------
newline='a
b'
long=$(printf '%0300d' 0)
invalid=$(printf 'a\377b')
for name in '../x' 'a/b' ';' 'a;b' '$(id)' '-x' '.hidden' 'a..b' '' 'ALL' "$newline" "$long" "$invalid"; do
	refused 2 '' "the name $(printf %.12s "$name" | tr -c 'A-Za-z0-9./;$()-' '?') is refused" \
		lbctl submit "--name=$name" -- true
done
mkdir "$T/$invalid" && printf '#!/bin/sh\ntrue\n' >"$T/$invalid/job.slurm"
refused 2 "run.script: .*is not UTF-8.*lbctl submit - <" "a script in a folder of such a name" \
	lbctl submit "$T/$invalid/job.slurm"
refused 3 'no such run' "a run that is not there" lbctl status nobody
refused 2 '' "a name that can be no run's" lbctl status '../../etc/passwd'
refused 2 'did you mean' "a mistyped command" lbctl statsu

# --- nothing half-done ----------------------------------------------------------------------
is "$(ls "$LB_HOME/runs")" "" "no folder of a refused run is left"
is "$(lbctl ls --all --json | json '#')" 0 "no run of it is in the ledger"

printf '#!/bin/sh\n# f\374r uns\necho "f\374r uns"\n' >"$T/latin1.sh"
ok "a script in another encoding is taken" lbctl submit --name latin "$T/latin1.sh"
run_reaches latin completed 30
ok "as it is" cmp "$T/latin1.sh" "$LB_HOME/runs/latin/slurm_script"
ok "a script from standard input is taken" sh -c 'lbctl submit --name piped - <"$1"' sh "$T/latin1.sh"
run_reaches piped completed 30
ok "as it is, too" cmp "$T/latin1.sh" "$LB_HOME/runs/piped/slurm_script"

# bash's <(...), as people give it to sbatch
mkfifo "$T/stream"
for name in latin1.sh training; do
	[ $name = latin1.sh ] || printf '[run]\ncommand = ["true"]\n' >"$T/$name"
	cat "$T/$name" >"$T/stream" &
	ok "what a program writes is taken ($name)" timeout 20 lbctl submit --name "of-$name" "$T/stream"
	kill $! 2>/dev/null
	run_reaches "of-$name" completed 30
done
ok "as it is, likewise" cmp "$T/latin1.sh" "$LB_HOME/runs/of-latin1.sh/slurm_script"
refused 2 'stream: is longer than 512 KiB' "but not without end" \
	sh -c 'head -c 600000 /dev/zero >"$1/stream" & timeout 20 lbctl submit "$1/stream"' sh "$T"
lbctl submit --name taken -- true >/dev/null
refused 4 'taken' "a name that is taken" lbctl submit --name taken -- true
run_reaches taken completed 20
refused 2 'name a run' "wait without a run" lbctl wait
refused 2 'diff: name another run; usage: ' "diff with one" lbctl diff r1
refused 2 'compare: usage: lbctl compare GROUP' "compare without its group, which is no run" lbctl compare
refused 2 'notify: usage: lbctl notify test' "notify without a word, which is no run" lbctl notify
refused 2 'cron: --json is for ls' "JSON of what prints none" lbctl cron run nightly --json
refused 2 'daemon: --json is for status' "or of daemon start" lbctl daemon start --json
refused 2 'daemon: --in-slurm is for start' "a job for what starts nothing" lbctl daemon status --in-slurm
refused 2 'daemon: --follow is for logs' "to follow what is no log" lbctl daemon status --follow
refused 2 'daemon: --timeout is for start, stop, restart' "a time for what does not wait" \
	lbctl daemon status --timeout 5s
refused 2 'help: "x" is too much' "help for two at once" lbctl help submit x
refused 2 'goodput: --csv and --json' "two forms at once" lbctl goodput ALL --csv --json
ok "restart of a finished run" lbctl restart taken
run_reaches taken completed 20

refused 2 'logs: --json says where' "to follow places of files" lbctl logs taken --json -f
is "$(lbctl logs taken --json --attempt 2 | json '#')" 1 "the place of one attempt"

# --- arguments, byte for byte --------------------------------------------------------------
cat >"$T/show.py" <<'PY'
import os, sys
open(os.environ["LB_RUN_DIR"] + "/argv", "wb").write(b"\0".join(os.fsencode(a) for a in sys.argv[1:]))
PY
bytes=$(printf '\377\376')
ok "submitted with hostile arguments" lbctl submit --name argv -- python3 "$T/show.py" \
	'$(touch pwned)' '`id`' "a'b\"c" 'x y' "$newline" '' '--name' '-' ';' '*' "$bytes" 'é☃'
run_reaches argv completed 20
printf '%s\0%s\0%s\0%s\0%s\0%s\0%s\0%s\0%s\0%s\0%s\0%s' \
	'$(touch pwned)' '`id`' "a'b\"c" 'x y' "$newline" '' '--name' '-' ';' '*' "$bytes" 'é☃' >"$T/want"
ok "they reached the command byte for byte" cmp "$T/want" "$LB_HOME/runs/argv/argv"

# --- the control socket ------------------------------------------------------------------------
cat >"$T/talk.py" <<'PY'
import socket, sys
home, what = sys.argv[1:]
s = socket.socket(socket.AF_UNIX)
s.settimeout(20)
s.connect(home + "/lbd.sock")
lines = {
    "garbage": b"\x00\xff\x13garbage\n",
    "deep": b"[" * 100 + b"]" * 100 + b"\n",
    "twice": b'{"v":1,"v":1,"verb":"ls"}\n',
    "future": b'{"v":99,"verb":"ls"}\n',
    "verb": b'{"v":1,"verb":"format_disk"}\n',
    "args": b'{"v":1,"verb":"ls","args":[]}\n',
    "huge": b'"' + b"x" * (2 << 20) + b'"\n',
}
try:
    s.sendall(lines[what])
except BrokenPipeError:
    pass
print(s.makefile("rb").readline().decode())
PY
for what in garbage deep twice future verb args huge; do
	like "$(python3 "$T/talk.py" "$LB_HOME" $what)" '"ok":false,"error":"usage","text":"[^"]+' \
		"$what on the control socket"
done
ok "lbd serves on" lbctl ls

# --- lbd itself -----------------------------------------------------------------------------
refused 4 "another lbd is at work here \(pid $lbd_pid on " "a second lbd is refused, the holder named" \
	lbd --foreground --home "$LB_HOME"
refused 2 'no such option' "an unknown option of lbd" lbd --frobnicate
lbd_stop
is $? 0 "lbd ends with status 0 on SIGTERM"
refused 5 'start it with: lbctl daemon start' "without lbd" lbctl ls
printf '[poll]\nintervall = "1s"\n' >"$LB_HOME/lbd.toml"
refused 2 'lbd.toml:2: poll.intervall: .*"interval"' "a typo in lbd.toml" \
	lbd --foreground --home "$LB_HOME"
refused 2 'lbd.toml:2: ' "told by --check-config too" lbd --check-config --home "$LB_HOME"
while read -r section key value; do
	printf '[%s]\n%s = %s\n' "$section" "$key" "$value" >"$LB_HOME/lbd.toml"
	refused 2 "lbd.toml:2: $section.$key: " "$section.$key = $value: where, and what is wrong" \
		lbd --check-config --home "$LB_HOME"
done <<'END'
team group "no-such-group"
team folder "/tmp"
runs folder "here"
daemon partition "two words"
daemon mem "16GB"
daemon time "1m"
local mem "lots"
cron daily "every morning"
cron time_zone "Mars/Phobos"
notify on ["faild"]
notify webhook "mail:me"
slurm plugin_options ["mem="]
END
rm "$LB_HOME/lbd.toml"

# --- too few descriptors, a path too long ---------------------------------------------------------
for files in 8 20 40; do
	# shellcheck disable=SC3045,SC2016 # dash knows -n
	refused 9 "lbd: $files file descriptors are too few: lbd needs 48, .*ulimit -n" "$files descriptors" \
		sh -c 'ulimit -n "$1" && exec lbd --foreground --home "$2"' sh "$files" "$LB_HOME"
done
long=$T$(printf '/%0200d' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
for words in "lbd --foreground" "lbd --home $long --foreground" "lbctl ls" "lbctl --home $long ls" \
	"lbctl daemon start" "lbctl recover" "lbctl doctor" "lbctl submit -- true"; do
	# shellcheck disable=SC2086 # words
	refused 2 "LB_HOME: \"/.*\" has 30[0-9][0-9] characters, 480 are allowed" "${words%% /*}: a home of 3,000" \
		env LB_HOME="$long" $words
done
broken=$(printf '%s/a\nb' "$T")
for words in "lbctl recover" "lbctl daemon start" "lbctl doctor" "lbctl ls"; do
	# shellcheck disable=SC2086 # words
	refused 2 'LB_HOME: a line break in its path' "$words: a line break" env LB_HOME="$broken" $words
done
refused 2 "the attempt's folder \"/.*\" has 30[0-9][0-9] characters, 2000 are allowed" \
	"lbrun: an attempt's folder of 3,000" lbrun --attempt "$long"
refused 2 "the attempt's folder has a line break" "and with a line break" lbrun --attempt "$broken"
refused 2 'no run: LB_HOME: ".*" has 30[0-9][0-9] characters' "lbworker looks for a run: a home of 3,000" \
	env LB_HOME="$long" lbworker eval some-run "$T/none.tokens"
refused 2 'no run: LB_HOME: a line break' "and with a line break" \
	env LB_HOME="$broken" lbworker eval some-run "$T/none.tokens"

far=$T/$(printf '%0100d' 0)/$(printf '%0100d' 1)
mkdir -p "$far"
LB_HOME=$far
lbd_start
ok "a home whose socket path is longer than the system's limit" lbctl submit --name far -- true
run_reaches far completed 20
ok "a run from a folder that was removed" in_removed lbctl submit --name near --set "run.workdir=$T" -- true
run_reaches near completed 20
done_testing
