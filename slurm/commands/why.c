/* SPDX-License-Identifier: MIT */
/* why.c - why a job waits, as far as squeue tells: Slurm's reason and plan, and how many wait
 * before it. What could be asked for to start sooner only libslurm can be asked
 * (slurm/helper/why.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/json.h"
#include "slurm/commands/look.h"
#include "slurm/pipe/operations.h"
#include "slurm/commands/words.h"
#include "slurm/job_result.h"
#include "slurm/pipe/limit_figures.h"
#include "slurm/reasons.h"

enum { PLACE_BYTES = 256 };

struct place { /* where the job stands in line */
	char partition[PLACE_BYTES], account[PLACE_BYTES], qos[PLACE_BYTES];
	long long priority, nodes, start;
};

/* A number and the bar behind it; 0 for what is none ("N/A"). */
static long long take_number(const char **at)
{
	long long n = strtoll(*at, NULL, 10);

	*at += strcspn(*at, "|\n");
	*at += **at == '|';
	return n;
}

static void take_word(const char **at, char out[PLACE_BYTES])
{
	size_t len = strcspn(*at, "|\n");

	snprintf(out, PLACE_BYTES, "%.*s", (int)len, *at);
	*at += len + ((*at)[len] == '|');
}

/* Of an array the part that waits is told last. */
static int read_place(const char *text, struct place *out)
{
	int found = -1;

	for (const char *at = text; *at;
	     at += strcspn(at, "\n") + (at[strcspn(at, "\n")] != '\0')) {
		out->priority = take_number(&at);
		out->nodes = take_number(&at);
		out->start = take_number(&at);
		take_word(&at, out->account);
		take_word(&at, out->qos);
		take_word(&at, out->partition);
		found = out->partition[0] ? 0 : -1;
	}
	return found;
}

static int ask_place(struct answer *a, const char *id, struct place *place)
{
	const char *const words[] = {
		"squeue", "-h", "-a", "-t", "PENDING", "-j", id, "--format=%Q|%D|%S|%a|%q|%P", NULL,
	};
	struct said said;
	int rc;

	command_ask(words, &said);
	rc = said.status ? command_failed(a, &said, false, "squeue") : read_place(said.out, place);
	if (rc && said.status == 0)
		answer_set(a, SCHEDULER_DOWN, "squeue does not tell where the job stands");
	said_clear(&said);
	return rc;
}

/* Jobs of anybody in its partition that Slurm would start first; JS_NONE: not told. */
static int64_t count_ahead(const struct place *place)
{
	const char *const words[] = {
		"squeue", "-h", "-a", "-t", "PENDING", "-p", place->partition, "--format=%Q", NULL,
	};
	struct said said;
	int64_t ahead = 0;
	char *at, *end;

	command_ask(words, &said);
	for (at = said.out; said.status == 0 && *at; at = end + (*end == '\n')) {
		ahead += strtoll(at, &end, 10) > place->priority;
		if (end == at)
			break;
	}
	ahead = said.status == 0 ? ahead : JS_NONE;
	said_clear(&said);
	return ahead;
}

/* A site without accounting says "(null)". */
static void tell_account(struct answer *a, const struct place *place, const char *reason)
{
	struct limit_of of = { reason, place->account, place->qos, getuid() };
	json_t *figures = limit_figures(&of);

	js_set_str(a->body, "account", place->account[0] == '(' ? NULL : place->account);
	js_set_str(a->body, "qos", place->qos[0] == '(' ? NULL : place->qos);
	if (figures)
		json_array_append_new(json_object_get(a->body, "limits"), figures);
}

static void tell_place(struct answer *a, const char *id, const char *reason)
{
	struct place place = { .priority = 0 };

	if (ask_place(a, id, &place))
		return;
	tell_account(a, &place, reason);
	js_set_str(a->body, "partition", place.partition);
	js_set_int(a->body, "priority", place.priority);
	js_set_int(a->body, "nodes", place.nodes);
	js_set_int(a->body, "ahead", count_ahead(&place));
	if (place.start > (long long)time(NULL))
		js_set_int(a->body, "start", place.start);
}

/* Of an array the part that waits. */
static const struct seen *find(const struct look *look)
{
	for (size_t i = 0; i < look->count; i++) {
		if ((look->jobs[i].row.state & SJ_MASK) == SJ_PENDING)
			return &look->jobs[i];
	}
	return look->count ? &look->jobs[0] : NULL;
}

void op_why(const json_t *request, struct answer *a)
{
	uint32_t job_id = (uint32_t)js_int(request, "job_id", 0);
	const struct seen *job;
	struct look look;
	char id[16];

	snprintf(id, sizeof(id), "%u", job_id);
	json_object_set_new(a->body, "limits", json_array());
	json_object_set_new(a->body, "sooner", json_array());
	json_object_set_new(a->body, "reservations", json_array());
	if (look_at(a, job_id, &look) == 0 && (job = find(&look)) != NULL) {
		bool is_pending = (job->row.state & SJ_MASK) == SJ_PENDING;

		js_set_bool(a->body, "pending", is_pending);
		js_set_str(a->body, "reason", slurm_reason_name((uint32_t)job->row.reason));
		if (is_pending)
			tell_place(a, id, js_str(a->body, "reason", ""));
	}
	look_clear(&look);
}
