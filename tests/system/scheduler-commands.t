#!/bin/sh
# SPDX-License-Identifier: MIT
# scheduler-slurm.t once more, through Slurm's commands.
LB_TEST_SLURM=commands
. "$(dirname "$0")/scheduler-slurm.t"
