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
	'slurm.h> not found: lbd-slurm is left out, lbd speaks to Slurm through its commands' \
	"without libslurm the rest is built"
like "$(make -n -C "$src" B="$T/none" SAN= CFLAGS=-O3 "$T/none/obj/kernels/cpu/gated.o")" \
	' -std=c11 .* -O3 .*-ffp-contract=off ' "flags that somebody types are added to ours"
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

# Every line of an example, as it stands between ``` and ```; a backslash is written twice there.
examples_are_whole() {
	for page in "$src"/docs/man/*.scd; do
		name=$(basename "$page" .scd)
		man -l "$root$prefix/share/man/man${name##*.}/$name" 2>/dev/null >"$T/page"
		sed -n '/^```/,/^```/{/^```/d; s/^[[:space:]]*//; s/\\\\/\\/g; /./p}' "$page" >"$T/lines"
		while IFS= read -r line; do
			grep -qF -e "$line" "$T/page" || {
				echo "$name: $line"
				return 1
			}
		done <"$T/lines"
	done
}
ok "examples can be copied from man pages: nothing is lost" examples_are_whole

unit=$root$prefix/share/systemd/user/lbd.service
like "$(cat "$unit")" "^ExecStart=$prefix/bin/lbd --foreground$" "the unit starts the installed lbd"
# By systemd itself; where it is not installed, every line by the keys that systemd.service(5) has.
if PATH=$PATH:/usr/bin command -v systemd-analyze >/dev/null; then
	sed "s,=$prefix,=$root$prefix," "$unit" >"$T/lbd.service"
	is "$(systemd-analyze verify --man=no "$T/lbd.service" 2>&1)" "" \
		"systemd has nothing to say against it"
else
	is "$(grep -Evn '^(#.*|\[(Unit|Service|Install)\]|(Description|Documentation|Type|ExecStart|WatchdogSec|Restart|RestartSec|RestartPreventExitStatus|KillMode|NoNewPrivileges|WantedBy)=.+)?$' \
		"$unit")" "" "systemd-analyze (package systemd) is not here: its keys are those of the manual"
fi
share=$root$prefix/share
# shellcheck disable=SC2012 # names of ours
like "$(ls "$share/doc/lowbits/train" "$share/lowbits/network" "$share/doc/lowbits/cron" | tr '\n' ' ')" \
	'ledger-backup.sh .*demo.toml .*efa.toml' "training configurations, networks and examples are there"
documents_are_installed() {
	grep -rhoE '[A-Z-]+\.md' "$src"/docs/man "$src/worker/lbrun/shepherd" | sort -u | while read -r name; do
		[ -s "$share/doc/lowbits/$name" ] || echo "$name"
	done >"$T/absent"
	cat "$T/absent"
	! [ -s "$T/absent" ]
}
ok "documents that man pages and messages name are there" documents_are_installed
ok "and the examples can be run" test -x "$share/doc/lowbits/cron/ledger-backup.sh"

