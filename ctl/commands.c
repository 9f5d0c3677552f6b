/* SPDX-License-Identifier: MIT */
/* commands.c - the table is the whole command language: dispatch, usage, help and the test that
 * compares the man page and the completions with it all read it. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/json.h"
#include "common/config/keys.h"
#include "common/base/names.h"
#include "common/run/selector.h"
#include "ctl/base/command.h"

enum { ANY_NUMBER = 4096, MAX_COMMANDS = 64 };

/* clang-format off */
#define FIELD(member) offsetof(struct options, member)
#define JSON_ROW {"json", 0, OPTION_FLAG, FIELD(json), NULL, "print JSON, for programs"}
#define END_ROW {0}
/* clang-format on */

const struct option_row global_options[] = {
	{ "home", 0, OPTION_TEXT, FIELD(home), "DIR", "the folder of lbd, instead of $LB_HOME" },
	{ "no-color", 0, OPTION_FLAG, FIELD(no_color), NULL, "no colours" },
	{ "help", 'h', OPTION_FLAG, FIELD(help), NULL, "show this help" },
	END_ROW,
};

static const struct option_row no_options[] = { END_ROW };
static const struct option_row json_options[] = { JSON_ROW, END_ROW };

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
	  "a run for each value, like lr=1e-3,3e-4 with {lr} in the command, seed=1..9, data=@FILE" },
	{ "wrap", 0, OPTION_TEXT, FIELD(wrap), "COMMAND",
	  "a line for the shell in the place of a batch script, as with sbatch" },
	{ "dry-run", 0, OPTION_FLAG, FIELD(dry_run), NULL,
	  "show the job that would be submitted, and submit nothing" },
	{ "follow", 'f', OPTION_FLAG, FIELD(follow), NULL, "then follow the run until it ends" },
	{ "OPTION", 0, OPTION_OTHERS, 0, "[=VALUE]",
	  "any option of sbatch, over what the file says" },
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
	{ "older-than", 0, OPTION_DURATION, FIELD(older_ms), "DURATION",
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
	{"submit", "[options] FILE.toml | SCRIPT [-- ARG...] | --wrap COMMAND | -- COMMAND ARG...",
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
	{"why", "RUN", "why it waits: the reason, who is ahead, what would start sooner",
	 "lbctl why brisk-otter-39\n"
	 "lbctl why brisk-otter-39 --json | jq -r '.sooner[].text'\n",
	 json_options, 1, 1, OPERANDS_NAMES, why_run},
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
	 restart_options, 1, 1, OPERANDS_NAMES, restart_run},
	{"compare", "GROUP", "the runs of a group side by side: what differs, and how they do",
	 "lbctl compare sweep\n"
	 "lbctl compare sweep --json | jq '.runs | min_by(.min_loss).name'\n",
	 json_options, 1, 1, OPERANDS_NAMES, compare_run},
	{"diff", "RUN RUN", "how two runs differ: settings, packages, and code",
	 "lbctl diff brisk-otter-39 calm-heron-12\n"
	 "lbctl diff brisk-otter-39 ada/calm-heron-12 --json | jq .settings\n",
	 json_options, 2, 2, OPERANDS_LOOK, diff_run},
	{"goodput", "RUN [--since DURATION]", "where the hours of a run went",
	 "lbctl goodput brisk-otter-39\n"
	 "lbctl goodput brisk-otter-39 --since 7d --json | jq .ettr\n",
	 goodput_options, 1, 1, OPERANDS_NAMES, goodput_run},
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
	 no_options, 1, 1, OPERANDS_NAMES, stacks_run},
	{"wait", "RUN [--timeout DURATION]", "wait until a run ends; the exit status says how",
	 "lbctl wait brisk-otter-39 && ./evaluate.sh\n"
	 "lbctl wait brisk-otter-39 --timeout 1h30m\n",
	 wait_options, 1, 1, OPERANDS_NAMES, wait_run},
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
	{"version", "", "versions of lbctl and of the lbd that answers",
	 "lbctl version\n",
	 json_options, 0, 0, OPERANDS_NAMES, version_run},
	{"help", "[COMMAND]", "all commands, or one in detail",
	 "lbctl help submit\n",
	 no_options, 0, 2, OPERANDS_NAMES, help_run},
};
/* clang-format on */
const size_t command_count = sizeof(commands) / sizeof(commands[0]);

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < command_count; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

/* What holds is released, what has ended is restarted: who says "resume" may mean either. */
static const char *other_advice(const char *ours)
{
	return strcmp(ours, "restart") == 0  ? " (what is on hold: lbctl release RUN)"
	       : strcmp(ours, "submit") == 0 ? " (lbd itself: lbctl daemon start)"
					     : "";
}

