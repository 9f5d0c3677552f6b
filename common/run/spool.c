/* SPDX-License-Identifier: MIT */
/* spool.c - appends lines to a spool, and reads the whole ones.
 *
 * The file may lie on NFS and the writer may die anywhere, so the format asks for nothing but
 * appends: a line counts once its newline is there. The writer keeps the other half of the bargain:
 * what it could not write whole it takes back, or a later line would be glued to half a line. */
#include "common/run/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

enum { CHUNK_BYTES = 256 * 1024 };
_Static_assert(CHUNK_BYTES > SPOOL_MAX_LINE_BYTES + 1, "a whole line must fit a chunk");

/* --- one line -------------------------------------------------------------------------------- */

static int check_envelope(const json_t *envelope, struct spool_line *out, struct err *err)
{
	int64_t version = js_int(envelope, "v", 0);
	const char *from = js_str(envelope, "from", "");

	if (version < 1)
		return err_set(err, ERR_USAGE, "no spool line");
	if (version > SPOOL_VERSION)
		return err_set(err, ERR_USAGE, "version %lld is newer than this program",
			       (long long)version);
	out->seq = js_int(envelope, "seq", 0);
	out->time_ms = js_int(envelope, "time_ms", -1);
	out->launch = js_int(envelope, "launch", -1);
	out->from_trainer = strcmp(from, "trainer") == 0;
	out->line = json_object_get(envelope, "line");
	if (out->seq < 1 || out->time_ms < 0 || out->launch < 0 || !json_is_object(out->line) ||
	    (!out->from_trainer && strcmp(from, "lbrun") != 0))
		return err_set(err, ERR_USAGE, "incomplete spool line");
	return 0;
}

/* spool_append puts the line last: its text runs to the brace that closes the envelope. */
static void find_text(const char *text, size_t len, struct spool_line *out)
{
	static const char key[] = ",\"line\":{";
	const char *found = memmem(text, len, key, sizeof(key) - 1);

	out->text = NULL;
	out->text_len = 0;
	if (found == NULL || text[len - 1] != '}' || text[len - 2] != '}')
		return;
	out->text = found + sizeof(key) - 2;
	out->text_len = len - 1 - (size_t)(out->text - text);
}

static bool take(const char **at, const char *end, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(end - *at) < len || memcmp(*at, word, len) != 0)
		return false;
	*at += len;
	return true;
}

static bool take_number(const char **at, const char *end, int64_t *out)
{
	enum { DIGITS = 18 }; /* of which an int64_t holds any */
	const char *first = *at;

	*out = 0;
	while (*at < end && **at >= '0' && **at <= '9' && *at - first < DIGITS)
		*out = 10 * *out + *(*at)++ - '0';
	return *at > first && (*first != '0' || *at == first + 1);
}

/* As spool_append writes it, to the letter: then only what it holds, out->text, needs a parser. */
static bool take_envelope(const char *text, size_t len, struct spool_line *out)
{
	const char *at = text, *end = text + len;
	int64_t version;

	if (!take(&at, end, "{\"v\":") || !take_number(&at, end, &version) ||
	    version != SPOOL_VERSION || !take(&at, end, ",\"seq\":") ||
	    !take_number(&at, end, &out->seq) || out->seq < 1 || !take(&at, end, ",\"time_ms\":") ||
	    !take_number(&at, end, &out->time_ms) || !take(&at, end, ",\"launch\":") ||
	    !take_number(&at, end, &out->launch) || !take(&at, end, ",\"from\":"))
		return false;
	out->from_trainer = take(&at, end, "\"trainer\"");
	if (!out->from_trainer && !take(&at, end, "\"lbrun\""))
		return false;
	if (!take(&at, end, ",\"line\":") || end - at < 3 || *at != '{' || end[-1] != '}')
		return false;
	out->text = at;
	out->text_len = (size_t)(end - 1 - at);
	return true;
}

