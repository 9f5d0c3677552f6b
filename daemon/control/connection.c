/* SPDX-License-Identifier: MIT */
/* connection.c - one connection: bytes in, cut into requests; answers out, in their order; and its
 * end. */
#include "daemon/control/state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json.h"

/* --- its end ---------------------------------------------------------------------------------- */

static void on_conn_closed(uv_handle_t *handle)
{
	struct conn *c = handle->data;

	control_release(c->control);
	buf_fini(&c->in);
	free(c);
}

static void unlink_conn(struct conn *c)
{
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	else
		c->control->last = c->at;
}

static void append_conn(struct conn *c)
{
	c->next = NULL;
	c->at = c->control->last;
	*c->at = c;
	c->control->last = &c->next;
}

void conn_close(struct conn *c)
{
	if (uv_is_closing((uv_handle_t *)&c->pipe))
		return;
	unlink_conn(c);
	c->control->conn_count--;
	c->user->unheard_bytes -= c->in.len;
	user_leave(c->control, c->user);
	c->user = NULL;
	for (struct request *r = c->requests; r; r = r->next)
		r->conn = NULL;
	uv_close((uv_handle_t *)&c->pipe, on_conn_closed);
}

size_t conn_unread(const struct conn *c)
{
	return uv_stream_get_write_queue_size((const uv_stream_t *)&c->pipe);
}

/* --- answers ---------------------------------------------------------------------------------- */

struct answer {
	uv_write_t write;
	struct control *control;
	char *line;
};

static void on_written(uv_write_t *write, int status)
{
	struct answer *answer = write->data;

	if (status < 0 && status != UV_ECANCELED)
		conn_close(write->handle->data); /* the peer went away */
	control_wake(answer->control);
	free(answer->line);
	free(answer);
}

static void send_line(struct conn *c, const json_t *object)
{
	struct answer *answer = xcalloc(1, sizeof(*answer));
	char *text = js_line(object);
	uv_buf_t buf;

	answer->line = xasprintf("%s\n", text);
	answer->write.data = answer;
	answer->control = c->control;
	free(text);
	buf = uv_buf_init(answer->line, (unsigned)strlen(answer->line));
	if (uv_write(&answer->write, (uv_stream_t *)&c->pipe, &buf, 1, on_written) < 0)
		on_written(&answer->write, UV_ECANCELED);
}

static void send_error(struct conn *c, const struct err *err)
{
	json_t *object = control_error(err);

	send_line(c, object);
	json_decref(object);
}

/* Takes the request off its connection and frees it; returns the connection if it still stands. */
static struct conn *request_finish(struct request *request)
{
	struct conn *c = request->conn;

	if (c) {
		struct request **at = &c->requests;

		while (*at != request)
			at = &(*at)->next;
		*at = request->next;
		control_wake(c->control);
	}
	json_decref(request->args);
	free(request);
	return c;
}

void request_answer(struct request *request, json_t *data)
{
	struct conn *c = request_finish(request);
	json_t *object = json_pack("{s:i, s:b, s:o}", "v", CONTROL_VERSION, "ok", 1, "data",
				   data ? data : json_null());

	if (c)
		send_line(c, object);
	json_decref(object);
}

void request_refuse(struct request *request, const struct err *err)
{
	struct conn *c = request_finish(request);

	if (c)
		send_error(c, err);
}

void request_end(void *arg, json_t *answer, const struct err *why)
{
	struct request *request = arg;

	if (why)
		request_refuse(request, why);
	else
		request_answer(request, answer);
}

/* --- requests --------------------------------------------------------------------------------- */

static int check_role(const struct conn *c, enum verb verb, struct err *err)
{
	if (c->peer.role >= verb_info[verb].least)
		return 0;
	return err_set(err, ERR_REFUSED, "\"%s\" is for the %s of these runs only; you are %s",
		       verb_info[verb].name, role_name(verb_info[verb].least), c->peer.user);
}

