#!/bin/sh
# SPDX-License-Identifier: MIT
# Trainers that know nothing of us: a Python script, a C program, a shell script.
. "$(dirname "$0")/lib.sh"
need "${CC:-cc}" gcc
lbd_start

attempt_dir() { echo "$LB_HOME/runs/$1/attempts/1"; }
json_run() { lbctl status "$1" --json | json "$2"; }

# --- a Python script: folders with a mark inside, dies twice ----------------------------------
cat >"$T/train.py" <<'END'
import os, sys
folder, start = sys.argv[1], 0
if os.environ.get("LB_RESUME_FROM"):
    start = int(os.environ["LB_RESUME_FROM"].rsplit("-", 1)[1])
print("starting from", start, flush=True)
for step in range(start + 1, 31):
    print(f"step: {step:2}  loss: {10 / step:.4f}  memory: 1.0GiB  tps: 1,{step:03}", flush=True)
    if step % 10 == 0:
        os.makedirs(f"{folder}/step-{step}")
        open(f"{folder}/step-{step}/weights", "w").write("w")
        if step == 20 and start == 10:
            os.abort()	# no mark: this one is not complete
        open(f"{folder}/step-{step}/.metadata", "w").write("done")
    if step == 15 and start == 0:
        sys.exit(1)
END
cat >"$T/train.toml" <<END
[run]
name = "py"
scheduler = "local"
command = ["python3", "$T/train.py", "$T/py"]
workdir = "$T"
[watch]
progress_regex = 'step: +(?<step>\d+) +loss: +(?<loss>\S+) .*tps: +(?<tokens_per_s>[\d,]+)'
[checkpoint]
folder = "$T/py"
pattern = "step-{step}"
complete_when = ".metadata"
END
sed -i 's/os.makedirs(f"{folder}\/step-{step}")/os.makedirs(f"{folder}\/step-{step}", exist_ok=True)/;
	s/start == 10:/start == 10 and os.environ["LB_LAUNCH"] == "2":/' "$T/train.py"
ok "a Python script is a run" lbctl submit "$T/train.toml"
run_reaches py completed 40
is "$(grep -h -o 'starting from.*' "$(attempt_dir py)/out.log" | tr '\n' ' ')" \
	"starting from 0 starting from 10 starting from 10 " \
	"it goes on from its newest complete checkpoint, not from one without its mark"
is "$(json_run py step)" 30 "its steps are followed"
is "$(json_run py loss)" 0.3333 "and its losses"
is "$(json_run py tokens_per_s)" 1030.0 "and what else its lines tell"
is "$(json_run py checkpoint.step) $(json_run py checkpoint.path)" "30 $T/py/step-30" \
	"its checkpoints are known"
like "$(grep checkpoint_valid "$(attempt_dir py)/spool.jsonl")" \
	'step-20.*"valid":false.*no .metadata' \
	"the incomplete one is told"
is "$(json_run py attempts.0.launches.0.last_step)" 15 "steps belong to their launches"

# --- a C program that prints as llm.c does: files with a mark beside them -----------------------
cat >"$T/train.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
	const char *from = getenv("LB_RESUME_FROM");
	int step = from ? atoi(strrchr(from, '_') + 1) : 0, first = step + 1;
	char path[4096];

	if (argc < 2)
		return 2;
	while (++step <= 20) {
		/* the last word before a failure must count, too: no newline after it */
		printf("step %4d/20 | loss %f (+nanz)| norm 1.5 (+nanz)| lr 6.00e-04 | 12.34 ms | "
		       "22.5%% bf16 MFU | 123456 tok/s%s", step, 8.0 / step, step == 13 ? "" : "\n");
		if (step % 5 == 0) {
			snprintf(path, sizeof(path), "%s/model_%08d.bin", argv[1], step);
			fclose(fopen(path, "w"));
			if (step == 10 && first == 1)
				return 1;
			snprintf(path, sizeof(path), "%s/DONE_%08d", argv[1], step);
			fclose(fopen(path, "w"));
		}
		if (step == 13 && first == 6)
			return 1;
	}
	return 0;
}
END
ok "a C program" "${CC:-cc}" -o "$T/train" "$T/train.c"
mkdir "$T/c"
cat >"$T/c.toml" <<END
[run]
name = "c"
scheduler = "local"
command = ["$T/train", "$T/c"]
[watch]
progress_regex = '^step +(?<step>\d+)/(?<target_step>\d+) \| loss (?<loss>\S+) .*norm (?<grad_norm>\S+) .*\| (?<tokens_per_s>\d+) tok/s'
[checkpoint]
folder = "$T/c"
pattern = 'model_(?<step>\d+)\.bin'
complete_when = "DONE_{step}"
END
ok "is a run" lbctl submit "$T/c.toml"
run_reaches c completed 40
is "$(json_run c step)/$(json_run c loss)" 20/0.4 "its steps are followed"
is "$(json_run c attempts.0.launches.#)" 3 "three launches"
is "$(json_run c attempts.0.launches.1.first_step)-$(json_run c attempts.0.launches.1.last_step)" \
	6-13 \
	"from file 5, to a last line without its end"
is "$(json_run c attempts.0.launches.2.first_step)" 11 "then from file 10"

# --- a shell script: no pattern for anything ----------------------------------------------------
printf '[run]\nname = "sh"\nscheduler = "local"\ncommand = ["sh", "-c", "echo step 1; echo ready"]\n' >"$T/sh.toml"
ok "a shell script" lbctl submit "$T/sh.toml"
run_reaches sh completed 20
is "$(json_run sh step)" null "tells no steps: these are none"

