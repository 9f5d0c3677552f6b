/* SPDX-License-Identifier: MIT */
/* commands.c - the table is the whole command language: dispatch, usage, help and the test that
 * compares the man page and the completions with it all read it. */
#include <stddef.h>

#include "ctl/base/command.h"
#include "ctl/commands.h"

enum { ANY_NUMBER = 4096 };

/* clang-format off */
#define FIELD(member) offsetof(struct options, member)
#define JSON_ROW {"json", 0, OPTION_FLAG, FIELD(json), NULL, "print JSON, for programs"}
#define END_ROW {0}
/* clang-format on */

static const struct option_row no_options[] = { END_ROW };
static const struct option_row json_options[] = { JSON_ROW, END_ROW };
static const struct option_row version_options[] = {
	{ "verbose", 'v', OPTION_FLAG, FIELD(verbose), NULL,
	  "all programs of this installation, and what each is for" },
	JSON_ROW,
	END_ROW,
};

/* clang-format off */
#define SET_ROW {"set", 0, OPTION_SET, FIELD(set), "KEY=VALUE", \
		 "set section.key, over what the file says; may be repeated"}
/* clang-format on */

static const struct option_row submit_options[] = {
	{ "name", 0, OPTION_TEXT, FIELD(name), "NAME", "name of the run; drawn if not given" },
	SET_ROW,
	{ "after", 0, OPTION_LIST, FIELD(after), "RUN",
	  "begin when this run has ended, however; may be repeated" },
	{ "after-ok", 0, OPTION_LIST, FIELD(after_ok), "RUN",
	  "begin when this run has completed; fail when it does not" },
	{ "sweep", 0, OPTION_LIST, FIELD(sweep), "KEY=VALUES",
	  "a run for each value, like lr=1e-3,3e-4 with {lr} in the command, seed=1..9, "
	  "data=@FILE" },
	{ "wrap", 0, OPTION_TEXT, FIELD(wrap), "COMMAND",
	  "a line for the shell in the place of a batch script, as with sbatch" },
	{ "snapshot", 0, OPTION_FLAG, FIELD(snapshot), NULL,
	  "train from a copy of the code as it is now, in the run's folder" },
	{ "dry-run", 0, OPTION_FLAG, FIELD(dry_run), NULL,
	  "show the job that would be submitted, and submit nothing" },
	{ "follow", 'f', OPTION_FLAG, FIELD(follow), NULL, "then follow the run until it ends" },
	{ "OPTION", 0, OPTION_OTHERS, 0, "[=VALUE]",
	  "any option of sbatch, over what the file says" },
	JSON_ROW,
	END_ROW,
};

static const struct option_row audit_options[] = {
	{ "interval", 0, OPTION_NUMBER, FIELD(interval), "STEP",
	  "the one that ends with the checkpoint of this step; the newest" },
	{ "other-nodes", 0, OPTION_FLAG, FIELD(other_nodes), NULL,
	  "on none of the nodes that the run was on" },
	{ "name", 0, OPTION_TEXT, FIELD(name), "NAME", "name of the new run; RUN-audit" },
	SET_ROW,
	{ "dry-run", 0, OPTION_FLAG, FIELD(dry_run), NULL,
	  "show the job that would be submitted, and submit nothing" },
	{ "follow", 'f', OPTION_FLAG, FIELD(follow), NULL, "then follow it until it ends" },
	JSON_ROW,
	END_ROW,
};

static const struct option_row check_options[] = {
	{ "nodes", 0, OPTION_TEXT, FIELD(nodes), "LIST", "these, like n1,n[4-7]" },
	{ "partition", 'p', OPTION_TEXT, FIELD(partition), "NAME", "nodes of this partition" },
	{ "count", 'N', OPTION_NUMBER, FIELD(count), "N", "so many, whichever Slurm gives" },
	{ "name", 0, OPTION_TEXT, FIELD(name), "NAME", "name of the run; drawn if not given" },
	SET_ROW,
	{ "dry-run", 0, OPTION_FLAG, FIELD(dry_run), NULL,
	  "show the job that would be submitted, and submit nothing" },
	JSON_ROW,
	END_ROW,
};

