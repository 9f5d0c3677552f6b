#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check.py - lbworker tokenize beside Hugging Face's tokenizers, tiktoken and SentencePiece.

    check.py --lbworker FILE [--documents N] [--seed K] [--every K] [--tokenizers FOLDER] [--done FILE] [--speed]

Each tokenizer makes tokens of the same documents: N invented ones of many kinds, and every code point in several
surroundings. Tokenizers are trained on the spot by Hugging Face's library with the split patterns of well-known
models; those of real models are looked for in --tokenizers (*.json, *.tiktoken, *.model). Says how many documents
differ, prints the first, and exits 1 if any does. --done: a list
of tokenizers that have passed, which are left out and added to, so that hours can be had in pieces. --speed:
megabytes a second of one core, beside the same."""
import argparse
import base64
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time

import tiktoken
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

CL = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
U, L = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O = ("[^\\r\\n\\p{L}\\p{N}]?" + U + "*" + L + "+%s|[^\\r\\n\\p{L}\\p{N}]?" + U + "+" + L + "*%s|\\p{N}%s|"
     r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERNS = {
    "gpt2": None,
    "llama3": CL % "{1,3}",
    "qwen2": CL % "",
    "o200k": O % (CONTRACTIONS, CONTRACTIONS, "{1,3}"),
    "tekken": O % ("", "", ""),
    "unknown": r"\p{L}+|\p{N}{1,2}|[^\p{L}\p{N}\s]+|\s+",
}
# (vocabulary of a tiktoken file, name of the pattern as tiktoken has it)
TIKTOKEN = {50256: "r50k", 50280: "r50k", 100256: "cl100k", 199998: "o200k", 128000: "llama3", 200000: "o200k",
            151643: "qwen2"}


def tiktoken_pattern(name):
    import tiktoken_ext.openai_public as public
    if name in ("llama3", "qwen2"):
        return PATTERNS[name]
    if name == "r50k":
        return public.r50k_pat_str
    keep = public.load_tiktoken_bpe
    public.load_tiktoken_bpe = lambda *a, **k: {}  # only the pattern is wanted
    try:
        return {"cl100k": public.cl100k_base, "o200k": public.o200k_base}[name]()["pat_str"]
    finally:
        public.load_tiktoken_bpe = keep


# --- documents -------------------------------------------------------------------------------------------------
WORDS = ("the of and to in is that it was for on are as with his they I at be this have from or one had by word but "
         "not what all were we when your can said there use an each which she do how their if will up other about out "
         "many then them these so some her would make like him into time has look two more write go see number no way "
         "could people my than first water been call who oil its now find long down day did get come made may part "
         "Ünïcödé naïve façade Straße Привет мир Здравствуйте κόσμος שלום مرحبا हिन्दी ไทย 日本語 中文 한국어 Việt").split()
ODD = ["'s", "'S", "'ll", "'LL", "'ſ", "don't", "I'VE", "\u00a0", "\u2003", "\u3000", "\r\n", "\n\n\n", "\t\t", "   ",
       "  \n  ", " \r ", "\x0b", "\x1c", "\x85", "1234567", "3.14", "½", "²", "Ⅻ", "٣٤", "e\u0301", "\u0301\u0323",
       "A\u030a", "\u1100\u1161\u11a8", "ﬁ", "ǅ", "ʰ", "ª", "\u200d", "👩‍👩‍👧", "🇩🇪", "!!!", "//", "/\n", "->",
       "<|endoftext|>", "</s>", "<s>", "<unk>", "<|im_start|>", "▁", "▁▁", "\ufffd", "\ue000", "\U000e0001", "\0"]


def document(r):
    kind = r.randrange(8)
    if kind == 0:
        return "".join(chr(r.choice([r.randrange(0x250), r.randrange(0xD800), r.randrange(0xE000, 0x110000)]))
                       for _ in range(r.randrange(30)))
    if kind == 1:
        return "".join(r.choice(ODD) for _ in range(r.randrange(12)))
    if kind == 2:
        return "".join(r.choice(ODD + WORDS + [" "]) for _ in range(r.randrange(25)))
    if kind == 3:
        return "".join(r.choice("abAB ,.'\n\t09é中ʰ\u0301") for _ in range(r.randrange(60)))
    if kind == 4:
        return r.choice("aA0 .\n中é") * r.randrange(200)
    if kind == 5:
        return "\n".join("    " * r.randrange(4) + "x%d = f(%r)" % (r.randrange(1000), r.random()) for _ in range(5))
    return " ".join(r.choice(WORDS) + r.choice(["", "", "", ",", ".", "'s", "!\n"]) for _ in range(r.randrange(60)))


def code_points(every):
    for c in range(0x110000):
        if not 0xD800 <= c < 0xE000 and (c < 0x400 or c % every == 0):
            x = chr(c)
            yield "%sa %s1%sA '%sb\n%s%s e%s\u0323 z%s" % ((x,) * 8)


def documents(count, seed, every):
    r = random.Random(seed)
    return [document(r) for _ in range(count)] + list(code_points(every))


# --- lbworker --------------------------------------------------------------------------------------------------
def read_shards(folder):
    """the tokens of one document after another"""
    for name in sorted(os.listdir(folder)):
        data = open(os.path.join(folder, name), "rb").read()
        magic, version, width, tokens, docs = struct.unpack_from("<8sIIQQ", data)
        assert magic == b"LBTOKENS", name
        end = 64 + tokens * width
        ids = memoryview(data)[64:end].cast({1: "B", 2: "H", 4: "I"}[width])
        index = struct.unpack_from("<%dQ" % (docs + 1), data, (end + 7) // 8 * 8)
        for a, b in zip(index, index[1:]):
            yield ids[a:b].tolist()


class Refused(Exception):
    pass


def ours(lbworker, tokenizer, jsonl, scratch, extra=()):
    folder = os.path.join(scratch, "out")
    subprocess.run(["rm", "-rf", folder], check=True)
    done = subprocess.run([lbworker, "tokenize", "--tokenizer", tokenizer, jsonl, "-o", folder, "--end", "none",
                           *extra], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode == 2:
        raise Refused(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return read_shards(os.path.join(folder, "train"))


# --- peers -----------------------------------------------------------------------------------------------------
def trained(name, pattern, scratch, sample):
    tok = Tokenizer(models.BPE(ignore_merges=name == "llama3"))
    if name == "qwen2":
        tok.normalizer = normalizers.NFC()
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    tok.pre_tokenizer = level if pattern is None else pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), level])
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(sample, trainers.BpeTrainer(
        vocab_size=3000, show_progress=False, special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tok.add_tokens([AddedToken("x1", normalized=False), AddedToken("of and", normalized=True, single_word=True),
                    AddedToken("!!!", lstrip=True, rstrip=True)])
    path = os.path.join(scratch, name + ".json")
    tok.save(path)
    return path


def peer_of(path):
    """(name, function from a list of texts to lists of tokens), or None for a file that nobody reads"""
    with open(path, "rb") as f:
        head = f.read(1)
    if head == b"{":
        tok = Tokenizer.from_file(path)
        tok.encode_special_tokens = True
        return "tokenizers", lambda texts: [e.ids for e in tok.encode_batch(texts, add_special_tokens=False)]
    if head == b"\n":
        import sentencepiece
        sp = sentencepiece.SentencePieceProcessor(model_file=path)
        return "sentencepiece", lambda texts: sp.encode(texts)
    ranks = {}
    for line in open(path, "rb"):
        if line.strip():
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
    name = TIKTOKEN.get(len(ranks))
    if name is None:
        return None
    enc = tiktoken.Encoding(name, pat_str=tiktoken_pattern(name), mergeable_ranks=ranks, special_tokens={})
    return "tiktoken", lambda texts: enc.encode_ordinary_batch(texts, num_threads=2)


def compare(path, name, lbworker, docs, jsonl, scratch):
    found = peer_of(path)
    if found is None:
        print("%-34s left out: nobody here knows its pattern" % name)
        return 0
    peer, encode = found
    try:
        mine = ours(lbworker, path, jsonl, scratch)
    except Refused as e:
        print("%-34s refused: %s" % (name, e))
        return 0
    wrong = 0
    for at in range(0, len(docs), 20000):
        batch = docs[at:at + 20000]
        for text, theirs in zip(batch, encode(batch)):
            own = next(mine, None)
            if theirs != own:
                wrong += 1
                if wrong <= 3:
                    print("# %s: %r\n#   %s: %s\n#   lbworker: %s" % (name, text, peer, theirs[:40], own and own[:40]))
    wrong += sum(1 for _ in mine)  # more than there are
    print("%-34s beside %-13s %8d documents, %d differ" % (name, peer, len(docs), wrong), flush=True)
    return wrong


def as_tiktoken(path, name):
    """tiktoken with the vocabulary of a tokenizer that trained() made, or None"""
    if name not in PATTERNS or name == "unknown":
        return None
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    byte = {chr(b): b for b in seen}
    byte.update({chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in seen)})
    vocab = json.load(open(path))["model"]["vocab"]
    ranks = {bytes(byte[c] for c in t): i for t, i in vocab.items() if all(c in byte for c in t)}
    ranks.pop(b"<|endoftext|>", None)
    enc = tiktoken.Encoding(name, pat_str=PATTERNS[name] or tiktoken_pattern("r50k"), mergeable_ranks=ranks,
                            special_tokens={})
    return lambda texts: [enc.encode_ordinary(t) for t in texts]


def processor_seconds(what):
    """ours and that of programs started"""
    before = os.times()
    what()
    return sum(os.times()[:4]) - sum(before[:4])


def learning(lbworker, scratch, text, size=8192):
    """train-tokenizer beside Hugging Face's trainer"""
    path = os.path.join(scratch, "learn.txt")
    open(path, "w", newline="").write(text)
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(PATTERNS["llama3"]), "isolated"),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=["<|endoftext|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    both = [], []
    for _ in range(3):  # alternating
        both[0].append(processor_seconds(lambda: subprocess.run(
            [lbworker, "train-tokenizer", path, "-o", path + ".json", "--size", str(size)], check=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)))
        both[1].append(processor_seconds(lambda: tok.train([path], trainer)))
    mine, theirs = min(both[0]), min(both[1])
    print("train-tokenizer, %d tokens of %.1f MB     lbworker %.2f s of processor time, tokenizers %.2f: %.1f times"
          % (size, len(text.encode()) / 1e6, mine, theirs, theirs / mine), flush=True)


def speed(path, name, lbworker, scratch, text):
    peer, encode = peer_of(path)
    other = as_tiktoken(path, name)
    docs = [text[i:i + 100000] for i in range(0, len(text), 100000)]
    jsonl = os.path.join(scratch, "speed.txt")
    # lbworker reads them so many times over: it is a program that starts, and they are functions
    times = max(1, 60000000 // len(text))
    open(jsonl, "w", newline="").write("\x1e".join(docs * times))
    size = len(text.encode()) / 1e6
    best = {}
    for _ in range(3):  # alternating
        before = os.times()
        try:
            ours(lbworker, path, jsonl, scratch, ["--threads", "1", "--separator", "\x1e"])
        except Refused as e:
            print("%-34s refused: %s" % (name, e))
            return
        after = os.times()
        mine = after.children_user + after.children_system - before.children_user - before.children_system
        before = time.process_time()
        encode(docs)
        best.setdefault("lbworker", []).append(size * times / mine)
        best.setdefault(peer, []).append(size / (time.process_time() - before))
        if other:
            best.setdefault("tiktoken", []).append(size / processor_seconds(lambda: other(docs)))
    mine = max(best.pop("lbworker"))
    print("%-34s lbworker %6.1f MB/s of processor time (start and writing included), %s" % (name, mine, ", ".join(
        "%s %.1f: %.1f times" % (p, max(r), mine / max(r)) for p, r in best.items())), flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lbworker", required=True)
    p.add_argument("--documents", type=int, default=1000000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--every", type=int, default=1, help="of the code points each K-th only")
    p.add_argument("--tokenizers")
    p.add_argument("--speed", action="store_true")
    p.add_argument("--only")
    p.add_argument("--done")
    p.add_argument("--text", help="for --speed; without it, invented sentences")
    a = p.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true" if not a.speed else "false")
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        r = random.Random(7)
        sample = [document(r) for _ in range(20000)]
        paths = [(n, trained(n, pattern, scratch, sample)) for n, pattern in PATTERNS.items()]
        for root, _, files in os.walk(a.tokenizers or scratch + "/none"):
            paths += [(f, os.path.join(root, f)) for f in sorted(files)]
        paths = [(n, f) for n, f in paths if not a.only or a.only in n]
        if a.speed:
            text = open(a.text, encoding="utf8", errors="replace").read() if a.text else " ".join(
                r.choice(WORDS[:120]) + r.choice(["", "", "", ",", ".\n"]) for _ in range(3000000))
            for name, path in paths:
                if peer_of(path):
                    speed(path, name, a.lbworker, scratch, text)
            learning(a.lbworker, scratch, text)
            return 0
        # A lone NUL has no place in the JSON that lbworker reads.
        docs = [d.replace("\0", "") for d in documents(a.documents, a.seed, a.every)]
        jsonl = os.path.join(scratch, "docs.jsonl")
        with open(jsonl, "w") as out:
            for d in docs:
                out.write(json.dumps({"text": d}) + "\n")
        passed = open(a.done).read().split("\n") if a.done and os.path.exists(a.done) else []
        paths = [(n, f) for n, f in paths if n not in passed]
        for name, path in paths:
            differ = compare(path, name, a.lbworker, docs, jsonl, scratch)
            wrong += differ
            if a.done and not differ:
                open(a.done, "a").write(name + "\n")
    print("%d passed, %d failed" % (len(paths) * len(docs) - wrong, wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
