#!/bin/sh
# SPDX-License-Identifier: MIT
# Text to tokens: those of other programs (tests/golden/text, which tests/text/goldens.py made with
# their libraries), from files as people have them, over interruptions; and tokenizers that are
# none.
. "$(dirname "$0")/lib.sh"
gold=$src/tests/golden/text

# tokens FOLDER…: the tokens in it, a line a document
cat >"$T/tokens.py" <<'PY'
import glob, struct, sys
for path in sorted(glob.glob(sys.argv[1] + "/*.tokens")):
    data = open(path, "rb").read()
    magic, version, width, tokens, docs = struct.unpack_from("<8sIIQQ", data)
    end = 64 + tokens * width
    ids = memoryview(data)[64:end].cast({1: "B", 2: "H", 4: "I"}[width])
    index = struct.unpack_from("<%dQ" % (docs + 1), data, (end + 7) // 8 * 8)
    for a, b in zip(index, index[1:]):
        print(*ids[a:b])
PY
tokens() { python3 "$T/tokens.py" "$1"; }
# tokenize TOKENIZER TEXT… : into a new $T/out, without the token that ends a document
tokenize() {
	rm -rf "$T/out"
	tokenizer=$1
	shift
	lbworker tokenize --tokenizer "$tokenizer" -o "$T/out" --end none "$@"
}

for name in gpt2 llama3 qwen2 o200k tekken unknown sentencepiece bloom deepseek falcon gemma; do
	file=$gold/$name.json
	[ -e "$file" ] || file=$gold/$name.model
	tokenize "$file" "$gold/documents.jsonl" >"$T/said" 2>&1
	tokens "$T/out/train" >"$T/tokens"
	ok "$name: the tokens are those of its own library" cmp "$T/tokens" "$gold/$name.tokens.txt"
done
like "$(lbworker tokenize --tokenizer "$gold/unknown.json" -o "$T/o2" "$gold/documents.jsonl" 2>&1)" \
	"unknown.json: its pattern is none of those that are built in" "a pattern that PCRE2 runs is warned of"
sed 's/"type": *"BPE"/"type":"Unigram"/' "$gold/unknown.json" >"$T/refused.json"
is "$(lbworker tokenize --tokenizer "$T/refused.json" -o "$T/o3" "$gold/documents.jsonl" 2>&1)" \
	"lbworker: $T/refused.json: model.type: Unigram is not supported, BPE is" "of one that is refused only that is said"

# --- files as people have them
mkdir -p "$T/in/more"
printf 'one\n%%\ntwo\n%%\nthree' >"$T/in/saying"
printf '{"body":"x1"}\n\n{"body":"<|endoftext|>"}\n' | gzip >"$T/in/more/a.jsonl.gz"
exits 0 "a folder with a separator" lbworker tokenize --tokenizer "$gold/gpt2.json" -o "$T/s" \
	--separator '
%
' "$T/in/saying"
like "$out" "^$T/s: [0-9]+ tokens in 3 documents for training" "gives three documents"
is "$(tokens "$T/s/train" | sed 's/.* //' | sort -u)" 0 "each ends with the end of text"
exits 0 "JSON lines, compressed, of a field" lbworker tokenize --tokenizer "$gold/gpt2.json" -o "$T/j" \
	--field body --end none --special "$T/in/more"
is "$(tokens "$T/j/train" | tail -1)" 0 "with --special a name is that token"
lbworker tokenize --tokenizer "$gold/gpt2.json" -o "$T/k" --field body --end none "$T/in/more" >"$T/said"
ok "and text without it" [ "$(tokens "$T/k/train" | tail -1)" != 0 ]
is "$(cmp "$T/j/tokenizer.json" "$gold/gpt2.json" && echo same)" same "the tokenizer goes along"
exits 2 "a field that is not there" lbworker tokenize --tokenizer "$gold/gpt2.json" -o "$T/l" "$T/in/more"
like "$err" "^lbworker: $T/in/more/a.jsonl.gz:1: text: there is no such field$" "is said with its line"
printf '\357\273\277{"text":"x1"}\r\n{"text":"two"}\r\n' >"$T/windows.jsonl"
printf '{"text":"x1"}\n{"text":"two"}\n' >"$T/plain.jsonl"
for name in windows plain; do
	exits 0 "lines of JSON of a $name file" lbworker tokenize --tokenizer "$gold/llama3.json" "$T/$name.jsonl" -o "$T/$name"
done
is "$(tokens "$T/windows/train")" "$(tokens "$T/plain/train")" "a byte order mark in front of the first is no part of them"
printf '{"id":18446744073709551615,"score":NaN,"text":"x1"}\n{"at":[-Infinity],"m":{"a":1,"a":2},"text":"two"}\n' >"$T/python.jsonl"
exits 0 "lines with numbers as Python writes them" lbworker tokenize --tokenizer "$gold/llama3.json" "$T/python.jsonl" -o "$T/python"
is "$(tokens "$T/python/train")" "$(tokens "$T/plain/train")" "they are none of the text"
printf 'NaN\0Infinity' >"$T/nul.txt"
printf '{"text":"NaN\\u0000Infinity"}\n' >"$T/nul.jsonl"
for name in nul.txt nul.jsonl; do
	exits 0 "a text with a zero byte: $name" lbworker tokenize --tokenizer "$gold/llama3.json" "$T/$name" -o "$T/$name.out"
done
is "$(tokens "$T/nul.jsonl.out/train")" "$(tokens "$T/nul.txt.out/train")" "is the same as a file and in JSON"
python3 - "$gold/documents.jsonl" >"$T/long.jsonl.zst" <<'PY'
import sys
data = open(sys.argv[1], "rb").read()
blocks = [data[i:i + 100000] for i in range(0, len(data), 100000)]
out = sys.stdout.buffer
out.write(b"\x28\xb5\x2f\xfd\0\xa8")	# a window of 2^31, and blocks that are not compressed
for i, block in enumerate(blocks):
    out.write((len(block) << 3 | (i + 1 == len(blocks))).to_bytes(3, "little") + block)
PY
exits 0 "a window of 2 GiB, as zstd --long=31 announces it" lbworker tokenize --tokenizer "$gold/gpt2.json" --end none "$T/long.jsonl.zst" \
	-o "$T/long"
tokens "$T/long/train" >"$T/tokens"
ok "is read" cmp "$T/tokens" "$gold/gpt2.tokens.txt"
exits 0 "what another program unpacks, through a pipe" sh -c 'cat "$1" | "$B/lbworker" tokenize --tokenizer "$2" --end none \
	--field text -o "$T/piped" /dev/stdin' sh "$gold/documents.jsonl" "$gold/gpt2.json"
tokens "$T/piped/train" >"$T/tokens"
ok "is read from its beginning" cmp "$T/tokens" "$gold/gpt2.tokens.txt"
is "$(find "$T/l" -name '*.tokens*')" "" "and nothing lies under the final name, nor beside it"
need strace strace
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 \
	strace -qq -y -o "$T/strace" -e trace=fsync,rename "$B/lbworker" tokenize --tokenizer "$gold/llama3.json" --validation 0.5 \
	"$gold/documents.jsonl" -o "$T/synced" >"$T/said" 2>&1
is "$(sed -n 's/^fsync([0-9]*<\(.*\)>).*/\1/p; s/^rename("\(.*\)", .*/-> \1/p' "$T/strace" | sed "s|$T/synced/||; s/tmp-.*/tmp/" |
	grep -e validation -e train | tr '\n' ' ')" \
	"validation/00000.tokens.tmp -> validation/00000.tokens.tmp validation train/00000.tokens.tmp -> train/00000.tokens.tmp train " \
	"what validates is on the disk, by its name, before the file that says that the part is done"

