/* SPDX-License-Identifier: MIT */
#include "daemon/control.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
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
	MAX_UNHEARD_BYTES = 16 * 1024 * 1024,	/* of one user: requests that are not complete yet */
	MAX_UNREAD_BYTES = 4 * 1024 * 1024,	/* of one user: with more nothing new is answered */
	DEADLINE_MS = 10 * 1000,	/* for a frame to become complete, for an answer to be read on */
	SWEEP_MS = 1000,
	ACCEPTS = 32,			/* in one turn of the loop */
};

/* Whoever asks gets an equal turn: limits are per user, and each turn of the loop answers at most one
 * request of each. */
struct user {			/* made by the first connection, freed with the last */
	uid_t uid;
	int conns;
	size_t unheard_bytes;
	uint64_t turn;		/* of the loop, in which a request of theirs was served last */
	struct user *next;
};

struct conn {			/* made in conn_create, freed in on_conn_closed and nowhere else */
	uv_pipe_t pipe;
	struct control *control;
	struct user *user;
	struct conn *next, **at;
	struct buf in;
	struct peer peer;
	struct request *requests;	/* not answered yet */
	bool has_frame;			/* a complete one: nothing more is read until it is served */
	bool at_end;			/* the peer says no more: it goes when all is answered */
	int64_t frame_since_ms;		/* monotonic; 0 = no frame has begun */
	int64_t unread_since_ms;	/* since when nothing of its answers was read; 0 = all is */
	size_t unread_bytes;		/* as of then */
};

struct control {
	struct lbd *lbd;
	uv_poll_t listener;
	uv_idle_t serving;		/* active while a request waits for its turn */
	uv_timer_t sweep;
	int holders;
	int fd, spare_fd;		/* the spare one is given up to refuse what comes when none is left */
	char *path;
	struct conn *conns, **last;	/* who waited longest is first */
	struct user *users;
	int conn_count;
	uint64_t turn;
	char chunk[16 * 1024];		/* what was just read */
};

static void on_serving(uv_idle_t *idle);

/* --- connections: closing ---------------------------------------------------------------------------- */

/* Each handle of ours and each connection holds the control: callbacks of its writes come last. */
static void control_release(struct control *control)
{
	if (--control->holders > 0)
		return;
	close(control->fd);
	if (control->spare_fd >= 0)
		close(control->spare_fd);
	free(control->path);
	free(control);
}

static void on_conn_closed(uv_handle_t *handle)
{
	struct conn *c = handle->data;

	control_release(c->control);
	buf_fini(&c->in);
	free(c);
}

