/* SPDX-License-Identifier: MIT */
/* helper_process.c - starts, feeds, hears and kills a helper. The process and its two pipes are one
 * object, which outlives its place in the helper until libuv has reaped the child: a handle closed
 * earlier would leave a zombie. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "slurm/helper_process.h"

/* one child; made in helper_start, freed in on_handle_closed */
struct proc {
	uv_process_t process;
	uv_pipe_t in, out; /* as the child sees them */
	int open_handles;  /* whose close callback is still due */
	bool is_alive;     /* from its start until it is reaped: only then is the pid its own */
	struct helper *helper;
	struct buf lines;
	size_t scanned; /* bytes of `lines` known to hold no newline */
	bool has_spoken;
	char chunk[1 << 16];
};

/* freed when it is closing and its last process is gone */
struct helper {
	uv_loop_t *loop;
	char *path;
	size_t max_line;
	const struct helper_events *events;
	void *arg;
	helper_find find; /* NULL: there is only this program */
	void *find_arg;
	bool is_doubtful, is_unfit;
	struct proc *proc; /* NULL: none that counts */
	int procs;         /* all that still have handles */
	uv_timer_t later;  /* closes at least one turn of the loop after helper_close */
	void (*closed)(void *arg);
	void *closed_arg;
};

/* one write; freed in on_sent */
struct send {
	uv_write_t write;
	char *line;
	size_t len;
};

struct helper *helper_create(uv_loop_t *loop, const char *path, size_t max_line,
			     const struct helper_events *events, void *arg)
{
	struct helper *h = xcalloc(1, sizeof(*h));

	h->loop = loop;
	h->path = xstrdup(path);
	h->max_line = max_line;
	h->events = events;
	h->arg = arg;
	uv_timer_init(loop, &h->later);
	h->later.data = h;
	h->procs = 1; /* stands for `later` */
	return h;
}

void helper_on_doubt(struct helper *h, helper_find find, void *arg)
{
	h->find = find;
	h->find_arg = arg;
}

void helper_is_unfit(struct helper *h)
{
	h->is_unfit = true;
	helper_kill(h);
}

bool helper_is_running(const struct helper *h)
{
	return h->proc != NULL;
}

static void helper_unref(struct helper *h)
{
	if (--h->procs > 0)
		return;
	h->closed(h->closed_arg);
	free(h->path);
	free(h);
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct proc *p = handle->data;
	struct helper *h = p->helper;

	if (--p->open_handles > 0)
		return;
	buf_fini(&p->lines);
	free(p);
	helper_unref(h);
}

static void close_handle(uv_handle_t *handle)
{
	if (!uv_is_closing(handle))
		uv_close(handle, on_handle_closed);
}

static void on_child_exit(uv_process_t *process, int64_t status, int signo)
{
	struct proc *p = process->data;

	p->is_alive = false;
	if (status || (signo && signo != SIGKILL))
		log_warn("the Slurm helper ended by itself status=%d signal=%d", (int)status,
			 signo);
	close_handle((uv_handle_t *)process);
}

static void proc_kill(struct proc *p)
{
	if (p->is_alive)
		uv_process_kill(&p->process, SIGKILL);
}

/* No more lines from it, and none to it; the process handle stays until the child is reaped. */
static void proc_part(struct proc *p)
{
	if (p->helper->proc == p)
		p->helper->proc = NULL;
	proc_kill(p);
	close_handle((uv_handle_t *)&p->in);
	close_handle((uv_handle_t *)&p->out);
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf)
{
	struct proc *p = handle->data;

	(void)hint;
	*buf = uv_buf_init(p->chunk, sizeof(p->chunk));
}

