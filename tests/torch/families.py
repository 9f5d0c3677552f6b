#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""families.py - models of transformers, as it saves them, through lbworker and back.

    python3 tests/torch/families.py --lbworker build/lbworker

Each family: a small random model is saved by transformers; lbworker converts it, which must give the
same tensors, and computes logits of it; transformers computes them from both folders. Needs the
packages torch, transformers and safetensors; `make check-torch` runs it.
"""
import argparse
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file

TOLERANCE = 1e-4
SIZES = dict(vocab_size=256, hidden_size=48, num_hidden_layers=7, num_attention_heads=4,
             num_key_value_heads=2, intermediate_size=80, max_position_embeddings=128,
             rms_norm_eps=1e-6, pad_token_id=None, bos_token_id=None, eos_token_id=None)
GEMMA = dict(head_dim=20, sliding_window=16, query_pre_attn_scalar=20)
FAMILIES = {
    "llama": dict(),
    "mistral": dict(sliding_window=16),
    "qwen3": dict(head_dim=20, tie_word_embeddings=True),
    "olmo2": dict(),
    "gemma2": GEMMA,
    "qwen3_moe": dict(head_dim=20, num_experts=9, num_experts_per_tok=3, moe_intermediate_size=28,
                      norm_topk_prob=True, mlp_only_layers=[0, 1]),
    "dots1": dict(n_routed_experts=9, num_experts_per_tok=3, moe_intermediate_size=28, n_shared_experts=2,
                  norm_topk_prob=True, routed_scaling_factor=2.5, first_k_dense_replace=1),
    "gemma3_text": GEMMA | dict(rope_scaling=dict(rope_type="linear", factor=8.0)),
}


def check_sight(lbworker):
    """The text part of a Gemma 3 that also sees."""
    with tempfile.TemporaryDirectory() as folder:
        text = {**SIZES, **GEMMA, "num_hidden_layers": 2, "pad_token_id": 0}
        config = transformers.Gemma3Config(
            text_config=text, vision_config=dict(hidden_size=32, intermediate_size=32, num_hidden_layers=1,
                                                 num_attention_heads=2, image_size=28, patch_size=14),
            mm_tokens_per_image=4, image_token_index=255)
        model = transformers.Gemma3ForConditionalGeneration(config)
        model.save_pretrained(folder + "/sees")
        subprocess.run([lbworker, "convert", folder + "/sees", folder + "/text"], check=True, stdout=subprocess.DEVNULL)
        alone = transformers.AutoModelForCausalLM.from_pretrained(folder + "/text")
        ids = torch.arange(1, 60).view(1, -1)
        with torch.no_grad():
            worst = (alone(ids).logits - model(ids).logits).abs().max().item()
        assert type(alone).__name__ == "Gemma3ForCausalLM" and worst < TOLERANCE, (type(alone), worst)
        print("ok gemma3 that also sees: its text part, logits %.1e" % worst)


def save(kind, own, folder):
    config = transformers.AutoConfig.for_model(kind, **{**SIZES, **own})
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.add_(torch.randn_like(buffer) * 0.15)
    model.save_pretrained(folder)


def logits(folder, tokens):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        return model(tokens.long()[None]).logits[0], type(model).__name__


def check(lbworker, kind, own, folder):
    theirs, ours = f"{folder}/{kind}", f"{folder}/{kind}-ours"
    save(kind, own, theirs)
    subprocess.run([lbworker, "convert", theirs, ours], check=True, stdout=subprocess.DEVNULL)
    a, b = (load_file(f"{at}/model.safetensors") for at in (theirs, ours))
    same = a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)
    subprocess.run([lbworker, "eval", ours, f"{folder}/data.tokens", "--seq-len", "64", "--samples",
                    "1", "--logits", f"{folder}/{kind}.safetensors"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    out = load_file(f"{folder}/{kind}.safetensors")
    gaps = []
    for at in (theirs, ours):
        have, name = logits(at, out["tokens"])
        gaps.append((have - out["logits"]).abs().max().item())
    print(f"{name}: tensors {'the same' if same else 'DIFFER'}, logits up to "
          f"{have.abs().max().item():.2f}, off by {max(gaps):.1e}", flush=True)
    return same and max(gaps) <= TOLERANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lbworker", required=True)
    lbworker = parser.parse_args().lbworker
    torch.manual_seed(3)
    torch.set_num_threads(1)
    transformers.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/text", "wb") as f:
            f.write(bytes((i * i + 7 * i) % 256 for i in range(4000)))
        subprocess.run([lbworker, "prepare", f"{folder}/text", "--out", f"{folder}/data.tokens"],
                       check=True, stdout=subprocess.DEVNULL)
        good = [check(lbworker, kind, own, folder) for kind, own in FAMILIES.items()]
    check_sight(lbworker)
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
