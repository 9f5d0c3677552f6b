# SPDX-License-Identifier: MIT
# Completion of lbctl for bash. A unit test holds it against the table of commands.

_lbctl_words()	# WHAT...; of the lbd that the line names
{
	local what
	for what; do lbctl ${home:+--home "${home/#\~\//$HOME/}"} help complete "$what" 2>/dev/null; done
}

_lbctl_files()	# -f or -d; a name may have blanks
{
	local IFS=$'\n'
	compopt -o filenames
	COMPREPLY=($(compgen "$1" -- "$current"))
}

# Words as blanks part them: readline parts them at = and @, too (COMP_WORDBREAKS).
_lbctl_line()
{
	local rest=${COMP_LINE:0:COMP_POINT} i
	line=()
	for ((i = 0; i <= COMP_CWORD; i++)); do
		if ((i == 0)) || [[ $rest == [[:blank:]]* ]]; then line+=(""); fi
		line[-1]+=${COMP_WORDS[i]}
		rest=${rest#*"${COMP_WORDS[i]}"}
	done
}

# What stands before readline's own word, which begins with the @, stays as it is on the line.
_lbctl_reply()	# WORDS
{
	local kept=${current%"${COMP_WORDS[COMP_CWORD]}"}
	COMPREPLY=($(compgen -W "$1" -- "$current"))
	COMPREPLY=("${COMPREPLY[@]#"${kept%@}"}")
}

_lbctl()
{
	local line
	_lbctl_line
	local current=${line[-1]} previous=""
	((${#line[@]} < 2)) || previous=${line[-2]}
	[[ $current != --*=* ]] || { previous=${current%%=*}; current=${current#*=}; }
	local commands="submit ls top status why follow logs events kill stop hold release restart checkpoints du rm prune save stacks audit compare diff metrics sync plot report goodput advise cron nodes notify wait daemon home doctor recover version help"
	local command="" options="--home --no-color --help" words="" home="" i

	for ((i = 1; i < ${#line[@]} - 1; i++)); do
		case ${line[i]} in
		--home) home=${line[++i]} ;;
		--home=*) home=${line[i]#*=} ;;
		--) [[ -n $command ]] && { _lbctl_files -f; return; } ;;
		-*) ;;
		*) [[ -n $command ]] || command=${line[i]} ;;
		esac
	done

	case $previous in
	--by) _lbctl_reply "run group owner week team"; return ;;
	--to) _lbctl_reply "mlflow= wandb trackio tensorboard"; return ;;
	--record | --replay | --output | -o) _lbctl_files -f; return ;;
	--home) _lbctl_files -d; return ;;
	--after | --after-ok) _lbctl_reply "$(_lbctl_words runs)"; return ;;
	--group) _lbctl_reply "$(_lbctl_words groups)"; return ;;
	--set) compopt -o nospace; COMPREPLY=($(compgen -S = -W "$(_lbctl_words keys)" -- "$current")); return ;;
	--from) _lbctl_reply "latest scratch"; return ;;
	--sweep | --every | --listen | --wrap | --name | --reason | --since | --attempt | --timeout | --older-than) return ;;
	--lines | -n | --grep | --interval | --nodes | --partition | -p | --count | -N | --project) return ;;
	--python) COMPREPLY=($(compgen -c -- "$current")); return ;;
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
	status | follow | events | diff) options+=" --json"; words=$(_lbctl_words runs team) ;;
	why) options+=" --json"; words=$(_lbctl_words runs) ;;
	logs) options+=" --follow --lines --grep --err --attempt --json"; words=$(_lbctl_words runs team) ;;
	kill) options+=" --now --reason --dry-run --yes"; words=$(_lbctl_words runs selectors team) ;;
	stop | hold | release | save) options+=" --reason --dry-run --yes"; words=$(_lbctl_words runs selectors team) ;;
	restart) options+=" --from --set"; words=$(_lbctl_words all) ;;
	audit) options+=" --interval --other-nodes --name --set --dry-run --follow --json"; words=$(_lbctl_words all) ;;
	check) options+=" --nodes --partition --count --name --set --dry-run --json"; words=$(_lbctl_words all) ;;
	compare) options+=" --json"; words=$(_lbctl_words groups) ;;
	advise) options+=" --json"; words=$(_lbctl_words all) ;;
	goodput) options+=" --since --by --team --csv --json"; words=$(_lbctl_words all selectors) ;;
	cron) options+=" --json"; words="ls run enable disable"
		case $previous in run | enable | disable) words=$(_lbctl_words cron) ;; esac ;;
	nodes) options+=" --json"; words=forgive ;;
	notify) options+=" --json"; words=test ;;
	daemon) options+=" --in-slurm --follow --timeout --json"; words="start stop restart status logs" ;;
	checkpoints) options+=" --all --deep --json"; words=$(_lbctl_words all team) ;;
	du) options+=" --group --team --json"; words=$(_lbctl_words all selectors) ;;
	rm) options+=" --dry-run --yes"; words=$(_lbctl_words all selectors) ;;
	prune) options+=" --older-than --dry-run --yes"; words=$(_lbctl_words all selectors) ;;
	stacks) words=$(_lbctl_words runs) ;;
	wait) options+=" --timeout --json"; words=$(_lbctl_words runs) ;;
	home) words=move; [[ $previous == move ]] && { _lbctl_files -d; return; } ;;
	doctor) options+=" --json" ;;
	version) options+=" --json --verbose" ;;
	help) words=$commands ;;
	esac

	if [[ $current == -* ]]; then
		_lbctl_reply "$options"
	elif [[ $command == submit ]]; then
		_lbctl_files -f
	else
		_lbctl_reply "$words"
	fi
}
complete -F _lbctl lbctl
