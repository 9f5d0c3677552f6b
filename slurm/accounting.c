/* SPDX-License-Identifier: MIT */
/* accounting.c - runs sacct for all who ask, one at a time.
 *
 *   ask ─▶ waiting ─▶ (a turn of the loop later, no sacct running) ─▶ asked ─▶ answers */
#include "slurm/accounting.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "slurm/accounting_lines.h"

enum {
	ASKED_AT_ONCE = 200,  /* jobs in one sacct: a short argument, and a quick answer */
	MAX_OUTPUT = 4 << 20, /* of arrays each task is a line */
};

extern char **environ;

/* --- questions -------------------------------------------------------------------------------- */

struct question {
	struct question *next;
	struct job_ref job;
	scheduler_done done;
	void *arg;
};

/* one child; freed when its last handle is closed */
struct sacct {
	uv_process_t process;
	uv_pipe_t out;
	int open_handles;
	bool is_alive, at_end;
	int64_t status;
	struct accounting *owner;  /* NULL: nobody waits for it any more */
	struct accounting *memory; /* the same, for as long as it has handles */
	struct buf text;
	char chunk[1 << 12];
};

struct accounting {
	uv_loop_t *loop;
	const char *program;
	int64_t deadline_ms;
	uv_timer_t timer; /* the next question's start, or the present one's deadline */
	struct question *waiting, **last;
	struct question *asked;
	struct sacct *sacct; /* NULL: none that counts */
	int holders;         /* the timer and children that still have handles */
	bool is_closing;
	void (*closed)(void *arg);
	void *closed_arg;
};

static void on_timer(uv_timer_t *timer);

static void release(struct accounting *a)
{
	if (--a->holders > 0)
		return;
	a->closed(a->closed_arg);
	free(a);
}

static void drop(struct question *q)
{
	while (q) {
		struct question *next = q->next;

		free(q);
		q = next;
	}
}

static void answer_one(const char *text, const struct question *q)
{
	struct job_status found;
	json_t *body;
	bool is_over = accounting_read(text, &q->job, &found, &body);
	struct scheduler_reply reply = {
		.result = is_over ? SCHEDULER_OK : SCHEDULER_GONE,
		.text = "",
		.job = q->job,
		.jobs = &found,
		.job_count = is_over ? 1 : 0,
		.body = body,
	};

	q->done(q->arg, &reply);
	json_decref(body);
}

/* `text` NULL: there is no answer. Callbacks may ask anew, and may close us. */
static void answer_all(struct accounting *a, const char *text)
{
	struct question *q = a->asked;

	a->asked = NULL;
	while (q) {
		struct question *next = q->next;
		struct scheduler_reply down = { .result = SCHEDULER_DOWN,
						.text = "",
						.job = q->job };

		if (text && !a->is_closing)
			answer_one(text, q);
		else if (!a->is_closing)
			q->done(q->arg, &down);
		free(q);
		q = next;
	}
	if (a->waiting && !a->is_closing)
		uv_timer_start(&a->timer, on_timer, 0, 0);
}

/* --- sacct ------------------------------------------------------------------------------------ */

static void on_handle_closed(uv_handle_t *handle)
{
	struct sacct *s = handle->data;
	struct accounting *a = s->memory;

	if (--s->open_handles > 0)
		return;
	buf_fini(&s->text);
	free(s);
	release(a);
}

static void part(struct sacct *s)
{
	if (s->owner)
		s->owner->sacct = NULL;
	s->owner = NULL;
	if (s->is_alive)
		uv_process_kill(&s->process, SIGKILL);
	if (!uv_is_closing((uv_handle_t *)&s->out))
		uv_close((uv_handle_t *)&s->out, on_handle_closed);
}

/* Both its end and the end of its output have come. */
static void finish_if_done(struct sacct *s)
{
	struct accounting *a = s->owner;

	if (a == NULL || s->is_alive || !s->at_end)
		return;
	uv_timer_stop(&a->timer);
	buf_addf(&s->text, "%s", ""); /* so that there is a text */
	part(s);
	answer_all(a, s->status == 0 ? s->text.data : NULL);
}

static void on_exit_of_sacct(uv_process_t *process, int64_t status, int signo)
{
	struct sacct *s = process->data;

	s->is_alive = false;
	s->status = status ? status : signo;
	uv_close((uv_handle_t *)process, on_handle_closed);
	finish_if_done(s);
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf)
{
	struct sacct *s = handle->data;

	(void)hint;
	*buf = uv_buf_init(s->chunk, sizeof(s->chunk));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct sacct *s = stream->data;
	struct accounting *a = s->owner;

	if (a == NULL || n == 0)
		return;
	if (n > 0 && buf_add(&s->text, buf->base, (size_t)n) == 0)
		return;
	if (n > 0) {
		uv_timer_stop(&a->timer);
		part(s);
		answer_all(a, NULL);
		return;
	}
	s->at_end = true;
	finish_if_done(s);
}

/* The times as numbers: as texts they would depend on the time zone, and be twice there in
 * autumn. Lists of tasks as long as they are. */