/* What is to be released, with *out pointing into it; NULL with err. */
static json_t *parse_line(const char *text, size_t len, struct spool_line *out, struct err *err)
{
	json_t *envelope = NULL;

	out->step = NULL;
	if (len > SPOOL_MAX_LINE_BYTES) {
		err_set(err, ERR_USAGE, "line longer than %d bytes", SPOOL_MAX_LINE_BYTES);
		return NULL;
	}
	if (take_envelope(text, len, out))
		out->line = envelope = js_parse(out->text, out->text_len, NULL);
	if (envelope)
		return envelope;
	envelope = js_parse(text, len, err);
	if (envelope && check_envelope(envelope, out, err) < 0) {
		json_decref(envelope);
		envelope = NULL;
	}
	if (envelope)
		find_text(text, len, out);
	return envelope;
}

/* --- writing --------------------------------------------------------------------------------- */

/* seq of the last readable line before `end` (which stands behind a newline, or is 0). Lines that
 * are not readable are passed over backwards; -1 with errno. */
static int64_t last_seq(int fd, char *buf, int64_t end)
{
	while (end > 0) {
		struct spool_line line;
		int64_t start = file_line_start(fd, end - 1);
		int64_t len = end - 1 - start;
		json_t *envelope = NULL;

		if (start < 0)
			return -1;
		if (len <= SPOOL_MAX_LINE_BYTES) {
			ssize_t n = file_read_at(fd, buf, (size_t)len, start);

			if (n < 0)
				return -1;
			envelope = parse_line(buf, (size_t)n, &line, NULL);
		}
		if (envelope) {
			json_decref(envelope);
			return line.seq;
		}
		end = start;
	}
	return 0;
}

/* Cuts a torn tail off and finds where to go on. 0, or -1 with errno. */
static int pick_up(struct spool_writer *spool)
{
	char *buf = xmalloc(CHUNK_BYTES);
	struct stat st;
	int64_t end = -1;

	if (fstat(spool->fd, &st) == 0)
		end = file_cut_line(spool->fd, st.st_size);
	spool->seq = end < 0 ? -1 : last_seq(spool->fd, buf, end);
	free(buf);
	return spool->seq < 0 ? -1 : 0;
}

/* A crash must not forget that the file exists. */
static int sync_folder_of(const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? xstrndup(path, (size_t)(slash - path) + 1) : xstrdup(".");
	int rc = folder_sync(folder, err);

	free(folder);
	return rc;
}

int spool_writer_open(struct spool_writer *spool, const char *path, struct err *err)
{
	int flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

	*spool = (struct spool_writer){ .fd = open(path, flags, 0640) };
	if (spool->fd < 0)
		return err_errno(err, "%s", path);
	if (pick_up(spool) < 0)
		err_errno(err, "%s", path);
	else if (sync_folder_of(path, err) == 0)
		return 0;
	spool_writer_close(spool);
	return -1;
}

/* All or nothing; see the top of this file. */
static int append(struct spool_writer *spool, const char *line, size_t len, struct err *err)
{
	struct stat before;
	ssize_t n;

	if (fstat(spool->fd, &before) < 0)
		return err_errno(err, "spool");
	do
		n = write(spool->fd, line, len);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)len)
		return 0;
	/* A short write has no errno of its own; on files it means that space ran out. */
	if (n >= 0)
		errno = ENOSPC;
	err_errno(err, "spool");
	if (n > 0 && ftruncate(spool->fd, before.st_size) < 0) {
		err_wrap(err, "half a line could not be taken back, the spool is closed");
		spool_writer_close(spool);
	}
	return -1;
}

int spool_append(struct spool_writer *spool, int64_t launch, bool from_trainer, const json_t *line,
		 struct err *err)
{
	return spool_append_at(spool, clock_wall_ms(), launch, from_trainer, line, err);
}

