#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""goldens.py FOLDER - one small Llama as transformers, Meta and LitGPT keep it, each written by PyTorch.

Wants torch, transformers and safetensors. tests/system/interchange.t converts them into each other. That the rows of
Meta's queries and keys stand right is shown here by Meta's own rotation, of neighbours as complex numbers."""
import json
import os
import sys

import torch
import transformers


def pairs(w, heads):
    """Hugging Face's order of a head's rows to Meta's: what its conversion script undoes."""
    rows, columns = w.shape
    return w.view(heads, 2, rows // heads // 2, columns).transpose(1, 2).reshape(rows, columns).clone()


def to_meta(state, config):
    table = {"self_attn.q_proj": "attention.wq", "self_attn.k_proj": "attention.wk", "self_attn.v_proj": "attention.wv",
             "self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3",
             "mlp.down_proj": "feed_forward.w2", "input_layernorm": "attention_norm",
             "post_attention_layernorm": "ffn_norm"}
    out = {"tok_embeddings.weight": state["model.embed_tokens.weight"], "norm.weight": state["model.norm.weight"],
           "output.weight": state["lm_head.weight"]}
    for layer in range(config.num_hidden_layers):
        for ours, theirs in table.items():
            w = state["model.layers.%d.%s.weight" % (layer, ours)]
            if theirs.endswith(("wq", "wk")):
                w = pairs(w, config.num_attention_heads if theirs.endswith("wq") else config.num_key_value_heads)
            out["layers.%d.%s.weight" % (layer, theirs)] = w
    return out


def to_litgpt(state, config):
    table = {"self_attn.o_proj": "attn.proj", "mlp.gate_proj": "mlp.fc_1", "mlp.up_proj": "mlp.fc_2",
             "mlp.down_proj": "mlp.proj", "input_layernorm": "norm_1", "post_attention_layernorm": "norm_2"}
    out = {"lm_head.weight": state["lm_head.weight"], "transformer.wte.weight": state["model.embed_tokens.weight"],
           "transformer.ln_f.weight": state["model.norm.weight"]}
    for layer in range(config.num_hidden_layers):
        a, b = "model.layers.%d." % layer, "transformer.h.%d." % layer
        out[b + "attn.qkv.weight"] = torch.cat([state[a + "self_attn.%s_proj.weight" % x] for x in "qkv"])
        for ours, theirs in table.items():
            out[b + theirs + ".weight"] = state[a + ours + ".weight"]
    return out


def norm(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def meta_forward(w, tokens, c):
    """Meta's model.py: neighbours of a head turn as complex numbers."""
    heads, groups, size = c.num_attention_heads, c.num_key_value_heads, c.hidden_size // c.num_attention_heads
    n = len(tokens)
    turn = torch.outer(torch.arange(n).double(), c.rope_parameters["rope_theta"] ** (
        -torch.arange(0, size, 2).double() / size))
    turn = torch.polar(torch.ones_like(turn), turn)

    def rotate(x):
        return torch.view_as_real(torch.view_as_complex(x.reshape(n, -1, size // 2, 2)) * turn[:, None]).flatten(2)

    h = w["tok_embeddings.weight"][tokens]
    for layer in range(c.num_hidden_layers):
        g = {k.split(".", 2)[2]: v for k, v in w.items() if k.startswith("layers.%d." % layer)}
        x = norm(h, g["attention_norm.weight"], c.rms_norm_eps)
        q = rotate((x @ g["attention.wq.weight"].T).view(n, heads, size))
        k = rotate((x @ g["attention.wk.weight"].T).view(n, groups, size)).repeat_interleave(heads // groups, 1)
        v = (x @ g["attention.wv.weight"].T).view(n, groups, size).repeat_interleave(heads // groups, 1)
        s = torch.einsum("qhd,khd->hqk", q, k) / size ** 0.5
        s = s.masked_fill(torch.triu(torch.ones(n, n), 1).bool(), -torch.inf).softmax(-1)
        h = h + torch.einsum("hqk,khd->qhd", s, v).reshape(n, -1) @ g["attention.wo.weight"].T
        x = norm(h, g["ffn_norm.weight"], c.rms_norm_eps)
        x = torch.nn.functional.silu(x @ g["feed_forward.w1.weight"].T) * (x @ g["feed_forward.w3.weight"].T)
        h = h + x @ g["feed_forward.w2.weight"].T
    return norm(h, w["norm.weight"], c.rms_norm_eps) @ w["output.weight"].T


def main(folder):
    torch.manual_seed(4)
    config = transformers.LlamaConfig(
        vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=False,
        initializer_range=0.3)
    model = transformers.LlamaForCausalLM(config).bfloat16()
    for name in ("hf", "torch", "meta", "litgpt"):
        os.makedirs("%s/%s" % (folder, name), exist_ok=True)
    model.save_pretrained(folder + "/hf")
    os.remove(folder + "/hf/generation_config.json")
    state = {k: v.clone() for k, v in model.state_dict().items()}
    os.system("cp %s/hf/config.json %s/torch" % (folder, folder))
    torch.save(model.state_dict(), folder + "/torch/pytorch_model.bin")  # an OrderedDict with _metadata
    meta = to_meta(state, config)
    torch.save(meta, folder + "/meta/consolidated.00.pth")
    json.dump({"dim": 16, "n_layers": 2, "n_heads": 2, "n_kv_heads": 1, "vocab_size": 40, "multiple_of": 8,
               "ffn_dim_multiplier": 0.5, "norm_eps": 1e-5, "rope_theta": 10000.0}, open(folder + "/meta/params.json", "w"))
    torch.save({"model": to_litgpt(state, config)}, folder + "/litgpt/lit_model.pth")
    with open(folder + "/litgpt/model_config.yaml", "w") as out:
        out.write("bias: false\nblock_size: 64\nhead_size: 8\nintermediate_size: 24\nmlp_class_name: LLaMAMLP\n"
                  "n_embd: 16\nn_head: 2\nn_layer: 2\nn_query_groups: 1\nname: small\nnorm_class_name: RMSNorm\n"
                  "norm_eps: 1.0e-05\npadded_vocab_size: 40\nparallel_residual: false\nrope_base: 10000\n"
                  "rotary_percentage: 1.0\nvocab_size: 40\n")
    tokens = torch.tensor([3, 17, 39, 0, 5, 5, 21])
    wide = transformers.LlamaForCausalLM(config)
    wide.load_state_dict(state)
    theirs = wide.double()(tokens[None]).logits[0]
    mine = meta_forward({k: v.double() for k, v in meta.items()}, tokens, config)
    worst = (theirs - mine).abs().max().item()
    assert worst < 1e-5, worst
    print("Meta's rotation and that of transformers differ by %.1e" % worst)


if __name__ == "__main__":
    main(sys.argv[1])