static char **environment(void)
{
	static char time_format[] = "SLURM_TIME_FORMAT=%s", whole_lists[] = "SLURM_BITSTR_LEN=0";
	size_t count = 0, kept = 0;
	char **env;

	while (environ[count])
		count++;
	env = xcalloc(count + 3, sizeof(env[0]));
	for (size_t i = 0; i < count; i++)
		if (strncmp(environ[i], "SLURM_TIME_FORMAT=", 18) != 0 &&
		    strncmp(environ[i], "SLURM_CLUSTERS=", 15) != 0 &&
		    strncmp(environ[i], "SLURM_BITSTR_LEN=", 17) != 0 &&
		    strncmp(environ[i], "SACCT_", 6) != 0)
			env[kept++] = environ[i];
	env[kept++] = time_format;
	env[kept] = whole_lists;
	return env;
}

static int spawn(struct sacct *s, const char *program, char *ids)
{
	/* duplicates: other jobs that had one of the ids; allocations: no steps */
	static char words[][16] = { "sacct",         "--parsable2",  "--noheader",
				    "--allocations", "--duplicates", "-j" };
	static char format[] = "--format=" ACCOUNTING_FIELDS;
	char *args[] = { words[0], words[1], words[2], words[3], words[4],
			 format,   words[5], ids,      NULL };
	uv_stdio_container_t stdio[3] = {
		{ .flags = UV_IGNORE },
		{ .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		  .data.stream = (uv_stream_t *)&s->out },
		{ .flags = UV_IGNORE }, /* that there is no accounting is no news */
	};
	uv_process_options_t options = {
		.exit_cb = on_exit_of_sacct,
		.file = program,
		.args = args,
		.env = environment(),
		.stdio = stdio,
		.stdio_count = 3,
	};
	int rc = uv_spawn(s->memory->loop, &s->process, &options);

	free(options.env);
	return rc;
}

static void start(struct accounting *a, char *ids)
{
	struct sacct *s = xcalloc(1, sizeof(*s));
	int rc;

	s->owner = s->memory = a;
	s->open_handles = 2;
	s->process.data = s->out.data = s;
	buf_init(&s->text, MAX_OUTPUT);
	a->holders++;
	a->sacct = s;
	uv_pipe_init(a->loop, &s->out, 0);
	rc = spawn(s, a->program, ids);
	s->is_alive = rc == 0;
	if (rc == 0)
		rc = uv_read_start((uv_stream_t *)&s->out, on_alloc, on_read);
	if (rc == 0) {
		uv_timer_start(&a->timer, on_timer, (uint64_t)a->deadline_ms, 0);
		return;
	}
	if (!s->is_alive)
		uv_close((uv_handle_t *)&s->process, on_handle_closed);
	part(s);
	answer_all(a, NULL);
}

/* Moves up to ASKED_AT_ONCE questions; their ids, owned by the caller. */
static char *take_questions(struct accounting *a)
{
	struct question **at = &a->waiting;
	struct buf ids;

	buf_init(&ids, (size_t)16 * ASKED_AT_ONCE);
	for (int i = 0; i < ASKED_AT_ONCE && *at; i++, at = &(*at)->next)
		buf_addf(&ids, "%s%u", i ? "," : "", (*at)->job.job_id);
	a->asked = a->waiting;
	a->waiting = *at;
	*at = NULL;
	if (a->waiting == NULL)
		a->last = &a->waiting;
	return buf_take(&ids);
}

static void on_timer(uv_timer_t *timer)
{
	struct accounting *a = timer->data;
	char *ids;

	if (a->sacct) {
		part(a->sacct);
		answer_all(a, NULL);
	} else if (a->waiting) {
		ids = take_questions(a);
		start(a, ids);
		free(ids);
	}
}

/* --- life ------------------------------------------------------------------------------------- */

struct accounting *accounting_create(uv_loop_t *loop, const char *program, int64_t deadline_ms)
{
	struct accounting *a = xcalloc(1, sizeof(*a));

	a->loop = loop;
	a->program = program;
	a->deadline_ms = deadline_ms;
	a->last = &a->waiting;
	a->holders = 1;
	uv_timer_init(loop, &a->timer);
	a->timer.data = a;
	return a;
}

void accounting_ask(struct accounting *a, const struct job_ref *job, scheduler_done done, void *arg)
{
	struct question *q = xcalloc(1, sizeof(*q));

	q->job = *job;
	q->done = done;
	q->arg = arg;
	*a->last = q;
	a->last = &q->next;
	if (a->sacct == NULL && !uv_is_active((uv_handle_t *)&a->timer))
		uv_timer_start(&a->timer, on_timer, 0, 0);
}

static void on_timer_closed(uv_handle_t *handle)
{
	release(handle->data);
}

void accounting_close(struct accounting *a, void (*closed)(void *arg), void *arg)
{
	a->is_closing = true;
	a->closed = closed;
	a->closed_arg = arg;
	if (a->sacct)
		part(a->sacct);
	drop(a->waiting);
	drop(a->asked);
	a->waiting = a->asked = NULL;
	uv_close((uv_handle_t *)&a->timer, on_timer_closed);
}
