# SPDX-License-Identifier: MIT
# Completion of lbctl for bash. A unit test holds it against the table of commands.

_lbctl_runs()
{
	lbctl ls "$@" 2>/dev/null | awk 'NR > 1 { print $1 }'
}

_lbctl()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
	local commands="submit ls status follow logs events kill stop hold release restart save stacks compare goodput cron nodes wait daemon doctor version help"
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
	--home) COMPREPLY=($(compgen -d -- "$current")); return ;;
	--after | --after-ok) COMPREPLY=($(compgen -W "$(_lbctl_runs)" -- "$current")); return ;;
	--sweep | --name | --group | --set | --reason | --from | --since | --attempt | --timeout) return ;;
	esac

	case $command in
	"") words=$commands ;;
	submit) options+=" --name --set --after --after-ok --sweep --dry-run --follow --json" ;;
	ls) options+=" --all --group --team --json" ;;
	status | follow | events) options+=" --json"; words=$(_lbctl_runs) ;;
	logs) options+=" --follow --attempt --json"; words=$(_lbctl_runs) ;;
	kill) options+=" --now --reason --dry-run --yes"; words=$(_lbctl_runs) ;;
	stop | hold | release | save) options+=" --reason --dry-run --yes"; words=$(_lbctl_runs) ;;
	restart) options+=" --from --set"; words=$(_lbctl_runs --all) ;;
	compare) options+=" --json" ;;
	goodput) options+=" --since --json"; words=$(_lbctl_runs --all) ;;
	cron) options+=" --json"; words="ls run enable disable" ;;
	nodes) options+=" --json"; words=forgive ;;
	daemon) options+=" --in-slurm --follow --timeout --json"; words="start stop restart status logs" ;;
	stacks) words=$(_lbctl_runs) ;;
	wait) options+=" --timeout --json"; words=$(_lbctl_runs) ;;
	doctor | version) options+=" --json" ;;
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
