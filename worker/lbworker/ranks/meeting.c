/* SPDX-License-Identifier: MIT */
/* meeting.c - a thread with a deadline, and an empty file for each rank that has come. */
#include "worker/lbworker/ranks/meeting.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/run/hosts.h"

struct meeting {
	int rank, size;
	double seconds;
	char *prefix; /* of the files; NULL: there is no folder that all see */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t over;
	bool is_over;
};

static char *file_of(const struct meeting *m, int rank)
{
	return xasprintf("%s%d", m->prefix, rank);
}

/* Below the folder of the attempt, which all nodes see, once for each launch. */
static char *find_prefix(void)
{
	const char *dir = getenv("LB_RUN_DIR"), *attempt = getenv("LB_ATTEMPT");
	const char *launch = getenv("LB_LAUNCH"), *step = getenv("SLURM_STEP_ID");

	if (!dir || !attempt || !launch)
		return NULL;
	return path_join("%s/attempts/%s/rank-%s-%s-", dir, attempt, launch, step ? step : "0");
}

/* Where srun has put that rank: blocks of equal length, as it does by itself. "" = not known. */
static void find_node(int rank, char *out, size_t size)
{
	const char *each = getenv("SLURM_STEP_TASKS_PER_NODE");
	const char *list = getenv("SLURM_STEP_NODELIST");
	long tasks = each ? strtol(each, NULL, 10) : 0;

	out[0] = '\0';
	if (tasks <= 0 || !list)
		return;
	json_t *nodes = hosts_expand(list);
	const char *node = json_string_value(json_array_get(nodes, (size_t)(rank / tasks)));
	if (node)
		snprintf(out, size, " on %s", node);
	json_decref(nodes);
}

/* "rank 1 on n2, 3 on n3"; false: nobody is missing as far as files tell. */
static bool list_missing(const struct meeting *m, char *out, size_t size)
{
	size_t length = (size_t)snprintf(out, size, "rank");
	bool is_any = false;
	char node[80];

	for (int r = 0; m->prefix && r < m->size && length < size / 2; r++) {
		char *file = file_of(m, r);
		if (!file_exists(file)) {
			find_node(r, node, sizeof(node));
			length += (size_t)snprintf(out + length, size - length, "%s %d%s",
						   is_any ? "," : "", r, node);
			is_any = true;
		}
		free(file);
	}
	return is_any;
}

/* Each says it: the launcher ends the others as soon as the first has ended. */
static void give_up(const struct meeting *m)
{
	char missing[512];

	if (list_missing(m, missing, sizeof(missing)))
		fprintf(stderr, "lbworker: %s did not begin within %.0f s\n", missing, m->seconds);
	else
		fprintf(stderr, "lbworker: rank %d: not all ranks began within %.0f s\n", m->rank,
			m->seconds);
	_exit(1);
}

static void *watch(void *arg)
{
	struct meeting *m = arg;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)m->seconds;
	until.tv_nsec += (long)((m->seconds - (double)(time_t)m->seconds) * 1e9);
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	pthread_mutex_lock(&m->lock);
	while (!m->is_over)
		if (pthread_cond_timedwait(&m->over, &m->lock, &until) == ETIMEDOUT && !m->is_over)
			give_up(m);
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

struct meeting *meeting_begin(int rank, int size, double seconds)
{
	struct meeting *m = xcalloc(1, sizeof(*m));
	pthread_condattr_t monotonic;

	*m = (struct meeting){ rank, size, seconds, .prefix = find_prefix() };
	pthread_mutex_init(&m->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&m->over, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (m->prefix) {
		char *own = file_of(m, rank);
		int fd = open(own, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
		if (fd >= 0)
			close(fd);
		free(own);
	}
	if (pthread_create(&m->thread, NULL, watch, m) != 0)
		m->is_over = true; /* without a deadline then */
	return m;
}

void meeting_end(struct meeting *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	bool has_thread = !m->is_over;
	m->is_over = true;
	pthread_cond_signal(&m->over);
	pthread_mutex_unlock(&m->lock);
	if (has_thread)
		pthread_join(m->thread, NULL);
	if (m->prefix) {
		char *own = file_of(m, m->rank);
		unlink(own);
		free(own);
	}
	pthread_cond_destroy(&m->over);
	pthread_mutex_destroy(&m->lock);
	free(m->prefix);
	free(m);
}
