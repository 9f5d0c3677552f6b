# SPDX-License-Identifier: MIT
# Completion of lbctl for bash. A unit test holds it against the table of commands.

_lbctl_words()	# WHAT...
{
	local what
	for what; do lbctl help complete "$what" 2>/dev/null; done
}

_lbctl()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
	local commands="submit ls top status why follow logs events kill stop hold release restart checkpoints du rm prune save stacks audit compare diff metrics sync plot report goodput advise cron nodes notify wait daemon home doctor recover version help"
	local command="" options="--home --no-color --help" words="" i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--home) ((i++)) ;;
		--) [[ -n $command ]] && { COMPREPLY=($(compgen -f -- "$current")); return; } ;;
		-*) ;;
		*) [[ -n $command ]] || command=${COMP_WORDS[i]} ;;
		esac
	done

	case $previous in
	--by) COMPREPLY=($(compgen -W "run group owner week" -- "$current")); return ;;
	--record | --replay | --output | -o) COMPREPLY=($(compgen -f -- "$current")); return ;;
	--home) COMPREPLY=($(compgen -d -- "$current")); return ;;
	--after | --after-ok) COMPREPLY=($(compgen -W "$(_lbctl_words runs)" -- "$current")); return ;;
	--group) COMPREPLY=($(compgen -W "$(_lbctl_words groups)" -- "$current")); return ;;
	--set) compopt -o nospace; COMPREPLY=($(compgen -S = -W "$(_lbctl_words keys)" -- "$current")); return ;;
	--sweep | --every | --listen | --wrap | --name | --reason | --from | --since | --attempt | --timeout | --older-than) return ;;
	esac

	case $command in
	"") words=$commands ;;
	submit) options+=" --name --set --after --after-ok --sweep --wrap --snapshot --dry-run --follow --json" ;;
	ls) options+=" --all --group --team --cron --json"; words=$(_lbctl_words runs selectors team) ;;
	metrics) options+=" --output --every --listen" ;;
	plot) words=$(_lbctl_words all selectors) ;;
	sync) options+=" --to --project --python --every"; words=$(_lbctl_words all selectors) ;;
	report) options+=" --output --team --week"; words="$(_lbctl_words all groups selectors)" ;;
	top) options+=" --demo --record --replay" ;;
	status | why | follow | events | diff) options+=" --json"; words=$(_lbctl_words runs team) ;;
	logs) options+=" --follow --lines --grep --err --attempt --json"; words=$(_lbctl_words runs team) ;;
	kill) options+=" --now --reason --dry-run --yes"; words=$(_lbctl_words runs selectors team) ;;
	stop | hold | release | save) options+=" --reason --dry-run --yes"; words=$(_lbctl_words runs selectors team) ;;
	restart) options+=" --from --set"; words=$(_lbctl_words all) ;;
	audit) options+=" --interval --other-nodes --name --set --dry-run --follow --json"; words=$(_lbctl_words all) ;;
	check) options+=" --nodes --partition --count --name --set --dry-run --json"; words=$(_lbctl_words all) ;;
	compare) options+=" --json"; words=$(_lbctl_words groups) ;;
	advise) options+=" --json"; words=$(_lbctl_words all) ;;
	goodput) options+=" --since --by --csv --json"; words=$(_lbctl_words all selectors) ;;
	cron) options+=" --json"; words="ls run enable disable"
		case $previous in run | enable | disable) words=$(_lbctl_words cron) ;; esac ;;
	nodes) options+=" --json"; words=forgive ;;
	notify) options+=" --json"; words=test ;;
	daemon) options+=" --in-slurm --follow --timeout --json"; words="start stop restart status logs" ;;
	checkpoints) options+=" --all --deep --json"; words=$(_lbctl_words all) ;;
	du) options+=" --group --team --json"; words=$(_lbctl_words all) ;;
	rm) options+=" --dry-run --yes"; words=$(_lbctl_words all) ;;
	prune) options+=" --older-than --dry-run --yes"; words=$(_lbctl_words all) ;;
	stacks) words=$(_lbctl_words runs) ;;
	wait) options+=" --timeout --json"; words=$(_lbctl_words runs) ;;
	home) words=move; [[ $previous == move ]] && { COMPREPLY=($(compgen -d -- "$current")); return; } ;;
	doctor) options+=" --json" ;;
	version) options+=" --json --verbose" ;;
	help) words=$commands ;;
	esac

	if [[ $current == -* ]]; then
		COMPREPLY=($(compgen -W "$options" -- "$current"))
	elif [[ $command == submit ]]; then
		COMPREPLY=($(compgen -f -X '!*.toml' -- "$current") $(compgen -d -- "$current"))
	else
		COMPREPLY=($(compgen -W "$words" -- "$current"))
	fi
}
complete -o filenames -F _lbctl lbctl
