/* SPDX-License-Identifier: MIT */
/* export.c - lbctl metrics: once, into a file again and again, or on a page of this machine. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/mem.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/metrics/metrics.h"

enum { ASK_MS = 5000, REQUEST_MS = 2000, REQUEST_BYTES = 8192, WAITING = 8 };

/* Prometheus is to hear that lbd is away, so that is an answer, too. */
static char *metrics_now(struct ctl *ctl)
{
	struct err err = { 0 };
	json_t *answer = client_ask(&ctl->client, VERB_TOP, NULL, &err);
	char *text = metrics_text(answer);

	json_decref(answer);
	return text;
}

static int write_file(struct ctl *ctl, struct err *err)
{
	char *text = metrics_now(ctl);
	int rc = file_write_named(ctl->options.output, text, strlen(text), 0644, err);

	free(text);
	return rc;
}

/* Once it works it goes on through a disk that is full for a while. */
static int write_files(struct ctl *ctl, struct err *err)
{
	int rc = write_file(ctl, err);

	while (rc == 0 && ctl->options.every_ms > 0 && !interrupted()) {
		struct err why = { 0 };

		nap(ctl->options.every_ms);
		if (!interrupted() && write_file(ctl, &why) < 0)
			complain(ctl, why.text);
	}
	return rc;
}

/* --- the page --------------------------------------------------------------------------------- */
/* Of 127.0.0.1 only: nobody else is to see runs without a word of ours. */
static int listen_here(int64_t port, struct err *err)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
	    listen(fd, WAITING) == 0)
		return fd;
	err_errno(err, "127.0.0.1:%lld", (long long)port);
	if (fd >= 0)
		close(fd);
	return -1;
}

/* The request's first line is all that counts; false: none came in time. */
static bool read_request(int fd, char out[REQUEST_BYTES])
{
	int64_t end_ms = clock_mono_ms() + REQUEST_MS;
	size_t len = 0;

	out[0] = '\0';
	while (len + 1 < REQUEST_BYTES && !strstr(out, "\r\n\r\n")) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left_ms = end_ms - clock_mono_ms();
		ssize_t n = left_ms > 0 && poll(&p, 1, (int)left_ms) > 0
				    ? recv(fd, out + len, REQUEST_BYTES - 1 - len, MSG_DONTWAIT)
				    : -1;

		if (n <= 0)
			return false;
		len += (size_t)n;
		out[len] = '\0';
	}
	return true;
}

static void send_all(int fd, const char *text, size_t len)
{
	struct timeval limit = { .tv_sec = REQUEST_MS / 1000 };
	ssize_t n = 1;

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	for (; len > 0 && n > 0; text += n, len -= (size_t)(n > 0 ? n : 0))
		n = send(fd, text, len, MSG_NOSIGNAL);
}

static void answer(struct ctl *ctl, int fd)
{
	char request[REQUEST_BYTES];
	bool is_ours = read_request(fd, request) && strncmp(request, "GET /metrics ", 13) == 0;
	char *text = is_ours ? metrics_now(ctl) : xstrdup("it is at /metrics\n");
	char *head = xasprintf("HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; "
			       "charset=utf-8\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
			       is_ours ? "200 OK" : "404 Not Found", strlen(text));

	send_all(fd, head, strlen(head));
	send_all(fd, text, strlen(text));
	free(head);
	free(text);
}

static int serve(struct ctl *ctl, struct err *err)
{
	int fd = listen_here(ctl->options.listen, err);

	if (fd < 0)
		return -1;
	hint(ctl, "http://127.0.0.1:%lld/metrics", (long long)ctl->options.listen);
	while (!interrupted()) {
		int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (peer < 0)
			continue; /* a signal, or it went away again */
		answer(ctl, peer);
		close(peer);
	}
	close(fd);
	return 0;
}

int metrics_run(struct ctl *ctl, struct err *err)
{
	const struct options *o = &ctl->options;
	char *text;

	if (o->every_ms > 0 && !o->output)
		return err_set(err, ERR_USAGE, "metrics: --every needs -o FILE");
	if (o->listen > 65535 || (o->listen > 0 && o->output))
		return err_set(err, ERR_USAGE,
			       "metrics: --listen takes a port up to 65535, and no -o beside it");
	ctl->client.deadline_ms = ASK_MS;
	interrupt_catch();
	if (o->listen > 0)
		return serve(ctl, err);
	if (o->output)
		return write_files(ctl, err);
	text = metrics_now(ctl);
	fputs(text, stdout);
	free(text);
	return 0;
}
