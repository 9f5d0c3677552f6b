/* SPDX-License-Identifier: MIT */
/* help.c - lbctl help: all commands, one in detail, and what somebody may have meant. */
#include <string.h>

#include "common/config/keys.h"
#include "ctl/base/command.h"
#include "ctl/commands.h"
#include "ctl/help.h"

enum { MAX_COMMANDS = 64 };

const struct command *command_find(const struct ctl *ctl, const char *name)
{
	for (size_t i = 0; i < ctl->command_count; i++) {
		if (strcmp(ctl->commands[i].name, name) == 0)
			return &ctl->commands[i];
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

int unknown_command(const struct ctl *ctl, const char *name, struct err *err)
{
	const char *word = other_word(name);
	const struct command *ours = word ? command_find(ctl, word) : NULL;
	const char *names[MAX_COMMANDS];
	const char *near;

	if (ours)
		return err_set(err, ERR_USAGE,
			       "there is no command \"%s\"; here it is: lbctl %s %s%s", name,
			       ours->name, ours->usage, other_advice(ours->name));
	for (size_t i = 0; i < ctl->command_count; i++)
		names[i] = ctl->commands[i].name;
	near = nearest(name, names, ctl->command_count);
	if (near)
		return err_set(err, ERR_USAGE, "unknown command \"%s\"; did you mean %s?", name,
			       near);
	return err_set(err, ERR_USAGE, "unknown command \"%s\"; lbctl help lists them", name);
}

void print_overview(const struct ctl *ctl, FILE *to)
{
	fputs("lbctl - submit training runs, see how they do, end them\n\n"
	      "Examples:\n"
	      "  lbctl submit train.toml --follow\n"
	      "  lbctl submit -- python train.py\n"
	      "  lbctl ls\n\n"
	      "Commands:\n",
	      to);
	for (size_t i = 0; i < ctl->command_count; i++)
		fprintf(to, "  %-11s %s\n", ctl->commands[i].name, ctl->commands[i].summary);
	fputs("\nOptions:\n", to);
	options_print(global_options, to);
	fputs("\nMore: lbctl help COMMAND, man lbctl\n", to);
}

void print_help(const struct command *command, FILE *to)
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
		print_overview(ctl, stdout);
		return 0;
	}
	if (ctl->operands.count <= 2 && strcmp(ctl->operands.words[0], "complete") == 0)
		return client_init(&ctl->client, ctl->options.home, err) < 0
			       ? -1
			       : complete_run(ctl,
					      ctl->operands.count == 2 ? ctl->operands.words[1]
								       : "",
					      err);
	command = command_find(ctl, ctl->operands.words[0]);
	if (!command)
		return unknown_command(ctl, ctl->operands.words[0], err);
	if (ctl->operands.count > 1)
		return err_set(err, ERR_USAGE, "help: \"%s\" is too much; usage: lbctl help %s",
			       ctl->operands.words[1], ctl->command->usage);
	print_help(command, stdout);
	return 0;
}
