/* SPDX-License-Identifier: MIT */
/* trainer_check.c - runs lbworker's check of a config, with a deadline.
 *
 * lbworker knows its own configuration best; it has a deadline, and lbd serves others meanwhile. */
#include "daemon/runs/trainer_check.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"

enum { DEADLINE_MS = 20 * 1000, SAID_MAX_BYTES = 4096 };

struct checking {
	struct checking *next; /* in lbd->checks */
	struct lbd *lbd;
	void (*done)(void *arg, const struct err *problem);
	void *arg;
	char *config, *shown;
	uv_process_t process;
	uv_pipe_t output;
	uv_timer_t deadline;
	int open_handles;
	struct buf said;
	int64_t exit_status;
	bool is_given_up; /* who waited has been told */
	char chunk[1024];
};

/* lbworker names the file it read; the person knows it by another name. */
static void own_words(struct checking *c, struct err *err)
{
	char *said = c->said.data;
	size_t skip;

	if (said == NULL || *said == '\0') {
		err_set(err, ERR_USAGE, "%s: lbworker refuses it (status %lld)", c->shown,
			(long long)c->exit_status);
		return;
	}
	said[strcspn(said, "\n")] = '\0';
	if (strncmp(said, "lbworker: ", 10) == 0)
		said += 10;
	skip = text_begins_with(said, c->config) ? strlen(c->config) : 0;
	err_set(err, ERR_USAGE, "%s%s", skip ? c->shown : "", said + skip);
}

static void forget(struct checking *c)
{
	struct checking **at = &c->lbd->checks;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
}

static void on_closed(uv_handle_t *handle)
{
	struct checking *c = handle->data;
	struct err err = { 0 };

	if (--c->open_handles > 0)
		return;
	if (c->exit_status != 0)
		own_words(c, &err);
	forget(c);
	if (!c->is_given_up)
		c->done(c->arg, c->exit_status == 0 ? NULL : &err);
	buf_fini(&c->said);
	free(c->config);
	free(c->shown);
	free(c);
}

static void over(struct checking *c)
{
	if (uv_is_closing((uv_handle_t *)&c->deadline))
		return;
	uv_close((uv_handle_t *)&c->process, on_closed);
	uv_close((uv_handle_t *)&c->output, on_closed);
	uv_close((uv_handle_t *)&c->deadline, on_closed);
}

static void on_exit_status(uv_process_t *process, int64_t status, int signo)
{
	struct checking *c = process->data;

	c->exit_status = signo ? 128 + signo : status;
	if (!uv_is_active((uv_handle_t *)&c->output))
		over(c);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct checking *c = handle->data;

	(void)suggested;
	*buf = uv_buf_init(c->chunk, sizeof(c->chunk));
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
	struct checking *c = stream->data;

	if (got > 0) {
		buf_add(&c->said, buf->base, (size_t)got); /* past its maximum: enough was said */
		return;
	}
	if (got < 0) {
		uv_read_stop(stream);
		if (!uv_is_active((uv_handle_t *)&c->process))
			over(c);
	}
}

static void on_deadline(uv_timer_t *timer)
{
	struct checking *c = timer->data;

	uv_process_kill(&c->process, SIGKILL);
}

/* `--set a.b=c` is `--a.b c` to lbworker. Returns an owned, NULL-terminated argv. */
static char **make_argv(const struct check *check, const char *lbworker)
{
	size_t count = json_array_size(check->sets), n = 0;
	char **argv = xcalloc(5 + 2 * count, sizeof(char *));

	argv[n++] = xstrdup(lbworker);
	argv[n++] = xstrdup("train");
	argv[n++] = xstrdup(check->config);
	argv[n++] = xstrdup("--check");
	for (size_t i = 0; i < count; i++) {
		const char *set = json_string_value(json_array_get(check->sets, i));
		size_t key = strcspn(set, "=");

		argv[n++] = xasprintf("--%.*s", (int)key, set);
		argv[n++] = xstrdup(set[key] ? set + key + 1 : "");
	}
	return argv;
}

static void argv_free(char **argv)
{
	for (char **arg = argv; *arg; arg++)
		free(*arg);
	free(argv);
}

static int spawn(struct checking *c, const struct check *check, char **argv)
{
	uv_stdio_container_t stdio[3] = {
		{ .flags = UV_IGNORE },
		{ .flags = UV_IGNORE },
		{ .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		  .data.stream = (uv_stream_t *)&c->output },
	};
	uv_process_options_t options = {
		.file = argv[0],
		.args = argv,
		.exit_cb = on_exit_status,
		.stdio = stdio,
		.stdio_count = 3,
		.cwd = check->workdir,
	};

	uv_pipe_init(c->lbd->loop, &c->output, 0);
	uv_timer_init(c->lbd->loop, &c->deadline);
	c->process.data = c->output.data = c->deadline.data = c;
	c->open_handles = 3;
	return uv_spawn(c->lbd->loop, &c->process, &options);
}

void check_config(const struct check *check, void (*done)(void *arg, const struct err *problem),
		  void *arg)
{
	const char *lbrun = check->lbd->config.lbrun;
	char *lbworker = path_join("%.*s/lbworker", (int)(strrchr(lbrun, '/') - lbrun), lbrun);
	char **argv = make_argv(check, lbworker);
	struct checking *c = xcalloc(1, sizeof(*c));
	int rc;

	c->lbd = check->lbd;
	c->next = c->lbd->checks;
	c->lbd->checks = c;
	c->done = done;
	c->arg = arg;
	c->config = xstrdup(check->config);
	c->shown = xstrdup(check->shown);
	buf_init(&c->said, SAID_MAX_BYTES);
	rc = spawn(c, check, argv);
	if (rc < 0) {
		buf_addf(&c->said, "cannot run %s: %s", lbworker, uv_strerror(rc));
		c->exit_status = -1;
		over(c);
	} else {
		uv_read_start((uv_stream_t *)&c->output, on_alloc, on_read);
		uv_timer_start(&c->deadline, on_deadline, DEADLINE_MS, 0);
	}
	argv_free(argv);
	free(lbworker);
}

void checks_close(struct lbd *lbd)
{
	struct err err = { 0 };

	err_set(&err, ERR_DAEMON, "lbd ends; submit it again");
	for (struct checking *c = lbd->checks; c; c = c->next) {
		c->is_given_up = true;
		if (uv_is_active((uv_handle_t *)&c->process))
			uv_process_kill(&c->process, SIGKILL);
		over(c);
		c->done(c->arg, &err);
	}
}
