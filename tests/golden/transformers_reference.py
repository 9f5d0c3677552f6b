#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""transformers_reference.py - small models of transformers in float64; see golden.py for the files.

Its norms, softmaxes and rotary angles are cast to float32, whatever the model is in; here those
casts are to float64. Weights are random and rounded to fp32. Needs torch and transformers, only to
make the files again:

    python3 tests/golden/transformers_reference.py tests/golden

With a second argument, a folder, each model is saved there too, as transformers saves it.
"""
import sys

import torch

torch.float32 = torch.float = torch.float64  # what modules cast to when they are called
torch.Tensor.float = torch.Tensor.double

torch.set_num_threads(1)

import transformers  # noqa: E402
from golden import cross_entropy, make_weights, write_all  # noqa: E402

# What each row changes of the sizes below; windows and caps are small enough to bite.
SIZES = dict(vocab_size=37, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, intermediate_size=40, tie_word_embeddings=True,
             max_position_embeddings=64, rms_norm_eps=1e-5, pad_token_id=None, bos_token_id=None,
             eos_token_id=None)
MODELS = {
    "mistral": dict(type="mistral", batch=2, seq=9, sliding_window=4),
    "qwen3": dict(type="qwen3", batch=2, seq=9, head_dim=10),
    # heads narrower together than the model, untied
    "qwen3_odd": dict(type="qwen3", batch=3, seq=5, vocab_size=41, hidden_size=30, head_dim=6,
                      num_attention_heads=3, num_key_value_heads=1, intermediate_size=29,
                      tie_word_embeddings=False, num_hidden_layers=1),
    "olmo2": dict(type="olmo2", batch=2, seq=9, tie_word_embeddings=False),
    # norms multiply by 1 + weight
    "gemma2": dict(type="gemma2", norm_mean=0.0, batch=2, seq=9, head_dim=10, num_hidden_layers=3,
                   sliding_window=4, query_pre_attn_scalar=7, attn_logit_softcapping=1.5,
                   final_logit_softcapping=4.0, hidden_activation="gelu_pytorch_tanh"),
    "gemma3": dict(type="gemma3_text", norm_mean=0.0, batch=2, seq=9, head_dim=10, num_hidden_layers=3,
                   sliding_window=4, query_pre_attn_scalar=7, sliding_window_pattern=3,
                   rope_theta=300.0, rope_local_base_freq=50.0,
                   rope_scaling=dict(rope_type="linear", factor=8.0),
                   hidden_activation="gelu_pytorch_tanh"),
}
OWN = ("type", "batch", "seq", "vocab", "norm_mean")  # no keys of a configuration
built = {}


def model_of(s):
    """The model of a row; its own weights are not used."""
    key = id(s)
    if key not in built:
        own = {k: v for k, v in s.items() if k not in OWN}
        config = transformers.AutoConfig.for_model(s["type"], **{**SIZES, **own})
        config._attn_implementation = "eager"
        built[key] = transformers.AutoModelForCausalLM.from_config(config).double().eval()
    return built[key]


def shapes(s):
    return {name: tuple(w.shape) for name, w in model_of(s).named_parameters()}


def losses(tokens, targets, w, s):
    logits = torch.func.functional_call(model_of(s), w, (tokens,)).logits
    return cross_entropy(logits, targets)


def save_model(folder, name, s):
    model = model_of(s)
    gen = torch.Generator().manual_seed(20240517)
    weights = make_weights(shapes(s), gen, norm_mean=s.get("norm_mean", 1.0))
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.copy_(weights[key])
    model.save_pretrained(f"{folder}/{name}")


if __name__ == "__main__":
    for row in MODELS.values():
        row["vocab"] = row.get("vocab_size", SIZES["vocab_size"])
    write_all(sys.argv[1] if len(sys.argv) > 1 else "tests/golden", MODELS, shapes, losses)
    for name, row in MODELS.items():
        if len(sys.argv) > 2:
            save_model(sys.argv[2], name, row)
