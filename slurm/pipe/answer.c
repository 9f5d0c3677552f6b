/* SPDX-License-Identifier: MIT */
/* answer.c - an answer of a helper, from the operation that sets it to the line that lbd reads. */
#include "slurm/pipe/answer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/json.h"

/* Rows go out in pieces of this size, so that lbd reads while more are made. */
enum { ROWS_BYTES = 1 << 16 };

static int answers_fd = -1;

int answers_open(void)
{
	answers_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (answers_fd < 0)
		return -1;
	if (fcntl(STDERR_FILENO, F_GETFD) < 0) {
		int null = open("/dev/null", O_WRONLY);

		if (null < 0 || (null != STDERR_FILENO && dup2(null, STDERR_FILENO) < 0))
			return -1;
	}
	return dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ? -1 : 0;
}

int answer_set(struct answer *a, enum scheduler_result result, const char *fmt, ...)
{
	va_list ap;

	a->result = result;
	va_start(ap, fmt);
	vsnprintf(a->text, sizeof(a->text), fmt, ap);
	va_end(ap);
	return -1;
}

/* An answer that cannot be delivered has no reader: lbd is gone, or gave up on us. */
static void write_all(const char *text, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(answers_fd, text + done, len - done);

		if (n < 0 && errno != EINTR)
			exit(0);
		if (n > 0)
			done += (size_t)n;
	}
}

static void write_line(json_t *object)
{
	char *line = js_line(object);
	size_t len = strlen(line);

	line[len++] = '\n'; /* in place of the terminator: the length is known */
	write_all(line, len);
	free(line);
	json_decref(object);
}

void answer_acting(const struct answer *a)
{
	write_line(json_pack("{s:I,s:b}", "id", a->id, "acting", 1));
}

void answer_job(const struct answer *a, uint32_t job_id)
{
	write_line(
		json_pack("{s:I,s:b,s:I}", "id", a->id, "acting", 1, "job_id", (json_int_t)job_id));
}

static void write_rows(struct answer *a)
{
	write_all(a->rows.data, a->rows.len);
	a->rows.len = 0;
}

void answer_row(struct answer *a, const struct wire_row *row)
{
	wire_row_add(&a->rows, row);
	a->row_count++;
	if (a->rows.len >= ROWS_BYTES)
		write_rows(a);
}

void answer_write(struct answer *a)
{
	write_rows(a);
	buf_fini(&a->rows);
	js_set_int(a->body, "id", a->id);
	js_set_str(a->body, "result", wire_result_name(a->result));
	json_object_set_new(a->body, "text", js_bytes(a->text));
	write_line(a->body);
}
