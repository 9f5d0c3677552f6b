#!/bin/sh
# SPDX-License-Identifier: MIT
# disk-watch.sh - fail, so that [notify] tells people, when a partition has too little space or too
# few inodes left: a checkpoint that does not fit ends a training.
#
# Copy it into cron/cron.hourly. WATCH: "folder:max % of space:max % of inodes" each.
set -eu
WATCH=${WATCH:-"$HOME:90:90 /tmp:90:90"}
full=0

percent() { df --output="$1" "$2" | tail -n 1 | tr -dc 0-9; }
for entry in $WATCH; do
	folder=${entry%%:*}
	rest=${entry#*:}
	space=$(percent pcent "$folder")
	inodes=$(percent ipcent "$folder")
	echo "$folder: ${space:-?} % of space, ${inodes:-?} % of inodes"
	if [ "${space:-0}" -ge "${rest%%:*}" ] || [ "${inodes:-0}" -ge "${rest#*:}" ]; then
		echo "$folder: past ${rest%%:*} % of space or ${rest#*:} % of inodes"
		full=1
	fi
done
exit $full
