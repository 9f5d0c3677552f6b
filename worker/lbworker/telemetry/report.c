/* SPDX-License-Identifier: MIT */
/* report.c - a line client that would rather lose a report than a millisecond. */
#include "worker/lbworker/telemetry/report.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/run/message.h"

enum { MAX_WAITING_BYTES = 1 << 20, CLOSE_WAIT_MS = 2000 };

struct report {
	int fd; /* -1: nobody listens */
	struct buf out, in;
	unsigned orders;
};

static void give_up(struct report *r, const char *why)
{
	log_warn("reports end: %s", why);
	close(r->fd);
	r->fd = -1;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(path);
	int fd;

	if (length >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(address.sun_path, path, length);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
		int saved = errno;
		close(fd);
		errno = saved;
		return -1;
	}
	return fd;
}

static void flush(struct report *r)
{
	while (r->fd >= 0 && r->out.len > 0) {
		ssize_t sent = send(r->fd, r->out.data, r->out.len, MSG_NOSIGNAL);
		if (sent > 0)
			buf_drop(&r->out, (size_t)sent);
		else if (sent < 0 && errno == EINTR)
			continue;
		else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		else
			give_up(r, strerror(errno));
	}
}

/* Takes the object. A line is sent whole or not at all. */
static void send_line(struct report *r, json_t *object)
{
	if (r->fd >= 0) {
		char *text = js_line(object);
		if (buf_addf(&r->out, "%s\n", text) != 0)
			log_debug("a report was dropped: lbrun does not read");
		free(text);
		flush(r);
	}
	json_decref(object);
}

static void obey(struct report *r, const char *line, size_t length)
{
	static const struct {
		const char *type;
		unsigned order;
	} orders[] = { { "save", REPORT_SAVE }, { "stop", REPORT_STOP } };
	json_t *message = js_parse(line, length, NULL);
	const char *type = message ? js_str(message, "type", "") : "";

	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		if (strcmp(orders[i].type, type) == 0)
			r->orders |= orders[i].order;
	json_decref(message);
}

static void take_lines(struct report *r)
{
	const char *end;

	while (r->in.len > 0 && (end = memchr(r->in.data, '\n', r->in.len)) != NULL) {
		size_t length = (size_t)(end - r->in.data);
		obey(r, r->in.data, length);
		buf_drop(&r->in, length + 1);
	}
}

