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
    # a router with its loss; a loss of experts counts for the gradient only
    "qwen3_moe": dict(type="qwen3_moe", batch=2, seq=9, head_dim=10, num_experts=5, num_experts_per_tok=2,
                      moe_intermediate_size=12, norm_topk_prob=True, aux=0.5),
    "qwen3_moe_odd": dict(type="qwen3_moe", batch=3, seq=5, vocab_size=41, hidden_size=30, head_dim=6,
                          num_attention_heads=3, num_key_value_heads=1, intermediate_size=29,
                          tie_word_embeddings=False, num_experts=7, num_experts_per_tok=3,
                          moe_intermediate_size=11, mlp_only_layers=[0]),
    # the choice by scores and a bias, shared experts
    "dots1": dict(type="dots1", batch=2, seq=9, num_hidden_layers=3, num_key_value_heads=4, n_routed_experts=6,
                  num_experts_per_tok=3, moe_intermediate_size=10, n_shared_experts=2, norm_topk_prob=True,
                  routed_scaling_factor=1.7, first_k_dense_replace=1, sliding_window=None),
}
OWN = ("type", "batch", "seq", "vocab", "norm_mean", "aux")  # no keys of a configuration
FUSED = ("mlp.experts.gate_up_proj", "mlp.experts.down_proj")  # experts as modules hold them
BIAS = "e_score_correction_bias"
built = {}


def model_of(s):
    """The model of a row; its own weights are not used."""
    key = id(s)
    if key not in built:
        own = {k: v for k, v in s.items() if k not in OWN}
        config = transformers.AutoConfig.for_model(s["type"], **{**SIZES, **own})
        config._attn_implementation = config._experts_implementation = "eager"
        built[key] = transformers.AutoModelForCausalLM.from_config(config).double().eval()
    return built[key]


def held(s):
    """All that a model learns, by the names of its modules."""
    named = dict(model_of(s).named_parameters())
    return named | {name: b for name, b in model_of(s).named_buffers() if name.endswith(BIAS)}


def pieces(name, shape):
    """Names and shapes in a file of what a module holds: of each expert its matrices."""
    if not name.endswith(FUSED):
        return {name: tuple(shape)}
    folder, last = name.rsplit(".", 1)
    count, out, into = shape
    if last == "down_proj":
        return {f"{folder}.{e}.down_proj.weight": (out, into) for e in range(count)}
    return {f"{folder}.{e}.{side}_proj.weight": (out // 2, into)
            for e in range(count) for side in ("gate", "up")}


def fused(w, s):
    """The other way."""
    out = {}
    for name, t in held(s).items():
        parts = [w[piece] for piece in pieces(name, t.shape)]
        out[name] = parts[0] if len(parts) == 1 and t.dim() < 3 else torch.cat(parts).reshape(t.shape)
    return out


def shapes(s):
    return {piece: shape for name, t in held(s).items() for piece, shape in pieces(name, t.shape).items()}


def losses(tokens, targets, w, s):
    own = fused(w, s)
    aux = s.get("aux", 0)
    more = dict(output_router_logits=True) if aux else {}
    out = torch.func.functional_call(model_of(s), own, (tokens,), more)
    loss = cross_entropy(out.logits, targets)
    # a bias of the choice has no gradient
    loss = loss + 0 * sum(t.sum() for name, t in w.items() if name.endswith(BIAS))
    if aux:
        push = aux * out.aux_loss
        loss = loss + (push - push.detach())
    return loss


def save_model(folder, name, s):
    model = model_of(s)
    gen = torch.Generator().manual_seed(20240517)
    weights = make_weights(shapes(s), gen, norm_mean=s.get("norm_mean", 1.0))
    with torch.no_grad():
        for key, value in fused(weights, s).items():
            held(s)[key].copy_(value)
    model.save_pretrained(f"{folder}/{name}")


if __name__ == "__main__":
    for row in MODELS.values():
        row["vocab"] = row.get("vocab_size", SIZES["vocab_size"])
    write_all(sys.argv[1] if len(sys.argv) > 1 else "tests/golden", MODELS, shapes, losses)
    for name, row in MODELS.items():
        if len(sys.argv) > 2:
            save_model(sys.argv[2], name, row)
