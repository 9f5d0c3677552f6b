#!/bin/sh
# SPDX-License-Identifier: MIT
# ettr.sh - one simulated month of one job on 64 nodes, under lbd and under its peers (ettr.py).
exec python3 "$(dirname "$0")/ettr.py" "$@"