# --- on from where it was interrupted, on any number of threads
awk 'BEGIN { for (i = 0; i < 60000; i++) printf "{\"text\": \"line %d of a text that is not short\"}\n", i }' \
	>"$T/many.jsonl"
set -- --tokenizer "$gold/llama3.json" --part-mb 1 --validation 0.1 "$T/many.jsonl"
exits 0 "many documents" lbworker tokenize "$@" -o "$T/whole"
parts=$(find "$T/whole/train" -name '*.tokens' | wc -l)
ok "in several parts" [ "$parts" -ge 2 ]
cp -r "$T/whole" "$T/half"
rm -f "$T/half/train/0000$((parts - 1)).tokens"
printf junk >"$T/half/validation/0000$((parts - 1)).tokens"
printf '%s\n' '[model]' dim=8 n_layers=1 n_heads=2 vocab_size=50257 '[training]' seq_len=8 local_batch_size=1 steps=1 \
	'[checkpoint]' enable=false >"$T/one.toml"
like "$(lbworker train "$T/one.toml" --dataset "$T/half" 2>&1)" \
	"behind $T/half/train/0000$((parts - 2)).tokens lbworker tokenize has more to do" "a training on it says so"
unlike "$(lbworker train "$T/one.toml" --dataset "$T/whole" 2>&1)" "more to do" "and of the whole says nothing"
exits 0 "the same again after an interruption" lbworker tokenize "$@" -o "$T/half" --threads 1
like "$out" "$((parts - 1)) of $parts parts were there already" "goes on behind the parts that are there"
ok "to the same files, whatever the threads" diff -r "$T/whole" "$T/half"
exits 0 "once more" lbworker tokenize "$@" -o "$T/half"
like "$out" "$parts of $parts parts were there already" "does nothing"
exits 1 "with another tokenizer" lbworker tokenize --tokenizer "$gold/gpt2.json" "$T/many.jsonl" -o "$T/half"
like "$err" "was made of other texts, by another tokenizer or other options" "it is refused"
is "$(tokens "$T/whole/train" | sort | uniq | wc -l)" "$(($(tokens "$T/whole/train" | wc -l)))" \
	"each document is there once"