static const struct option_row ls_options[] = {
	{ "all", 'a', OPTION_FLAG, FIELD(all), NULL, "also runs that ended more than 7 days ago" },
	{ "group", 0, OPTION_TEXT, FIELD(group), "GROUP", "only runs of this group (run.group)" },
	{ "team", 't', OPTION_FLAG, FIELD(team), NULL, "the runs of everybody in the team" },
	{ "cron", 0, OPTION_FLAG, FIELD(cron), NULL, "also the runs of periodic jobs" },
	JSON_ROW,
	END_ROW,
};

static const struct option_row top_options[] = {
	{ "demo", 0, OPTION_FLAG, FIELD(demo), NULL, "show a recording; no lbd is needed" },
	{ "record", 0, OPTION_TEXT, FIELD(record), "FILE", "also keep what is seen in this file" },
	{ "replay", 0, OPTION_TEXT, FIELD(replay), "FILE", "show what was kept" },
	END_ROW,
};

static const struct option_row report_options[] = {
	{ "output", 'o', OPTION_TEXT, FIELD(output), "FILE",
	  "the page's file; - is standard output" },
	{ "team", 't', OPTION_FLAG, FIELD(team), NULL, "of all runs, by person and group" },
	{ "week", 0, OPTION_FLAG, FIELD(week), NULL,
	  "of runs that live, or ended in the last 7 days" },
	END_ROW,
};

static const struct option_row metrics_options[] = {
	{ "output", 'o', OPTION_TEXT, FIELD(output), "FILE", "into this file, in one step" },
	{ "every", 0, OPTION_DURATION, FIELD(every_ms), "DURATION", "again and again" },
	{ "listen", 0, OPTION_NUMBER, FIELD(listen), "PORT", "as a page of 127.0.0.1" },
	END_ROW,
};

static const struct option_row sync_options[] = {
	{ "to", 0, OPTION_LIST, FIELD(to), "TRACKER",
	  "mlflow=URL, wandb[=DIR], trackio[=DIR] or tensorboard[=DIR]; may be repeated" },
	{ "project", 0, OPTION_TEXT, FIELD(project), "NAME",
	  "project or experiment; the run's group, else \"lowbits\"" },
	{ "python", 0, OPTION_TEXT, FIELD(python), "PROGRAM",
	  "the Python that has the tracker's client; python3" },
	{ "every", 0, OPTION_DURATION, FIELD(every_ms), "DURATION", "again and again" },
	END_ROW,
};

static const struct option_row logs_options[] = {
	{ "follow", 'f', OPTION_FLAG, FIELD(follow), NULL, "wait for more until the run ends" },
	{ "attempt", 0, OPTION_NUMBER, FIELD(attempt), "N", "of this attempt only" },
	{ "lines", 'n', OPTION_NUMBER, FIELD(lines), "N", "only the last N lines" },
	{ "grep", 0, OPTION_TEXT, FIELD(grep), "REGEX", "only lines in which this is found" },
	{ "err", 0, OPTION_FLAG, FIELD(errors), NULL,
	  "only lines that tell of errors, and tracebacks" },
	{ "json", 0, OPTION_FLAG, FIELD(json), NULL, "print where the files are, as JSON" },
	END_ROW,
};

/* clang-format off */
#define ORDER_ROWS \
	{"reason", 0, OPTION_TEXT, FIELD(reason), "TEXT", "why; kept in the run's events"}, \
	{"dry-run", 0, OPTION_FLAG, FIELD(dry_run), NULL, "show which runs it would be; do nothing"}, \
	{"yes", 'y', OPTION_FLAG, FIELD(yes), NULL, "do not ask, also where many runs are meant"}
/* clang-format on */

static const struct option_row kill_options[] = {
	{ "now", 0, OPTION_FLAG, FIELD(now), NULL,
	  "at once: give the trainer no time to end by itself" },
	ORDER_ROWS,
	END_ROW,
};

static const struct option_row order_options[] = { ORDER_ROWS, END_ROW };

