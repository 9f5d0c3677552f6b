#!/bin/sh
# SPDX-License-Identifier: MIT
# batch.t once more, with submit_with = "sbatch": the same jobs through the site's own command.
SUBMIT_WITH=sbatch
. "$(dirname "$0")/batch.t"
