/* SPDX-License-Identifier: MIT */
/* left_steps.c - squeue tells of them, scancel ends them. */
#include "worker/lbrun/end/left_steps.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbrun/trainer/slurm_command.h"

/* Slurm hears of a step's end a moment behind its srun. */
enum { LIST_BYTES = 1024, FIRST_PAUSE_MS = 150, LAST_PAUSE_MS = 2000 };

/* "20.0"; not "20.batch", which we are, nor "20.extern". */
static bool is_of_srun(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && isdigit((unsigned char)dot[1]);
}

/* The first task of an array has the number that means all of them. */
static char *of_job(void)
{
	const char *array = getenv("SLURM_ARRAY_JOB_ID"), *task = getenv("SLURM_ARRAY_TASK_ID");

	return array && task ? xasprintf("--jobs=%s_%s", array, task)
			     : xasprintf("--jobs=%s", getenv("SLURM_JOB_ID"));
}

/* Those that live, parted by spaces. */
static void list(const char *folder, char *names, size_t size)
{
	char *job = of_job(), *left = NULL;
	char *text = slurm_command_output((const char *[]){ "squeue", "--steps", "--noheader", job,
							    "--format=%i", NULL },
					  folder);
	size_t len = 0;

	names[0] = '\0';
	for (char *name = strtok_r(text, " \n", &left); name; name = strtok_r(NULL, " \n", &left)) {
		size_t more = strlen(name) + 1;

		if (!is_of_srun(name) || len + more >= size)
			continue;
		len += (size_t)snprintf(names + len, size - len, "%s%s", len ? " " : "", name);
	}
	free(text);
	free(job);
}

static void cancel(const char *folder, const char *names)
{
	char *text = xstrdup(names), *left = NULL;

	for (char *name = strtok_r(text, " ", &left); name; name = strtok_r(NULL, " ", &left))
		slurm_command((const char *[]){ "scancel", "--quiet", name, NULL }, folder);
	free(text);
}

enum left_steps left_steps_end(const char *folder, char *names, size_t size)
{
	enum left_steps left = STEPS_GONE;

	list(folder, names, size);
	for (int pause_ms = FIRST_PAUSE_MS; names[0]; pause_ms *= 2) {
		char now[LIST_BYTES];

		poll(NULL, 0, pause_ms);
		list(folder, now, sizeof(now));
		if (!now[0] || pause_ms > LAST_PAUSE_MS)
			return now[0] ? STEPS_STAY : left;
		snprintf(names, size, "%s", now);
		cancel(folder, now);
		left = STEPS_ENDED;
	}
	return left;
}