int spool_append_at(struct spool_writer *spool, int64_t time_ms, int64_t launch, bool from_trainer,
		    const json_t *line, struct err *err)
{
	int64_t next;
	char *body, *text;
	size_t len;
	int rc;

	if (spool->fd < 0)
		return err_set(err, ERR_IO, "spool: not open");
	body = js_line(line);
	next = spool->seq + 1;
	text = xasprintf("{\"v\":%d,\"seq\":%lld,\"time_ms\":%lld,\"launch\":%lld,\"from\":\"%s\","
			 "\"line\":%s}\n",
			 SPOOL_VERSION, (long long)next, (long long)time_ms, (long long)launch,
			 from_trainer ? "trainer" : "lbrun", body);
	free(body);
	len = strlen(text);
	if (len - 1 > SPOOL_MAX_LINE_BYTES)
		rc = err_set(err, ERR_USAGE, "spool: a line of %zu bytes is too long", len);
	else
		rc = append(spool, text, len, err);
	free(text);
	if (rc == 0)
		spool->seq = next;
	return rc;
}

int spool_sync(struct spool_writer *spool, struct err *err)
{
	return fdatasync(spool->fd) < 0 ? err_errno(err, "spool") : 0;
}

void spool_writer_close(struct spool_writer *spool)
{
	if (spool->fd >= 0)
		close(spool->fd);
	spool->fd = -1;
}

/* --- reading --------------------------------------------------------------------------------- */

struct reader {
	const char *path;
	int fd;
	char *buf;
	size_t room; /* of it: a chunk, or all that the file holds yet */
	int64_t *offset;
	int64_t start, stop; /* where this call began; where it ends at the latest */
	bool wants_plain;    /* steps without a tree */
	int (*on_line)(const struct spool_line *line, void *arg);
	void (*on_bad)(int64_t offset, const struct err *why, void *arg);
	void *arg;
};

static void tell_bad(const struct reader *r, const struct err *why)
{
	if (r->on_bad)
		r->on_bad(*r->offset, why, r->arg);
}

static bool is_plain_step(const char *text, size_t len, struct spool_line *out,
			  struct step_line *step)
{
	if (len > SPOOL_MAX_LINE_BYTES || !take_envelope(text, len, out) || !out->from_trainer ||
	    !step_line_read(out->text, out->text_len, step))
		return false;
	out->line = NULL;
	out->step = step;
	return true;
}

static int deliver(const struct reader *r, const char *text, size_t len, struct err *err)
{
	struct step_line step;
	struct spool_line line;
	struct err why = { 0 };
	bool is_plain = r->wants_plain && is_plain_step(text, len, &line, &step);
	json_t *envelope = is_plain ? NULL : parse_line(text, len, &line, &why);
	int rc = 0;

	if (!envelope && !is_plain) {
		tell_bad(r, &why);
		return 0;
	}
	if (r->on_line(&line, r->arg) != 0)
		rc = err_set(err, ERR_INTERNAL, "%s: reader stopped at line %lld", r->path,
			     (long long)line.seq);
	json_decref(envelope);
	return rc;
}

/* Offset behind the newline that ends the overlong line at *offset, -1 when it has none yet or
 * cannot be read. */
static int64_t end_of_long_line(const struct reader *r)
{
	for (int64_t at = *r->offset;;) {
		at = file_next_data(r->fd, at);
		ssize_t n = file_read_at(r->fd, r->buf, CHUNK_BYTES, at);
		const char *newline = n > 0 ? memchr(r->buf, '\n', (size_t)n) : NULL;

		if (newline)
			return at + (newline - r->buf) + 1;
		if (n <= 0)
			return -1;
		at += n;
	}
}

/* 1 when a line without end was passed over, 0 when its end is still to come. */
static int skip_long_line(const struct reader *r)
{
	int64_t end = end_of_long_line(r);
	struct err why = { 0 };

	if (end < 0)
		return 0;
	err_set(&why, ERR_USAGE, "line longer than %d bytes", SPOOL_MAX_LINE_BYTES);
	tell_bad(r, &why);
	*r->offset = end;
	return 1;
}

