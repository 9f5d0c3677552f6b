#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""choices.py FOLDER - a small model, questions like hellaswag's and arc's, and what lm-evaluation-harness makes of them.

Wants transformers, safetensors and lm-eval. tests/system/choices.t compares tests/golden/choices with
`lbworker eval --choices`. The tokenizer is tests/golden/text/gpt2.json."""
import json
import os
import random
import shutil
import sys
import tempfile

import lm_eval
import torch
import transformers
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

WORDS = ("the of and to in is that it was for on are with as his they at be this have from or one had by word but not "
         "what all were we when your can said there use an each Straße naïve κόσμος").split()


def phrase(r, low, high):
    return " ".join(r.choice(WORDS) for _ in range(r.randrange(low, high)))


def questions(folder):
    r = random.Random(5)
    with open(folder + "/hellaswag.jsonl", "w") as out:
        for i in range(24):
            second = r.choice(["", phrase(r, 1, 6), "éa " + phrase(r, 1, 3), "HE said"])
            json.dump({"ind": i, "activity_label": phrase(r, 1, 3), "ctx_a": " " + phrase(r, 3, 9) + r.choice(
                [".", " [title] then", " [header]  x", "]["]), "ctx_b": second, "endings":
                [phrase(r, 1, 12) + r.choice(["", " [step] so", "  "]) for _ in range(4)],
                "label": str(r.randrange(4))}, out)
            out.write("\n")
    with open(folder + "/arc.jsonl", "w") as out:
        for i in range(24):
            labels = r.choice([list("ABCD"), list("1234"), list("ABC")])
            json.dump({"id": str(i), "question": phrase(r, 3, 40) + "?", "choices": {
                "text": [phrase(r, 1, 8) for _ in labels], "label": labels}, "answerKey": r.choice(labels)}, out)
            out.write("\n")


def model(folder, tokenizer):
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=tokenizer.vocab_size + 8, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=True,
        initializer_range=0.6)
    m = transformers.LlamaForCausalLM(config).float().eval()
    m.save_pretrained(folder)
    os.remove(folder + "/generation_config.json")
    return m


def tasks(scratch, folder):
    """Its own tasks, over our files."""
    home = os.path.join(os.path.dirname(lm_eval.__file__), "tasks")
    for name, yaml in (("hellaswag", "hellaswag/hellaswag.yaml"), ("arc", "arc/arc_easy.yaml")):
        os.mkdir("%s/%s" % (scratch, name))
        if name == "hellaswag":
            shutil.copy(home + "/hellaswag/utils.py", scratch + "/hellaswag/utils.py")
        drop = ("tag:", "  - ", "task:", "dataset_path:", "dataset_name:", "training_split:", "validation_split:",
                "test_split:", "metadata", "  version", "metric_list", "    aggregation", "    higher")
        kept = [line for line in open(os.path.join(home, yaml)) if not line.startswith(drop)]
        with open("%s/%s/local.yaml" % (scratch, name), "w") as out:
            out.write("task: local_%s\ndataset_path: json\ndataset_kwargs:\n  data_files:\n    test: %s/%s.jsonl\n"
                      "test_split: test\n%s" % (name, os.path.abspath(folder), name, "".join(kept)))
            out.write("metric_list:\n" + "".join("  - metric: %s\n    aggregation: mean\n    higher_is_better: true\n"
                                                 % metric for metric in ("acc", "acc_norm")))
    return TaskManager(include_path=scratch, include_defaults=False)


def main(folder):
    here = os.path.dirname(os.path.abspath(__file__))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=here + "/../golden/text/gpt2.json",
                                                     eos_token="<|endoftext|>")
    questions(folder)
    lm = HFLM(pretrained=model(folder, tokenizer), tokenizer=tokenizer, batch_size=1, device="cpu", max_length=64)
    with tempfile.TemporaryDirectory() as scratch:
        manager = tasks(scratch, folder)
        done = lm_eval.simple_evaluate(lm, tasks=["local_hellaswag", "local_arc"], task_manager=manager,
                                       log_samples=True, bootstrap_iters=0)
    golden = {}
    for name in ("hellaswag", "arc"):
        samples = sorted(done["samples"]["local_" + name], key=lambda s: s["doc_id"])
        result = done["results"]["local_" + name]
        golden[name] = {"acc": result["acc,none"], "acc_norm": result["acc_norm,none"],
                        "scores": [[round(float(x[0]), 5) for x in s["filtered_resps"]] for s in samples]}
    with open(folder + "/lm_eval.json", "w") as out:
        json.dump(golden, out)
        out.write("\n")
    print({k: (v["acc"], v["acc_norm"]) for k, v in golden.items()})


main(sys.argv[1])
