#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dcp_golden.py GOLDENS - the small Llama of goldens.py as torchtitan saves it: torch.distributed.checkpoint, written by
two processes that have half of each tensor's rows (FSDP), one tensor cut by columns (tensor parallel); and moments of AdamW
after 7 steps: twice the weights, and their squares."""
import json
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.tensor import Shard, distribute_tensor


def run(rank, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ["PORT"], RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo")
    mesh = dist.init_device_mesh("cpu", (2,))
    state = torch.load(folder + "/meta/consolidated.00.pth", weights_only=True)
    cut = {k: distribute_tensor(v, mesh, [Shard(1 if "wo" in k else 0)]) for k, v in state.items()}
    optimizer = {}
    for k, v in cut.items():  # moments that show what they are of
        optimizer["state.%s.exp_avg" % k] = v * 2
        optimizer["state.%s.exp_avg_sq" % k] = v * v
        optimizer["state.%s.step" % k] = torch.tensor(7.0)
    dcp.save({**cut, "optimizer": optimizer, "train_state": {"step": 7}}, checkpoint_id=folder + "/dcp")
    dist.destroy_process_group()


if __name__ == "__main__":
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        os.environ["PORT"] = str(s.getsockname()[1])
    torch.multiprocessing.spawn(run, (sys.argv[1],), 2)
    params = json.load(open(sys.argv[1] + "/meta/params.json"))
    json.dump(params, open(sys.argv[1] + "/dcp/params.json", "w"))
