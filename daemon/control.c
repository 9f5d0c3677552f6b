/* SPDX-License-Identifier: MIT */
#include "daemon/control.h"

#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/paths.h"
#include "common/sock.h"
#include "daemon/lbd.h"
#include "daemon/lock.h"
#include "daemon/handlers.h"

enum {
	MAX_CONNS = 512,
	MAX_CONNS_PER_USER = 64,
	MAX_UNREAD_BYTES = 32 * 1024 * 1024,	/* answers the peer does not fetch */
	FRAME_DEADLINE_MS = 10 * 1000,		/* from the first byte of a frame to its newline */
	BACKLOG = 128,
};

struct conn {			/* made in on_connection, freed in on_conn_closed and nowhere else */
	uv_pipe_t pipe;
	uv_timer_t deadline;
	int open_handles;
	struct control *control;
	struct conn *next, **at;
	struct buf in;
	struct peer peer;
	struct request *requests;	/* not answered yet */
	char chunk[16 * 1024];
};

struct control {
	struct lbd *lbd;
	uv_pipe_t listener;
	char *path;
	struct conn *conns;
	int conn_count;
};

/* --- connections: closing ---------------------------------------------------------------------------- */

static void on_conn_closed(uv_handle_t *handle)
{
	struct conn *c = handle->data;

	if (--c->open_handles > 0)
		return;
	buf_fini(&c->in);
	free(c);
}

static void conn_close(struct conn *c)	/* idempotent: any path may call it */
{
	if (uv_is_closing((uv_handle_t *)&c->pipe))
		return;
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	c->control->conn_count--;
	for (struct request *r = c->requests; r; r = r->next)
		r->conn = NULL;
	uv_close((uv_handle_t *)&c->pipe, on_conn_closed);
	uv_close((uv_handle_t *)&c->deadline, on_conn_closed);
}

/* --- answers ------------------------------------------------------------------------------------------ */

struct answer {
	uv_write_t write;
	char *line;
};

static void on_written(uv_write_t *write, int status)
{
	struct answer *answer = write->data;

	(void)status;	/* a peer that went away shows in on_read */
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
	free(text);
	buf = uv_buf_init(answer->line, (unsigned)strlen(answer->line));
	if (uv_write(&answer->write, (uv_stream_t *)&c->pipe, &buf, 1, on_written) < 0)
		on_written(&answer->write, 0);
	if (uv_stream_get_write_queue_size((uv_stream_t *)&c->pipe) > MAX_UNREAD_BYTES)
		conn_close(c);
}

static void send_error(struct conn *c, const struct err *err)
{
	json_t *object = json_pack("{s:i, s:b, s:s, s:s}", "v", CONTROL_VERSION, "ok", 0, "error",
				   err_code_name(err->code), "text", err->text);

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

/* --- frames --------------------------------------------------------------------------------------------- */

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
	handle(request);
}

static void on_deadline(uv_timer_t *timer)
{
	conn_close(timer->data);
}

/* Every complete line is a frame. What is left must become one before the deadline. */
static void take_frames(struct conn *c)
{
	char *newline;

	while (c->in.len > 0 && !uv_is_closing((uv_handle_t *)&c->pipe) &&
	       (newline = memchr(c->in.data, '\n', c->in.len)) != NULL) {
		size_t len = (size_t)(newline - c->in.data);

		if (len > 0)
			on_frame(c, c->in.data, len);
		buf_drop(&c->in, len + 1);
		uv_timer_stop(&c->deadline);
	}
	if (c->in.len > 0 && !uv_is_closing((uv_handle_t *)&c->pipe) &&
	    !uv_is_active((uv_handle_t *)&c->deadline))
		uv_timer_start(&c->deadline, on_deadline, FRAME_DEADLINE_MS, 0);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
	struct conn *c = stream->data;
	struct err err = { 0 };

	if (got < 0) {
		conn_close(c);
		return;
	}
	if (buf_add(&c->in, buf->base, (size_t)got) < 0) {
		err_set(&err, ERR_USAGE, "a request is at most %d bytes long", CONTROL_MAX_BYTES);
		send_error(c, &err);
		conn_close(c);
		return;
	}
	take_frames(c);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct conn *c = handle->data;

	(void)suggested;
	*buf = uv_buf_init(c->chunk, sizeof(c->chunk));
}

