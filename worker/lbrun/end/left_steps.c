/* SPDX-License-Identifier: MIT */
/* left_steps.c - squeue and scontrol tell of them, scancel ends them. */
#include "worker/lbrun/end/left_steps.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/procs.h"
#include "worker/lbrun/trainer/slurm_command.h"

/* Slurm hears of a step's end a moment behind its srun. */
enum { LIST_BYTES = 1024, FIRST_PAUSE_MS = 150, LAST_PAUSE_MS = 2000 };

/* "20.0"; not "20.batch", which we are, nor "20.extern". */
static bool is_of_srun(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && isdigit((unsigned char)dot[1]);
}

static bool is_this_host(const char *name, size_t len)
{
	char own[256] = "";

	gethostname(own, sizeof(own) - 1);
	return len > 0 && len == strcspn(own, ".") && strncmp(name, own, len) == 0;
}

static bool is_living(int64_t pid)
{
	struct proc_name name;

	return proc_name_of(pid, &name) == 0 && proc_is_alive(&name);
}

/* "StepId=20.0 ... SrunHost:Pid=n1:4711", a line for each step that Slurm likes to tell of. One that
 * lives, or on another host, is perhaps a person's, who has a look at the job. */
static bool has_lost_srun(const char *folder, const char *step)
{
	static const char key[] = "SrunHost:Pid=";
	char *text = slurm_command_output(
		(const char *[]){ "scontrol", "--oneliner", "show", "step", step, NULL }, folder);
	char *own = xasprintf("StepId=%s ", step);
	const char *line = strstr(text, own), *at = line ? strstr(line, key) : NULL;
	const char *host = at ? at + sizeof(key) - 1 : "", *pid = strchr(host, ':');
	bool has_lost = pid && is_this_host(host, strcspn(host, ".:")) &&
			!is_living(strtol(pid + 1, NULL, 10));

	free(own);
	free(text);
	return has_lost;
}

/* Those that are left, parted by spaces. */
static void list(const char *folder, char *names, size_t size)
{
	char *job = slurm_this_job(), *left = NULL;
	char *text = slurm_command_output((const char *[]){ "squeue", "--steps", "--noheader",
							    "--jobs", job, "--format=%i", NULL },
					  folder);
	size_t len = 0;

	names[0] = '\0';
	for (char *name = strtok_r(text, " \n", &left); name; name = strtok_r(NULL, " \n", &left)) {
		size_t more = strlen(name) + 1;

		if (!is_of_srun(name) || len + more >= size || !has_lost_srun(folder, name))
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
