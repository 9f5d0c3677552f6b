#!/bin/sh
# SPDX-License-Identifier: MIT
#LB OVERLAP=skip
#LB TIMEOUT=30m
# node-check.sh - a nightly look at the node it runs on: clocks, memory errors, disks, GPUs. It
# fails with what it found, so that [notify] tells people.
#
# Copy it into cron/cron.daily; as a batch script with `#SBATCH --array` it visits many nodes.
set -eu
bad=0
complain() {
	echo "$(hostname): $*"
	bad=1
}

[ "$(df --output=pcent /tmp | tail -n 1 | tr -dc 0-9)" -lt 95 ] || complain "/tmp is full"
if command -v nvidia-smi >/dev/null; then
	nvidia-smi --query-gpu=index,temperature.gpu,ecc.errors.uncorrected.volatile.total \
		--format=csv,noheader,nounits >gpus.$$ || complain "nvidia-smi fails"
	while IFS=', ' read -r gpu temperature errors; do
		case $temperature in [0-8][0-9] | [0-9] | \[*) ;; *) complain "GPU $gpu: $temperature degrees" ;; esac
		case $errors in 0 | \[*) ;; *) complain "GPU $gpu: $errors uncorrected memory errors" ;; esac
	done <gpus.$$
	rm -f gpus.$$
fi
if command -v chronyc >/dev/null && ! chronyc -n waitsync 1 0.5 >/dev/null 2>&1; then
	complain "the clock is off by more than half a second"
fi
[ $bad = 0 ] && echo "$(hostname): all is well"
exit $bad
