#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""components.py - every component that Hugging Face's tokenizers can put into a tokenizer.json, and those that
well-known models put there: each makes the tokens of its own library, or is refused in one line with its name.

    components.py --lbworker FILE [--documents N] [--seed K] [--every K] [--only NAME]

Components are made by the library itself, so one that it gained since is noticed: it has no row here. A tokenizer is
trained with each, and its tokens compared as check.py compares them. The last line counts."""
import argparse
import json
import os
import random
import sys
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import check

N, P, D = normalizers, pre_tokenizers, decoders
LEVEL = P.ByteLevel(add_prefix_space=False, use_regex=False)


def split(pattern, behavior="isolated", invert=False):
    return P.Split(Regex(pattern), behavior, invert)


# --- what stands in the files of well-known models -----------------------------------------------------------------
LLAMA = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
GEMMA = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse()])
MODELS = {
    "BLOOM": (None, P.Sequence([split(" ?[^(\\s|[.,!?…。，、।۔،])]+"), LEVEL])),
    "CodeGen, Phi-2": (None, P.ByteLevel(add_prefix_space=False)),
    "Cohere": (N.NFC(), P.Sequence([P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False)])),
    "DeepSeek LLM": (None, P.Sequence([
        split("[\r\n]"),
        split("\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-Ⴥ]+"),
        split("\\s?[!-/:-~！-／：-～‘-‟　-。]+"), split("\\s+$"), split("[一-龥ࠀ-一가-퟿]+"),
        P.Digits(individual_digits=True), LEVEL])),
    "DeepSeek V3": (None, P.Sequence([
        split("\\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"),
        split("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
              " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"), LEVEL])),
    "Falcon": (None, P.Sequence([P.Punctuation("contiguous"), P.ByteLevel(add_prefix_space=False),
                                 P.Digits(individual_digits=False), split("[0-9][0-9][0-9]")])),
    "Gemma": (N.Replace(" ", "▁"), P.Split(" ", "merged_with_previous"), GEMMA),
    "GPT-4 as Xenova wrote it": (None, P.Sequence([split(check.PATTERNS["llama3"], "removed", True), LEVEL])),
    "GPT-NeoX, OLMo": (N.NFC(), P.ByteLevel(add_prefix_space=False)),
    "Llama 2, Mistral 0.1": (N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")]), None, LLAMA),
    "Mistral 0.3": (None, P.Metaspace(prepend_scheme="first", split=False), LLAMA),
    "StarCoder, SmolLM": (None, P.Sequence([P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False)])),
    "XGLM without its table": (N.Sequence([N.Replace(Regex(" {2,}"), " "), N.Strip(False, True)]),
                               P.Metaspace(), D.Metaspace()),
    "the library's quick tour": (None, P.Whitespace()),
}
# --- every class of the library: made, or the name that refuses it --------------------------------------------------
NORMALIZERS = {
    "BertNormalizer": [N.BertNormalizer()], "ByteLevel": [N.ByteLevel()], "Lowercase": [N.Lowercase()],
    "NFC": [N.NFC()], "NFD": [N.NFD()], "NFKC": [N.NFKC()], "NFKD": [N.NFKD()], "Nmt": [N.Nmt()],
    "Precompiled": [{"type": "Precompiled", "precompiled_charsmap": "AAAA"}],
    "Prepend": [N.Prepend("▁"), N.Prepend("the ")],
    "Replace": [N.Replace(" ", "▁"), N.Replace("a", "bb"), N.Replace(Regex("\\s+"), " "), N.Replace(Regex("[^\\S\\n]"), "")],
    "Sequence": [N.Sequence([]), N.Sequence([N.NFC(), N.Replace("e", "é"), N.NFC()]),
                 N.Sequence([N.Replace(" ", "▁"), N.Prepend("▁")]), N.Sequence([N.Replace(" ", "▁"), N.NFC()])],
    "Strip": [N.Strip(), N.Strip(True, False), N.Strip(False, True)],
    "StripAccents": [N.StripAccents()],
}
BEHAVIORS = ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]
PRE_TOKENIZERS = {
    "BertPreTokenizer": [P.BertPreTokenizer()],
    "ByteLevel": [P.ByteLevel(add_prefix_space=a, use_regex=b) for a in (False, True) for b in (False, True)],
    "CharDelimiterSplit": [P.CharDelimiterSplit("e")],
    "Digits": [P.Digits(individual_digits=False), P.Digits(individual_digits=True)],
    "FixedLength": [P.FixedLength(5)] if hasattr(P, "FixedLength") else [],
    "Metaspace": [P.Metaspace(prepend_scheme=s, split=b) for s in ("always", "first", "never") for b in (True, False)],
    "Punctuation": [P.Punctuation(b) for b in BEHAVIORS],
    "Sequence": [P.Sequence([P.WhitespaceSplit(), P.Punctuation(), P.Digits(individual_digits=True)]),
                 P.Sequence([P.ByteLevel(add_prefix_space=False), P.Punctuation(), split("[¡-¬]|\\d+")])],
    "Split": [P.Split(w, b, i) for w in ("e", " ", Regex("\\s+"), Regex("\\w+"), Regex("\\p{Lu}|\\p{N}{2,3}"))
              for b in BEHAVIORS for i in (False, True)] + [
        split("[^\\S\\r\\n]+|[\\d_]+|\\D"), split("[(\\[.,[!?]]+|\\u3042|\\P{L}{2}"), split("(?i:the|a)\\b"),
        split("(?<=a)b"), split("^a"), split("\\p{N}{1,3}+"), split("a*"), split("\\p{Han}+"), split("[^[:alpha:]]")],
    "UnicodeScripts": [P.UnicodeScripts()],
    "Whitespace": [P.Whitespace()],
    "WhitespaceSplit": [P.WhitespaceSplit()],
}
DECODERS = {
    "BPEDecoder": [D.BPEDecoder()], "ByteFallback": [D.ByteFallback()], "ByteLevel": [D.ByteLevel()],
    "CTC": [D.CTC()], "Fuse": [D.Fuse()], "Metaspace": [D.Metaspace()], "Replace": [D.Replace("▁", " ")],
    "Sequence": [LLAMA], "Strip": [D.Strip(" ", 1, 0)], "WordPiece": [D.WordPiece()],
}
POST_PROCESSORS = {
    "BertProcessing": [processors.BertProcessing(("<unk>", 0), ("<unk>", 0))], "ByteLevel": [processors.ByteLevel()],
    "RobertaProcessing": [processors.RobertaProcessing(("<unk>", 0), ("<unk>", 0))],
    "Sequence": [processors.Sequence([processors.ByteLevel()])],
    "TemplateProcessing": [processors.TemplateProcessing("<unk> $0", "$A $B", [("<unk>", 0)])],
}
MODEL_KINDS = {
    "BPE": [{}, {"continuing_subword_prefix": "##"}, {"end_of_word_suffix": "</w>"}, {"dropout": 0.1},
            {"fuse_unk": True}, {"ignore_merges": True}],
    "Unigram": [{"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]]}],
    "WordLevel": [{"type": "WordLevel", "vocab": {"<unk>": 0}, "unk_token": "<unk>"}],
    "WordPiece": [{"type": "WordPiece", "vocab": {"<unk>": 0}, "unk_token": "<unk>", "continuing_subword_prefix": "##",
                   "max_input_chars_per_word": 100}],
}
NOT_COMPONENTS = {"Normalizer", "PreTokenizer", "Decoder", "PostProcessor", "Model", "DecodeStream"}


def classes(module):
    return {n for n in dir(module) if isinstance(getattr(module, n), type)} - NOT_COMPONENTS


# --- tokenizers with them -----------------------------------------------------------------------------------------
def trained(sample, normalizer=None, pre=None, decoder=None, size=1000):
    """as a document of JSON; bytes where the pre-tokenizer makes them, else characters with bytes for what is none"""
    by_bytes = pre is not None and "ByteLevel" in json.dumps(state(pre))
    tok = Tokenizer(models.BPE() if by_bytes else models.BPE(unk_token="<unk>", byte_fallback=decoder is not None,
                                                             fuse_unk=decoder is not None))
    if isinstance(normalizer, dict):
        normalizer = None
    if normalizer is not None:
        tok.normalizer = normalizer
    if pre is not None:
        tok.pre_tokenizer = pre
    alphabet = P.ByteLevel.alphabet() if by_bytes else []
    special = ["<unk>"] + (["<0x%02X>" % i for i in range(256)] if decoder is not None and not by_bytes else [])
    tok.train_from_iterator(sample, trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=special,
                                                        initial_alphabet=alphabet, limit_alphabet=min(400, size - len(special) - 20)))
    tok.add_tokens([AddedToken("x1", normalized=False), AddedToken("of and", normalized=True, single_word=True),
                    AddedToken("!!!", lstrip=True, rstrip=True)])
    o = json.loads(tok.to_str())
    # bytes are tokens of the model, no words that stand in a text
    o["added_tokens"] = [t for t in o["added_tokens"] if not t["content"].startswith("<0x")]
    return o


def state(component):
    """its part of a tokenizer.json"""
    return component if isinstance(component, dict) else json.loads(component.__getstate__())


def rows(sample):
    """(name, what refuses it if it is refused, the tokenizer's document)"""
    for name, parts in MODELS.items():
        o = trained(sample, *parts)
        if len(parts) > 2:
            o["decoder"] = state(parts[2])
        yield name, None, o
    for name, made in NORMALIZERS.items():
        for c in made:
            o = trained(sample, c, None)
            o["normalizer"] = state(c)
            yield "normalizer " + json.dumps(state(c), ensure_ascii=False), name, o
    for name, made in PRE_TOKENIZERS.items():
        for c in made:
            yield "pre_tokenizer " + json.dumps(state(c), ensure_ascii=False), name, trained(sample, None, c)
    bytes_, blanks = trained(sample, None, P.ByteLevel()), trained(sample, *MODELS["Llama 2, Mistral 0.1"][:2])
    for kind, table, base in (("decoder", DECODERS, blanks), ("post_processor", POST_PROCESSORS, blanks)):
        for name, made in table.items():
            for c in made:
                o = dict(bytes_ if name == "ByteLevel" else base)
                o[kind] = state(c)
                yield kind + " " + json.dumps(state(c), ensure_ascii=False), name, o
    for name, made in MODEL_KINDS.items():
        for c in made:
            o = dict(bytes_)
            o["model"] = dict(o["model"], **c) if name == "BPE" else c
            yield "model " + json.dumps(c), name, o


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lbworker", required=True)
    p.add_argument("--documents", type=int, default=5000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--every", type=int, default=64, help="of the code points each K-th only")
    p.add_argument("--only", default="")
    a = p.parse_args()
    counts = {"same": 0, "refused": 0, "wrong": 0}
    for module, table in ((N, NORMALIZERS), (P, PRE_TOKENIZERS), (D, DECODERS), (processors, POST_PROCESSORS),
                          (models, MODEL_KINDS)):
        for name in sorted(classes(module) - set(table)):
            print("wrong: %s.%s has no row here" % (module.__name__, name))
            counts["wrong"] += 1
    with tempfile.TemporaryDirectory() as scratch:
        r = random.Random(7)
        # a word of a lone NUL has no place in the JSON that lbworker reads
        sample = [check.document(r).replace("\0", "") for _ in range(2000)]
        docs = [d.replace("\0", "") for d in check.documents(a.documents, a.seed, a.every)]
        jsonl, path = os.path.join(scratch, "docs.jsonl"), os.path.join(scratch, "tokenizer.json")
        with open(jsonl, "w") as out:
            for d in docs:
                out.write(json.dumps({"text": d}) + "\n")
        for name, refuses, document in rows(sample):
            if a.only not in name:
                continue
            with open(path, "w") as out:
                json.dump(document, out)
            said = one(path, refuses, a.lbworker, docs, jsonl, scratch)
            counts[said.split()[0].rstrip(":")] += 1
            print("%s  [%s]" % (said, name[:150]), flush=True)
    print("%d the same, %d refused by name, %d wrong" % (counts["same"], counts["refused"], counts["wrong"]))
    return 1 if counts["wrong"] else 0


def one(path, refuses, lbworker, docs, jsonl, scratch):
    try:
        mine = list(check.ours(lbworker, path, jsonl, scratch))
    except check.Refused as e:
        text = str(e)
        named = refuses is not None and "not supported" in text and text.startswith("lbworker: %s: " % path)
        return ("refused: " if named and "\n" not in text else "wrong: ") + text.replace(path + ": ", "")
    try:
        _, encode = check.peer_of(path)
    except BaseException as e:  # the library raises what is no Exception
        return "wrong: the library itself refuses it: %s" % e
    differ = 0
    first = ""
    for text, theirs, own in zip(docs, encode(docs), mine):
        if theirs != own:
            differ += 1
            first = first or "%r: %s against ours %s" % (text[:60], theirs[:20], own[:20])
    if differ or len(mine) != len(docs):
        return "wrong: %d of %d documents differ, first %s" % (differ, len(docs), first)
    return "same"


if __name__ == "__main__":
    sys.exit(main())