# The rows of the tables of keys are the truth: KEY_TEXT("section", "name", …
keys_of() {
	sed -n '/KEY_[A-Z]*($/N
		s/^[[:space:]]*KEY_[A-Z]*([[:space:]]*"\([a-z_.]*\)", "\([a-z0-9_]*\)".*/\1 \2/p' "$1"
}
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
ok "every key of a run is in lbd-run(5)" keys_in_manual common/config/run_spec.c lbd-run.5.scd
ok "every key of lbworker is in lbworker(1)" keys_in_manual worker/lbworker/config/training_keys.c lbworker.1.scd
ok "every key of lbd is in lbd.toml(5)" keys_in_manual daemon/base/config.c lbd.toml.5.scd

# --- options -------------------------------------------------------------------------------------
options_in_manual() {	# PROGRAM
	"$root$prefix/bin/$1" --help | grep -oE -e '--[a-z][a-z-]+' | sort -u >"$T/options"
	[ -s "$T/options" ] || return 1
	while read -r option; do
		grep -qF -e "*$option" "$src/docs/man/$1".[18].scd || { echo "$option"; return 1; }
	done <"$T/options"
}
for program in lbd lbrun lbworker; do
	ok "every option that $program --help names is in its page" options_in_manual $program
done

# options_by_command <TEXT: a line for each of "lbworker COMMAND …", with its options in order
options_by_command() {
	grep -E '^ *lbworker [a-z-]+ ' | while read -r _ name rest; do
		echo "$name $(echo "$rest" | grep -oE -e '(^|[[ ])--?[a-z][a-z.-]*' | tr -d '[ ' | sort | tr '\n' ' ')"
	done | sort
}
"$root$prefix/bin/lbworker" help | grep '^  ' | options_by_command >"$T/in_help"
sed -n '/^# SYNOPSIS/,/^# DESCRIPTION/s/[*]//gp' "$src/docs/man/lbworker.1.scd" | options_by_command >"$T/in_page"
like "$(cat "$T/in_help")" '^check .*--timeout' "lbworker help lists options by command"
ok "and its page lists the same" diff "$T/in_help" "$T/in_page"
# the rows that read them, but for the one that only tests give
rows_in_help() {
	grep -rhoE '^[[:space:]]*\{ "--[a-z-]+"' "$src"/worker/lbworker | tr -d '\t {"' | grep -vx -e --sys | sort -u >"$T/rows"
	[ -s "$T/rows" ] || return 1
	"$root$prefix/bin/lbworker" help >"$T/help"
	while read -r option; do
		grep -qE -e "(^|[[ ])$option( |]|$)" "$T/help" || { echo "lbworker help lacks $option"; return 1; }
	done <"$T/rows"
}
ok "lbworker help names every option that is read" rows_in_help
like "$("$root$prefix/bin/lbworker" help)" '^3 the loss.*; 4 .*; 5 ' "and every exit status"

# An installed lbd finds what lies beside it, not in a source tree.
SLURM_CONF=$T/none "$root$prefix/bin/lbd" --foreground --home "$LB_HOME" >"$T/lbd.log" 2>&1 &
lbd_pid=$!
wait_for 'lbctl ls' 20
like "$(lbctl submit --dry-run --set slurm.network=efa -- true)" 'FI_PROVIDER = efa' \
	"the installed lbd knows the installed networks"
lbd_stop

# --- what shells complete -------------------------------------------------------------------------
lbd_start
lbctl submit --name apple --set run.group=fruit -- true >/dev/null
run_reaches apple completed 20
completions=$share/bash-completion/completions/lbctl
mkdir "$T/here/apple"	# as a run is called; no file is meant
touch "$T/here/page.html" "$T/here/train.slurm" "$T/here/my run.toml"
# What is typed, and what stands there behind a tab: in a bash at work, for readline parts words in
# its own way.
while read -r typed shown; do
	printf 'key lbctl %s\\t\nwait ^. lbctl %s$ 10\nkey \\x15\n' "$(echo "$typed" | tr _ ' ')" "$(echo "$shown" | tr _ ' ')"
done >"$T/typed" <<'END'
status_ap				status_apple
ls_--group_f				ls_--group_fruit
ls_--group=f				ls_--group=fruit
kill_fr					kill_fruit@group
stop_fruit@				stop_fruit@group
hold_fruit@g				hold_fruit@group
plot_fr					plot_fruit@group
report_apple_-o_pa			report_apple_-o_page.html
submit_--set_slurm.ti			submit_--set_slurm.time=
submit_--set=slurm.mem			submit_--set=slurm.mem=
submit_tr				submit_train.slurm
submit_my				submit_my._run.toml
goodput_--by_te				goodput_--by_team
logs_--grep_ap\ty			logs_--grep_apy
logs_-n_\t7_ap				logs_-n_7_apple
check_-N_ap\ty				check_-N_apy
restart_apple_--from_sc			restart_apple_--from_scratch
END
bash_completes() {
	{
		printf "key PS1='> '; . %s; clear\\\\n\nwait ^>$ 10\n" "$completions"
		cat "$T/typed"
	} | TERM=xterm /usr/bin/python3 "$src/tests/system/terminal.py" 100x40 bash --norc --noprofile
}
ok "bash completes all of it" bash_completes
# Run by their names in the lbd that the line names, not in the one of the shell.
printf 'key lbctl --home %s status ap\\t\nwait ^. lbctl --home %s status apple$ 10\n' "$LB_HOME" "$LB_HOME" >"$T/typed.home"
of_home() { (cp "$T/typed.home" "$T/typed" && LB_HOME=$T/none "$@"); }
ok "and of the lbd that --home names" of_home bash_completes
if command -v fish >/dev/null; then
	fish_completes() { fish -c "source $share/fish/vendor_completions.d/lbctl.fish; complete -C '$1'" | cut -f 1; }
	is "$(fish_completes 'lbctl status ap')" apple "fish: a run"
	is "$(fish_completes 'lbctl ls --group f')" fruit "a group"
	is "$(fish_completes 'lbctl submit --after ap')" apple "a run to wait for"
	like "$(fish_completes 'lbctl submit --set slurm.ti')" '^slurm.time=' "a key"
	is "$(fish_completes 'lbctl daemon restart ap')" "" "no run is meant where a word is called as a command is"
	is "$(fish_completes "lbctl --home $T why" )" why "a command behind --home"
	there=$LB_HOME
	is "$(LB_HOME=$T/none fish_completes "lbctl --home $there status ap")" apple "a run of that lbd"
	is "$(LB_HOME=$T/none fish_completes "lbctl status --home=$there ap")" apple "likewise"
else
	diag "fish is not here: its completions are only read by a unit test"
fi
if command -v zsh >/dev/null; then
	# as _arguments calls them: a function gets options of its own unless a blank stands in
	# front
	zsh_words() { zsh -fc 'compadd() { print -l ${(P)@[-1]}; }; _arguments() { :; }
		source <(sed "/^_lbctl \"\$@\"$/d" "$0"); "$@"' "$share/zsh/site-functions/_lbctl" "$@"; }
	is "$(zsh_words _lbctl_runs)" apple "zsh: a run"
	is "$(zsh_words _lbctl_groups)" fruit "a group"
	like "$(zsh_words _lbctl_keys)" 'slurm.time' "a key"
	# and as people type
	zsh_completes() {
		{
			printf "key fpath=(%s \$fpath); autoload -U compinit; compinit -u -D; PS1='> '; clear\\\\n\nwait ^>$ 20\n" \
				"$share/zsh/site-functions"
			cat "$T/typed"
		} | TERM=xterm /usr/bin/python3 "$src/tests/system/terminal.py" 100x40 zsh -f
	}
	ok "zsh completes what bash does" zsh_completes
	ok "and of the lbd that --home names" of_home zsh_completes
	is "$(grep -c ":_lbctl_[a-z]*'" "$share/zsh/site-functions/_lbctl")" 2 "each behind a blank but the commands"
else
	diag "zsh is not here: its completions are only read by a unit test"
fi
lbd_stop

cp "$src/etc/lbd.toml" "$LB_HOME/lbd.toml"
ok "the sample configuration is valid" lbd --check-config --home "$LB_HOME"
sample_names_every_key() {
	keys_of "$src/daemon/base/config.c" >"$T/keys"
	[ -s "$T/keys" ] || return 1
	while read -r section key; do
		grep -Eq "^(# )?$key = " "$src/etc/lbd.toml" || {
			echo "etc/lbd.toml does not show $section.$key"
			return 1
		}
	done <"$T/keys"
}
ok "the sample configuration shows every key" sample_names_every_key

# --- ~ and back -----------------------------------------------------------------------------------
mkdir "$T/person"
for shell in dash bash zsh fish; do
	command -v $shell >/dev/null || continue
	# shellcheck disable=SC2088 # no shell is to expand it
	ok "PREFIX=~/.local means the home folder, typed in $shell" env HOME="$T/person" \
		$shell -c "make -n -C '$src' B='$B' SAN='${SAN:-}' PREFIX=~/.local install >'$T/plan' 2>&1"
	like "$(cat "$T/plan")" "$T/person/.local/bin" "it goes there"
	# shellcheck disable=SC2088 # that is what is looked for
	is "$(grep -c '~/.local' "$T/plan")" 0 "and nowhere else"
done
exits 2 "a prefix that is no whole path is refused" make -C "$src" B="$B" PREFIX=local install
like "$err" 'must begin with /' "in words"
for where in PREFIX DESTDIR; do
	for what in install uninstall; do
		exits 2 "$what: a blank in $where is refused" make -C "$src" B="$B" SAN="${SAN:-}" "$where=$T/my files" $what
		like "$err" 'my files.*: must hold no blank' "in words"
	done
done
echo mine >"$share/lowbits/network/mine.toml"
ok "make uninstall" make -C "$src" B="$B" SAN="${SAN:-}" DESTDIR="$root" PREFIX=$prefix uninstall
is "$(find "$root" -type f | sed "s,$root$prefix/,,")" share/lowbits/network/mine.toml \
	"takes away all that install brought, and nothing else"
ok "it may be said twice" make -C "$src" B="$B" SAN="${SAN:-}" DESTDIR="$root" PREFIX=$prefix uninstall
done_testing