static const struct option_row restart_options[] = {
	{ "from", 0, OPTION_TEXT, FIELD(from), "STEP",
	  "the step of a checkpoint, \"latest\" (the default) or \"scratch\"" },
	SET_ROW,
	END_ROW,
};

static const struct option_row goodput_options[] = {
	{ "since", 0, OPTION_DURATION, FIELD(since_ms), "DURATION",
	  "only of the last 90s, 5h, 7d ..." },
	{ "by", 0, OPTION_TEXT, FIELD(by), "KEY",
	  "a row for each run, group, owner, week or team" },
	{ "team", 't', OPTION_FLAG, FIELD(team), NULL, "the runs of everybody in the team" },
	{ "csv", 0, OPTION_FLAG, FIELD(csv), NULL, "print these rows for spreadsheets" },
	JSON_ROW,
	END_ROW,
};

static const struct option_row wait_options[] = {
	{ "timeout", 0, OPTION_DURATION, FIELD(timeout_ms), "DURATION",
	  "give up after 90s, 5m, 1h30m ...; exit status 8" },
	JSON_ROW,
	END_ROW,
};

static const struct option_row checkpoints_options[] = {
	{ "all", 'a', OPTION_FLAG, FIELD(all), NULL,
	  "all of them, also those that a restart set aside" },
	{ "deep", 0, OPTION_FLAG, FIELD(deep), NULL,
	  "read every byte of those that have checksums" },
	JSON_ROW,
	END_ROW,
};

static const struct option_row du_options[] = {
	{ "team", 't', OPTION_FLAG, FIELD(team), NULL, "the runs of everybody in the team" },
	{ "group", 0, OPTION_TEXT, FIELD(group), "GROUP", "only runs of this group (run.group)" },
	JSON_ROW,
	END_ROW,
};

/* clang-format off */
#define REMOVE_ROWS \
	{"dry-run", 0, OPTION_FLAG, FIELD(dry_run), NULL, "show what would go; do nothing"}, \
	{"yes", 'y', OPTION_FLAG, FIELD(yes), NULL, "do not ask"}
/* clang-format on */

static const struct option_row rm_options[] = { REMOVE_ROWS, END_ROW };

static const struct option_row prune_options[] = {
	{ "older-than", 0, OPTION_AGE, FIELD(older_ms), "DURATION",
	  "runs that ended 30d, 12w ... ago, or longer" },
	REMOVE_ROWS,
	END_ROW,
};

static const struct option_row daemon_options[] = {
	{ "in-slurm", 0, OPTION_FLAG, FIELD(in_slurm), NULL,
	  "start: as a small job of Slurm, which queues the next one" },
	{ "follow", 'f', OPTION_FLAG, FIELD(follow), NULL, "logs: wait for more" },
	{ "timeout", 0, OPTION_DURATION, FIELD(timeout_ms), "DURATION",
	  "start, stop: wait so long; a minute if not given" },
	JSON_ROW,
	END_ROW,
};

