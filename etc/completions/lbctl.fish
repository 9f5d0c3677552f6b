# SPDX-License-Identifier: MIT
# Completion of lbctl for fish. A unit test holds it against the table of commands.

function __lbctl_runs
    lbctl ls $argv 2>/dev/null | awk 'NR > 1 { print $1 }'
end

complete -c lbctl -f
complete -c lbctl -l home -x -a '(__fish_complete_directories)' -d 'the folder of lbd'
complete -c lbctl -l no-color -d 'no colours'
complete -c lbctl -s h -l help -d 'show help'

complete -c lbctl -n __fish_use_subcommand -a submit -d 'start a new run'
complete -c lbctl -n __fish_use_subcommand -a ls -d 'list runs, newest first'
complete -c lbctl -n __fish_use_subcommand -a status -d 'one run in detail'
complete -c lbctl -n __fish_use_subcommand -a follow -d 'watch a run live until it ends'
complete -c lbctl -n __fish_use_subcommand -a logs -d 'the output of a run'
complete -c lbctl -n __fish_use_subcommand -a events -d 'what happened, who did it, and why'
complete -c lbctl -n __fish_use_subcommand -a kill -d 'end runs for good'
complete -c lbctl -n __fish_use_subcommand -a stop -d 'end runs for good, with a checkpoint'
complete -c lbctl -n __fish_use_subcommand -a hold -d 'stop runs until they are released'
complete -c lbctl -n __fish_use_subcommand -a release -d 'let held runs go on'
complete -c lbctl -n __fish_use_subcommand -a restart -d 'start a finished or held run again'
complete -c lbctl -n __fish_use_subcommand -a goodput -d 'where the hours of a run went'
complete -c lbctl -n '__fish_seen_subcommand_from goodput' -l since -x -d 'so far back'
complete -c lbctl -n __fish_use_subcommand -a cron -d 'periodic jobs: last result, next time, why not'
complete -c lbctl -n __fish_use_subcommand -a nodes -d 'nodes that new jobs keep away from'
complete -c lbctl -n __fish_use_subcommand -a save -d 'ask a trainer for a checkpoint'
complete -c lbctl -n __fish_use_subcommand -a stacks -d 'write down where a trainer is'
complete -c lbctl -n __fish_use_subcommand -a wait -d 'wait until a run ends'
complete -c lbctl -n __fish_use_subcommand -a daemon -d 'start and stop lbd; where it runs'
complete -c lbctl -n __fish_use_subcommand -a version -d 'versions of lbctl and lbd'
complete -c lbctl -n __fish_use_subcommand -a help -d 'all commands, or one in detail'

complete -c lbctl -n '__fish_seen_subcommand_from submit' -F
complete -c lbctl -n '__fish_seen_subcommand_from submit' -l name -x -d 'name of the run'
complete -c lbctl -n '__fish_seen_subcommand_from submit' -l after -x -d 'begin when this run has ended'
complete -c lbctl -n '__fish_seen_subcommand_from submit' -l after-ok -x -d 'begin when this run has completed'
complete -c lbctl -n '__fish_seen_subcommand_from submit' -l dry-run -d 'submit nothing, show the job'
complete -c lbctl -n '__fish_seen_subcommand_from restart' -l from -x -a 'latest scratch' -d 'step of a checkpoint'
complete -c lbctl -n '__fish_seen_subcommand_from submit restart' -l set -x -d 'set section.key'
complete -c lbctl -n '__fish_seen_subcommand_from submit logs daemon' -s f -l follow -d 'go on until the run ends'
complete -c lbctl -n '__fish_seen_subcommand_from ls' -s a -l all -d 'also older runs'
complete -c lbctl -n '__fish_seen_subcommand_from ls' -s t -l team -d 'of everybody in the team'
complete -c lbctl -n '__fish_seen_subcommand_from ls' -l group -x -d 'only of this group'
complete -c lbctl -n '__fish_seen_subcommand_from logs' -l attempt -x -d 'of this attempt only'
complete -c lbctl -n '__fish_seen_subcommand_from kill' -l now -d 'at once'
complete -c lbctl -n '__fish_seen_subcommand_from kill stop hold release save' -l reason -x -d 'why'
complete -c lbctl -n '__fish_seen_subcommand_from kill stop hold release save' -l dry-run -d 'show which runs it would be'
complete -c lbctl -n '__fish_seen_subcommand_from kill stop hold release save' -s y -l yes -d 'do not ask'
complete -c lbctl -n '__fish_seen_subcommand_from wait daemon' -l timeout -x -d 'give up after this time'
complete -c lbctl -n '__fish_seen_subcommand_from submit ls status follow logs events goodput cron nodes wait daemon version' -l json -d 'print JSON'
complete -c lbctl -n '__fish_seen_subcommand_from status follow logs events kill stop hold release save stacks wait' -a '(__lbctl_runs)'
complete -c lbctl -n '__fish_seen_subcommand_from restart goodput' -a '(__lbctl_runs --all)'
complete -c lbctl -n '__fish_seen_subcommand_from help' -a 'submit ls status follow logs events kill stop hold release restart save stacks goodput cron nodes wait daemon version'
complete -c lbctl -n '__fish_seen_subcommand_from cron' -a 'ls run enable disable'
complete -c lbctl -n '__fish_seen_subcommand_from daemon' -l in-slurm -d 'as a job of its own'
complete -c lbctl -n '__fish_seen_subcommand_from daemon' -a 'start stop restart status logs'
complete -c lbctl -n '__fish_seen_subcommand_from nodes' -a forgive