static void on_frame(struct conn *c, const char *line, size_t len)
{
	struct err err = { 0 };
	enum verb verb;
	json_t *args = verb_request_parse(line, len, &verb, &err);
	struct request *request;

	if (args == NULL || check_role(c, verb, &err) < 0) {
		send_error(c, &err);
		json_decref(args);
		return;
	}
	request = xcalloc(1, sizeof(*request));
	request->lbd = c->control->lbd;
	request->verb = verb;
	request->args = args;
	request->peer = c->peer;
	request->conn = c;
	request->next = c->requests;
	c->requests = request;
	c->control->handle(request);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf);
static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf);

static void drop(struct conn *c, size_t len)
{
	buf_drop(&c->in, len);
	c->user->unheard_bytes -= len;
	c->searched = 0;
}

/* How far the first frame in the buffer has come. No byte is searched twice, and none is moved but
 * with all that go with it: the work is that of the bytes, whatever they are. */
static void look_for_frame(struct conn *c)
{
	size_t empty = 0;

	while (empty < c->in.len && c->in.data[empty] == '\n')
		empty++;
	if (empty > 0)
		drop(c, empty);
	c->has_frame = c->searched < c->in.len &&
		       memchr(c->in.data + c->searched, '\n', c->in.len - c->searched) != NULL;
	if (!c->has_frame)
		c->searched = c->in.len;
	if (c->in.len == 0 || c->has_frame)
		c->frame_since_ms = 0;
	else if (c->frame_since_ms == 0)
		c->frame_since_ms = clock_mono_ms();
	control_wake(c->control);
}

/* Of a peer whose frame is complete nothing more is read, so that it fills its own end and not our
 * memory. */
void conn_read_on(struct conn *c)
{
	if (!c->has_frame && !c->at_end)
		uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
}

void conn_serve(struct conn *c)
{
	char *begin = c->in.data + c->searched;
	size_t len = c->searched +
		     (size_t)((char *)memchr(begin, '\n', c->in.len - c->searched) - begin);

	c->user->turn = c->control->turn;
	on_frame(c, c->in.data, len);
	if (uv_is_closing((uv_handle_t *)&c->pipe))
		return;
	drop(c, len + 1);
	unlink_conn(c);
	append_conn(c);
	look_for_frame(c);
}

/* One piece of each connection a turn: else one peer that never stops would be read for ever. */
static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
	struct conn *c = stream->data;
	struct err err = { 0 };

	if (got == 0)
		return;
	uv_read_stop(stream);
	if (got == UV_EOF && (c->has_frame || c->requests || conn_unread(c) > 0)) {
		c->at_end = true;
		control_wake(c->control);
		return;
	}
	if (got < 0) {
		conn_close(c);
		return;
	}
	if (buf_add(&c->in, buf->base, (size_t)got) < 0)
		err_set(&err, ERR_USAGE, "a request is at most %d bytes long", CONTROL_MAX_BYTES);
	else if ((c->user->unheard_bytes += (size_t)got) > MAX_UNHEARD_BYTES)
		err_set(&err, ERR_REFUSED, "too many large requests at once; try again");
	if (err.code == ERR_NONE) {
		look_for_frame(c);
		return;
	}
	send_error(c, &err);
	conn_close(c);
}

/* The buffer is empty again before anybody else reads. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct conn *c = handle->data;

	(void)suggested;
	*buf = uv_buf_init(c->control->chunk, sizeof(c->control->chunk));
}

/* --- its beginning ---------------------------------------------------------------------------- */

void conn_create(struct control *control, int fd, const struct peer *peer)
{
	struct conn *c = xcalloc(1, sizeof(*c));

	c->control = control;
	c->peer = *peer;
	c->user = user_enter(control, peer->uid);
	/* a whole frame, and what was read with its end */
	buf_init(&c->in, CONTROL_MAX_BYTES + sizeof(control->chunk));
	uv_pipe_init(control->lbd->loop, &c->pipe, 0);
	c->pipe.data = c;
	append_conn(c);
	control->conn_count++;
	control->holders++;
	if (uv_pipe_open(&c->pipe, fd) < 0) {
		close(fd);
		conn_close(c);
		return;
	}
	uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
	control_watch(control);
}
