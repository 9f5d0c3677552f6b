/* SPDX-License-Identifier: MIT */
/* output.c - passes on what the trainer prints, a prefix in front of each line.
 *
 * The file stays readable when stdout and stderr interleave: an unfinished line of one is ended
 * before the other one writes, and its rest gets a prefix of its own. */
#include "worker/lbrun/trainer/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/text.h"

enum { FINISH_MS = 1000 };

/* A pipe or terminal is opened anew, so that our O_NONBLOCK is not that of whoever shares it. */
static int reopen_stdout(int fd)
{
	struct stat st;
	int again;

	if (fstat(fd, &st) < 0 || S_ISREG(st.st_mode))
		return fd;
	again = open(fd == STDOUT_FILENO ? "/proc/self/fd/1" : "/dev/null",
		     O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return again < 0 ? fd : again;
}

void output_init(struct output *o, int fd, const char *host, int rank)
{
	*o = (struct output){ .fd = reopen_stdout(fd) };
	for (int i = 0; i < OUTPUT_STREAMS; i++)
		o->streams[i].fd = -1;
	snprintf(o->prefix, sizeof(o->prefix), "[%.64s:%d] ", host, rank);
	text_clean(o->prefix);
	o->prefix_len = strlen(o->prefix);
}

void output_attach(struct output *o, int stream, int fd, bool raw)
{
	struct output_stream *s = &o->streams[stream];

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	s->fd = fd;
	s->raw = raw;
	s->ended = false;
	s->len = 0;
}

static void flush(struct output *o)
{
	size_t done = 0;

	o->is_blocked = false;
	while (done < o->len) {
		ssize_t n = write(o->fd, o->data + done, o->len - done);

		if (n >= 0) {
			done += (size_t)n;
		} else if (errno == EAGAIN) {
			o->is_blocked = true;
			break;
		} else if (errno != EINTR) {
			o->dropped_bytes += (int64_t)(o->len - done);
			done = o->len;
		}
	}
	o->len -= done;
	memmove(o->data, o->data + done, o->len);
}

static bool has_room(struct output *o, size_t bytes)
{
	if (sizeof(o->data) - o->len < bytes)
		flush(o);
	return sizeof(o->data) - o->len >= bytes;
}

static void put(struct output *o, const void *data, size_t len)
{
	memcpy(o->data + o->len, data, len);
	o->len += len;
}

/* "[host:7] ", or as much of it as has come. */
static bool has_prefix(const char *data, size_t len)
{
	size_t at = 1;
	bool has_colon = false;

	while (at < len && !strchr(" ]\n", data[at]))
		has_colon |= data[at++] == ':';
	if (data[0] != '[' || at == len)
		return data[0] == '[';
	return data[at] == ']' && has_colon && data[at - 1] >= '0' && data[at - 1] <= '9';
}

/* One piece of a line; `data` ends in a newline or is the unfinished end of it. */
static bool put_piece(struct output *o, const struct output_stream *s, const char *data, size_t len)
{
	bool is_prefixed = o->plain || (s->raw && has_prefix(data, len));

	if (!has_room(o, o->prefix_len + 1 + len))
		return false;
	if (o->unfinished != s) {
		if (o->unfinished && !o->plain)
			put(o, "\n", 1);
		if (!is_prefixed)
			put(o, o->prefix, o->prefix_len);
	}
	put(o, data, len);
	o->unfinished = data[len - 1] == '\n' ? NULL : s;
	return true;
}

/* How much of an unfinished line can be written without cutting a UTF-8 character in two. */
static size_t whole_characters(const char *data, size_t len)
{
	size_t back = 0;

	while (back < 3 && back < len && ((unsigned char)data[len - 1 - back] & 0xC0) == 0x80)
		back++;
	if (back < len && (unsigned char)data[len - 1 - back] >= 0xC0 &&
	    text_utf8_step(data + len - 1 - back, back + 1) == 0)
		return len - 1 - back > 0 ? len - 1 - back : len;
	return len;
}

/* Length of the next piece to write, 0 = wait for more. */
static size_t next_piece(const struct output_stream *s, const char *data, size_t len,
			 int64_t now_ms)
{
	const char *newline = memchr(data, '\n', len);
	size_t n = newline ? (size_t)(newline - data) + 1 : len;

	if (n > OUTPUT_PARTIAL_BYTES)
		return whole_characters(data, OUTPUT_PARTIAL_BYTES);
	if (newline || s->ended)
		return n;
	if (now_ms - s->since_ms >= OUTPUT_IDLE_MS)
		return whole_characters(data, n);
	return 0;
}

static void write_pieces(struct output *o, struct output_stream *s, int64_t now_ms)
{
	size_t done = 0;
	size_t n;

	while (done < s->len && (n = next_piece(s, s->data + done, s->len - done, now_ms)) > 0) {
		if (!put_piece(o, s, s->data + done, n))
			break;
		done += n;
	}
	s->len -= done;
	memmove(s->data, s->data + done, s->len);
}

static void close_stream(struct output *o, struct output_stream *s)
{
	if (o->unfinished == s && !o->plain && has_room(o, 1)) {
		put(o, "\n", 1);
		o->unfinished = NULL;
	}
	close(s->fd);
	s->fd = -1;
}

static ssize_t read_stream(struct output *o, struct output_stream *s, int64_t now_ms)
{
	size_t room = sizeof(s->data) - s->len;
	ssize_t n;

	if (s->ended || room == 0)
		return 0;
	n = read(s->fd, s->data + s->len, room);
	if (n > 0) {
		if (o->on_bytes)
			o->on_bytes(o->arg, (int)(s - o->streams), s->data + s->len, (size_t)n);
		s->len += (size_t)n;
		s->since_ms = o->read_ms = now_ms;
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		s->ended = true;
	}
	return n;
}

void output_turn(struct output *o, int64_t now_ms)
{
	flush(o);
	for (int i = 0; i < OUTPUT_STREAMS; i++) {
		struct output_stream *s = &o->streams[i];

		if (s->fd < 0 || o->is_blocked)
			continue;
		read_stream(o, s, now_ms);
		write_pieces(o, s, now_ms);
		if (s->ended && s->len == 0)
			close_stream(o, s);
	}
	flush(o);
}

int output_poll(const struct output *o, struct pollfd *fds)
{
	int count = 0;

	if (o->is_blocked) {
		fds[count++] = (struct pollfd){ .fd = o->fd, .events = POLLOUT };
		return count;
	}
	for (int i = 0; i < OUTPUT_STREAMS; i++) {
		if (o->streams[i].fd >= 0)
			fds[count++] = (struct pollfd){ .fd = o->streams[i].fd, .events = POLLIN };
	}
	return count;
}

int64_t output_next_ms(const struct output *o)
{
	int64_t next = INT64_MAX;

	for (int i = 0; i < OUTPUT_STREAMS; i++) {
		const struct output_stream *s = &o->streams[i];

		int64_t due_ms = s->since_ms + OUTPUT_IDLE_MS;

		/* Up to three bytes may stay: an unfinished character, not worth waking up for. */
		if (s->fd >= 0 && !o->is_blocked && s->len > 3 && due_ms < next)
			next = due_ms;
	}
	return next;
}

/* Nobody writes any more, but a pipe may hold a lot, and a reader of ours may be slow. */
void output_finish(struct output *o, int64_t now_ms)
{
	int64_t deadline_ms = now_ms + FINISH_MS;

	for (int i = 0; i < OUTPUT_STREAMS; i++) {
		struct output_stream *s = &o->streams[i];

		while (s->fd >= 0 && (!o->is_blocked || clock_mono_ms() < deadline_ms)) {
			struct pollfd wait = { .fd = o->fd, .events = POLLOUT };

			if (o->is_blocked)
				poll(&wait, 1, 50);
			flush(o);
			/* An empty pipe is the end, even if somebody kept the other side open. */
			if (read_stream(o, s, now_ms) < 0)
				s->ended = true;
			write_pieces(o, s, now_ms);
			if (s->ended && (s->len == 0 || o->is_blocked))
				close_stream(o, s);
		}
		if (s->fd >= 0)
			close_stream(o, s);
	}
	flush(o);
	o->unfinished = NULL;
}

void output_say(struct output *o, const char *fmt, ...)
{
	static const struct output_stream own = { .fd = -1 };
	char line[1024];
	va_list args;
	int n;

	n = snprintf(line, sizeof(line), "lbrun: ");
	va_start(args, fmt);
	vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, args);
	va_end(args);
	text_clean(line);
	n = (int)strlen(line);
	line[n++] = '\n';
	put_piece(o, &own, line, (size_t)n);
	flush(o);
}