static void receive(struct report *r)
{
	char bytes[4096];

	while (r->fd >= 0) {
		ssize_t got = recv(r->fd, bytes, sizeof(bytes), 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (got <= 0) {
			give_up(r, got == 0 ? "lbrun closed the socket" : strerror(errno));
			return;
		}
		if (buf_add(&r->in, bytes, (size_t)got) != 0) {
			give_up(r, "a line from lbrun is too long");
			return;
		}
		take_lines(r);
	}
}

struct report *report_open(const char *socket_path, int world)
{
	struct report *r = xcalloc(1, sizeof(*r));

	r->fd = -1;
	buf_init(&r->out, MAX_WAITING_BYTES);
	buf_init(&r->in, MESSAGE_MAX_BYTES + 4096);
	if (!socket_path || socket_path[0] == '\0')
		return r;
	r->fd = connect_to(socket_path);
	if (r->fd < 0) {
		log_warn("LB_SOCKET %s: %s; nothing will be reported", socket_path,
			 strerror(errno));
		return r;
	}
	send_line(r, json_pack("{s:s, s:i, s:i, s:I}", "type", "hello", "rank", 0, "world", world,
			       "pid", (json_int_t)getpid()));
	return r;
}

void report_close(struct report *r)
{
	if (!r)
		return;
	int64_t until = clock_mono_ms() + CLOSE_WAIT_MS;
	for (int64_t now = clock_mono_ms(); r->fd >= 0 && r->out.len > 0 && now < until;
	     now = clock_mono_ms()) {
		struct pollfd wait = { .fd = r->fd, .events = POLLOUT };
		(void)poll(&wait, 1, (int)(until - now));
		flush(r);
	}
	if (r->fd >= 0)
		close(r->fd);
	buf_fini(&r->out);
	buf_fini(&r->in);
	free(r);
}

void report_phase(struct report *r, const char *name)
{
	send_line(r, json_pack("{s:s, s:s}", "type", "phase", "name", name));
}

void report_setup(struct report *r, const char *what)
{
	send_line(r, json_pack("{s:s, s:s, s:s}", "type", "phase", "name", "setup", "what", what));
}

void rank_times_add(struct rank_times *t, int rank, double own_ms, double data_ms)
{
	t->count++;
	t->own_ms += (own_ms - t->own_ms) / t->count;
	t->data_ms += (data_ms - t->data_ms) / t->count;
	if (t->count > 1 && own_ms <= t->slowest_ms)
		return;
	t->slowest = rank;
	t->slowest_ms = own_ms;
	t->slowest_data_ms = data_ms;
}

static void add_ranks(json_t *line, const struct rank_times *t)
{
	if (t->count == 0)
		return;
	js_set_real(line, "ranks_own_ms", t->own_ms);
	js_set_real(line, "ranks_data_ms", t->data_ms);
	js_set_int(line, "slowest_rank", t->slowest);
	js_set_real(line, "slowest_ms", t->slowest_ms);
	js_set_real(line, "slowest_data_ms", t->slowest_data_ms);
}

void report_step(struct report *r, const struct report_step *s)
{
	json_t *line = json_pack("{s:s, s:I}", "type", "step", "step", (json_int_t)s->step);

	js_set_real(line, "loss", s->loss);
	js_set_real(line, "grad_norm", s->grad_norm);
	js_set_real(line, "lr", s->lr);
	js_set_real(line, "tokens_per_s", s->tokens_per_s);
	js_set_real(line, "step_ms", s->step_ms);
	js_set_real(line, "own_ms", s->own_ms);
	js_set_real(line, "tflops", s->tflops);
	js_set_real(line, "mfu", s->mfu);
	js_set_real(line, "mfu_causal", s->mfu_causal);
	js_set_real(line, "mfu_handbook", s->mfu_handbook);
	if (isfinite(s->mfu_sheet))
		js_set_real(line, "mfu_sheet", s->mfu_sheet);
	js_set_real(line, "memory_gib", s->memory_gib);
	js_set_real(line, "data_ms", s->data_ms);
	js_set_real(line, "checkpoint_ms", s->checkpoint_ms);
	add_ranks(line, &s->ranks);
	if (isfinite(s->noise_tokens))
		js_set_real(line, "noise_tokens", s->noise_tokens);
	if (isfinite(s->expert_most)) {
		js_set_real(line, "expert_load_max", s->expert_most);
		js_set_real(line, "expert_load_min", s->expert_least);
	}
	if (isfinite(s->val_loss))
		js_set_real(line, "val_loss", s->val_loss);
	js_set_int(line, "tokens", s->tokens);
	js_set_int(line, "target_step", s->target_step);
	send_line(r, line);
}

void report_pace(struct report *r, int64_t step, int rank, double own_ms, double data_ms)
{
	json_t *line = json_pack("{s:s, s:I, s:i}", "type", "step", "step", (json_int_t)step,
				 "rank", rank);

	js_set_real(line, "step_ms", own_ms);
	js_set_real(line, "data_ms", data_ms);
	send_line(r, line);
}

void report_checkpoint(struct report *r, int64_t step, const char *absolute_path)
{
	send_line(r, json_pack("{s:s, s:I, s:s}", "type", "checkpoint", "step", (json_int_t)step,
			       "path", absolute_path));
}

void report_bye(struct report *r, const char *status)
{
	send_line(r, json_pack("{s:s, s:s}", "type", "bye", "status", status));
}

unsigned report_orders(struct report *r)
{
	receive(r);
	flush(r);
	unsigned orders = r->orders;
	r->orders = 0;
	return orders;
}
