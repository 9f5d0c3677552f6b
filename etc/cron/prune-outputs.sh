#!/bin/sh
# SPDX-License-Identifier: MIT
#LB TIMEOUT=2h
# prune-outputs.sh - remove regular files that nobody has changed for DAYS days below FOLDER, and
# folders that nobody has changed either and that this left empty: one that a job has just made
# stays. Links are neither followed nor removed.
#
# Copy it into cron/cron.weekly and set FOLDER. (The output of lbd's own runs: [runs] retain_logs.)
set -eu
FOLDER=${FOLDER:?which folder? set FOLDER}
DAYS=${DAYS:-60}

folders=$(mktemp)
trap 'rm -f "$folders"' EXIT
find "$FOLDER" -xdev -mindepth 1 -depth -type d -mtime "+$DAYS" -print0 >"$folders"
find "$FOLDER" -xdev -type f -mtime "+$DAYS" -print -delete
xargs -0r rmdir --ignore-fail-on-non-empty -- <"$folders"
