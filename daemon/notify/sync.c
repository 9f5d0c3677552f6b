/* SPDX-License-Identifier: MIT */
/* sync.c - a timer, and one lbctl at a time; what it complains of stands in lbd's log, once until
 * it works again. */
#include "daemon/notify/sync.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"

struct sync {
	struct lbd *lbd;
	uv_timer_t timer;
	uv_process_t process;
	bool closing, is_timer_open, is_process_open;
	bool has_failed; /* said once, until it works again */
};

static char **make_argv(const struct config *config)
{
	struct strv words = { 0 };
	char *lbctl = path_sibling("lbctl", NULL);

	strv_add(&words, lbctl ? lbctl : xstrdup("lbctl"));
	strv_add(&words, path_join("--home=%s", config->home));
	strv_add(&words, xstrdup("sync"));
	for (size_t i = 0; i < config->sync_to.count; i++)
		strv_add(&words, xasprintf("--to=%s", config->sync_to.items[i]));
	if (config->sync_project)
		strv_add(&words, xasprintf("--project=%s", config->sync_project));
	if (config->sync_python)
		strv_add(&words, xasprintf("--python=%s", config->sync_python));
	return words.items;
}

static void free_if_closed(struct sync *s)
{
	if (s->closing && !s->is_timer_open && !s->is_process_open)
		free(s);
}

static void on_process_closed(uv_handle_t *handle)
{
	struct sync *s = handle->data;

	s->is_process_open = false;
	free_if_closed(s);
}

static void on_end(uv_process_t *process, int64_t status, int signo)
{
	struct sync *s = process->data;
	bool failed = status != 0 || signo != 0;

	if (failed && !s->has_failed && !s->closing)
		log_warn("sync: lbctl sync could not send all; it says why above");
	if (!failed && s->has_failed)
		log_info("sync: lbctl sync could send all again");
	s->has_failed = failed;
	uv_close((uv_handle_t *)process, on_process_closed);
}

static void start(struct sync *s)
{
	char **argv = make_argv(&s->lbd->config);
	uv_stdio_container_t stdio[3] = {
		{ .flags = UV_IGNORE },
		{ .flags = UV_IGNORE },
		/* a line for each run, each minute of an outage, would fill the log */
		{ .flags = s->has_failed ? UV_IGNORE : UV_INHERIT_FD, .data.fd = STDERR_FILENO },
	};
	uv_process_options_t options = {
		.exit_cb = on_end,
		.file = argv[0],
		.args = argv,
		.stdio = stdio,
		.stdio_count = 3,
		.flags = UV_PROCESS_DETACHED, /* a group of its own: a tracker's Python is in it */
	};
	int rc;

	s->process.data = s;
	s->is_process_open = true;
	rc = uv_spawn(s->lbd->loop, &s->process, &options);
	if (rc < 0) {
		if (!s->has_failed)
			log_warn("sync: %s: %s", argv[0], uv_strerror(rc));
		s->has_failed = true;
		uv_close((uv_handle_t *)&s->process, on_process_closed);
	}
	strv_free(argv);
}

static void on_timer(uv_timer_t *timer)
{
	struct sync *s = timer->data;

	if (!s->is_process_open)
		start(s);
}

struct sync *sync_open(struct lbd *lbd)
{
	uint64_t every_ms = (uint64_t)lbd->config.sync_every_ms;
	struct sync *s;

	if (lbd->config.sync_to.count == 0)
		return NULL;
	s = xcalloc(1, sizeof(*s));
	s->lbd = lbd;
	s->is_timer_open = true;
	uv_timer_init(lbd->loop, &s->timer);
	s->timer.data = s;
	uv_timer_start(&s->timer, on_timer, every_ms, every_ms);
	return s;
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct sync *s = handle->data;

	s->is_timer_open = false;
	free_if_closed(s);
}

void sync_close(struct sync *s)
{
	if (s == NULL)
		return;
	s->closing = true;
	if (s->is_process_open && uv_is_active((uv_handle_t *)&s->process))
		kill(-s->process.pid, SIGKILL); /* the next one goes on where it was */
	uv_close((uv_handle_t *)&s->timer, on_timer_closed);
}