# --- steps without being told ---------------------------------------------------------------------
cat >"$T/auto.py" <<'END'
import os, socket, sys
for i in range(1, 61):
    print(f"step {i}/60 loss {6 / i:.3f}", flush=True)
if "socket" in sys.argv:	# it reports itself: what it prints is not its progress
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ["LB_SOCKET"])
    for text in '{"type":"hello","rank":0}', '{"type":"step","step":7,"loss":1}':
        s.sendall(text.encode() + b"\n")
        s.recv(1000)
    s.close()
    print("step 61/70 loss 9")
END
lbctl submit --name auto -- python3 "$T/auto.py" >/dev/null
run_reaches auto completed 20
is "$(json_run auto step)/$(json_run auto target_step) $(json_run auto loss)" "60/60 0.1" \
	"steps are recognised without a word of configuration"
is "$(grep -c '"type":"step"' "$(attempt_dir auto)/spool.jsonl")" 60 "all of them"
lbctl submit --name both -- python3 "$T/auto.py" socket >/dev/null
run_reaches both completed 20
is "$(json_run both step) $(json_run both loss)" "7 1.0" \
	"of a trainer that reports only that counts"
lbctl submit --name none --set watch.progress_regex=none -- python3 "$T/auto.py" >/dev/null
run_reaches none completed 20
is "$(json_run none step)" null "it can be switched off"

# --- why it died ----------------------------------------------------------------------------------
cat >"$T/die.py" <<'END'
import os, signal, sys
print("step 1/9 loss 2", flush=True)
if sys.argv[1] == "trace":
    raise OSError(28, "No space left on device", "/scratch/" + os.environ["DATA_TOKEN"])
if sys.argv[1] == "rank":	# what torchrun prints, and its own status
    print("E1122 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -11) "
          "local_rank: 2 (pid: 4) of binary: /usr/bin/python3", file=sys.stderr)
if sys.argv[1] == "noise":
    sys.stdout.buffer.write(bytes(range(256)) * 40000 + b"\n")
    sys.exit("config.yaml: learning_rate is missing")
sys.exit(1)
END
once="--set restart.max_without_progress=1 --set restart.in_place=0"
printf 'DATA_TOKEN=s3cret-words\n' >"$T/env"
chmod 600 "$T/env"
# shellcheck disable=SC2086
lbctl submit --name trace $once --set run.env_file="$T/env" -- python3 "$T/die.py" trace >/dev/null
# shellcheck disable=SC2086
lbctl submit --name rank $once -- python3 "$T/die.py" rank >/dev/null
# shellcheck disable=SC2086
lbctl submit --name noise $once -- python3 "$T/die.py" noise >/dev/null
for run in trace rank noise; do run_reaches $run failed 20; done
like "$(lbctl status trace)" "why .*exit status 1; OSError: .*No space left on device: '/scratch/\*\*\*' \(a disk is full" \
	"status has the line that says why, and what to do"
like "$(lbctl events trace)" 'failed .*OSError.*a disk is full' "so have events, and with them notifications"
is "$(lbctl status trace --json | grep -c s3cret)" 0 "secrets are left out"
like "$(lbctl status rank)" 'failed: crash' "a rank's signal is a crash, not its launcher's exit status"
like "$(lbctl status rank)" 'rank 2: killed by signal 11 \(SIGSEGV\)' "and told"
is "$(json_run rank attempts.0.signal)" 11 "to programs, too"
like "$(lbctl status noise)" 'exit status 1; config.yaml: learning_rate is missing' \
	"ten million bytes in a line hide nothing"

# --- what is wrong is said before anything starts ------------------------------------------------
printf '[run]\ncommand = ["true"]\n[watch]\nprogress_regex = "step ("\n' >"$T/bad.toml"
exits 2 "a bad expression" lbctl submit "$T/bad.toml"
like "$err" 'bad.toml:4: watch.progress_regex: bad regular expression at character 7: missing' \
	"is said"
printf '[run]\ncommand = ["true"]\n[checkpoint]\npattern = "step-*"\n' >"$T/bad.toml"
exits 2 "a pattern without step" lbctl submit "$T/bad.toml"
like "$err" 'bad.toml:4: checkpoint.pattern: must contain \{step\}' "is said, too"
printf '[run]\ncommand = ["true"]\n[checkpoint]\ncomplete_when = "x"\n' >"$T/bad.toml"
exits 2 "a mark without a pattern" lbctl submit "$T/bad.toml"
like "$err" 'bad.toml:4: checkpoint.complete_when: needs checkpoint.pattern' "as well"
lbd_stop

# --- errors of the node, and a hang seen in the output --------------------------------------------
F=$T/run/attempts/1
mkdir -p "$F" "$T/run/checkpoints"
printf '{"version":1,"token":"%032d","run":"r1","number":1,"workdir":"%s","run_dir":"%s","checkpoint_dir":"%s",
	"lbd_socket":null,"launcher":"none","kill_grace_ms":500,"in_place":0,"never_on_exit_codes":[],
	"command":["sh","-c","echo step 1; echo NCCL error: uncorrectable ECC; echo step 2; sleep 60"],
	"watch":{"progress_regex":"step (?<step>.)","step_timeout_ms":1000,
	"node_error_regex":["Xid","uncorrectable ECC"]}}' 1 "$T" "$T/run" "$T/run/checkpoints" >"$F/attempt.json"
SLURMD_NODENAME=n1 timeout $((30 * patience)) "$B/lbrun" --attempt "$F" >"$F/out.log" 2>&1
like "$(cat "$F/spool.jsonl")" '"kind":"node_error","text":"n1: NCCL error: uncorrectable ECC"' \
	"an error of the node is noted"
like "$(cat "$F/exit.json")" '"cause":"hang".*no step for' "printed steps that cease are a hang"
done_testing