static void user_leave(struct control *control, struct user *user)
{
	struct user **at = &control->users;

	if (--user->conns > 0)
		return;
	while (*at != user)
		at = &(*at)->next;
	*at = user->next;
	free(user);
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

static void conn_close(struct conn *c)	/* idempotent: any path may call it */
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

static size_t unread_of(const struct conn *c)
{
	return uv_stream_get_write_queue_size((const uv_stream_t *)&c->pipe);
}

/* A request waits, or the peer may be done: the next turn looks. */
static void wake(struct control *control)
{
	if (!uv_is_closing((uv_handle_t *)&control->serving))
		uv_idle_start(&control->serving, on_serving);
}

/* --- answers ------------------------------------------------------------------------------------------ */

struct answer {
	uv_write_t write;
	struct control *control;
	char *line;
};

static void on_written(uv_write_t *write, int status)
{
	struct answer *answer = write->data;

	if (status < 0 && status != UV_ECANCELED)
		conn_close(write->handle->data);	/* the peer went away */
	wake(answer->control);
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

static json_t *error_object(const struct err *err)
{
	return json_pack("{s:i, s:b, s:s, s:s}", "v", CONTROL_VERSION, "ok", 0, "error",
			 err_code_name(err->code), "text", err->text);
}

static void send_error(struct conn *c, const struct err *err)
{
	json_t *object = error_object(err);

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
		wake(c->control);
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

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf);
static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf);

/* How far the first frame in the buffer has come. Of a peer whose frame is complete nothing more is
 * read, so that it fills its own end and not our memory. */
static void look_for_frame(struct conn *c)
{
	while (c->in.len > 0 && c->in.data[0] == '\n') {
		buf_drop(&c->in, 1);
		c->user->unheard_bytes--;
	}
	c->has_frame = c->in.len > 0 && memchr(c->in.data, '\n', c->in.len) != NULL;
	if (c->in.len == 0 || c->has_frame)
		c->frame_since_ms = 0;
	else if (c->frame_since_ms == 0)
		c->frame_since_ms = clock_mono_ms();
	if (c->has_frame)
		uv_read_stop((uv_stream_t *)&c->pipe);
	else if (!c->at_end)
		uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
	if (c->has_frame || c->at_end)
		wake(c->control);
}

static void serve(struct conn *c)
{
	size_t len = (size_t)((char *)memchr(c->in.data, '\n', c->in.len) - c->in.data);

	c->user->turn = c->control->turn;
	on_frame(c, c->in.data, len);
	if (uv_is_closing((uv_handle_t *)&c->pipe))
		return;
	buf_drop(&c->in, len + 1);
	c->user->unheard_bytes -= len + 1;
	unlink_conn(c);
	append_conn(c);
	look_for_frame(c);
}

static size_t unread_of_user(const struct control *control, const struct user *user)
{
	size_t bytes = 0;

	for (const struct conn *c = control->conns; c; c = c->next)
		bytes += c->user == user ? unread_of(c) : 0;
	return bytes;
}

/* Answers come in order, one at a time, and only to who reads them. */
static bool is_ready(const struct conn *c)
{
	return c->has_frame && c->requests == NULL && unread_of(c) == 0 &&
	       unread_of_user(c->control, c->user) <= MAX_UNREAD_BYTES;
}

/* One request of each user; on_written or an answer wakes us again for those that were not ready. */
static void on_serving(uv_idle_t *idle)
{
	struct control *control = idle->data;
	int count = control->conn_count;
	bool more = false;

	control->turn++;
	for (struct conn *c = control->conns, *next; c && count-- > 0; c = next) {
		next = c->next;
		if (c->at_end && !c->has_frame && c->requests == NULL && unread_of(c) == 0)
			conn_close(c);
		else if (c->user->turn != control->turn && is_ready(c))
			serve(c);
	}
	for (const struct conn *c = control->conns; c && !more; c = c->next)
		more = is_ready(c);
	if (!more)
		uv_idle_stop(idle);
}

static bool is_overdue(struct conn *c, int64_t now_ms)
{
	size_t unread = unread_of(c);

	if (unread == 0 || unread != c->unread_bytes)
		c->unread_since_ms = unread > 0 ? now_ms : 0;
	c->unread_bytes = unread;
	return (c->unread_since_ms > 0 && now_ms - c->unread_since_ms > DEADLINE_MS) ||
	       (c->frame_since_ms > 0 && now_ms - c->frame_since_ms > DEADLINE_MS);
}

static void on_sweep(uv_timer_t *timer)
{
	struct control *control = timer->data;
	int64_t now_ms = clock_mono_ms();
	bool closed = false;

	for (struct conn *c = control->conns, *next; c; c = next) {
		next = c->next;
		if (!is_overdue(c, now_ms))
			continue;
		conn_close(c);
		closed = true;
	}
	if (closed)
		wake(control);	/* for those who waited for its user's share */
	if (control->conns == NULL)
		uv_timer_stop(timer);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
	struct conn *c = stream->data;
	struct err err = { 0 };

	if (got == UV_EOF && (c->has_frame || c->requests || unread_of(c) > 0)) {
		uv_read_stop(stream);
		c->at_end = true;
		wake(c->control);
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

/* --- connections: opening --------------------------------------------------------------------------------- */

static struct user *user_find(struct control *control, uid_t uid)
{
	struct user *user = control->users;

	while (user && user->uid != uid)
		user = user->next;
	return user;
}

static struct user *user_enter(struct control *control, uid_t uid)
{
	struct user *user = user_find(control, uid);

	if (user == NULL) {
		user = xcalloc(1, sizeof(*user));
		user->uid = uid;
		user->next = control->users;
		control->users = user;
	}
	user->conns++;
	return user;
}

/* Takes the descriptor. */
static void conn_create(struct control *control, int fd, const struct peer *peer)
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
	if (!uv_is_active((uv_handle_t *)&control->sweep))
		uv_timer_start(&control->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
}

/* The more there are, the fewer may one user have: whoever comes finds room, however many others press.
 * (Dynamic thresholds, as switches share their buffers: Choudhury and Hahne 1998.) */
static int check_room(const struct control *control, int conns, struct err *err)
{
	int room = MAX_CONNS - control->conn_count;

	if (conns < room && conns < MAX_CONNS_PER_USER)
		return 0;
	return err_set(err, ERR_REFUSED, "too many connections; close some and try again");
}

static int admit(struct control *control, int fd, struct peer *peer, struct err *err)
{
	const struct config *config = &control->lbd->config;
	const struct user *user;
	struct ucred cred;
	socklen_t bytes = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes) < 0)
		return err_errno(err, "cannot tell who is asking");
	user = user_find(control, cred.uid);
	/* first what costs nothing: names and groups may be asked of a distant directory */
	if (check_room(control, user ? user->conns : 0, err) < 0 ||
	    peer_of(fd, config->team_group, config->may_submit, peer, err) < 0)
		return -1;
	if (peer->role == ROLE_NONE)
		return err_set(err, ERR_REFUSED, "these runs belong to somebody else, and %s is not in "
						 "their team (lbd.toml: team.group)", peer->user);
	return 0;
}

/* Whom we cannot serve is told so, if the line fits into the socket, and costs us nothing more. */
static void refuse(int fd, const struct err *err)
{
	json_t *object = error_object(err);
	char *text = js_line(object), *line = xasprintf("%s\n", text);

	if (send(fd, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_debug("a refusal could not be told");
	close(fd);
	free(line);
	free(text);
	json_decref(object);
}

static void refuse_for_want_of_files(struct control *control)
{
	struct err err = { 0 };
	int fd;

	if (control->spare_fd < 0)
		return;
	close(control->spare_fd);
	err_set(&err, ERR_REFUSED, "lbd has no file descriptor left; try again");
	fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		refuse(fd, &err);
	control->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Only so many at once: a flood of connections must not keep those who are connected waiting. */
static void on_listener(uv_poll_t *listener, int status, int events)
{
	struct control *control = listener->data;

	(void)events;
	for (int i = 0; status == 0 && i < ACCEPTS; i++) {
		int fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct peer peer = { 0 };
		struct err err = { 0 };

		if (fd < 0 && (errno == EMFILE || errno == ENFILE))
			refuse_for_want_of_files(control);
		if (fd < 0)
			return;
		if (admit(control, fd, &peer, &err) < 0)
			refuse(fd, &err);
		else
			conn_create(control, fd, &peer);
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

static void on_closed(uv_handle_t *handle)
{
	control_release(handle->data);
}

struct control *control_open(struct lbd *lbd, struct err *err)
{
	struct control *control = xcalloc(1, sizeof(*control));

	control->lbd = lbd;
	control->last = &control->conns;
	control->path = path_join("%s/lbd.sock", lbd->config.home);
	control->fd = sock_listen(control->path, 0600, err);
	if (control->fd < 0 || give_to_team(control, err) < 0) {
		if (control->fd >= 0)
			close(control->fd);
		free(control->path);
		free(control);
		return NULL;
	}
	control->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	uv_poll_init(lbd->loop, &control->listener, control->fd);
	uv_idle_init(lbd->loop, &control->serving);
	uv_timer_init(lbd->loop, &control->sweep);
	control->holders = 3;
	control->listener.data = control->serving.data = control->sweep.data = control;
	uv_poll_start(&control->listener, UV_READABLE, on_listener);
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
	uv_close((uv_handle_t *)&control->listener, on_closed);
	uv_close((uv_handle_t *)&control->serving, on_closed);
	uv_close((uv_handle_t *)&control->sweep, on_closed);
}
