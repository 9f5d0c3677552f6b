/* SPDX-License-Identifier: MIT */
/* request.c - requests to the Slurm helper: which there are, as lines of JSON, in a queue. */
#include "slurm/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/wire.h"

static const struct {
	const char *name;
	bool is_urgent, is_change;
} ops[OP_COUNT] = {
	[OP_SUBMIT] = { "submit", true, true }, [OP_RELEASE] = { "release", true, true },
	[OP_SIGNAL] = { "signal", true, true }, [OP_CANCEL] = { "cancel", true, true },
	[OP_POLL] = { "poll", false, false },   [OP_INFO] = { "info", false, false },
	[OP_CHECK] = { "check", true, false },  [OP_WHY] = { "why", false, false },
	[OP_ROOM] = { "room", false, false },   [OP_OUTAGES] = { "outages", false, false },
	[OP_KNOWN] = { "known", true, false },
};

const char *op_name(enum op op)
{
	return ops[op].name;
}

bool op_is_urgent(enum op op)
{
	return ops[op].is_urgent;
}

bool op_is_change(enum op op)
{
	return ops[op].is_change;
}

/* --- queues ----------------------------------------------------------------------------------- */

void queue_init(struct queue *q)
{
	q->first = NULL;
	q->last = &q->first;
}

void queue_put(struct queue *q, struct request *r)
{
	*q->last = r;
	q->last = &r->next;
}

struct request *queue_take(struct queue *q)
{
	struct request *r = q->first;

	if (r && !(q->first = r->next))
		q->last = &q->first;
	return r;
}

void request_free(struct request *r)
{
	if (r && r->line) {
		explicit_bzero(r->line, strlen(r->line)); /* may hold secrets */
		free(r->line);
	}
	free(r);
}

void queue_drop(struct queue *q)
{
	struct request *r;

	while ((r = queue_take(q)))
		request_free(r);
}

/* --- lines ------------------------------------------------------------------------------------ */

static char *line_of(json_t *object)
{
	char *text = js_line(object);
	size_t len = strlen(text);
	char *line = xrealloc(text, len + 2);

	memcpy(line + len, "\n", 2);
	json_decref(object);
	return line;
}

static void set_bytes(json_t *object, const char *key, const char *text)
{
	if (text)
		json_object_set_new(object, key, js_bytes(text));
}

/* A request that tells the whole job. Owned. */
static json_t *describe(const struct request *r, const struct job_request *job)
{
	char *name = wire_job_name(job), *comment = wire_comment(job);
	json_t *object = json_object();

	js_set_int(object, "id", r->id);
	js_set_str(object, "op", op_name(r->op));
	set_bytes(object, "name", name);
	set_bytes(object, "comment", comment);
	set_bytes(object, "script", job->script);
	json_object_set_new(object, "env", js_words(job->env));
	json_object_set_new(object, "argv", js_words(job->argv));
	json_object_set_new(object, "fields", json_deep_copy(job->fields));
	if (job->words) {
		json_object_set_new(object, "sbatch", js_words(job->words));
		set_bytes(object, "script_path", job->script_path);
		set_bytes(object, "submit_dir", job->submit_dir);
	}
	free(name);
	free(comment);
	return object;
}

char *request_bare_line(const struct request *r)
{
	return xasprintf("{\"id\":%lld,\"op\":\"%s\"}\n", (long long)r->id, op_name(r->op));
}

char *request_poll_line(const struct request *r, const char *ledger_id, int64_t have)
{
	return xasprintf("{\"id\":%lld,\"op\":\"%s\",\"ledger\":\"%s\",\"have\":%lld}\n",
			 (long long)r->id, op_name(r->op), ledger_id, (long long)have);
}

char *request_known_line(const struct request *r, const char *ledger_id, json_t *jobs)
{
	json_t *object = json_object();

	js_set_int(object, "id", r->id);
	js_set_str(object, "op", op_name(r->op));
	js_set_str(object, "ledger", ledger_id);
	json_object_set_new(object, "jobs", jobs);
	return line_of(object);
}

char *request_order_line(const struct request *r, int signo)
{
	return xasprintf("{\"id\":%lld,\"op\":\"%s\",\"token\":\"%s\",\"job_id\":%u,"
			 "\"submit_time\":%lld,\"signo\":%d}\n",
			 (long long)r->id, op_name(r->op), r->ref.token, r->ref.job_id,
			 (long long)r->ref.submit_time, signo);
}

char *request_job_line(const struct request *r, const struct job_request *job)
{
	return line_of(describe(r, job));
}

char *request_why_line(const struct request *r, const struct job_request *job, const char *avoided)
{
	json_t *object = describe(r, job);

	js_set_int(object, "job_id", r->ref.job_id);
	js_set_str(object, "avoided", avoided);
	return line_of(object);
}
