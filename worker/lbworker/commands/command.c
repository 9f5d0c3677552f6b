/* SPDX-License-Identifier: MIT */
/* command.c - what all subcommands say in the same way. */
#include "worker/lbworker/commands/command.h"

#include <stdio.h>

int command_failed(const struct err *err)
{
	fprintf(stderr, "lbworker: %s\n", err->text);
	return err->code == ERR_USAGE || err->code == ERR_NOT_FOUND ? EXIT_USAGE : EXIT_FAILED;
}

int command_usage(const char *text)
{
	fprintf(stderr, "lbworker: %s; lbworker help lists what there is\n", text);
	return EXIT_USAGE;
}
