#!/bin/sh
# SPDX-License-Identifier: MIT
# Multiple choice: each answer's log-likelihood, acc and acc_norm as lm-evaluation-harness has them
# (tests/golden/choices, which tests/text/choices.py made with it); and files that hold no
# questions.
. "$(dirname "$0")/lib.sh"
gold=$src/tests/golden/choices

cp -r "$gold" "$T/model"
cp "$src/tests/golden/text/gpt2.json" "$T/model/tokenizer.json"
# agrees NAME SAID SCORES: with lm-evaluation-harness
cat >"$T/agrees.py" <<'PY'
import json, re, sys
gold = json.load(open(sys.argv[1]))[sys.argv[2]]
said = re.match(r"(\d+) questions: acc ([\d.]+) \+- [\d.]+, acc_norm ([\d.]+) ", open(sys.argv[3]).read())
assert int(said[1]) == len(gold["scores"]), said[0]
assert abs(float(said[2]) - gold["acc"]) < 1e-4 and abs(float(said[3]) - gold["acc_norm"]) < 1e-4, said[0]
rows = [json.loads(line)["scores"] for line in open(sys.argv[4])]
assert [len(r) for r in rows] == [len(r) for r in gold["scores"]]
print(max(abs(a - b) for r, g in zip(rows, gold["scores"]) for a, b in zip(r, g)))
PY
for name in hellaswag arc; do
	exits 0 "$name" lbworker eval "$T/model" --choices "$gold/$name.jsonl" --scores "$T/scores"
	printf '%s\n' "$out" >"$T/said"
	worst=$(python3 "$T/agrees.py" "$gold/lm_eval.json" $name "$T/said" "$T/scores")
	ok "acc and acc_norm are those of lm-evaluation-harness, scores within 1e-3 (worst $worst)" \
		awk "BEGIN { exit !(\"$worst\" != \"\" && $worst + 0 < 1e-3) }"
done
exits 0 "fewer of them" lbworker eval "$T/model" --choices "$gold/arc.jsonl" --samples 3
like "$out" "^3 questions: acc 0\.[0-9]+ " "are fewer"
gzip -c "$gold/arc.jsonl" >"$T/arc.jsonl.gz"
exits 0 "compressed" lbworker eval "$T/model" --choices "$T/arc.jsonl.gz"
like "$out" "^24 questions" "they are the same"
printf '%s\n' '{"query": "the word was", "choices": ["his", "theirs"], "gold": 1}' >"$T/plain.jsonl"
exits 0 "query, choices, gold" lbworker eval "$T/model" --choices "$T/plain.jsonl"
like "$out" "^1 questions: acc [01]\.0000" "is a question"

# --- what stands in front of a text -------------------------------------------------------------
loss_of() { printf '%s\n' "$out" | sed -n 's/.*: \(loss [0-9.]*\),.*/\1/p'; }
printf 'the word was his, and the words were theirs' >"$T/text"
exits 0 "a text" lbworker eval "$T/model" --text "$T/text"
plain=$(loss_of)
exits 0 "another token in front" lbworker eval "$T/model" --text "$T/text" --begin M
begun=$(loss_of) count=${out%% *}
exits 0 "the same tokens as data" lbworker tokenize --tokenizer "$T/model/tokenizer.json" -o "$T/begun" --begin M --end none "$T/text"
exits 0 "are scored" lbworker eval "$T/model" "$T/begun" --seq-len "$count"
is "$(loss_of)" "$begun" "alike"
ok "and a document's end in front is another loss ($plain, $begun)" [ "$plain" != "$begun" ]

# --- words that would do nothing ------------------------------------------------------------------
idle() {	# SAYS COMMAND OPTION...
	said=$1 command=$2
	shift 2
	exits 2 "$command $*" lbworker "$command" "$T/model" "$@"
	like "$err" "^lbworker: $said" "is refused"
}
idle "eval needs one of DATA" eval --choices "$T/plain.jsonl" --text "$T/plain.jsonl"
idle "eval needs one of DATA" eval "$T/plain.jsonl" --choices "$T/plain.jsonl"
idle "--logits goes with DATA" eval --text "$T/plain.jsonl" --logits "$T/logits"
idle "--samples goes with DATA or --choices" eval --text "$T/plain.jsonl" --samples 3
idle "--begin goes with --choices or --text" eval "$T/plain.jsonl" --begin x
idle "--begin nobody: there is no such token" eval --text "$T/plain.jsonl" --begin nobody
idle "--scores goes with --choices" eval "$T/plain.jsonl" --scores "$T/scores"
idle "--prompt-tokens goes without --begin" generate --prompt-tokens 1 --begin x
idle "--prompt-tokens goes without --prompt" generate --prompt-tokens 1 --prompt x

refused() {	# NAME PATTERN CONTENT
	printf '%b' "$3" >"$T/bad.jsonl"
	exits 2 "$1" lbworker eval "$T/model" --choices "$T/bad.jsonl"
	like "$err" "^lbworker: .*$2" "is refused"
	is "$(printf '%s\n' "$err" | wc -l)" 1 "in one line"
}
refused "an answer that is not there" "bad.jsonl:1: is no question: allowed are" \
	'{"query": "a", "choices": ["b"], "gold": 1}\n'
refused "a key that is no label" "bad.jsonl:1: is no question" \
	'{"question": "a", "choices": {"text": ["b"], "label": ["A"]}, "answerKey": "B"}\n'
refused "no JSON" "bad.jsonl:2: " '{"query": "a b", "choices": ["b"], "gold": 0}\nno\n'
refused "another list" "bad.jsonl:1: is no question" '{"text": "a"}\n'
refused "nothing" "bad.jsonl: holds no question" ''
done_testing
