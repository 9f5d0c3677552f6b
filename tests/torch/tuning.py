#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tuning.py --lbworker FILE - what lbworker trains beside plain weights, held against PyTorch and peft (make check-torch).

A mean of weights is torch.optim.swa_utils' EMA; adapters have peft's gradients, are trained as torch.optim.AdamW trains
peft's, and merge into what peft merges; a training goes out as a torchtitan checkpoint with moments and step, which
torch.distributed.checkpoint and AdamW take, and comes back with the same bits; Meta's files of several parts, out and in."""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import peft
import torch
import torch.distributed.checkpoint as dcp
import transformers
from safetensors.torch import load_file
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict, set_optimizer_state_dict
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import goldens

BATCH, SEQ, VOCAB, STEPS = 4, 32, 256, 6
CONFIG = """[training]
dataset_path = "%s"
local_batch_size = %d
seq_len = %d
steps = %d
max_norm = 0.5
[optimizer]
lr = 1e-2
[lr_scheduler]
warmup_steps = 0
decay_ratio = 0.0
[checkpoint]
interval = 1
keep_latest_k = 0
[metrics]
peak_tflops = 1
"""


def worst(a, b):
    assert sorted(a) == sorted(b), sorted(set(a) ^ set(b))
    return max((a[k].double() - b[k].double()).abs().max().item() / max(b[k].abs().max().item(), 1e-30) for k in a)


class Bench:
    """One data set that is a single batch, so that each step sees all of it, whatever the order."""
    def __init__(self, lbworker, folder):
        self.lbworker, self.folder = lbworker, folder
        torch.manual_seed(3)
        self.tokens = torch.randint(1, VOCAB, (BATCH * SEQ + 1,))
        pathlib.Path(folder, "text").write_bytes(bytes(self.tokens.tolist()))
        self.run("prepare", "--out", folder + "/data.tokens", folder + "/text")
        pathlib.Path(folder, "run.toml").write_text(CONFIG % (folder + "/data.tokens", BATCH, SEQ, STEPS))

    def run(self, *words, **env):
        return subprocess.run([self.lbworker, *words], check=True, env={**os.environ, **env}, capture_output=True,
                              text=True).stdout

    def train(self, name, *words):
        out = self.folder + "/" + name
        self.run("train", self.folder + "/run.toml", *words, LB_CHECKPOINT_DIR=out)
        return lambda step: "%s/step-%08d" % (out, step)

    def base(self, kind, **own):
        out = self.folder + "/" + kind
        config = transformers.AutoConfig.for_model(kind, **{**dict(
            vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            intermediate_size=48, initializer_range=0.2, pad_token_id=None, bos_token_id=None, eos_token_id=None,
            attn_implementation="eager"), **own})
        transformers.AutoModelForCausalLM.from_config(config).save_pretrained(out)
        return out

    def gradients(self, model):
        x, y = self.tokens[:-1].view(BATCH, SEQ), self.tokens[1:].view(BATCH, SEQ)
        logits = model(input_ids=x).logits
        torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]).float(), y.reshape(-1)).backward()


def check_ema(bench, base):
    at = bench.train("ema", "--init-from", base, "--optimizer.ema_decay", "0.75")
    model = transformers.AutoModelForCausalLM.from_pretrained(base)
    mean = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.75))
    for step in range(1, STEPS + 1):
        model.load_state_dict(load_file(at(step) + "/model.safetensors"))
        mean.update_parameters(model)
        error = worst(load_file(at(step) + "/model_ema.safetensors"), mean.module.state_dict())
        assert error < 3e-7, error
    bench.run("convert", at(STEPS), bench.folder + "/mean", "--weights", "ema")
    assert worst(load_file(bench.folder + "/mean/model.safetensors"), mean.module.state_dict()) < 3e-7
    print("ok a mean of weights over %d steps is torch's EMA: %.0e" % (STEPS, error))