/* Delivers the lines of one chunk. 1 go on, 0 end of what can be read, -1 with err. */
static int read_some(const struct reader *r, struct err *err)
{
	ssize_t n = file_read_at(r->fd, r->buf, r->room, *r->offset);
	const char *at = r->buf, *end = r->buf + (n > 0 ? n : 0);
	const char *newline;

	if (n < 0)
		return err_errno(err, "%s", r->path);
	while (*r->offset < r->stop && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		/* One line at least, or a long one would never be got past. */
		if (*r->offset + (newline + 1 - at) > r->stop && *r->offset > r->start)
			return 0;
		if (deliver(r, at, (size_t)(newline - at), err) < 0)
			return -1;
		*r->offset += newline + 1 - at;
		at = newline + 1;
	}
	if (*r->offset >= r->stop)
		return 0;
	if (at == r->buf && n == CHUNK_BYTES)
		return skip_long_line(r);
	return n == CHUNK_BYTES;
}

/* -1 without err: there is none yet. */
static int open_spool(const char *path, int64_t offset, int64_t *more, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	*more = 0;
	if (fd < 0)
		return errno == ENOENT ? -1 : err_errno(err, "%s", path);
	if (fstat(fd, &st) < 0) {
		err_errno(err, "%s", path);
	} else if (!S_ISREG(st.st_mode)) {
		err_set(err, ERR_IO, "%s: not a regular file", path);
	} else if (st.st_size < offset) {
		err_set(err, ERR_IO,
			"%s: %lld bytes, shorter than what was read of it before (%lld)", path,
			(long long)st.st_size, (long long)offset);
	} else {
		*more = st.st_size - offset;
		return fd;
	}
	close(fd);
	return -1;
}

static int64_t read_lines(struct reader r, int64_t max_bytes, struct err *err)
{
	int64_t start = *r.offset, more;
	struct err why = { 0 };
	int rc = 0;

	r.fd = open_spool(r.path, start, &more, &why);
	if (r.fd < 0)
		return why.code == ERR_NONE ? 0 : err_set(err, why.code, "%s", why.text);
	if (max_bytes < 1)
		max_bytes = 1;
	r.start = start;
	r.stop = max_bytes > INT64_MAX - start ? INT64_MAX : start + max_bytes;
	r.room = more < CHUNK_BYTES ? (size_t)more : CHUNK_BYTES;
	if (more > 0) {
		r.buf = xmalloc(r.room);
		do
			rc = read_some(&r, err);
		while (rc > 0);
		free(r.buf);
	}
	close(r.fd);
	return rc < 0 ? -1 : *r.offset - start;
}

int64_t spool_read(const char *path, int64_t *offset, int64_t max_bytes,
		   int (*on_line)(const struct spool_line *line, void *arg),
		   void (*on_bad)(int64_t offset, const struct err *why, void *arg), void *arg,
		   struct err *err)
{
	const struct reader r = {
		.path = path, .offset = offset, .on_line = on_line, .on_bad = on_bad, .arg = arg
	};

	return read_lines(r, max_bytes, err);
}

int64_t spool_read_plain(const char *path, int64_t *offset, int64_t max_bytes,
			 int (*on_line)(const struct spool_line *line, void *arg),
			 void (*on_bad)(int64_t offset, const struct err *why, void *arg),
			 void *arg, struct err *err)
{
	const struct reader r = {
		.path = path,
		.offset = offset,
		.on_line = on_line,
		.on_bad = on_bad,
		.arg = arg,
		.wants_plain = true,
	};

	return read_lines(r, max_bytes, err);
}

char *spool_launch_from(const json_t *line)
{
	int64_t step = js_int(line, "resumed_from_step", -1);
	const char *path = js_str(line, "resumed_from", NULL);

	if (step >= 0)
		return xasprintf("from step %lld", (long long)step);
	return xasprintf("from %s", path ? path_base(path) : "scratch");
}
