/* SPDX-License-Identifier: MIT */
/* dispatch.c - from the command line to the function of the row, and to the exit status. */
#include <stdio.h>
#include <string.h>

#include "common/base/names.h"
#include "common/team/selector.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/commands.h"
#include "ctl/help.h"
#include "ctl/team/team.h"

static int check_operand(const struct ctl *ctl, const char *word, struct err *err)
{
	const struct command *command = ctl->command;
	char user[TEAM_USER_BYTES + 1];
	struct selector selector;

	if (command->operands == OPERANDS_NAMES)
		return name_check(word, err);
	if (team_word(word, user, &selector, err) < 0)
		return -1;
	if ((command->operands == OPERANDS_LOOK || command->operands == OPERANDS_RUN) &&
	    !selector_is_one(&selector))
		return err_set(err, ERR_USAGE,
			       "%s: \"%s\" may be many runs: name one; lbctl ls '%s' lists them",
			       command->name, word, word);
	return 0;
}

/* What is missing is named where it is a run; elsewhere the usage says it. */
static int too_few(const struct command *command, size_t count, struct err *err)
{
	const char *missing = count > 0 ? "name another run; " : "name a run; ";

	if (!strstr(command->usage, "RUN"))
		missing = "";
	return err_set(err, ERR_USAGE, "%s: %susage: lbctl %s %s", command->name, missing,
		       command->name, command->usage);
}

/* As sbatch separates the parts of one job that each ask for something else. */
static bool names_parts(const struct operands *o)
{
	for (size_t i = 0; i < o->count; i++)
		if (strcmp(o->words[i], ":") == 0)
			return true;
	return false;
}

/* Words after "--" are operands as well, except that submit takes them as the command. */
static int check_operands(struct ctl *ctl, struct err *err)
{
	const struct command *command = ctl->command;
	struct operands *o = &ctl->operands;

	if (command->run != submit_run && command->run != check_run) {
		for (size_t i = 0; i < o->rest_count; i++)
			operands_add(o, o->rest[i]);
	} else if (names_parts(o)) {
		return err_set(err, ERR_USAGE,
			       "heterogeneous jobs (\":\") are not supported: a run is one job; "
			       "submit each part by itself");
	}
	if (o->count < command->least)
		return too_few(command, o->count, err);
	if (o->count > command->most)
		return err_set(err, ERR_USAGE, "%s: \"%s\" is too much; usage: lbctl %s%s%s",
			       command->name, o->words[command->most], command->name,
			       command->usage[0] ? " " : "", command->usage);
	if (command->run == submit_run || command->run == help_run || command->run == home_run)
		return 0;
	for (size_t i = 0; i < o->count; i++) {
		if (check_operand(ctl, o->words[i], err) < 0)
			return -1;
	}
	return 0;
}

/* Where only runs here will do, OWNER/RUN is RUN, as for all other commands, or is told whose. */
static int keep_to_own(struct ctl *ctl, struct err *err)
{
	enum operand_kind kind = ctl->command->operands;

	if (kind != OPERANDS_RUN && kind != OPERANDS_MANY)
		return 0;
	for (size_t i = 0; i < ctl->operands.count; i++) {
		const char *word = ctl->operands.words[i], *slash = strchr(word, '/');

		if (slash && !team_is_mine(ctl, word))
			return err_set(err, ERR_USAGE,
				       "%s: %s is a colleague's, and this is for runs of your own "
				       "lbd; lbctl status, follow, logs, events and checkpoints "
				       "show it",
				       ctl->command->name, word);
		if (slash)
			ctl->operands.words[i] = slash + 1;
	}
	return 0;
}

/* Options that stand before the command. On success *at is the index of the command's name. */
static int read_globals(struct ctl *ctl, int argc, char **argv, int *at, struct err *err)
{
	const struct option_row *const tables[] = { global_options, NULL };

	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		ctl->command = command_find(ctl, "version");
		*at = 1;
		return 0;
	}
	*at = options_read(tables, argc - 1, argv + 1, true, &ctl->options, &ctl->operands, err);
	if (*at < 0)
		return -1;
	*at += 1;
	if (*at == argc && ctl->options.help)
		ctl->command = command_find(ctl, "help");
	else if (*at == argc)
		return err_set(err, ERR_USAGE, "say what to do");
	else
		ctl->command = command_find(ctl, argv[*at]);
	return ctl->command ? 0 : unknown_command(ctl, argv[*at], err);
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
	return keep_to_own(ctl, err) < 0 ? -1 : ctl->command->run(ctl, err);
}

int ctl_main(int argc, char **argv)
{
	struct ctl ctl = { .client.fd = -1, .commands = commands, .command_count = command_count };
	struct err err = { 0 };
	int status;

	options_init(&ctl.options, &ctl.operands);
	status = dispatch(&ctl, argc, argv, &err);
	if (status < 0) {
		status = interrupted() ? EXIT_INTERRUPTED : err_exit_status(err.code);
		if (err.code != ERR_NONE)
			complain(&ctl, err.text);
		if (!ctl.command && argc < 2)
			print_overview(&ctl, stderr);
	}
	status = finish_output(&ctl, status);
	client_fini(&ctl.client);
	team_clear(&ctl.team);
	options_fini(&ctl.options, &ctl.operands);
	return status;
}
