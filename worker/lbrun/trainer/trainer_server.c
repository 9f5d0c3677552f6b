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

static int listen_privately(struct trainer_server *server, struct err *err)
{
	const char *tmp = path_tmp();
	char *folder;

	if (strlen(tmp) > PATH_BYTES_MAX - sizeof("/lb.XXXXXX/sock"))
		tmp = "/tmp";
	folder = path_join("%s/lb.XXXXXX", tmp);
	if (!mkdtemp(folder)) {
		err_errno(err, "%s", folder);
		free(folder);
		return -1;
	}
	server->private_folder = folder;
	server->path = path_join("%s/sock", folder);
	server->fd = sock_listen(server->path, 0600, err);
	return server->fd < 0 ? -1 : 0;
}

int trainer_server_open(struct trainer_server *server, const char *folder, struct err *err)
{
	server->path = path_join("%s/sock", folder);
	server->fd = -1;
	for (int i = 0; i < SERVER_MAX_CONNECTIONS; i++)
		server->conns[i].fd = -1;
	/* Some network file systems have no sockets: then, too, a private folder. */
	if (strlen(server->path) <= PATH_BYTES_MAX)
		server->fd = sock_listen(server->path, 0600, NULL);
	if (server->fd >= 0)
		return 0;
	free(server->path);
	server->path = NULL;
	return listen_privately(server, err);
}

static void conn_close(struct trainer_conn *conn)
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

void trainer_server_drop_all(struct trainer_server *server)
{
	for (int i = 0; i < SERVER_MAX_CONNECTIONS; i++)
		conn_close(&server->conns[i]);
}

void trainer_server_close(struct trainer_server *server)
{
	trainer_server_drop_all(server);
	if (server->fd >= 0)
		close(server->fd);
	server->fd = -1;
	if (server->path)
		unlink(server->path);
	if (server->private_folder)
		rmdir(server->private_folder);
	free(server->path);
	free(server->private_folder);
	server->path = server->private_folder = NULL;
}

bool trainer_server_is_there(const struct trainer_server *server)
{
	return server->fd >= 0 && access(server->path, F_OK) == 0;
}

static void conn_write(struct trainer_conn *conn)
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

static void conn_put(struct trainer_conn *conn, const char *line, size_t len, size_t max)
{
	if (conn->out_len + len > max)
		conn_write(conn);
	if (conn->out_len + len > max)
		return;
	memcpy(conn->out + conn->out_len, line, len);
	conn->out_len += len;
}

void trainer_server_answer(struct trainer_conn *conn, const char *fmt, ...)
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
	conn_put(conn, line, (size_t)n + 1, SERVER_ANSWERS_BYTES - SERVER_RESERVED_BYTES);
}

int trainer_server_order(struct trainer_server *server, const char *type)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "{\"type\":\"%s\"}\n", type);
	int count = 0;

	for (int i = 0; i < SERVER_MAX_CONNECTIONS; i++) {
		struct trainer_conn *conn = &server->conns[i];

		if (conn->fd < 0 || !conn->is_trainer)
			continue;
		conn_put(conn, line, (size_t)n, SERVER_ANSWERS_BYTES);
		conn_write(conn);
		count++;
	}
	return count;
}

bool trainer_server_has_trainer(const struct trainer_server *server)
{
	for (int i = 0; i < SERVER_MAX_CONNECTIONS; i++) {
		if (server->conns[i].fd >= 0 && server->conns[i].is_trainer)
			return true;
	}
	return false;
}

static void accept_one(struct trainer_server *server)
{
	int fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0) {
		/* Without this a full table would make poll return for ever. */
		server->is_paused = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
		return;
	}
	for (int i = 0; i < SERVER_MAX_CONNECTIONS; i++) {
		struct trainer_conn *conn = &server->conns[i];

		if (conn->fd >= 0)
			continue;
		conn->fd = fd;
		buf_init(&conn->in, MESSAGE_MAX_BYTES + 1);
		return;
	}
	close(fd);
	server->on_trouble(server->arg, "more than 64 connections: one was refused");
}

/* Every complete line in the buffer. An empty line means nothing. */
static void take_lines(struct trainer_server *server, struct trainer_conn *conn)
{
	size_t start = 0;
	const char *newline;

	while (start < conn->in.len &&
	       (newline = memchr(conn->in.data + start, '\n', conn->in.len - start))) {
		size_t len = (size_t)(newline - (conn->in.data + start));

		if (len > 0)
			server->on_line(server->arg, conn, conn->in.data + start, len);
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

static void conn_read(struct trainer_server *server, struct trainer_conn *conn)
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
	take_lines(server, conn);
	if (conn->in.len <= MESSAGE_MAX_BYTES)
		return;
	trainer_server_answer(conn, "{\"type\":\"error\",\"text\":\"line longer than %d bytes\"}",
			      MESSAGE_MAX_BYTES);
	conn_write(conn);
	conn_close(conn);
	server->on_trouble(server->arg, "a line longer than 64 KiB: its connection was closed");
}

int trainer_server_poll(const struct trainer_server *server, struct pollfd *fds)
{
	int count = 0;

	fds[count++] = (struct pollfd){ .fd = server->is_paused ? -1 : server->fd,
					.events = POLLIN };
	for (int i = 0; i < SERVER_MAX_CONNECTIONS; i++) {
		const struct trainer_conn *conn = &server->conns[i];

		if (conn->fd < 0)
			continue;
		fds[count++] = (struct pollfd){
			.fd = conn->fd,
			.events = (short)(POLLIN | (conn->out_len > 0 ? POLLOUT : 0)),
		};
	}
	return count;
}

static struct trainer_conn *conn_find(struct trainer_server *server, int fd)
{
	for (int i = 0; i < SERVER_MAX_CONNECTIONS; i++) {
		if (server->conns[i].fd == fd)
			return &server->conns[i];
	}
	return NULL;
}

void trainer_server_turn(struct trainer_server *server, const struct pollfd *fds, int count)
{
	/* Connections first: a new one must not be taken for an old one of the same number. */
	for (int i = 1; i < count; i++) {
		struct trainer_conn *conn = fds[i].revents ? conn_find(server, fds[i].fd) : NULL;

		if (!conn)
			continue;
		if (fds[i].revents & (POLLIN | POLLHUP | POLLERR))
			conn_read(server, conn);
		if (conn->fd >= 0)
			conn_write(conn);
	}
	if (fds[0].revents & POLLIN)
		accept_one(server);
}

void trainer_server_drain(struct trainer_server *server)
{
	struct pollfd fds[SERVER_POLL_MAX];

	/* Bounded: a peer that is no child of ours may go on for ever. */
	for (int round = 0; round < 256; round++) {
		int count = trainer_server_poll(server, fds);

		for (int i = 0; i < count; i++)
			fds[i].events = POLLIN;
		if (poll(fds, (nfds_t)count, 0) <= 0)
			return;
		trainer_server_turn(server, fds, count);
	}
}

void trainer_server_resume(struct trainer_server *server)
{
	server->is_paused = false;
}