def check_lora(bench, kind, base, targets):
    words = ["--init-from", base, "--lora.rank", "4", "--lora.alpha", "8", "--lora.target_modules", json.dumps(targets)]
    at = bench.train("lora-" + kind, *words)

    def theirs(step):
        model = transformers.AutoModelForCausalLM.from_pretrained(base, attn_implementation="eager")
        return peft.PeftModel.from_pretrained(model, at(step), is_trainable=True)

    def adapter(model):
        return {k.replace(".default", ""): v for k, v in model.named_parameters() if "lora_" in k}

    merged = theirs(STEPS).merge_and_unload().state_dict()
    ours = load_file(at(STEPS) + "/model.safetensors")
    merging = worst(ours, {k: merged[k] for k in ours})
    bench.run("convert", base, bench.folder + "/merged-" + kind, "--adapter", at(STEPS))
    converted = worst(load_file(bench.folder + "/merged-%s/model.safetensors" % kind), {k: merged[k] for k in ours})
    # from the first step on as torch.optim.AdamW goes on, with our moments of it
    model = theirs(1)
    params = adapter(model)
    optimizer = torch.optim.AdamW(params.values(), lr=1e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    moments = load_file(at(1) + "/optimizer.safetensors")
    for name, p in params.items():
        optimizer.state[p] = {"step": torch.tensor(1.0), "exp_avg": moments["exp_avg." + name].clone(),
                              "exp_avg_sq": moments["exp_avg_sq." + name].clone()}
    for step in range(2, STEPS + 1):
        bench.gradients(model)
        torch.nn.utils.clip_grad_norm_(params.values(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
    training = worst({k: v.detach() for k, v in params.items()}, load_file(at(STEPS) + "/adapter_model.safetensors"))
    assert merging < 1e-6 and converted < 1e-6 and training < 2e-4, (merging, converted, training)
    # an adapter that peft writes is merged, too
    theirs(STEPS).save_pretrained(bench.folder + "/peft-" + kind)
    bench.run("convert", base, bench.folder + "/again-" + kind, "--adapter", bench.folder + "/peft-" + kind)
    again = worst(load_file(bench.folder + "/again-%s/model.safetensors" % kind), {k: merged[k] for k in ours})
    assert again < 1e-6, again
    print("ok %s: adapters of %s: merged as peft does (%.0e; by convert %.0e), trained as AdamW would (%.0e)" % (
        kind, " ".join(targets), merging, converted, training))


class Named(torch.nn.Module):
    """Parameters of any names."""
    def __init__(self, tensors):
        super().__init__()
        for name, t in tensors.items():
            at = self
            *path, last = name.split(".")
            for part in path:
                if not hasattr(at, part):
                    at.add_module(part, torch.nn.Module())
                at = getattr(at, part)
            at.register_parameter(last, torch.nn.Parameter(torch.zeros_like(t)))


def check_dcp(bench, base):
    at = bench.train("whole", "--init-from", base)
    config = transformers.AutoConfig.from_pretrained(base)
    weights = load_file(at(STEPS) + "/model.safetensors")
    saved = load_file(at(STEPS) + "/optimizer.safetensors")
    for to in "dcp", "torchtitan":
        out = "%s/out-%s" % (bench.folder, to)
        bench.run("convert", at(STEPS), out, "--to", to, "--moments", "on")

        def named(state):
            state = goldens.to_meta(state, config)
            if to == "dcp":
                return state
            return {k.replace("output.", "lm_head.").replace("attention.w", "attention.qkv_linear.w")
                    .replace("qkv_linear.wo", "wo"): v for k, v in state.items()}

        want = named(weights)
        moments = [named({k[len(p):]: v for k, v in saved.items() if k.startswith(p)}) for p in
                   ("exp_avg.", "exp_avg_sq.")]
        model = Named(want)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1.0, betas=(0.5, 0.5), fused=True)
        for p in model.parameters():
            p.grad = torch.ones_like(p)
        optimizer.step()
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
        flat = StateDictOptions(flatten_optimizer_state_dict=True)
        state = {**model.state_dict(), "optimizer": get_optimizer_state_dict(model, optimizer, options=flat),
                 "lr_scheduler": {"last_epoch": 0}, "train_state": {"step": 0, "ntokens_seen": 0}}
        dcp.load(state, checkpoint_id=out, no_dist=True)  # strict: every name must be there
        model.load_state_dict({k: v for k, v in state.items() if k in want})
        set_optimizer_state_dict(model, optimizer, state["optimizer"], options=flat)
        for name, p in model.named_parameters():
            assert torch.equal(p, want[name]), name
            s = optimizer.state[p]
            assert torch.equal(s["exp_avg"], moments[0][name]) and torch.equal(s["exp_avg_sq"], moments[1][name]), name
            assert s["step"].item() == STEPS, name
        group = optimizer.param_groups[0]
        assert (group["lr"], group["betas"], group["eps"], group["weight_decay"]) == (1e-2, (0.9, 0.95), 1e-8, 0.1), group
        assert state["train_state"] == {"step": STEPS, "ntokens_seen": STEPS * BATCH * SEQ}, state["train_state"]
        assert state["lr_scheduler"]["last_epoch"] == STEPS and schedule
        # torchtitan goes on from it, and so do we
        dcp.save(state, checkpoint_id=out + "-theirs", no_dist=True)
        for name in out, out + "-theirs":
            if name != out:
                pathlib.Path(name, "params.json").write_text(pathlib.Path(out, "params.json").read_text())
            back = bench.folder + "/back-" + os.path.basename(name)
            again = bench.train("again-" + os.path.basename(name), "--init-from", name,
                                "--checkpoint.initial_load_model_only", "false", "--training.steps", str(STEPS + 1))
            bench.run("convert", name, back)
            assert worst(load_file(back + "/model.safetensors"), weights) == 0
            on = bench.train("whole", "--init-from", base, "--training.steps", str(STEPS + 1))
            for file in "model", "optimizer":
                a, b = (load_file("%s/%s.safetensors" % (f(STEPS + 1), file)) for f in (again, on))
                assert worst(a, b) == 0, (name, file)
    print("ok a training goes out with moments and step, AdamW takes it, and it comes back and goes on with the same bits")


def meta_parts(state, parts, columns_first):
    """As fairscale's layers cut them; Llama 2 cut its embedding by columns, Llama 3 by rows."""
    out = [{} for _ in range(parts)]
    for name, t in state.items():
        side = None if t.dim() < 2 else 1 if ".wo." in name or ".w2." in name else 0
        if name.startswith("tok_embeddings") and columns_first:
            side = 1
        for i in range(parts):
            out[i][name] = t.clone() if side is None else t.chunk(parts, side)[i].clone()
    return out


def check_parts(bench, base):
    config = transformers.AutoConfig.from_pretrained(base)
    want = load_file(base + "/model.safetensors")
    meta = goldens.to_meta(want, config)
    bench.run("convert", base, bench.folder + "/meta2", "--to", "meta", "--parts", "2")
    for i, part in enumerate(meta_parts(meta, 2, False)):
        got = torch.load("%s/meta2/consolidated.%02d.pth" % (bench.folder, i), weights_only=True)
        assert worst(got, part) == 0
    params = pathlib.Path(bench.folder, "meta2/params.json").read_text()
    for columns_first in False, True:
        folder = "%s/llama%d" % (bench.folder, 2 if columns_first else 3)
        os.mkdir(folder)
        pathlib.Path(folder, "params.json").write_text(params)
        for i, part in enumerate(meta_parts(meta, 2, columns_first)):
            torch.save(part, "%s/consolidated.%02d.pth" % (folder, i))
        bench.run("convert", folder, folder + "-back")
        assert worst(load_file(folder + "-back/model.safetensors"), want) == 0
    print("ok Meta's files of two parts, out and in, with embeddings cut by rows and by columns: the same bits")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lbworker", required=True)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(p.parse_args().lbworker, folder)
        torch.manual_seed(1)
        llama = bench.base("llama")
        check_ema(bench, llama)
        check_lora(bench, "llama", llama, ["q_proj", "v_proj"])
        check_lora(bench, "qwen3", bench.base("qwen3", head_dim=12), ["all-linear"])
        check_lora(bench, "gemma3_text", bench.base("gemma3_text", head_dim=12, sliding_window=16,
                                                    query_pre_attn_scalar=12), ["o_proj", "down_proj", "k_proj"])
        check_lora(bench, "gpt2", bench.base("gpt2", n_embd=32, n_layer=2, n_head=4, n_positions=64, resid_pdrop=0.0,
                                             embd_pdrop=0.0, attn_pdrop=0.0), ["c_attn", "mlp.c_proj"])
        check_dcp(bench, llama)
        check_parts(bench, llama)


main()
