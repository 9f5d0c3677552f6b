/* SPDX-License-Identifier: MIT */
/* machine.c - reads /proc/PID/stat, and the control group of the job where Slurm made one. */
#include "worker/lbrun/meter/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbrun/end/reap.h"

enum { FILE_MAX_BYTES = 64 * 1024, MB = 1024 * 1024 };

/* --- processes -------------------------------------------------------------------------------- */

struct process_stat {
	char state;
	long long cpu_ticks, resident_pages;
};

static bool read_stat(pid_t pid, struct process_stat *out)
{
	char *path = xasprintf("/proc/%d/stat", (int)pid);
	char *text = file_read(path, FILE_MAX_BYTES, NULL, NULL);
	const char *rest = text ? strrchr(text, ')') : NULL;
	long long user, system, child_user, child_system;
	int got = 0;

	if (rest) /* fields 3 (state), 14 to 17 (times), 24 (rss) */
		/* NOLINTNEXTLINE(cert-err34-c): the kernel wrote it */
		got = sscanf(rest + 1,
			     " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lld %lld %lld %lld "
			     "%*s %*s %*s %*s %*s %*s %lld",
			     &out->state, &user, &system, &child_user, &child_system,
			     &out->resident_pages);
	free(text);
	free(path);
	if (got == 6)
		out->cpu_ticks = user + system + child_user + child_system;
	return got == 6;
}

static void add_process(pid_t pid, struct machine_reading *out)
{
	struct process_stat stat;

	if (!read_stat(pid, &stat))
		return;
	out->cpu_ms += stat.cpu_ticks * 1000 / sysconf(_SC_CLK_TCK);
	out->resident_mb += stat.resident_pages * sysconf(_SC_PAGESIZE) / MB;
	out->is_blocked |= stat.state == 'D';
}

/* --- the job's control group ------------------------------------------------------------------ */

char *machine_job_group(const char *cgroups, const char *mount)
{
	const char *line = strstr(cgroups, "0::"), *job, *end;

	if (!line || (line != cgroups && line[-1] != '\n'))
		return NULL;
	line += 3;
	job = strstr(line, "/job_");
	if (!job || job > line + strcspn(line, "\n"))
		return NULL;
	end = job + 1 + strcspn(job + 1, "/\n");
	return path_join("%s%.*s", mount, (int)(end - line), line);
}

/* The number behind `word` in a small file; all of it when there is no word. */
static int64_t number_in(const char *group, const char *name, const char *word)
{
	char *path = path_join("%s/%s", group, name);
	char *text = file_read(path, FILE_MAX_BYTES, NULL, NULL);
	const char *at = text && word ? strstr(text, word) : text;
	int64_t number = -1;

	if (at && word)
		at += strlen(word);
	if (at && *at >= '0' && *at <= '9')
		number = strtoll(at, NULL, 10);
	free(text);
	free(path);
	return number;
}

static void read_job(struct machine_reading *out)
{
	char *cgroups = file_read("/proc/self/cgroup", FILE_MAX_BYTES, NULL, NULL);
	char *group = cgroups ? machine_job_group(cgroups, "/sys/fs/cgroup") : NULL;
	int64_t peak = group ? number_in(group, "memory.peak", NULL) : -1;

	out->job_peak_mb = peak < 0 ? -1 : peak / MB;
	/* without a group of its own: of the machine */
	out->io_stall_us = group ? number_in(group, "io.pressure", "total=")
				 : number_in("/proc/pressure", "io", "total=");
	free(group);
	free(cgroups);
}

void machine_read(pid_t root, struct machine_reading *out)
{
	pid_t *pids;
	size_t count = descendants_list(root, &pids);

	*out = (struct machine_reading){ 0 };
	add_process(root, out);
	for (size_t i = 0; i < count; i++)
		add_process(pids[i], out);
	free(pids);
	read_job(out);
}
