/* SPDX-License-Identifier: MIT */
/* trainer_server.c - accepts, reads lines and writes answers, without ever waiting. */
#include "worker/lbrun/trainer/trainer_server.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/run/message.h"
#include "common/base/paths.h"
#include "common/base/sock.h"

/* The trainer's own client knows nothing of our tricks with long paths. */
enum { PATH_BYTES_MAX = sizeof(((struct sockaddr_un *)0)->sun_path) - 1 };

static int listen_privately(struct hub *hub, struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	char *folder;

	if (!tmp || tmp[0] != '/' || strlen(tmp) > PATH_BYTES_MAX - sizeof("/lb.XXXXXX/sock"))
		tmp = "/tmp";
	folder = path_join("%s/lb.XXXXXX", tmp);
	if (!mkdtemp(folder)) {
		err_errno(err, "%s", folder);
		free(folder);
		return -1;
	}
	hub->private_folder = folder;
	hub->path = path_join("%s/sock", folder);
	hub->fd = sock_listen(hub->path, 0600, err);
	return hub->fd < 0 ? -1 : 0;
}

int hub_open(struct hub *hub, const char *folder, struct err *err)
{
	hub->path = path_join("%s/sock", folder);
	hub->fd = -1;
	for (int i = 0; i < HUB_MAX_CONNECTIONS; i++)
		hub->conns[i].fd = -1;
	/* Some network file systems have no sockets: then, too, a private folder. */
	if (strlen(hub->path) <= PATH_BYTES_MAX)
		hub->fd = sock_listen(hub->path, 0600, NULL);
	if (hub->fd >= 0)
		return 0;
	free(hub->path);
	hub->path = NULL;
	return listen_privately(hub, err);
}

static void conn_close(struct hub_conn *conn)
{
	if (conn->fd < 0)
		return;
	close(conn->fd);
	conn->fd = -1;
	conn->is_trainer = false;
	conn->rank = 0;
	conn->out_len = 0;
	buf_fini(&conn->in);
}

void hub_drop_all(struct hub *hub)
{
	for (int i = 0; i < HUB_MAX_CONNECTIONS; i++)
		conn_close(&hub->conns[i]);
}

void hub_close(struct hub *hub)
{
	hub_drop_all(hub);
	if (hub->fd >= 0)
		close(hub->fd);
	hub->fd = -1;
	if (hub->path)
		unlink(hub->path);
	if (hub->private_folder)
		rmdir(hub->private_folder);
	free(hub->path);
	free(hub->private_folder);
	hub->path = hub->private_folder = NULL;
}

static void conn_write(struct hub_conn *conn)
{
	ssize_t n;

	if (conn->out_len == 0)
		return;
	n = send(conn->fd, conn->out, conn->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);
	/* An error shows again when reading, which decides what becomes of the connection. */
	if (n <= 0)
		return;
	conn->out_len -= (size_t)n;
	memmove(conn->out, conn->out + n, conn->out_len);
}

static void conn_put(struct hub_conn *conn, const char *line, size_t len, size_t max)
{
	if (conn->out_len + len > max)
		conn_write(conn);
	if (conn->out_len + len > max)
		return;
	memcpy(conn->out + conn->out_len, line, len);
	conn->out_len += len;
}

void hub_answer(struct hub_conn *conn, const char *fmt, ...)
{
	char line[2048];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, args);
	va_end(args);
	if (n <= 0 || (size_t)n >= sizeof(line) - 1)
		return;
	line[n] = '\n';
	conn_put(conn, line, (size_t)n + 1, HUB_ANSWERS_BYTES - HUB_RESERVED_BYTES);
}

int hub_order(struct hub *hub, const char *type)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "{\"type\":\"%s\"}\n", type);
	int count = 0;

	for (int i = 0; i < HUB_MAX_CONNECTIONS; i++) {
		struct hub_conn *conn = &hub->conns[i];

		if (conn->fd < 0 || !conn->is_trainer)
			continue;
		conn_put(conn, line, (size_t)n, HUB_ANSWERS_BYTES);
		conn_write(conn);
		count++;
	}
	return count;
}

bool hub_has_trainer(const struct hub *hub)
{
	for (int i = 0; i < HUB_MAX_CONNECTIONS; i++) {
		if (hub->conns[i].fd >= 0 && hub->conns[i].is_trainer)
			return true;
	}
	return false;
}

