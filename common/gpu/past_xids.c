/* SPDX-License-Identifier: MIT */
/* past_xids.c - the kernel's log by way of whoever has it; lines like
 *   6,1234,56789012,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=99, GPU has fallen off the bus.
 *   [   56.789012] n1 kernel: NVRM: Xid ...
 *   Nov  3 10:00:00 n1 kernel: [   56.789012] NVRM: Xid ... */
#include "common/gpu/past_xids.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_BYTES = 16384 };
static const double CLOCK_DRIFT = 1e-3;

struct reading {
	struct past_xids *out;
	double now_s; /* since the machine was started */
	size_t lines;
};

/* --- a line ----------------------------------------------------------------------------------- */

/* Seconds since the start of the machine; -1: the line does not tell. */
static double stamp_of(const char *line)
{
	const char *kernel = strstr(line, "kernel: ["), *at = kernel ? strchr(kernel, '[') : line;
	size_t prefix = strspn(line, "0123456789,"); /* level, number, microseconds */
	char *end;

	if (*at == '[') {
		double s = strtod(at + 1, &end);
		return *end == ']' ? s : -1;
	}
	for (int i = 0; i < 2; i++) {
		at = memchr(at, ',', (size_t)(line + prefix - at));
		if (!at++)
			return -1;
	}
	double us = strtod(at, &end);
	return *end == ',' ? us / 1e6 : -1;
}

static struct past_xid *place_of(struct past_xids *out, const struct past_xid *x)
{
	size_t i = 0;

	while (i < out->count &&
	       (out->xid[i].xid != x->xid || strcmp(out->xid[i].pci, x->pci) != 0))
		i++;
	if (i == PAST_XIDS_MAX)
		i = 0;
	else if (i == out->count)
		return &out->xid[out->count++];
	/* behind the others: it is the newest */
	memmove(&out->xid[i], &out->xid[i + 1], (out->count - i - 1) * sizeof(*x));
	return &out->xid[out->count - 1];
}

/* The kernel's own clock, that of its stamps, is not set right by NTP. */
static bool is_to_come(const struct reading *r, double stamp)
{
	return stamp > r->now_s * (1 + CLOCK_DRIFT) + 1;
}

static void take_line(struct reading *r, const char *line)
{
	static const char said[] = "NVRM: Xid (";
	const char *at = strstr(line, said), *end;
	double stamp = stamp_of(line), age = stamp > r->now_s ? 0 : r->now_s - stamp;
	struct past_xid x = { .age_s = stamp < 0 ? -1 : age };

	if (is_to_come(r, stamp)) /* of an earlier start of the machine */
		return;
	if (r->lines++ == 0)
		r->out->reach_s = x.age_s;
	if (!at)
		return;
	at += strlen(said);
	at += strncmp(at, "PCI:", 4) == 0 ? 4 : 0;
	end = strstr(at, "): ");
	if (!end || (x.xid = strtol(end + 3, NULL, 10)) <= 0)
		return;
	snprintf(x.pci, sizeof(x.pci), "%.*s", (int)(end - at), at);
	*place_of(r->out, &x) = x;
}

/* --- who has the log -------------------------------------------------------------------------- */

static void say_why(struct past_xids *out, const char *source, const char *why)
{
	size_t used = strlen(out->why);

	snprintf(out->why + used, sizeof(out->why) - used, "%s%s: %s", used ? "; " : "", source,
		 why);
}

static void take_from(struct reading *r, const char *source)
{
	snprintf(r->out->source, sizeof(r->out->source), "%s", source);
}

/* The kernel gives one record at a time, and an error where it has thrown away the one that was
 * next. */
static void read_records(struct reading *r, int fd)
{
	char record[RECORD_BYTES];
	ssize_t got;

	while ((got = read(fd, record, sizeof(record) - 1)) > 0 || (got < 0 && errno == EPIPE)) {
		record[got > 0 ? got : 0] = '\0';
		if (got > 0)
			take_line(r, record);
	}
}

static void read_ring(struct reading *r)
{
	static const char source[] = "/dev/kmsg";
	int fd = open(source, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		read_records(r, fd);
	if (r->lines > 0)
		take_from(r, source);
	else
		say_why(r->out, source, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static bool ends_with(const char *text, size_t length, const char *end)
{
	size_t bytes = strlen(end);

	return length >= bytes && memcmp(text + length - bytes, end, bytes) == 0;
}

/* The kernel's first line after a start of the machine. */
static bool begins_start(const char *line)
{
	const char *said = strstr(line, "Linux version ");
	size_t before = said ? (size_t)(said - line) : 0;

	return ends_with(line, before, "] ") || ends_with(line, before, "kernel: ") ||
	       ends_with(line, before, ";");
}

/* from_all: also lines of other programs. */
static void read_lines(struct reading *r, FILE *from, bool from_all)
{
	char *line = NULL;
	size_t room = 0;

	while (from && getline(&line, &room, from) > 0) {
		if (begins_start(line)) { /* what was before is of another time */
			r->lines = 0;
			r->out->count = 0;
		}
		if (!from_all || strstr(line, "kernel:"))
			take_line(r, line);
	}
	free(line);
}

static void read_file(struct reading *r, const char *path, bool from_all)
{
	FILE *from = fopen(path, "re");

	if (!from) {
		say_why(r->out, path, strerror(errno));
		return;
	}
	read_lines(r, from, from_all);
	fclose(from);
	if (r->lines > 0 || !from_all)
		take_from(r, path);
	else
		say_why(r->out, path, "no line of the kernel");
}

static void become_journalctl(int to)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0 && dup2(to, STDOUT_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0)
		execlp("journalctl", "journalctl", "-k", "-b", "-q", "--no-pager", "-o",
		       "short-monotonic", (char *)NULL);
	_exit(127);
}

/* Who may not read it is given an empty one. */
static void read_journal(struct reading *r)
{
	static const char source[] = "the journal";
	int ends[2];
	pid_t pid = -1;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return;
	pid = fork();
	if (pid == 0)
		become_journalctl(ends[1]);
	close(ends[1]);
	FILE *from = fdopen(ends[0], "r");
	read_lines(r, pid > 0 ? from : NULL, false);
	if (from)
		fclose(from);
	else
		close(ends[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (r->lines > 0)
		take_from(r, source);
	else
		say_why(r->out, source, "gives us no line of the kernel");
}

void past_xids_read(struct past_xids *out, const char *file)
{
	static const char *const files[] = { "/var/log/kern.log", "/var/log/messages",
					     "/var/log/syslog" };
	struct timespec now;
	struct reading r = { .out = out };

	*out = (struct past_xids){ .reach_s = -1 };
	clock_gettime(CLOCK_MONOTONIC, &now);
	r.now_s = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	if (file) {
		read_file(&r, file, false);
		return;
	}
	read_ring(&r);
	if (!out->source[0])
		read_journal(&r);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && !out->source[0]; i++)
		read_file(&r, files[i], true);
}
