#!/bin/sh
# SPDX-License-Identifier: MIT
#LB TIMEOUT=6h
# file-index.sh - one list of all files below the folders of a project, with sizes and times: on a
# parallel file system `find` takes hours, a look into the list takes seconds.
#
# Copy it into cron/cron.daily and set FOLDERS. Search with: zstdgrep checkpoint index.zst
set -eu
FOLDERS=${FOLDERS:-"$HOME"}
INDEX=${INDEX:-"$HOME/index.zst"}

# shellcheck disable=SC2086 # FOLDERS holds several
find $FOLDERS -xdev -type f -printf '%s\t%TY-%Tm-%Td %TH:%TM\t%u\t%p\n' | zstd -q -o "$INDEX.part" -f
mv "$INDEX.part" "$INDEX"
