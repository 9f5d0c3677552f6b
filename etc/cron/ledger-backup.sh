#!/bin/sh
# SPDX-License-Identifier: MIT
# ledger-backup.sh - keep the newest KEEP copies of lbd's ledger in another place. lbd itself makes
# ledger.db.bak every hour, in one step: that is what is copied.
#
# Copy it into cron/cron.daily and set TO.
set -eu
HOME_OF_LBD=${LB_HOME:-${XDG_STATE_HOME:-$HOME/.local/state}/lb}
TO=${TO:-"$HOME/lbd-backups"}
KEEP=${KEEP:-14}

mkdir -p "$TO"
cp "$HOME_OF_LBD/ledger.db.bak" "$TO/ledger-$(date +%Y%m%dT%H%M%S).db"
# the names sort by time
find "$TO" -maxdepth 1 -name 'ledger-*.db' | sort -r | tail -n "+$((KEEP + 1))" | while read -r old; do
	rm -f "$old"
done
