#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads event files with the real tensorboard package and compares them with the trainer's output.

    lbworker train CONFIG --metrics.enable_tensorboard true --metrics.log_freq 1 | tee LOG
    tensorboard_check.py TB_FOLDER LOG...

Needs the packages tensorboard and numpy, so it is no part of `make check`.
"""
import re
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def main():
    folder, logs = sys.argv[1], sys.argv[2:]
    events = EventAccumulator(folder, size_guidance={"scalars": 0})
    events.Reload()
    tags = events.Tags()["scalars"]
    losses = {e.step: e.value for e in events.Scalars("loss_metrics/global_avg_loss")}
    told = {}
    for log in logs:
        for line in open(log, encoding="utf-8"):
            match = re.match(r"step (\d+)/\d+ loss ([0-9.]+) ", line)
            if match:
                told[int(match[1])] = float(match[2])
    wrong = [s for s in told if abs(losses.get(s, 1e9) - told[s]) > 6e-5]
    print(f"{len(tags)} tags, {len(losses)} steps in the events, {len(told)} in the output, "
          f"{len(wrong)} differ")
    sys.exit(1 if wrong or len(losses) != len(told) or not told else 0)


if __name__ == "__main__":
    main()