is "$(($(tokens "$T/whole/train" | wc -l) + $(tokens "$T/whole/validation" | wc -l)))" 60000 \
	"on one of the two sides"

# --- an added token that is a single word: Rust's words have digits, and no fractions
echo '{"added_tokens":[{"id":1,"content":"ab","single_word":true}],"model":{"vocab":{"a":0},"merges":[]}}' >"$T/words.json"
printf '{"text":"%s"}\n' "½ab" "aab" "ab‿" "abⒶ" "5ab" "ab!" "ab²" "ab\u200d" >"$T/words.jsonl"
exits 0 "words beside fractions" tokenize "$T/words.json" "$T/words.jsonl"
is "$(tokens "$T/out/train" | tr '\n' ,)" "1,0 0,0,0,0,1,1,0," "single ones are those of Hugging Face's library"

# --- two added tokens that are one text where blanks have become U+2581
echo '{"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"\u2581"},"model":{"vocab":{"a":0,"b":1,"\u2581":2},"merges":[]},
	"added_tokens":[{"id":3,"content":"\u2581a","single_word":true},{"id":4,"content":" a","normalized":true}]}' >"$T/both.json"
printf '{"text":"%s"}\n' "b a" "▁a" "▁ab" >"$T/both.jsonl"
exits 0 "an added token beside one that is normalized to it" tokenize "$T/both.json" "$T/both.jsonl"
is "$(tokens "$T/out/train" | tr '\n' ,)" "1 4,3,4 1," "both are found, as by Hugging Face's library"

# --- tokens of bytes have names of an alphabet of their own: a blank itself is met in no text
echo '{"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"added_tokens":[{"id":1,"content":" ","special":true}],
	"model":{"vocab":{"\u0000":0," ":1,"a":2,"\u0120":3,"\u0120a":4},"merges":["\u0120 a"],"ignore_merges":true}}' >"$T/bytes.json"
printf 'a a  a' >"$T/bytes.txt"
exits 0 "a vocabulary with a blank and a zero byte" tokenize "$T/bytes.json" "$T/bytes.txt"
is "$(tokens "$T/out/train")" "2 4 3 4" "is read as Hugging Face's library reads it"