/* --- connections: opening --------------------------------------------------------------------------------- */

static struct conn *conn_create(struct control *control)
{
	struct conn *c = xcalloc(1, sizeof(*c));

	c->control = control;
	buf_init(&c->in, CONTROL_MAX_BYTES + 1);
	uv_pipe_init(control->lbd->loop, &c->pipe, 0);
	uv_timer_init(control->lbd->loop, &c->deadline);
	c->open_handles = 2;
	c->pipe.data = c;
	c->deadline.data = c;
	c->next = control->conns;
	c->at = &control->conns;
	if (c->next)
		c->next->at = &c->next;
	control->conns = c;
	control->conn_count++;
	return c;
}

static int count_of(const struct control *control, uid_t uid)
{
	int count = 0;

	for (const struct conn *c = control->conns; c; c = c->next)
		count += c->peer.uid == uid;
	return count;
}

static int admit(struct conn *c, struct err *err)
{
	struct control *control = c->control;
	uv_os_fd_t fd = -1;

	c->peer.uid = (uid_t)-1;
	uv_fileno((uv_handle_t *)&c->pipe, &fd);
	if (peer_of(fd, control->lbd->config.team_group, control->lbd->config.may_submit,
		    &c->peer, err) < 0)
		return -1;
	if (c->peer.role == ROLE_NONE)
		return err_set(err, ERR_REFUSED, "these runs belong to somebody else, and %s is not in "
						 "their team (lbd.toml: team.group)", c->peer.user);
	if (control->conn_count > MAX_CONNS || count_of(control, c->peer.uid) > MAX_CONNS_PER_USER)
		return err_set(err, ERR_REFUSED, "too many connections; close some and try again");
	return 0;
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct control *control = listener->data;
	struct err err = { 0 };
	struct conn *c;

	if (status < 0)
		return;
	c = conn_create(control);
	if (uv_accept(listener, (uv_stream_t *)&c->pipe) < 0) {
		conn_close(c);
	} else if (admit(c, &err) < 0) {
		send_error(c, &err);
		conn_close(c);
	} else {
		uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
	}
}

/* --- life -------------------------------------------------------------------------------------------------- */

/* The team reaches the socket through its group; without a team only the owner does. */
static int give_to_team(const struct control *control, struct err *err)
{
	const char *name = control->lbd->config.team_group;
	const struct group *group = name ? getgrnam(name) : NULL;

	if (name == NULL)
		return 0;
	if (group == NULL)
		return err_set(err, ERR_USAGE, "lbd.toml: team.group: there is no group \"%s\"", name);
	if (chown(control->path, (uid_t)-1, group->gr_gid) < 0 || chmod(control->path, 0660) < 0)
		return err_errno(err, "%s: cannot give it to group %s", control->path, name);
	return 0;
}

static void on_listener_closed(uv_handle_t *handle)
{
	struct control *control = handle->data;

	free(control->path);
	free(control);
}

struct control *control_open(struct lbd *lbd, struct err *err)
{
	struct control *control = xcalloc(1, sizeof(*control));
	int fd;

	control->lbd = lbd;
	control->path = path_join("%s/lbd.sock", lbd->config.home);
	fd = sock_listen(control->path, 0600, err);
	if (fd < 0 || give_to_team(control, err) < 0) {
		if (fd >= 0)
			close(fd);
		free(control->path);
		free(control);
		return NULL;
	}
	uv_pipe_init(lbd->loop, &control->listener, 0);
	control->listener.data = control;
	uv_pipe_open(&control->listener, fd);
	uv_listen((uv_stream_t *)&control->listener, BACKLOG, on_connection);
	return control;
}

void control_close(struct control *control)
{
	if (control == NULL)
		return;
	if (control->lbd->lock && lock_check(control->lbd->lock, NULL) == 0)
		unlink(control->path);	/* else it may be another lbd's by now */
	while (control->conns)
		conn_close(control->conns);
	uv_close((uv_handle_t *)&control->listener, on_listener_closed);
}
