#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check.py --lbworker FILE - what lbworker convert writes, read by PyTorch, and the other way (make check-torch).

Models of several shapes go out as Meta's, LitGPT's, torchtitan's and torch.save's files: torch.load(weights_only=True), also with
mmap, finds every tensor with the bits that transformers wrote; files of PyTorch come in with the same bits."""
import argparse
import os
import subprocess
import tempfile

import torch
import torch.distributed.checkpoint as dcp
import transformers
from safetensors.torch import load_file

import goldens

SHAPES = [  # vocabulary, width, feed-forward, layers, heads, key/value heads, tied, head_dim
    (40, 16, 24, 2, 2, 1, False, None), (1000, 64, 136, 3, 8, 8, True, None), (77, 48, 99, 1, 6, 2, False, None),
    (50, 32, 64, 2, 4, 2, True, None), (3000, 256, 680, 2, 4, 1, False, None)]
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
DCP = "__0_0.distcp"  # ours has one file
FILES = {"meta": "consolidated.00.pth", "litgpt": "lit_model.pth", "torch": "pytorch_model.bin", "dcp": DCP}


def same(a, b):
    assert sorted(a) == sorted(b), sorted(set(a) ^ set(b))
    for name in a:
        assert a[name].dtype == b[name].dtype and torch.equal(a[name], b[name]), name


def check(lbworker, shape, dtype, scratch):
    vocab, dim, ffn, layers, heads, groups, tied, size = shape
    config = transformers.LlamaConfig(
        vocab_size=vocab, hidden_size=dim, intermediate_size=ffn, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=groups, tie_word_embeddings=tied, initializer_range=0.3)
    model = transformers.LlamaForCausalLM(config).to(TYPES[dtype])
    model.save_pretrained(scratch + "/hf")
    state = {k: v.clone() for k, v in model.state_dict().items()}
    theirs = {"meta": goldens.to_meta(state, config), "litgpt": goldens.to_litgpt(state, config), "torch": state}
    theirs["dcp"] = theirs["meta"]

    def convert(*words):
        subprocess.run([lbworker, "convert", *words, "--dtype", dtype], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    for name, file in FILES.items():
        out = "%s/%s" % (scratch, name)
        convert(scratch + "/hf", out, "--to", name)
        if name == "dcp":
            have = {k: torch.zeros_like(v) for k, v in theirs[name].items()}
            dcp.load(have, checkpoint_id=out, no_dist=True)
            same(have, theirs[name])
            dcp.save(theirs[name], checkpoint_id=out, no_dist=True)
        else:
            for mmap in (False, True):
                same(torch.load("%s/%s" % (out, file), weights_only=True, mmap=mmap), theirs[name])
            torch.save(theirs[name], "%s/%s" % (out, file))  # now as PyTorch writes it
        convert(out, out + "-back")
        back = load_file(out + "-back/model.safetensors")
        if tied:
            back["lm_head.weight"] = back["model.embed_tokens.weight"]
        same(back, state)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lbworker", required=True)
    lbworker = p.parse_args().lbworker
    for shape in SHAPES:
        for dtype in TYPES:
            with tempfile.TemporaryDirectory() as scratch:
                check(lbworker, shape, dtype, scratch)
            print("ok %s %s: four layouts, out and in to the bit" % (shape, dtype), flush=True)


main()