# --- a merge that is there twice has its later rank
echo '{"model":{"vocab":{"a":0,"b":1,"c":2,"ab":3,"bc":4},"merges":["a b","b c","a b"]}}' >"$T/twice.json"
printf abc >"$T/twice.txt"
exits 0 "a merge that is there twice" tokenize "$T/twice.json" "$T/twice.txt"
is "$(tokens "$T/out/train")" "0 4" "is done where the later one stands, as in Hugging Face's library"

# --- what ends a document, where a tokenizer has other names for it than most
printf ab >"$T/ab.txt"
two='"model":{"vocab":{"a":0,"b":1},"merges":[]}}'
echo '{"added_tokens":[{"id":2,"content":"<｜end▁of▁sentence｜>","special":true}],'"$two" >"$T/deepseek-end.json"
exits 0 "a tokenizer of DeepSeek's" lbworker tokenize --tokenizer "$T/deepseek-end.json" -o "$T/deepseek-end" "$T/ab.txt"
is "$(tokens "$T/deepseek-end/train")" "0 1 2" "ends a document with its own token"
is "$err" "" "and says nothing"
echo '{"added_tokens":[{"id":2,"content":"<halt>","special":true}],'"$two" >"$T/halt.json"
exits 0 "one that calls it otherwise" lbworker tokenize --tokenizer "$T/halt.json" -o "$T/halt" "$T/ab.txt"
is "$(tokens "$T/halt/train")" "0 1" "ends no document"
like "$err" "lbworker: $T/halt.json: no token is known to end a document: --end NAME says which, --end none that none does$" \
	"which is said"
exits 0 "and with --end" lbworker tokenize --tokenizer "$T/halt.json" -o "$T/halts" --end "<halt>" "$T/ab.txt"
is "$(tokens "$T/halts/train") $err" "0 1 2 " "is told of it"

# --- learning one
exits 0 "a tokenizer is learned" lbworker train-tokenizer --size 300 "$gold/documents.jsonl" -o "$T/a.json"
exits 2 "not with a special token that is called as a letter" lbworker train-tokenizer --size 300 --special a \
	"$gold/documents.jsonl" -o "$T/2k.json"
like "$err" "^lbworker: a special token has the name of one that texts are made of" "is said"
exits 2 "not of 2k tokens" lbworker train-tokenizer --size 2k "$gold/documents.jsonl" -o "$T/2k.json"
like "$err" '"2k" is no whole number from 257 to 4194304$' "with the numbers as one writes them"
exits 2 "nor is half a token made" lbworker generate "$T" --prompt x --tokens 1.5
like "$err" '"1.5" is no whole number from 1 to ' "which is said"
exits 0 "again" lbworker train-tokenizer --size 300 "$gold/documents.jsonl" -o "$T/b.json"
ok "it is the same" cmp "$T/a.json" "$T/b.json"
exits 0 "and makes tokens" lbworker tokenize --tokenizer "$T/a.json" -o "$T/own" "$gold/documents.jsonl"
like "$out" "vocabulary 300," "of as many numbers"

# --- what is no tokenizer: one line, exit status 2
bad=0
refused() {	# NAME PATTERN CONTENT
	printf '%b' "$3" >"$T/bad"
	exits 2 "$1" lbworker tokenize --tokenizer "$T/bad" -o "$T/bad-$((bad = bad + 1))" "$gold/documents.jsonl"
	like "$err" "^lbworker: $T/bad: $2" "is refused in one line"
	is "$(wc -l <"$T/exits.err")" 1 "and no other"
}
refused "an empty file" "is empty" ""
refused "a text" "line 1 is no token in base64" "hello world\n"
refused "half of a JSON" ".*" '{"model": {"type": "BPE", "vocab": {"a": 0'
refused "another kind of model" "model.type: WordPiece is not supported" '{"model":{"type":"WordPiece"}}'
refused "a token with a number beyond all" "model.vocab: \"b\" has no number" \
	'{"model":{"type":"BPE","vocab":{"a":0,"b":99999999999},"merges":[]}}'
refused "two tokens of one number" "model.vocab: " '{"model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}}'
refused "a merge of nothing" "model.merges: number 0 is no two tokens" \
	'{"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}}'