static void deliver_lines(struct proc *p)
{
	struct helper *h = p->helper;
	size_t start = 0;
	char *end;

	while (h->proc == p &&
	       (end = memchr(p->lines.data + p->scanned, '\n', p->lines.len - p->scanned))) {
		size_t at = (size_t)(end - p->lines.data);

		*end = '\0';
		p->scanned = at + 1;
		h->events->on_line(h->arg, p->lines.data + start, at - start);
		start = at + 1;
	}
	buf_drop(&p->lines, start);
	p->scanned = p->lines.len;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct proc *p = stream->data;
	struct helper *h = p->helper;
	bool counts = h->proc == p;

	if (n == 0 || !counts)
		return;
	p->has_spoken |= n > 0;
	if (n > 0 && buf_add(&p->lines, buf->base, (size_t)n) == 0) {
		deliver_lines(p);
		return;
	}
	if (n > 0)
		log_error("the Slurm helper sent an endless line");
	h->is_doubtful = !p->has_spoken;
	proc_part(p);
	h->events->on_end(h->arg);
}

static int proc_spawn(struct proc *p)
{
	char parent[16];
	char *args[] = { p->helper->path, parent, NULL };
	uv_stdio_container_t stdio[3] = {
		{ .flags = UV_CREATE_PIPE | UV_READABLE_PIPE,
		  .data.stream = (uv_stream_t *)&p->in },
		{ .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		  .data.stream = (uv_stream_t *)&p->out },
		{ .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO },
	};
	uv_process_options_t options = {
		.exit_cb = on_child_exit,
		.file = p->helper->path,
		.args = args,
		.stdio = stdio,
		.stdio_count = 3,
	};

	snprintf(parent, sizeof(parent), "%ld", (long)getpid());
	return uv_spawn(p->helper->loop, &p->process, &options);
}

/* The path may change only while nothing runs from it. */
static void look_for_another(struct helper *h)
{
	char *path = NULL;

	if (h->find && (h->is_doubtful || h->is_unfit))
		path = h->find(h->find_arg, h->is_unfit ? h->path : NULL);
	h->is_doubtful = h->is_unfit = false;
	if (path) {
		free(h->path);
		h->path = path;
	}
}

int helper_start(struct helper *h, struct err *err)
{
	struct proc *p = xcalloc(1, sizeof(*p));
	int rc;

	look_for_another(h);
	p->helper = h;
	p->open_handles = 3;
	p->process.data = p->in.data = p->out.data = p;
	buf_init(&p->lines, h->max_line);
	h->procs++;
	uv_pipe_init(h->loop, &p->in, 0);
	uv_pipe_init(h->loop, &p->out, 0);
	rc = proc_spawn(p);
	p->is_alive = rc == 0;
	if (rc == 0)
		rc = uv_read_start((uv_stream_t *)&p->out, on_alloc, on_read);
	if (rc) {
		h->is_doubtful = true;
		proc_part(p);
		if (!p->is_alive)
			close_handle((uv_handle_t *)&p->process);
		return err_set(err, ERR_IO, "%s: %s", h->path, uv_strerror(rc));
	}
	h->proc = p;
	return 0;
}

static void send_free(struct send *s)
{
	explicit_bzero(s->line, s->len); /* an environment may hold secrets */
	free(s->line);
	free(s);
}

/* A failed write needs no word: the child is dead, and on_end comes. */
static void on_sent(uv_write_t *write, int status)
{
	(void)status;
	send_free(write->data);
}

void helper_send(struct helper *h, char *line, size_t len)
{
	struct send *s = xcalloc(1, sizeof(*s));
	uv_buf_t buf = uv_buf_init(line, (unsigned)len);

	s->line = line;
	s->len = len;
	s->write.data = s;
	if (uv_write(&s->write, (uv_stream_t *)&h->proc->in, &buf, 1, on_sent)) {
		send_free(s);
		helper_kill(h);
	}
}

void helper_kill(struct helper *h)
{
	if (h->proc)
		proc_kill(h->proc);
}

void helper_abandon(struct helper *h)
{
	if (h->proc)
		proc_part(h->proc);
}

static void on_later_closed(uv_handle_t *handle)
{
	helper_unref(handle->data);
}

void helper_close(struct helper *h, void (*closed)(void *arg), void *arg)
{
	h->closed = closed;
	h->closed_arg = arg;
	helper_abandon(h);
	uv_close((uv_handle_t *)&h->later, on_later_closed);
}