static void accept_one(struct hub *hub)
{
	int fd = accept4(hub->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0) {
		/* Without this a full table would make poll return for ever. */
		hub->is_paused = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
		return;
	}
	for (int i = 0; i < HUB_MAX_CONNECTIONS; i++) {
		struct hub_conn *conn = &hub->conns[i];

		if (conn->fd >= 0)
			continue;
		conn->fd = fd;
		buf_init(&conn->in, MESSAGE_MAX_BYTES + 1);
		return;
	}
	close(fd);
	hub->on_trouble(hub->arg, "more than 64 connections: one was refused");
}

/* Every complete line in the buffer. An empty line means nothing. */
static void take_lines(struct hub *hub, struct hub_conn *conn)
{
	size_t start = 0;
	const char *newline;

	while (start < conn->in.len &&
	       (newline = memchr(conn->in.data + start, '\n', conn->in.len - start))) {
		size_t len = (size_t)(newline - (conn->in.data + start));

		if (len > 0)
			hub->on_line(hub->arg, conn, conn->in.data + start, len);
		start += len + 1;
	}
	if (start == conn->in.len) {
		/* Most lines are short: memory for a long one is given back. */
		conn->in.len = 0;
		if (conn->in.cap > 8 * 1024)
			buf_fini(&conn->in);
		return;
	}
	buf_drop(&conn->in, start);
}

static void conn_read(struct hub *hub, struct hub_conn *conn)
{
	char chunk[16 * 1024];
	size_t room = MESSAGE_MAX_BYTES + 1 - conn->in.len;
	ssize_t n = recv(conn->fd, chunk, room < sizeof(chunk) ? room : sizeof(chunk),
			 MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		conn_close(conn);
		return;
	}
	buf_add(&conn->in, chunk, (size_t)n);
	take_lines(hub, conn);
	if (conn->in.len <= MESSAGE_MAX_BYTES)
		return;
	hub_answer(conn, "{\"type\":\"error\",\"text\":\"line longer than %d bytes\"}",
		   MESSAGE_MAX_BYTES);
	conn_write(conn);
	conn_close(conn);
	hub->on_trouble(hub->arg, "a line longer than 64 KiB: its connection was closed");
}

int hub_poll(const struct hub *hub, struct pollfd *fds)
{
	int count = 0;

	fds[count++] = (struct pollfd){ .fd = hub->is_paused ? -1 : hub->fd, .events = POLLIN };
	for (int i = 0; i < HUB_MAX_CONNECTIONS; i++) {
		const struct hub_conn *conn = &hub->conns[i];

		if (conn->fd < 0)
			continue;
		fds[count++] = (struct pollfd){
			.fd = conn->fd,
			.events = (short)(POLLIN | (conn->out_len > 0 ? POLLOUT : 0)),
		};
	}
	return count;
}

static struct hub_conn *conn_find(struct hub *hub, int fd)
{
	for (int i = 0; i < HUB_MAX_CONNECTIONS; i++) {
		if (hub->conns[i].fd == fd)
			return &hub->conns[i];
	}
	return NULL;
}

void hub_turn(struct hub *hub, const struct pollfd *fds, int count)
{
	/* Connections first: a new one must not be taken for an old one of the same number. */
	for (int i = 1; i < count; i++) {
		struct hub_conn *conn = fds[i].revents ? conn_find(hub, fds[i].fd) : NULL;

		if (!conn)
			continue;
		if (fds[i].revents & (POLLIN | POLLHUP | POLLERR))
			conn_read(hub, conn);
		if (conn->fd >= 0)
			conn_write(conn);
	}
	if (fds[0].revents & POLLIN)
		accept_one(hub);
}

void hub_drain(struct hub *hub)
{
	struct pollfd fds[HUB_POLL_MAX];

	/* Bounded: a peer that is no child of ours may go on for ever. */
	for (int round = 0; round < 256; round++) {
		int count = hub_poll(hub, fds);

		for (int i = 0; i < count; i++)
			fds[i].events = POLLIN;
		if (poll(fds, (nfds_t)count, 0) <= 0)
			return;
		hub_turn(hub, fds, count);
	}
}

void hub_resume(struct hub *hub)
{
	hub->is_paused = false;
}