refused "a normalizer that would change the text" "normalizer: Lowercase is not supported" \
	'{"normalizer":{"type":"Lowercase"},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}'
refused "a pattern that is none" 'pre_tokenizer: "\(\(": the pattern: ' \
	'{"pre_tokenizer":{"type":"Split","behavior":"Isolated","pattern":{"Regex":"(("}},"model":{"vocab":{"a":0},"merges":[]}}'
bpe='"model":{"vocab":{"a":0},"merges":[]}'
refused "an added token of a number that it is not given elsewhere" \
	'added_tokens: "x" has the id 5, and is given 1 by Hugging Face' '{"added_tokens":[{"id":0,"content":"a"},{"id":5,"content":"x"}],'"$bpe}"
refused "a pattern that others read otherwise" 'pre_tokenizer: "[^]]*": }\+ in a pattern is not supported' \
	'{"pre_tokenizer":{"type":"Split","behavior":"Isolated","pattern":{"Regex":"\\\\p{N}{1,3}+"}},'"$bpe}"
refused "a pre-tokenizer that nobody knows" "pre_tokenizer: Sorted is not supported" '{"pre_tokenizer":{"type":"Sorted"},'"$bpe}"
refused "a decoder that would write other texts" "decoder: WordPiece is not supported" '{"decoder":{"type":"WordPiece"},'"$bpe}"
refused "a decoder of other tokens" "decoder: ByteLevel is not supported" '{"decoder":{"type":"ByteLevel"},'"$bpe}"
refused "a post-processor that nobody knows" "post_processor: Shuffle is not supported" \
	'{"post_processor":{"type":"Sequence","processors":[{"type":"Shuffle"}]},'"$bpe}"
refused "a model of SentencePiece, cut" "is cut short, or no model of SentencePiece" '\012\377\377\001ab'
# a trainer_spec of type BPE, a normalizer_spec that leaves blanks alone, and <unk>
spm='\n\011\n\005<unk>\030\002\032\002\040\000\022'
refused "a model of SentencePiece with blanks behind words" \
	"a model of SentencePiece that changes the text \(a blank behind it\) is not supported" "$spm"'\005\030\002\300\001\001'
refused "one with a piece that is taken apart again" '"ab" is unused, and made of others' \
	"$spm"'\002\030\002\n\003\n\001a\n\003\n\001b\n\006\n\002ab\030\005'
