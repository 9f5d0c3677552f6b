#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Loads an exported model with transformers and compares logits with those of lbworker.

    lbworker convert CHECKPOINT EXPORT
    lbworker eval EXPORT DATA --seq-len 64 --samples 1 --logits LOGITS.safetensors
    transformers_check.py EXPORT LOGITS.safetensors

Needs the packages torch, transformers and safetensors, so it is no part of `make check`.
"""
import sys

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

TOLERANCE = 1e-4


def main():
    ours = load_file(sys.argv[2])
    model = AutoModelForCausalLM.from_pretrained(sys.argv[1], torch_dtype=torch.float32).eval()
    with torch.no_grad():
        theirs = model(ours["tokens"].long()[None]).logits[0]
    gap = (theirs - ours["logits"]).abs().max().item()
    print(f"{type(model).__name__}: {tuple(theirs.shape)} logits up to "
          f"{theirs.abs().max().item():.3f}, largest difference {gap:.2e}")
    sys.exit(0 if gap <= TOLERANCE else 1)


if __name__ == "__main__":
    main()
