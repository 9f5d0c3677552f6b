#!/bin/sh
# SPDX-License-Identifier: MIT
# What people type in their first hour, and how they get it wrong: each answer says what to do next.
. "$(dirname "$0")/lib.sh"

# terminal COLUMNS COMMAND…: what it draws there, without colours; nothing is typed but the end.
cat >"$T/terminal.py" <<'PY'
import os, pty, re, struct, sys, fcntl, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 15, int(sys.argv[1]), 0, 0))
    os.environ["TERM"] = "xterm"
    os.environ.pop("COLUMNS", None)
    os.execvp(sys.argv[2], sys.argv[2:])
os.write(fd, b"\4\4")
seen = b""
try:
    while part := os.read(fd, 4096):
        seen += part
except OSError:
    pass
sys.stdout.write(re.sub(r"\x1b\[[0-9;]*[a-zA-Z]", "", seen.decode()).replace("\r", ""))
PY
terminal() { python3 "$T/terminal.py" "$@"; }

exits 5 "a folder that is not there" env LB_HOME="$T/typo" lbctl ls
like "$err" "$T/typo \(there is no such folder\)" "is said to be the trouble"
exits 5 "nor one that --home names" lbctl --home "$T/two words" ls
like "$err" "start it with: lbctl --home '$T/two words' daemon start\$" "for which the advice is, too"
exits 5 "daemon status of it" lbctl daemon status --home "$T/two words"
like "$out" "to do +lbctl --home '$T/two words' daemon start " "likewise"
lbd_start
exits 0 "no runs yet" lbctl ls --all
like "$err" "no runs yet; start one with: lbctl submit" "and how to get one"
echo 'import torch' >"$T/train.py"
exits 2 "a program is no run spec" lbctl submit "$T/train.py" -- --lr 3e-4
like "$err" "to submit a command, write: lbctl submit -- python $T/train.py" \
	"what was meant is shown"
printf '#!/bin/sh\n#SBATCH --time=5\n' >"$T/train.slurm"
exits 0 "options of sbatch, typed as for sbatch" lbctl submit --dry-run --json --time 10 -HJ called -n 1 "$T/train.slurm"
is "$(printf %s "$out" | json resources.time_limit) $(printf %s "$out" | json resources.num_tasks)" "10 1" "mean the same"
exits 2 "an argument of a script" lbctl submit "$T/train.slurm" fast
like "$err" "^lbctl: fast: no such file; .*: lbctl submit $T/train.slurm -- fast$" "stands behind --"
for words in "-n1 : -n2 --wrap true" "-n1 $T/train.slurm : -n2 $T/train.slurm"; do
	# shellcheck disable=SC2086 # words
	exits 2 "a job of several parts: $words" lbctl submit $words
	like "$err" 'heterogeneous jobs \(":"\) are not supported: a run is one job; submit each part' "is called so"
done
exits 2 "one without its value" lbctl submit "$T/train.slurm" --time
like "$err" "--time: needs a value" "is refused"
exits 0 "the end of a command" lbctl submit --name a-rather-long-name-of-22 --follow -- true
like "$out" "created  \(by $(id -un)\)" "who submitted it"
exits 3 "runs of a group that has none" lbctl ls --all --group none
like "$err" "no runs of this group" "is another thing than no runs"
exits 0 "kill what does not live" lbctl kill --yes ALL
like "$err" "ALL: there is no run to kill" "silence would not tell whether it was done"
exits 3 "kill of a group that has none" lbctl kill --yes none@group
like "$err" "none@group: there is no run to kill" "is a mistake, other than ALL of nothing"
exits 3 "a glob that means nothing" lbctl stop --dry-run 'none-*'
exits 3 "ls of a glob that means nothing" lbctl ls 'none-*'
like "$err" "no such runs in the last 7 days; --all shows older ones" "is said"
exits 3 "for programs, too" lbctl ls --json 'none-*'
is "$out" "[]" "with an empty list"
exits 0 "ls of a glob" lbctl ls 'a-r*22'
like "$out" "a-rather-long-name-of-22" "lists what it means"
for word in cancel:kill list:ls resume:restart watch:follow ps:ls squeue:ls sbatch:submit; do
	exits 2 "${word%:*} is no command" lbctl "${word%:*}"
	like "$err" "there is no command \"${word%:*}\"; here it is: lbctl ${word#*:}( |$)" \
		"what it is here is said"
done
like "$(lbctl events | grep created)" "a-rather-long-name-of-22 " \
	"the events of all runs name the run"
is "$(lbctl events --json | json 0.run)" a-rather-long-name-of-22 "for programs, too"
is "$(lbctl events --json | grep -oE '"time":[0-9.]+' | grep -cvE ':[0-9]{10}(\.[0-9]{1,3})?$')" 0 \
	"times in JSON have three decimals at most"

train() { lbctl submit --name "$1" -- sh -c 'trap "" TERM; while :; do sleep 0.1; done' >/dev/null; }
train one
run_reaches one running 20
exits 2 "a glob wants to be confirmed" lbctl kill 'on*'
like "$err" "that means 1 run: " "one run is no runs"
like "$(terminal 80 lbctl kill 'on*')" "^lbctl: nothing was done" \
	"Ctrl-D is a no, on a line of its own"