refused "tiktoken's, of nobody known" "2 tokens: a tiktoken file of nobody known here" 'YQ== 0\nYg== 1\n'
refused "tiktoken's, a number twice" "line 2 is no token in base64" 'YQ== 0\nYg== 0\n'
tekken='{"config": {"pattern": "%s", "default_vocab_size": %s, "default_num_special_tokens": 3}, "vocab": [%s]}'
# shellcheck disable=SC2059 # a format
tekken() { printf "$tekken" "$@"; }
refused "tekken's, too few tokens" "config: default_vocab_size and default_num_special_tokens do not fit a vocab of 0 tokens" "$(tekken x 9 "")"
refused "tekken's, another rank" "vocab 0: no token in base64" "$(tekken x 4 '{"rank": 1, "token_bytes": "YQ=="}')"
refused "tekken's, another pattern" "config.pattern is not that of tekken" "$(tekken x 4 '{"rank": 0, "token_bytes": "YQ=="}')"
python3 - "$T/tekken.json" <<'PY'
import base64, json, sys
words = [bytes([i]) for i in range(256)] + [b"th", b"the", b" the"]
letters = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]", "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
start = "[^\\r\\n\\p{L}\\p{N}]?"
pattern = "|".join([start + letters[0] + "*" + letters[1] + "+", start + letters[0] + "+" + letters[1] + "*", "\\p{N}",
                    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*", "\\s*[\\r\\n]+", "\\s+(?!\\S)", "\\s+"])
json.dump({"config": {"pattern": pattern, "default_vocab_size": 259 + 3, "default_num_special_tokens": 3},
           "vocab": [{"rank": i, "token_bytes": base64.b64encode(w).decode(), "token_str": w.decode(errors="replace")}
                     for i, w in enumerate(words)]}, open(sys.argv[1], "w"))
PY
printf 'the the9</s>' >"$T/tekken.txt"
exits 0 "Mistral's tekken.json" lbworker tokenize --tokenizer "$T/tekken.json" -o "$T/tekken" --end none "$T/tekken.txt"
ok "numbers behind those of special tokens, whose names in a text are text" python3 - "$T/tekken/train/00000.tokens" <<'PY'
import struct, sys
want, raw = [260, 261, 60, 63, 50, 118, 65], open(sys.argv[1], "rb").read()
assert any(struct.pack("<7" + kind, *want) in raw for kind in "Hi"), raw[:400]
PY
mkdir "$T/mixed"
cp "$T/tekken.txt" "$T/mixed/a.txt"
printf 'PNG\0\1' >"$T/mixed/b.png"
printf 'PAR1 and so on' >"$T/mixed/c.parquet"
exits 0 "a folder with other things among texts" lbworker tokenize --tokenizer "$T/tekken.json" -o "$T/of-mixed" "$T/mixed"
like "$out" " in 1 document for training" "its text alone"
like "$err" "mixed/b.png: is left out: no text" "which is told"
exits 2 "a Parquet file that is named" lbworker tokenize --tokenizer "$T/tekken.json" -o "$T/of-parquet" "$T/mixed/c.parquet"
like "$err" "^lbworker: $T/mixed/c.parquet: is a Parquet file, which is not read: text, JSON lines, .gz and .zst are$" "is refused"
printf '\377\376t\0h\0e\0' >"$T/mixed/d.utf16"
printf '\377\377\377\377\20\0\0\0' >"$T/mixed/e.arrow" # as datasets.save_to_disk writes them
tar -C "$T" -czf "$T/mixed/f.tar.gz" tekken.txt
gzip -c "$T/mixed/c.parquet" >"$T/mixed/g.gz"
printf '\050\265\057\375 \004!\0\0text' >"$T/mixed/h.zstd" # one frame of one block
for kind in 'd.utf16: is text in UTF-16 (iconv -f UTF-16 -t UTF-8 helps)' 'e.arrow: is an Arrow file' 'f.tar.gz: is a tar archive' \
	'g.gz: is a Parquet file'; do
	exits 2 "${kind%%:*}, which is named" lbworker tokenize --tokenizer "$T/tekken.json" -o "$T/of-others" "$T/mixed/${kind%%:*}"
	is "$err" "lbworker: $T/mixed/$kind, which is not read: text, JSON lines, .gz and .zst are" "is refused"
done
exits 2 "g.gz through a pipe" sh -c 'cat "$1" | "$B/lbworker" tokenize --tokenizer "$2" -o "$3" /dev/stdin' sh \
	"$T/mixed/g.gz" "$T/tekken.json" "$T/of-others"
is "$err" "lbworker: /dev/stdin: is a Parquet file, which is not read: text, JSON lines, .gz and .zst are" "is refused, too"
exits 2 "h.zstd, which is named" lbworker tokenize --tokenizer "$T/tekken.json" -o "$T/of-others" "$T/mixed/h.zstd"
is "$err" "lbworker: $T/mixed/h.zstd: is zstd by another name than *.zst" "is refused"
exits 0 "and in a folder" lbworker tokenize --tokenizer "$T/tekken.json" -o "$T/of-many" "$T/mixed"
like "$out" " in 1 document for training" "left out"
like "$err" "7 files in all are left out: no texts" "as is said"
mkdir "$T/json"
printf '{"text":"the"}\n' | gzip >"$T/json/c4-train.00000-of-00001.json.gz"
exits 0 "JSON lines by another name" lbworker tokenize --tokenizer "$T/tekken.json" -o "$T/of-json" "$T/json"
like "$err" "c4-train.00000-of-00001.json.gz: is JSON, and read as text, as it stands; --field text reads the texts of JSON lines" \
	"are read as they stand, which is said"
exits 0 "with --field" lbworker tokenize --tokenizer "$T/tekken.json" -o "$T/of-field" --field text "$T/json"
unlike "$err" "is JSON" "nothing is said"
done_testing
