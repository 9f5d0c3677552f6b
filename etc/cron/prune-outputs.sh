#!/bin/sh
# SPDX-License-Identifier: MIT
#LB TIMEOUT=2h
# prune-outputs.sh - remove regular files that nobody has changed for DAYS days below FOLDER, and
# folders that this left empty. Links are neither followed nor removed.
#
# Copy it into cron/cron.weekly and set FOLDER. (The output of lbd's own runs: [runs] retain_logs.)
set -eu
FOLDER=${FOLDER:?which folder? set FOLDER}
DAYS=${DAYS:-60}

find "$FOLDER" -xdev -type f -mtime "+$DAYS" -print -delete
find "$FOLDER" -xdev -mindepth 1 -type d -empty -delete