like "$(terminal 52 lbctl ls)" "^a-rather-long-name-of-22 +completed" \
	"a narrow terminal leaves names whole"
is "$(terminal 52 lbctl ls | awk 'length > 52')" "" "and wraps no line"
lbctl kill one >/dev/null
exits 4 "a run that is about to end cannot be restarted" lbctl restart one
like "$err" "one is stopping: restart it when it has ended" "yet"
lbctl kill --now one >/dev/null
run_reaches one killed 20

only_ascii() { ! LC_ALL=C "$@" 2>&1 | LC_ALL=C grep '[^ -~]'; }
for command in ls submit kill nodes; do
	ok "lbctl help $command where there is no UTF-8" only_ascii lbctl help $command
done

# The README's way from a folder of text to generated text, word for word; its configuration is
# smaller.
mkdir -p "$T/there/etc/train" "$T/there/texts/more"
sed 's/^flavor = .*/flavor = "debugmodel"/; s/^seq_len = .*/seq_len = 64/; s/^steps = .*/steps = 6/' \
	"$src/etc/train/demo.toml" >"$T/there/etc/train/demo.toml"
for i in 1 2 3; do
	cat "$src/README.md" >"$T/there/texts/more/$i"
done
sed -n '/^### Train a model on your own text/,/^## /s/^    //p' "$src/README.md" >"$T/there/way.sh"
is "$(grep -c '^lb' "$T/there/way.sh")" 4 "the README has four commands from text to text"
exits 0 "they work as they are written" sh -e -c 'cd "$0" && . ./way.sh' "$T/there"
like "$out" "mine: [0-9]+ tokens in 3 documents for training.* vocabulary [0-9]+," "a folder is all files below it"
like "$out" "Once upon a time" "the run goes on from the prompt"
like "$err" "reading $LB_HOME/runs/mine/checkpoints/step-00000006" "with its newest checkpoint"
exits 0 "eval takes the run's name, too" lbworker eval mine "$T/there/mine" --samples 1
exits 0 "and scores a text with the tokenizer that went along" lbworker eval mine --text "$src/LICENSE"
like "$out" "bits a byte" "in a unit that tokenizers do not matter to"
exits 2 "a run that is not there" lbworker eval mien "$T/there/mine"
like "$err" "mien: no such folder, and no run of that name in $LB_HOME" "is said"

# A sweep as the README shows it, and the ways to look into it that it names.
mkdir "$T/mine" "$T/bin"
printf '#!/bin/sh\nexec python3 "$@"\n' >"$T/bin/python" && chmod +x "$T/bin/python"
echo 'import sys; print("step 1/1 loss 2.5"); print("lr is", sys.argv[2]); print("ValueError: no", file=sys.stderr)' \
	>"$T/mine/train.py"
sed -n 's/^    \(lbctl submit --name scan .*\)/\1/p' "$src/README.md" >"$T/mine/sweep.sh"
is "$(wc -l <"$T/mine/sweep.sh")" 1 "the README has one sweep"
exits 0 "it works as it is written" env PATH="$T/bin:$PATH" sh -e -c 'cd "$0" && . ./sweep.sh' "$T/mine"
for run in $(printf '%s\n' "$out" | grep -o 'scan-[^ ]*'); do run_reaches "$run" completed 30; done
is "$(lbctl ls 'scan-*' --json | json '#')" 2 "two runs"
like "$(lbctl compare scan)" '1e-3|3e-4' "compare shows what differs"
run=$(lbctl ls 'scan-*' --json | json 0.name)
like "$(lbctl logs "$run" -n 20)" 'lr is (1e-3|3e-4)' "logs -n 20"
like "$(lbctl logs "$run" --grep loss)" 'loss 2.5' "--grep loss"
like "$(lbctl logs "$run" --err)" 'ValueError: no' "--err"
exits 2 "notify test where nothing is set" lbctl notify test
like "$err" 'notify' "says what to set"
lbctl submit "$T/there/etc/train/demo.toml" --name none --set training.dataset_path=/no/such.tokens >/dev/null
run_reaches none failed 30
is "$(lbctl events none | grep -c ' launch  *launch ')" 1 "data that are missing are missing once"
like "$(lbctl status none)" "never_on_exit_codes" "and why is said"
like "$(lbctl why none)" "it is over \(failed\): .*never_on_exit_codes" "also to who asks why it does not run"
lbctl submit --name behind --after-ok none -- true >/dev/null
run_reaches behind failed 30
like "$(terminal 80 lbctl status behind)" "^next: lbctl restart behind" "nobody is sent to the logs of what never ran"
lbctl submit --name pauses --set restart.in_place=1 -- sh -c 'exit 3' >/dev/null
run_reaches pauses backoff 30
like "$(lbctl status pauses)" "waits for +its next attempt, at 20.*, in [0-9]" "when a run goes on is said"
exits 2 "an option that is a key of the run" lbctl submit --group g -- true
like "$err" 'did you mean --set run.group=VALUE\?' "is said how to set"
done_testing
