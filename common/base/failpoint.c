/* SPDX-License-Identifier: MIT */
/* failpoint.c - reads LB_FAILPOINT once and counts how often each point was reached. */
#include "common/base/failpoint.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/paths.h"

enum action { ACT_NOT, ACT_KILL, ACT_ERROR, ACT_DELAY };
enum { LONGEST_DELAY_MS = 600 * 1000 };

static const struct row {
	const char *name, *program;
	bool may_fail;
} rows[FP_COUNT] = {
#define FAILPOINT_ROW(id, name, program, may_fail) [FP_##id] = { name, program, may_fail },
	FAILPOINTS(FAILPOINT_ROW)
#undef FAILPOINT_ROW
};

struct plan {
	enum action action;
	int64_t delay_ms;
	long nth;
	atomic_long hits; /* a trainer saves in a thread of its own */
};

bool failpoint_armed;
static struct plan plans[FP_COUNT];
static const char *once_folder;

/* --- LB_FAILPOINT ----------------------------------------------------------------------------- */

static int refuse(struct err *err, const char *entry, const char *why)
{
	return err_set(err, ERR_USAGE, "LB_FAILPOINT: \"%.80s\": %s", entry, why);
}

static int find(const char *name, size_t len)
{
	for (int i = 0; i < FP_COUNT; i++)
		if (strlen(rows[i].name) == len && strncmp(rows[i].name, name, len) == 0)
			return i;
	return -1;
}

/* "500ms" or "2s"; the rest of the text in *end, NULL when it is neither. */
static int64_t read_delay(char *text, char **end)
{
	int64_t number = strtoll(text, end, 10);
	bool is_ms = strncmp(*end, "ms", 2) == 0, is_s = **end == 's';

	if (*end == text || (!is_ms && !is_s) || number < 0 || number > LONGEST_DELAY_MS) {
		*end = NULL;
		return 0;
	}
	*end += is_ms ? 2 : 1;
	return is_ms ? number : number * 1000;
}

/* What follows "NAME:". The rest in *end, NULL when it makes no sense. */
static struct plan read_action(char *text, char **end)
{
	struct plan plan = { .nth = 1 };

	*end = NULL;
	if (strncmp(text, "kill", 4) == 0) {
		plan.action = ACT_KILL;
		*end = text + 4;
	} else if (strncmp(text, "error", 5) == 0) {
		plan.action = ACT_ERROR;
		*end = text + 5;
	} else if (strncmp(text, "delay:", 6) == 0) {
		plan.action = ACT_DELAY;
		plan.delay_ms = read_delay(text + 6, end);
	}
	if (*end && **end == '@')
		plan.nth = strtol(*end + 1, end, 10);
	return plan;
}

static int read_entry(char *entry, const char *program, struct err *err)
{
	char *colon = strchr(entry, ':'), *end;
	int point = find(entry, colon ? (size_t)(colon - entry) : strlen(entry));
	struct plan plan;

	if (point < 0)
		return refuse(err, entry, "no such point; lbd --failpoints lists them");
	if (colon == NULL)
		return refuse(err, entry, "must be NAME:ACTION");
	plan = read_action(colon + 1, &end);
	if (end == NULL || *end != '\0' || plan.nth < 1)
		return refuse(err, entry,
			      "the action must be kill, error or delay:500ms, then perhaps @2");
	if (plan.action == ACT_ERROR && !rows[point].may_fail)
		return refuse(err, entry, "this step cannot fail");
	if (strcmp(rows[point].program, program) != 0)
		return 0;
	plans[point].action = plan.action;
	plans[point].delay_ms = plan.delay_ms;
	plans[point].nth = plan.nth;
	plans[point].hits = 0;
	failpoint_armed = true;
	return 0;
}

int failpoint_init(const char *program, struct err *err)
{
	const char *text = getenv("LB_FAILPOINT");
	char *copy = xstrdup(text ? text : ""), *rest = copy, *entry;
	int rc = 0;

	failpoint_armed = false;
	memset(plans, 0, sizeof(plans));
	once_folder = getenv("LB_FAILPOINT_ONCE");
	while (rc == 0 && (entry = strsep(&rest, ",")) != NULL)
		rc = entry[0] ? read_entry(entry, program, err) : 0;
	free(copy);
	return rc;
}

void failpoint_list(FILE *out)
{
	for (int i = 0; i < FP_COUNT; i++)
		fprintf(out, "%-8s  %-22s  kill delay%s\n", rows[i].program, rows[i].name,
			rows[i].may_fail ? " error" : "");
}

/* --- a point is reached ----------------------------------------------------------------------- */

static bool is_first_of_all(const char *name)
{
	char *path;
	int fd;

	if (once_folder == NULL)
		return true;
	path = path_join("%s/%s", once_folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	free(path);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void sleep_ms(int64_t ms)
{
	struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) < 0)
		continue;
}

int failpoint_hit(enum failpoint point, struct err *err)
{
	struct plan *plan = &plans[point];

	if (plan->action == ACT_NOT || atomic_fetch_add(&plan->hits, 1) + 1 != plan->nth ||
	    !is_first_of_all(rows[point].name))
		return 0;
	if (plan->action == ACT_KILL)
		kill(getpid(), SIGKILL);
	if (plan->action == ACT_DELAY)
		sleep_ms(plan->delay_ms);
	if (plan->action != ACT_ERROR)
		return 0;
	return err_set(err, ERR_IO, "failpoint %s", rows[point].name);
}