static int unknown_command(const char *name, struct err *err)
{
	const char *word = other_word(name);
	const struct command *ours = word ? command_find(word) : NULL;
	const char *names[MAX_COMMANDS];
	const char *near;

	if (ours)
		return err_set(err, ERR_USAGE,
			       "there is no command \"%s\"; here it is: lbctl %s %s%s", name,
			       ours->name, ours->usage, other_advice(ours->name));
	for (size_t i = 0; i < command_count; i++)
		names[i] = commands[i].name;
	near = nearest(name, names, command_count);
	if (near)
		return err_set(err, ERR_USAGE, "unknown command \"%s\"; did you mean %s?", name,
			       near);
	return err_set(err, ERR_USAGE, "unknown command \"%s\"; lbctl help lists them", name);
}

static void print_overview(FILE *to)
{
	fputs("lbctl - submit training runs, see how they do, end them\n\n"
	      "Examples:\n"
	      "  lbctl submit train.toml --follow\n"
	      "  lbctl submit -- python train.py\n"
	      "  lbctl ls\n\n"
	      "Commands:\n",
	      to);
	for (size_t i = 0; i < command_count; i++)
		fprintf(to, "  %-11s %s\n", commands[i].name, commands[i].summary);
	fputs("\nOptions:\n", to);
	options_print(global_options, to);
	fputs("\nMore: lbctl help COMMAND, man lbctl\n", to);
}

static void print_help(const struct command *command, FILE *to)
{
	fprintf(to, "lbctl %s - %s\n\nExamples:\n", command->name, command->summary);
	for (const char *line = command->examples; *line;) {
		size_t len = strcspn(line, "\n");

		fprintf(to, "  %.*s\n", (int)len, line);
		line += len + (line[len] == '\n');
	}
	fprintf(to, "\nUsage:\n  lbctl %s %s\n\nOptions:\n", command->name, command->usage);
	options_print(command->options, to);
	options_print(global_options, to);
}

int help_run(struct ctl *ctl, struct err *err)
{
	const struct command *command;

	if (ctl->operands.count == 0) {
		print_overview(stdout);
		return 0;
	}
	if (ctl->operands.count == 2 && strcmp(ctl->operands.words[0], "complete") == 0)
		return client_init(&ctl->client, ctl->options.home, err) < 0
			       ? -1
			       : complete_run(ctl, ctl->operands.words[1], err);
	command = command_find(ctl->operands.words[0]);
	if (!command)
		return unknown_command(ctl->operands.words[0], err);
	print_help(command, stdout);
	return 0;
}

void print_rows(const struct ctl *ctl, const struct column *columns, int column_count,
		const json_t *items,
		void (*fill)(struct cell *row, const json_t *item, const struct style *style))
{
	struct table table;
	const json_t *item;
	size_t i;

	table_init(&table, columns, column_count);
	json_array_foreach(items, i, item) {
		fill(table_row(&table), item, &ctl->out);
	}
	table_print(&table, &ctl->out, stdout);
	table_fini(&table);
}

void print_json(json_t *value)
{
	/* A terminal gets ASCII: JSON escapes controls, but not the marks that reorder a line. */
	size_t flags = JSON_COMPACT | JSON_ENCODE_ANY |
		       (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0);
	size_t digits = JSON_REAL_PRECISION(15); /* with 17, .656 is printed as .6559999 */

	json_dumpf(value, stdout, flags | digits);
	putchar('\n');
	json_decref(value);
}

int64_t time_ms(const json_t *object, const char *key)
{
	double seconds = js_real(object, key, 0);

	/* Up to the year 9999; the cast of anything larger would be undefined. */
	return seconds > 0 && seconds < 253402300800.0 ? (int64_t)(seconds * 1000) : 0;
}

void complain(const struct ctl *ctl, const char *text)
{
	char *shown = clean_copy(text, &ctl->err);

	fflush(stdout);
	fprintf(stderr, "lbctl: %s\n", shown);
	free(shown);
}

void hint(const struct ctl *ctl, const char *fmt, ...)
{
	va_list args;

	if (ctl->err.width == 0)
		return;
	fflush(stdout);
	va_start(args, fmt);
	fputs(color_code(&ctl->err, COLOR_DIM), stderr);
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "%s\n", color_code(&ctl->err, COLOR_NONE));
	va_end(args);
}

/* A name that is none here may be a colleague's. */
static void suggest(struct ctl *ctl, const char *run, struct err *err)
{
	struct err quiet = { 0 }, why = *err;
	char *theirs = err->code == ERR_NOT_FOUND ? team_find(ctl, run, &quiet) : NULL;

	if (theirs) {
		*err = (struct err){ 0 };
		err_set(err, why.code, "%s; did you mean %s?", why.text, theirs);
	} else {
		client_suggest(&ctl->client, run, err);
	}
	free(theirs);
}

static json_t *ask_run(struct ctl *ctl, enum verb verb, const char *run, json_t *args,
		       json_t *(*ask)(struct client *client, enum verb verb, json_t *args,
				      struct err *err),
		       struct err *err)
{
	json_t *data;

