# SPDX-License-Identifier: MIT
# Completion of lbctl for fish. A unit test holds it against the table of commands.

function __lbctl_words # WHAT...; of the lbd that the line names
    set -l words (commandline -opc)
    set -l home (string replace -rf -- '^--home=' '' $words)
    set -l at (contains -i -- --home $words)
    and set home $words[(math $at + 1)]
    for what in $argv
        if set -q home[1]
            lbctl --home (string replace -r '^~/' $HOME/ $home[1]) help complete $what 2>/dev/null
        else
            lbctl help complete $what 2>/dev/null
        end
    end
end

# Whether the command is one of these; without any, whether there is none yet. It is the first word
# that is no option: a run, or what follows `daemon`, may be called as a command is.
function __lbctl_is # COMMAND...
    set -l words (commandline -opc)
    set -e words[1]
    set -l is_value no
    for word in $words
        if test $is_value = yes
            set is_value no
        else if test "$word" = --home
            set is_value yes
        else if not string match -q -- '-*' $word
            contains -- $word $argv
            return
        end
    end
    not set -q argv[1]
end

complete -c lbctl -f
complete -c lbctl -l home -x -a '(__fish_complete_directories)' -d 'the folder of lbd'
complete -c lbctl -l no-color -d 'no colours'
complete -c lbctl -s h -l help -d 'show help'

complete -c lbctl -n __lbctl_is -a submit -d 'start a new run'
complete -c lbctl -n __lbctl_is -a ls -d 'list runs, newest first'
complete -c lbctl -n __lbctl_is -a status -d 'one run in detail'
complete -c lbctl -n __lbctl_is -a why -d 'why it waits, and what would start sooner'
complete -c lbctl -n __lbctl_is -a follow -d 'watch a run live until it ends'
complete -c lbctl -n __lbctl_is -a top -d 'all runs on one screen, as they go'
complete -c lbctl -n '__lbctl_is top' -l demo -d 'show a recording'
complete -c lbctl -n '__lbctl_is top' -l record -r -F -d 'keep what is seen'
complete -c lbctl -n '__lbctl_is top' -l replay -r -F -d 'show what was kept'
complete -c lbctl -n __lbctl_is -a logs -d 'the output of a run'
complete -c lbctl -n __lbctl_is -a events -d 'what happened, who did it, and why'
complete -c lbctl -n __lbctl_is -a kill -d 'end runs for good'
complete -c lbctl -n __lbctl_is -a stop -d 'end runs for good, with a checkpoint'
complete -c lbctl -n __lbctl_is -a hold -d 'stop runs until they are released'
complete -c lbctl -n __lbctl_is -a release -d 'let held runs go on'
complete -c lbctl -n __lbctl_is -a restart -d 'start a finished or held run again'
complete -c lbctl -n __lbctl_is -a audit -d 'compute what a run has saved once more'
complete -c lbctl -n __lbctl_is -a check -d 'are nodes fit to train on?'
complete -c lbctl -n __lbctl_is -a compare -d 'the runs of a group side by side'
complete -c lbctl -n __lbctl_is -a diff -d 'how two runs differ: settings, packages, and code'
complete -c lbctl -n __lbctl_is -a metrics -d 'runs as numbers for Prometheus'
complete -c lbctl -n '__lbctl_is metrics' -s o -l output -r -F -d 'into this file'
complete -c lbctl -n '__lbctl_is metrics' -l every -x -d 'again and again'
complete -c lbctl -n '__lbctl_is metrics' -l listen -x -d 'as a page of 127.0.0.1'
complete -c lbctl -n __lbctl_is -a sync -d 'curves to MLflow, W&B, Trackio or TensorBoard'
complete -c lbctl -n __lbctl_is -a plot -d 'loss and tokens/s, drawn in the terminal'
complete -c lbctl -n __lbctl_is -a report -d 'a page of runs to send around'
complete -c lbctl -n '__lbctl_is report' -s o -l output -r -F -d 'the file'
complete -c lbctl -n '__lbctl_is report' -s t -l team -d 'of all runs'
complete -c lbctl -n '__lbctl_is report' -l week -d 'of the last 7 days'
complete -c lbctl -n __lbctl_is -a goodput -d 'where the hours of a run went'
complete -c lbctl -n __lbctl_is -a advise -d 'how often a run should save'
complete -c lbctl -n '__lbctl_is goodput' -l since -x -d 'so far back'
complete -c lbctl -n '__lbctl_is goodput' -l by -x -a 'run group owner week team' -d 'a row for each'
complete -c lbctl -n '__lbctl_is goodput' -l csv -d 'for spreadsheets'
complete -c lbctl -n __lbctl_is -a cron -d 'periodic jobs: last result, next time, why not'
complete -c lbctl -n __lbctl_is -a nodes -d 'nodes that new jobs keep away from'
complete -c lbctl -n __lbctl_is -a notify -d 'send a test by the ways of [notify]'
complete -c lbctl -n __lbctl_is -a checkpoints -d 'which are whole, and why not'
complete -c lbctl -n __lbctl_is -a du -d 'what runs take on disk'
complete -c lbctl -n __lbctl_is -a rm -d 'remove runs that are over'
complete -c lbctl -n __lbctl_is -a prune -d 'remove runs that ended long ago'
complete -c lbctl -n __lbctl_is -a save -d 'ask a trainer for a checkpoint'
complete -c lbctl -n __lbctl_is -a stacks -d 'write down where a trainer is'
complete -c lbctl -n __lbctl_is -a wait -d 'wait until a run ends'
complete -c lbctl -n __lbctl_is -a daemon -d 'start and stop lbd; where it runs'
complete -c lbctl -n __lbctl_is -a home -d 'where lbd is; move it, live runs and all'
complete -c lbctl -n '__lbctl_is home' -a 'move (__fish_complete_directories)'
complete -c lbctl -n __lbctl_is -a doctor -d 'look at what lbd depends on'
complete -c lbctl -n __lbctl_is -a recover -d 'make a lost ledger anew from the runs'
complete -c lbctl -n __lbctl_is -a version -d 'versions of lbctl and lbd'
complete -c lbctl -n __lbctl_is -a help -d 'all commands, or one in detail'

