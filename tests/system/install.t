#!/bin/sh
# SPDX-License-Identifier: MIT
# What `make install` puts where, and that every configuration key is in the manual.
. "$(dirname "$0")/lib.sh"
need make make
need scdoc scdoc
need man man-db

root=$T/root
prefix=/opt/lowbits
like "$(make -n -C "$src" CC="gcc -nostdinc" B="$T/none" all)" \
	'slurm.h> not found: lbd-slurm is left out' \
	"without libslurm the rest is built"
ok "make install" make -C "$src" B="$B" SAN="${SAN:-}" DESTDIR="$root" PREFIX=$prefix install

programs_start() {
	for program in lbd lbctl lbrun lbworker; do
		"$root$prefix/bin/$program" --help >"$T/help" 2>&1 || return 1
		grep -q "$program" "$T/help" || return 1
	done
}
ok "the installed programs start" programs_start

pages_are_readable() {
	for page in "$src"/docs/man/*.scd; do
		name=$(basename "$page" .scd)
		installed=$root$prefix/share/man/man${name##*.}/$name
		warnings=$(LC_ALL=C MANWIDTH=80 man --warnings -l "$installed" 2>&1 >"$T/page") ||
			return 1
		echo "$name: $warnings"
		[ -z "$warnings" ] && [ -s "$T/page" ] || return 1
	done
}
ok "every man page is installed and clean" pages_are_readable

like "$(man -l "$root$prefix/share/man/man5/lbd-run.5" 2>/dev/null)" 'step: \*\(\?<step>\\d\+\)' \
	"an example can be copied from it: no backslash is lost"

unit=$root$prefix/share/systemd/user/lbd.service
like "$(cat "$unit")" "^ExecStart=$prefix/bin/lbd --foreground$" "the unit starts the installed lbd"
if PATH=$PATH:/usr/bin command -v systemd-analyze >/dev/null; then
	sed "s,=$prefix,=$root$prefix," "$unit" >"$T/lbd.service"
	is "$(systemd-analyze verify --man=no "$T/lbd.service" 2>&1)" "" \
		"systemd has nothing to say against it"
fi

# The rows of the tables of keys are the truth: { "section", "name", KEY_…
keys_of() { sed -n 's/^[[:space:]]*{ *"\([a-z_.]*\)", "\([a-z0-9_]*\)", KEY_.*/\1 \2/p' "$1"; }
keys_in_manual() {	# SOURCE PAGE
	keys_of "$src/$1" >"$T/keys"
	[ -s "$T/keys" ] || return 1
	while read -r section key; do
		awk -v section="[$section]" -v key="*$key*" '
			/^##* / { inside = $2 == section }
			inside && index($0, key) == 1 { found = 1 }
			END { exit !found }' "$src/docs/man/$2" || {
			echo "$2 does not explain $section.$key"
			return 1
		}
	done <"$T/keys"
}
ok "every key of a run is in lbd-run(5)" keys_in_manual common/run_spec.c lbd-run.5.scd
ok "every key of lbworker is in lbworker(1)" keys_in_manual worker/lbworker/config.c lbworker.1.scd
ok "every key of lbd is in lbd.toml(5)" keys_in_manual daemon/config.c lbd.toml.5.scd

# An installed lbd finds what lies beside it, not in a source tree.
SLURM_CONF=$T/none "$root$prefix/bin/lbd" --foreground --home "$LB_HOME" >"$T/lbd.log" 2>&1 &
lbd_pid=$!
wait_for 'lbctl ls' 20
like "$(lbctl submit --dry-run --set slurm.network=efa -- true)" 'FI_PROVIDER = efa' \
	"the installed lbd knows the installed networks"
lbd_stop

cp "$src/etc/lbd.toml" "$LB_HOME/lbd.toml"
ok "the sample configuration is valid" lbd --check-config --home "$LB_HOME"
sample_names_every_key() {
	keys_of "$src/daemon/config.c" | while read -r section key; do
		grep -Eq "^(# )?$key = " "$src/etc/lbd.toml" || {
			echo "etc/lbd.toml does not show $section.$key"
			exit 1
		}
	done
}
ok "the sample configuration shows every key" sample_names_every_key
done_testing
