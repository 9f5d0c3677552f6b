#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""goldens.py FOLDER - small tokenizers that the libraries of others trained, documents, and the tokens they make.

Wants what `make check-text` installs. tests/system/text.t compares tests/golden/text with lbworker's tokens."""
import json
import random
import sys
import tempfile

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import check
import components

SIZE = 400
# of components.MODELS: what is there that the patterns of check.py have not
MODELS = {"bloom": "BLOOM", "deepseek": "DeepSeek V3", "falcon": "Falcon", "gemma": "Gemma"}


def trained(name, sample):
    tok = Tokenizer(models.BPE(ignore_merges=name == "llama3"))
    if name == "qwen2":
        tok.normalizer = normalizers.NFC()
    pattern = check.PATTERNS[name]
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    tok.pre_tokenizer = level if pattern is None else pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), level])
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(sample, trainers.BpeTrainer(
        vocab_size=SIZE, show_progress=False, special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tok.add_tokens([AddedToken("x1", normalized=False), AddedToken("of and", normalized=True, single_word=True),
                    AddedToken("!!!", lstrip=True, rstrip=True)])
    tok.encode_special_tokens = True
    return tok


def main(folder):
    r = random.Random(3)
    sample = [check.document(r) for _ in range(4000)]
    docs = [check.document(r).replace("\0", "") for _ in range(110)] + ["", "<|endoftext|>of and x1!!! "]
    with open(folder + "/documents.jsonl", "w") as out:
        for d in docs:
            out.write(json.dumps({"n": len(d), "text": d}) + "\n")
    peers = {}
    for name in check.PATTERNS:
        tok = trained(name, sample)
        open("%s/%s.json" % (folder, name), "w").write(tok.to_str())
        peers[name] = [tok.encode(d, add_special_tokens=False).ids for d in docs]
    for name, model in MODELS.items():
        parts = components.MODELS[model]
        o = components.trained([d.replace("\0", "") for d in sample], *parts, size=SIZE)
        if len(parts) > 2:
            o["decoder"] = components.state(parts[2])
        open("%s/%s.json" % (folder, name), "w").write(json.dumps(o, ensure_ascii=False))
        tok = Tokenizer.from_file("%s/%s.json" % (folder, name))
        tok.encode_special_tokens = True
        peers[name] = [tok.encode(d, add_special_tokens=False).ids for d in docs]
    with tempfile.TemporaryDirectory() as scratch:
        with open(scratch + "/sample", "w") as out:
            out.write("\n".join(s.replace("\n", " ").replace("\0", "") for s in sample))
        sentencepiece.SentencePieceTrainer.train(
            input=scratch + "/sample", model_prefix=scratch + "/m", vocab_size=700, model_type="bpe",
            byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
            character_coverage=0.98, minloglevel=2)
        model = open(scratch + "/m.model", "rb").read()
    open(folder + "/sentencepiece.model", "wb").write(model)
    sp = sentencepiece.SentencePieceProcessor(model_proto=model)
    peers["sentencepiece"] = [sp.encode(d) for d in docs]
    for name, tokens in peers.items():
        with open("%s/%s.tokens.txt" % (folder, name), "w") as out:
            for ids in tokens:
                out.write(" ".join(map(str, ids)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
