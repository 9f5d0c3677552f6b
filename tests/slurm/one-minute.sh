#!/bin/sh
# SPDX-License-Identifier: MIT
# one-minute.sh TARBALL - what docs/INSTALL.md types out: the tarball is unpacked and used by an
# ordinary user in a Debian 11 on which nothing is installed (a root below ROOTS). A model is
# trained, its trainer killed, and the run goes on from its newest checkpoint. Prints what a
# terminal would show; ends with 0 only where the story came to its end.
set -eu
src=$(cd "$(dirname "$0")/../.." && pwd -P)
roots=${ROOTS:-$src/build/roots}
user=games	# Debian has it everywhere

# --- outside --------------------------------------------------------------------------------------
if [ "${1:-}" != --inside ]; then
	[ $# = 1 ] || { sed -n 's/^# \(one-minute.sh .*\) - .*/usage: \1/p' "$0" >&2; exit 2; }
	root=$roots/bullseye-clean
	"$src/etc/debian-root" make bullseye "$root"
	rm -rf "$root/build/home"
	mkdir -p "$root/build/home"
	xz -dc "$1" >"$root/build/home/$(basename "$1" .xz)"	# a minimal Debian has no xz
	"$src/etc/debian-root" run "$root" chown -R $user /build/home
	"$src/etc/debian-root" run "$root" setpriv --reuid=$user --regid=$user --clear-groups \
		env HOME=/build/home USER=$user LANG=C.UTF-8 sh /src/tests/slurm/one-minute.sh --inside
	exit
fi

# --- inside, as that user -------------------------------------------------------------------------
cd "$HOME"
show() {
	printf '$ %s\n' "$*"
	"$@"
}
began=$(date +%s)
show tar -xf lowbits-*.tar
# shellcheck disable=SC2012,SC2016 # names of ours; shown as typed
{
	folder=$(ls -d lowbits-*/ | tr -d /)
	printf '$ export PATH=$PWD/%s/bin:$PATH\n' "$folder"
}
PATH=$PWD/$folder/bin:$PATH
show lbctl daemon start
show lbworker prepare --out text.tokens /usr/share/common-licenses/GPL-3
show lbctl submit "$folder/share/doc/lowbits/train/demo.toml" --name first --set training.dataset_path=text.tokens \
	--set training.steps=60 --set training.local_batch_size=2 --set training.seq_len=64 --set checkpoint.interval=10
until [ -d .local/state/lb/runs/first/checkpoints/step-00000020 ]; do sleep 0.2; done
# its process by what it says of itself to lbrun
pid=$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' .local/state/lb/runs/first/attempts/1/spool.jsonl | tail -n 1)
show kill -9 "$pid"
until lbctl status first | grep -qE '^first +(completed|failed|killed)'; do sleep 0.5; done
show lbctl status first
lbctl status first >story
show lbctl version --verbose
show lbctl daemon stop
echo "(all of it took $(($(date +%s) - began)) s)"
grep -q '^first  *completed' story && grep -q 'launch 2: completed' story