complete -c lbctl -n '__lbctl_is submit' -F
complete -c lbctl -n '__lbctl_is submit audit check' -l name -x -d 'name of the run'
complete -c lbctl -n '__lbctl_is submit' -l sweep -x -d 'a run for each value'
complete -c lbctl -n '__lbctl_is submit' -l wrap -x -d 'a line for the shell'
complete -c lbctl -n '__lbctl_is submit' -l after -x -a '(__lbctl_words runs)' -d 'begin when this run has ended'
complete -c lbctl -n '__lbctl_is submit' -l after-ok -x -a '(__lbctl_words runs)' -d 'begin when this run has completed'
complete -c lbctl -n '__lbctl_is submit' -l snapshot -d 'train from a copy of the code'
complete -c lbctl -n '__lbctl_is submit audit check' -l dry-run -d 'submit nothing, show the job'
complete -c lbctl -n '__lbctl_is restart' -l from -x -a 'latest scratch' -d 'step of a checkpoint'
complete -c lbctl -n '__lbctl_is submit audit check restart' -l set -x -a '(__lbctl_words keys)=' -d 'set section.key'
complete -c lbctl -n '__lbctl_is submit audit logs daemon' -s f -l follow -d 'go on until the run ends'
complete -c lbctl -n '__lbctl_is ls checkpoints' -s a -l all -d 'also older runs'
complete -c lbctl -n '__lbctl_is ls du goodput' -s t -l team -d 'of everybody in the team'
complete -c lbctl -n '__lbctl_is ls' -l cron -d 'also of periodic jobs'
complete -c lbctl -n '__lbctl_is ls du' -l group -x -a '(__lbctl_words groups)' -d 'only of this group'
complete -c lbctl -n '__lbctl_is logs' -l attempt -x -d 'of this attempt only'
complete -c lbctl -n '__lbctl_is logs' -s n -l lines -x -d 'only the last lines'
complete -c lbctl -n '__lbctl_is logs' -l grep -x -d 'only lines with this'
complete -c lbctl -n '__lbctl_is logs' -l err -d 'only errors'
complete -c lbctl -n '__lbctl_is kill' -l now -d 'at once'
complete -c lbctl -n '__lbctl_is kill stop hold release save' -l reason -x -d 'why'
complete -c lbctl -n '__lbctl_is kill stop hold release save rm prune' -l dry-run -d 'show which runs it would be'
complete -c lbctl -n '__lbctl_is kill stop hold release save rm prune' -s y -l yes -d 'do not ask'
complete -c lbctl -n '__lbctl_is checkpoints' -l deep -d 'read every byte'
complete -c lbctl -n '__lbctl_is prune' -l older-than -x -d 'that ended so long ago'
complete -c lbctl -n '__lbctl_is wait daemon' -l timeout -x -d 'give up after this time'
complete -c lbctl -n '__lbctl_is submit ls checkpoints du status why follow logs events audit check compare diff goodput advise cron nodes notify wait daemon doctor version' -l json -d 'print JSON'
complete -c lbctl -n '__lbctl_is status follow logs events diff' -a '(__lbctl_words runs team)'
complete -c lbctl -n '__lbctl_is ls kill stop hold release save' -a '(__lbctl_words runs selectors team)'
complete -c lbctl -n '__lbctl_is plot sync report goodput du rm prune' -a '(__lbctl_words selectors)'
complete -c lbctl -n '__lbctl_is why stacks wait' -a '(__lbctl_words runs)'
complete -c lbctl -n '__lbctl_is check' -l nodes -x -d 'these'
complete -c lbctl -n '__lbctl_is check' -s p -l partition -x -d 'nodes of this partition'
complete -c lbctl -n '__lbctl_is check' -s N -l count -x -d 'so many'
complete -c lbctl -n '__lbctl_is audit' -l interval -x -d 'that ends with this step'
complete -c lbctl -n '__lbctl_is audit' -l other-nodes -d 'on none of the nodes that it was on'
complete -c lbctl -n '__lbctl_is compare' -a '(__lbctl_words groups)'
complete -c lbctl -n '__lbctl_is cron; and __fish_seen_subcommand_from run enable disable' -a '(__lbctl_words cron)'
complete -c lbctl -n '__lbctl_is audit check restart plot sync report goodput advise checkpoints du rm prune' -a '(__lbctl_words all)'
complete -c lbctl -n '__lbctl_is version' -s v -l verbose -d 'all that is installed'
complete -c lbctl -n '__lbctl_is help' -a 'submit ls top status why follow logs events kill stop hold release restart checkpoints du rm prune save stacks audit check compare diff metrics sync plot report goodput advise cron nodes notify wait daemon doctor recover version'
complete -c lbctl -n '__lbctl_is cron' -a 'ls run enable disable'
complete -c lbctl -n '__lbctl_is daemon' -l in-slurm -d 'as a job of its own'
complete -c lbctl -n '__lbctl_is daemon' -a 'start stop restart status logs'
complete -c lbctl -n '__lbctl_is nodes' -a forgive
complete -c lbctl -n '__lbctl_is notify' -a test
complete -c lbctl -n '__lbctl_is sync' -l to -x -a 'mlflow= wandb trackio tensorboard' -d 'tracker'
complete -c lbctl -n '__lbctl_is sync' -l project -x -d 'project or experiment'
complete -c lbctl -n '__lbctl_is sync' -l python -r -d 'the Python that has the client'
complete -c lbctl -n '__lbctl_is sync' -l every -x -d 'again and again'