/* clang-format off */
const struct command commands[] = {
	{"submit", "[options] FILE.toml | SCRIPT|- [-- ARG...] | --wrap COMMAND | -- COMMAND ARG...",
	 "start a new run",
	 "lbctl submit train.toml --follow\n"
	 "lbctl submit --time=12:00:00 train.slurm -- --lr 3e-4\n"
	 "lbctl submit train.toml --name small-1 --set training.steps=500\n"
	 "lbctl submit --dry-run train.toml\n"
	 "lbctl submit --sweep lr=1e-3,3e-4 --sweep seed=1..3 -- python train.py --lr {lr} --seed {seed}\n"
	 "lbctl submit evaluate.toml --after-ok small-1\n"
	 "lbctl submit --set slurm.gpus_per_node=8 -- torchrun train.py --lr 3e-4\n",
	 submit_options, 0, 2, OPERANDS_NAMES, submit_run},
	{"ls", "[RUNS...] [--all] [--group GROUP] [--team]", "list runs, newest first",
	 "lbctl ls\n"
	 "lbctl ls --team\n"
	 "lbctl ls 'sweep-*' ada@user\n"
	 "lbctl ls --all --json | jq -r '.[].name'\n",
	 ls_options, 0, ANY_NUMBER, OPERANDS_SELECT, ls_run},
	{"status", "RUN", "one run: where it stands, its attempts, what to do next",
	 "lbctl status brisk-otter-39\n"
	 "lbctl status brisk-otter-39 --json | jq .step\n",
	 json_options, 1, 1, OPERANDS_LOOK, status_run},
	{"top", "[--demo] [--record FILE] [--replay FILE]",
	 "all runs on one screen, worst first, as they go",
	 "lbctl top\n"
	 "lbctl top --demo\n"
	 "lbctl top | head\n",
	 top_options, 0, 0, OPERANDS_NAMES, top_run},
	{"why", "RUN", "why it waits: the reason, who is ahead, what would start sooner",
	 "lbctl why brisk-otter-39\n"
	 "lbctl why brisk-otter-39 --json | jq -r '.sooner[].text'\n",
	 json_options, 1, 1, OPERANDS_RUN, why_run},
	{"follow", "RUN", "watch a run live until it ends",
	 "lbctl follow brisk-otter-39\n"
	 "lbctl follow brisk-otter-39 --json >progress.jsonl\n",
	 json_options, 1, 1, OPERANDS_LOOK, follow_run},
	{"logs", "[-f] [-n N] [--grep REGEX] [--err] [--attempt N] RUN", "the output of a run",
	 "lbctl logs brisk-otter-39\n"
	 "lbctl logs -f brisk-otter-39\n"
	 "lbctl logs --err -n 20 brisk-otter-39\n",
	 logs_options, 1, 1, OPERANDS_LOOK, logs_run},
	{"events", "[RUN]", "what happened to a run, who did it, and why",
	 "lbctl events brisk-otter-39\n"
	 "lbctl events\n",
	 json_options, 0, 1, OPERANDS_LOOK, events_run},
	{"kill", "RUNS... [--now] [--reason TEXT] [--dry-run] [--yes]", "end runs for good",
	 "lbctl kill brisk-otter-39 --reason 'wrong data'\n"
	 "lbctl kill --now brisk-otter-39 calm-heron-12\n"
	 "lbctl kill --dry-run 'sweep-*' ada@user\n"
	 "lbctl kill ada/calm-heron-12 --reason 'it hangs'\n"
	 "lbctl kill --yes ALL\n",
	 kill_options, 1, ANY_NUMBER, OPERANDS_SELECT, kill_run},
	{"stop", "RUNS... [--reason TEXT] [--dry-run] [--yes]",
	 "end runs for good, with a checkpoint",
	 "lbctl stop brisk-otter-39 --reason 'good enough'\n",
	 order_options, 1, ANY_NUMBER, OPERANDS_SELECT, stop_run},
	{"hold", "RUNS... [--reason TEXT] [--dry-run] [--yes]",
	 "stop runs with a checkpoint until they are released",
	 "lbctl hold brisk-otter-39 --reason 'the others need the nodes'\n",
	 order_options, 1, ANY_NUMBER, OPERANDS_SELECT, hold_run},
	{"release", "RUNS... [--reason TEXT] [--dry-run] [--yes]", "let held runs go on",
	 "lbctl release brisk-otter-39\n",
	 order_options, 1, ANY_NUMBER, OPERANDS_SELECT, release_run},
	{"restart", "RUN [--from STEP] [--set KEY=VALUE]", "start a finished or held run again",
	 "lbctl restart brisk-otter-39\n"
	 "lbctl restart brisk-otter-39 --from 1200 --set optimizer.lr=1e-4\n"
	 "lbctl restart brisk-otter-39 --from scratch\n",
	 restart_options, 1, 1, OPERANDS_RUN, restart_run},
	{"audit", "RUN [--interval STEP] [--other-nodes] [--follow]",
	 "compute what a run has saved once more: the same bits, or whose fault",
	 "lbctl audit brisk-otter-39 --follow\n"
	 "lbctl audit brisk-otter-39 --interval 4000 --other-nodes\n",
	 audit_options, 1, 1, OPERANDS_RUN, audit_run},
	{"check", "[--nodes LIST | --partition NAME --count N | RUN] [-- OPTION OF lbworker check...]",
	 "are nodes fit to train on? memory, a product, disk, links, clocks, sums",
	 "lbctl check --nodes 'n[1-4]'\n"
	 "lbctl check brisk-otter-39\n",
	 check_options, 0, 1, OPERANDS_RUN, check_run},
	{"compare", "GROUP", "the runs of a group side by side: what differs, and how they do",
	 "lbctl compare sweep\n"
	 "lbctl compare sweep --json | jq '.runs | map(select(.min_loss)) | min_by(.min_loss).name'\n",
	 json_options, 1, 1, OPERANDS_NAMES, compare_run},
	{"diff", "RUN RUN", "how two runs differ: settings, packages, and code",
	 "lbctl diff brisk-otter-39 calm-heron-12\n"
	 "lbctl diff brisk-otter-39 ada/calm-heron-12 --json | jq .settings\n",
	 json_options, 2, 2, OPERANDS_LOOK, diff_run},
	{"sync", "[RUNS...] --to TRACKER... [--project NAME] [--python PROGRAM] [--every DURATION]",
	 "send curves to MLflow, W&B, Trackio or TensorBoard, each step once",
	 "lbctl sync first --to mlflow=http://127.0.0.1:5000\n"
	 "lbctl sync --to wandb --to tensorboard=/home/ada/tb --every 10m\n",
	 sync_options, 0, ANY_NUMBER, OPERANDS_MANY, sync_run},
	{"metrics", "[-o FILE [--every DURATION] | --listen PORT]",
	 "runs as numbers for Prometheus",
	 "lbctl metrics\n"
	 "lbctl metrics -o /var/lib/node_exporter/lowbits.prom --every 30s\n"
	 "lbctl metrics --listen 9178\n",
	 metrics_options, 0, 0, OPERANDS_NAMES, metrics_run},
	{"plot", "RUNS...", "loss and tokens/s over all attempts, drawn in the terminal",
	 "lbctl plot brisk-otter-39\n"
	 "lbctl plot 'scan-*'\n",
	 no_options, 1, ANY_NUMBER, OPERANDS_MANY, plot_run},
	{"report", "RUNS... | GROUP | --team | --week  -o FILE.html",
	 "a page of runs to send around: one HTML file that needs nothing else",
	 "lbctl report brisk-otter-39 -o otter.html\n"
	 "lbctl report --week -o week.html\n",
	 report_options, 0, ANY_NUMBER, OPERANDS_MANY, report_run},
	{"goodput", "[RUNS...] [--since DURATION] [--by KEY] [--team] [--csv]", "where the hours of runs went",
	 "lbctl goodput brisk-otter-39\n"
	 "lbctl goodput ALL --by group --since 7d\n"
	 "lbctl goodput sweep@group --by week --csv\n"
	 "lbctl goodput --team --by owner\n"
	 "lbctl goodput brisk-otter-39 --since 7d --json | jq .ettr\n",
	 goodput_options, 0, ANY_NUMBER, OPERANDS_SELECT, goodput_run},
	{"advise", "RUN", "how often it should save, by what saving costs it and how often trouble comes",
	 "lbctl advise brisk-otter-39\n"
	 "lbctl advise brisk-otter-39 --json | jq .best_interval_s\n",
	 json_options, 1, 1, OPERANDS_RUN, advise_run},
	{"cron", "[ls | run NAME | enable NAME | disable NAME]",
	 "periodic jobs: last result, next time, why not",
	 "lbctl cron\n"
	 "lbctl cron run backup\n",
	 json_options, 0, 2, OPERANDS_NAMES, cron_run},
	{"nodes", "[forgive NODE...]", "nodes that new jobs keep away from",
	 "lbctl nodes\n"
	 "lbctl nodes forgive gpu17\n",
	 json_options, 0, ANY_NUMBER, OPERANDS_NAMES, nodes_run},
	{"notify", "test", "send a test by the ways of [notify] in lbd.toml, and say whether it went",
	 "lbctl notify test\n",
	 json_options, 1, 1, OPERANDS_NAMES, notify_run},
	{"checkpoints", "RUN [--all] [--deep]",
	 "the checkpoints of a run: which are whole, and why not",
	 "lbctl checkpoints brisk-otter-39\n"
	 "lbctl checkpoints brisk-otter-39 --json | jq '[.[] | select(.valid)][0].path'\n",
	 checkpoints_options, 1, 1, OPERANDS_LOOK, checkpoints_run},
	{"du", "[RUNS...] [--group GROUP] [--team]",
	 "what runs take on disk, by kind and owner",
	 "lbctl du\n"
	 "lbctl du --team\n"
	 "lbctl du --json | jq '.[] | select(.bytes > 1e12) | .run'\n",
	 du_options, 0, ANY_NUMBER, OPERANDS_SELECT, du_run},
	{"rm", "RUNS... [--dry-run] [--yes]", "remove runs that are over, with all their files",
	 "lbctl rm brisk-otter-39\n"
	 "lbctl rm --dry-run 'sweep-*'\n",
	 rm_options, 1, ANY_NUMBER, OPERANDS_SELECT, rm_run},
	{"prune", "--older-than DURATION [RUNS...] [--dry-run] [--yes]",
	 "remove all runs that ended long ago",
	 "lbctl prune --older-than 30d --dry-run\n"
	 "lbctl prune --older-than 30d 'sweep-*'\n",
	 prune_options, 0, ANY_NUMBER, OPERANDS_SELECT, prune_run},
	{"save", "RUNS... [--dry-run] [--yes]",
	 "ask running trainers for a checkpoint; they go on then",
	 "lbctl save brisk-otter-39\n",
	 order_options, 1, ANY_NUMBER, OPERANDS_SELECT, save_run},
	{"stacks", "RUN", "write down where a running trainer's processes are; it goes on then",
	 "lbctl stacks brisk-otter-39\n",
	 no_options, 1, 1, OPERANDS_RUN, stacks_run},
	{"wait", "RUN [--timeout DURATION]", "wait until a run ends; the exit status says how",
	 "lbctl wait brisk-otter-39 && ./evaluate.sh\n"
	 "lbctl wait brisk-otter-39 --timeout 1h30m\n",
	 wait_options, 1, 1, OPERANDS_RUN, wait_run},
	{"daemon", "start [--in-slurm] | stop | restart | status | logs [-f]",
	 "start and stop lbd; where it runs, since when",
	 "lbctl daemon start\n"
	 "lbctl daemon status\n"
	 "lbctl daemon start --in-slurm\n"
	 "lbctl daemon logs -f\n",
	 daemon_options, 0, 1, OPERANDS_NAMES, daemon_run},
	{"home", "[move NEW]", "where lbd's folder is; move it, live runs and all",
	 "lbctl home\n"
	 "lbctl home move /project/ada/lb\n",
	 no_options, 0, 2, OPERANDS_NAMES, home_run},
	{"doctor", "", "look at what lbd depends on, and say what to do",
	 "lbctl doctor\n"
	 "lbctl doctor --json | jq -r '.[] | select(.verdict == \"finding\") | .fix'\n",
	 json_options, 0, 0, OPERANDS_NAMES, doctor_run},
	{"recover", "", "make a lost or damaged ledger anew from the folders of the runs",
	 "lbctl recover\n",
	 no_options, 0, 0, OPERANDS_NAMES, recover_run},
	{"version", "[--verbose]", "versions of lbctl and of the lbd that answers",
	 "lbctl version\n"
	 "lbctl version --verbose\n",
	 version_options, 0, 0, OPERANDS_NAMES, version_run},
	{"help", "[COMMAND]", "all commands, or one in detail",
	 "lbctl help submit\n",
	 no_options, 0, 2, OPERANDS_NAMES, help_run},
};
/* clang-format on */
const size_t command_count = sizeof(commands) / sizeof(commands[0]);