	if (!args)
		args = json_object();
	if (strchr(run, '/') && !team_is_mine(ctl, run)) {
		data = colleague_ask(ctl, verb, run, args, err);
		json_decref(args);
		return data;
	}
	if (strchr(run, '/'))
		run = strchr(run, '/') + 1;
	json_object_set_new(args, "run", json_string(run));
	data = ask(&ctl->client, verb, args, err);
	if (!data)
		suggest(ctl, run, err);
	return data;
}

json_t *ask_about(struct ctl *ctl, enum verb verb, const char *run, json_t *args, struct err *err)
{
	return ask_run(ctl, verb, run, args, client_ask, err);
}

json_t *ask_patiently(struct ctl *ctl, enum verb verb, const char *run, json_t *args,
		      struct err *err)
{
	return ask_run(ctl, verb, run, args, client_ask_patient, err);
}

/* Words after "--" are operands as well, except that submit takes them as the command. */
static int check_operands(struct ctl *ctl, struct err *err)
{
	const struct command *command = ctl->command;
	struct operands *o = &ctl->operands;

	if (command->run != submit_run) {
		for (size_t i = 0; i < o->rest_count; i++)
			operands_add(o, o->rest[i]);
	}
	if (o->count < command->least)
		return err_set(err, ERR_USAGE, "%s: name a run; usage: lbctl %s %s", command->name,
			       command->name, command->usage);
	if (o->count > command->most)
		return err_set(err, ERR_USAGE, "%s: \"%s\" is too much; usage: lbctl %s%s%s",
			       command->name, o->words[command->most], command->name,
			       command->usage[0] ? " " : "", command->usage);
	if (command->run == submit_run || command->run == help_run || command->run == home_run)
		return 0;
	for (size_t i = 0; i < o->count; i++) {
		char user[TEAM_USER_BYTES + 1];
		struct selector selector;

		if (command->operands == OPERANDS_NAMES
			    ? name_check(o->words[i], err) < 0
			    : team_word(o->words[i], user, &selector, err) < 0)
			return -1;
		if (command->operands == OPERANDS_LOOK && !selector_is_one(&selector))
			return err_set(err, ERR_USAGE,
				       "%s: \"%s\" may be many runs: name one; "
				       "lbctl ls '%s' lists them",
				       command->name, o->words[i], o->words[i]);
	}
	return 0;
}

/* Options that stand before the command. On success *at is the index of the command's name. */
static int read_globals(struct ctl *ctl, int argc, char **argv, int *at, struct err *err)
{
	const struct option_row *const tables[] = { global_options, NULL };

	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		ctl->command = command_find("version");
		*at = 1;
		return 0;
	}
	*at = options_read(tables, argc - 1, argv + 1, true, &ctl->options, &ctl->operands, err);
	if (*at < 0)
		return -1;
	*at += 1;
	if (*at == argc && ctl->options.help)
		ctl->command = command_find("help");
	else if (*at == argc)
		return err_set(err, ERR_USAGE, "say what to do");
	else
		ctl->command = command_find(argv[*at]);
	return ctl->command ? 0 : unknown_command(argv[*at], err);
}

static int read_line(struct ctl *ctl, int argc, char **argv, struct err *err)
{
	const struct option_row *tables[] = { NULL, global_options, NULL };
	int at;

	if (read_globals(ctl, argc, argv, &at, err) < 0)
		return -1;
	tables[0] = ctl->command->options;
	if (at < argc && options_read(tables, argc - at - 1, argv + at + 1, false, &ctl->options,
				      &ctl->operands, err) < 0)
		return -1;
	if (ctl->options.help)
		return 0;
	return check_operands(ctl, err);
}

/* Output that could not be written is a failure: the disk may be full. */
static int finish_output(const struct ctl *ctl, int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	complain(ctl, "the output could not be written");
	return err_exit_status(ERR_IO);
}

static int dispatch(struct ctl *ctl, int argc, char **argv, struct err *err)
{
	int status = read_line(ctl, argc, argv, err);

	style_of(stdout, ctl->options.no_color, &ctl->out);
	style_of(stderr, ctl->options.no_color, &ctl->err);
	if (status < 0)
		return status;
	if (ctl->options.help && ctl->command->run != help_run) {
		print_help(ctl->command, stdout);
		return 0;
	}
	if (ctl->command->run != help_run && client_init(&ctl->client, ctl->options.home, err) < 0)
		return -1;
	return ctl->command->run(ctl, err);
}

int ctl_main(int argc, char **argv)
{
	struct ctl ctl = { .client.fd = -1 };
	struct err err = { 0 };
	int status;

	options_init(&ctl.options, &ctl.operands);
	status = dispatch(&ctl, argc, argv, &err);
	if (status < 0) {
		status = interrupted() ? EXIT_INTERRUPTED : err_exit_status(err.code);
		if (err.code != ERR_NONE)
			complain(&ctl, err.text);
		if (!ctl.command && argc < 2)
			print_overview(stderr);
	}
	status = finish_output(&ctl, status);
	client_fini(&ctl.client);
	team_clear(&ctl.team);
	options_fini(&ctl.options, &ctl.operands);
	return status;
}
