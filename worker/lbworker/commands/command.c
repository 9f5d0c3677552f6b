/* SPDX-License-Identifier: MIT */
/* command.c - what all subcommands say in the same way. */
#include "worker/lbworker/commands/command.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/text.h"

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

void command_put_text(const char *text, FILE *to)
{
	for (; *text; text++) {
		const char *entity = text_entity(*text);

		entity ? fputs(entity, to) : fputc(*text, to);
	}
}

/* As many as Linux can be built for: it refuses a mask of fewer than the machine could have. */
enum { SETS = 8, CPUS = SETS * CPU_SETSIZE };

unsigned command_threads(void)
{
	const char *text = getenv("OMP_NUM_THREADS");
	long asked = text ? strtol(text, NULL, 10) : 0;
	cpu_set_t cpus[SETS];

	if (asked > 0 && asked < CPUS)
		return (unsigned)asked;
	return sched_getaffinity(0, sizeof(cpus), cpus) == 0
		       ? (unsigned)CPU_COUNT_S(sizeof(cpus), cpus)
		       : 1;
}
