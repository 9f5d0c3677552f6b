/* SPDX-License-Identifier: MIT */
/* documents.c - a file's bytes as they come, cut where documents end. */
#include "worker/lbworker/text/documents.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/base/json.h"
#include "common/base/text.h"
#include "common/base/zst.h"

enum { READ_BYTES = 1 << 18, MAX_DOCUMENT = 1 << 30 };

struct cutting {
	const char *path;
	const char *field;
	const char *separator; /* NULL: the file is one document */
	size_t separator_len;
	struct buf rest; /* of a document that is not complete */
	size_t searched; /* of it without finding a separator */
	uint64_t number, from;
	int (*each)(const struct document *document, void *arg);
	void *arg;
	struct err *err;
	bool has_begun;
	int rc; /* what `each` said last */
};

/* What begins so is read by nobody here, whatever it is called, and within .gz and .zst, too. */
static const struct magic {
	const char *bytes;
	size_t at;
	const char *what;
} magics[] = {
	{ "PAR1", 0, "a Parquet file" },
	{ "PK\3\4", 0, "a ZIP archive" },
	{ "%PDF-", 0, "a PDF file" },
	{ "\xFD"
	  "7zXZ",
	  0, "an xz file" },
	{ "BZh", 0, "a bzip2 file" },
	{ "ARROW1", 0, "an Arrow file" },
	{ "\xFF\xFF\xFF\xFF", 0, "an Arrow file" }, /* as datasets.save_to_disk writes them */
	{ "ustar", 257, "a tar archive" },
	{ "\xFF\xFE", 0, "text in UTF-16 (iconv -f UTF-16 -t UTF-8 helps)" },
	{ "\xFE\xFF", 0, "text in UTF-16 (iconv -f UTF-16 -t UTF-8 helps)" },
};

const char *documents_alien(const char *bytes, size_t count)
{
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		size_t len = strlen(magics[i].bytes), at = magics[i].at;
		if (count >= at + len && memcmp(bytes + at, magics[i].bytes, len) == 0)
			return magics[i].what;
	}
	return NULL;
}

static bool is_blank(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr(" \t\r\n", bytes[i]) || bytes[i] == '\0')
			return false;
	return true;
}

static const char BYTE_ORDER_MARK[] = "\xEF\xBB\xBF";
enum { MARK_BYTES = sizeof(BYTE_ORDER_MARK) - 1 };

/* Empty lines between those of JSON are nothing, nor is a mark before the first. */
static int hand_over(struct cutting *c, const char *bytes, size_t len)
{
	if (c->field && c->number == 0 && len >= MARK_BYTES &&
	    memcmp(bytes, BYTE_ORDER_MARK, MARK_BYTES) == 0) {
		bytes += MARK_BYTES;
		len -= MARK_BYTES;
	}
	const struct document d = { bytes, len, c->path, c->number, c->field };
	bool is_one = !c->field || !is_blank(bytes, len);

	if (c->number++ < c->from || !is_one)
		return 0;
	c->rc = c->each(&d, c->arg);
	return c->rc;
}

static int take(const char *data, size_t len, void *arg)
{
	struct cutting *c = arg;
	const char *what = c->has_begun ? NULL : documents_alien(data, len);
	size_t at = 0;

	c->has_begun = true;
	if (what) { /* a pipe: files have been looked at before */
		c->rc = err_set(c->err, ERR_USAGE, DOCUMENTS_ALIEN, c->path, what);
		return c->rc;
	}
	if (buf_add(&c->rest, data, len)) {
		c->rc = err_set(c->err, ERR_USAGE, "%s: document %" PRIu64 " is larger than 1 GiB",
				c->path, c->number + 1);
		return c->rc;
	}
	while (c->separator) {
		size_t begin = c->searched > at ? c->searched : at;
		const char *end = memmem(c->rest.data + begin, c->rest.len - begin, c->separator,
					 c->separator_len);
		if (!end)
			break;
		if (hand_over(c, c->rest.data + at, (size_t)(end - c->rest.data) - at))
			return c->rc;
		at = c->searched = (size_t)(end - c->rest.data) + c->separator_len;
	}
	if (at > 0)
		buf_drop(&c->rest, at);
	c->searched = c->rest.len >= c->separator_len && c->separator
			      ? c->rest.len - c->separator_len + 1
			      : 0;
	return 0;
}

/* What is behind the last separator: a document, unless it is nothing. */
static int finish(struct cutting *c)
{
	if (c->rc == 0 && (c->rest.len > 0 || (!c->separator && c->number == 0)))
		hand_over(c, c->rest.data ? c->rest.data : "", c->rest.len);
	return c->rc;
}

/* What inflate() makes of the input in one call; false: it wants more. Behind a member that is over
 * comes another one, or zeros. Nothing else is an end: a damaged header would hide the rest. */
static bool unpack(struct cutting *c, z_stream *z, char *to, bool *is_over)
{
	if (*is_over) {
		for (; z->avail_in > 0 && *z->next_in == 0; z->avail_in--)
			z->next_in++;
		if (z->avail_in == 0 || inflateReset(z) != Z_OK)
			return false;
	}
	z->next_out = (unsigned char *)to;
	z->avail_out = READ_BYTES;
	int rc = inflate(z, Z_NO_FLUSH);
	*is_over = rc == Z_STREAM_END;
	if (rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR)
		take(to, READ_BYTES - z->avail_out, c);
	else
		c->rc = err_set(c->err, ERR_IO,
				"%s: is damaged, or has what is no gzip behind its end: %s",
				c->path, z->msg ? z->msg : "no memory");
	return c->rc == 0 && (z->avail_in > 0 || z->avail_out == 0);
}

/* bytes: the first `count`, and room for as many as are read at once, twice. */
static void read_gzip(struct cutting *c, FILE *in, char *bytes, size_t count)
{
	z_stream z = { 0 };
	bool is_over = false;

	if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) {
		c->rc = err_set(c->err, ERR_IO, "%s: no memory", c->path);
		return;
	}
	for (; c->rc == 0 && count > 0; count = fread(bytes, 1, READ_BYTES, in)) {
		z.next_in = (unsigned char *)bytes;
		z.avail_in = (unsigned)count;
		while (unpack(c, &z, bytes + READ_BYTES, &is_over))
			;
	}
	if (c->rc == 0 && !is_over && !ferror(in))
		c->rc = err_set(c->err, ERR_IO, "%s: is cut short", c->path);
	inflateEnd(&z);
}

/* By what it begins with, not by its name: a browser may have unpacked it. Of zstd that is told, as
 * it would be read as text. */
static int read_plain(struct cutting *c)
{
	FILE *in = fopen(c->path, "rbe");
	char *bytes = in ? xmalloc(2UL * READ_BYTES) : NULL;

	if (!in)
		return err_errno(c->err, "%s", c->path);
	size_t count = fread(bytes, 1, READ_BYTES, in);
	if (count > 1 && memcmp(bytes, "\x1F\x8B", 2) == 0)
		read_gzip(c, in, bytes, count);
	else if (count > 3 && memcmp(bytes, "\x28\xB5\x2F\xFD", 4) == 0)
		c->rc = err_set(c->err, ERR_USAGE, "%s: is zstd by another name than *.zst",
				c->path);
	else
		for (; c->rc == 0 && count > 0; count = fread(bytes, 1, READ_BYTES, in))
			take(bytes, count, c);
	if (c->rc == 0 && ferror(in))
		c->rc = err_errno(c->err, "%s", c->path);
	fclose(in);
	free(bytes);
	return c->rc;
}

struct first {
	char *bytes;
	size_t count, room;
};

static int take_first(const char *data, size_t len, void *arg)
{
	struct first *f = arg;
	size_t taken = len < f->room - f->count ? len : f->room - f->count;

	memcpy(f->bytes + f->count, data, taken);
	f->count += taken;
	return f->count == f->room;
}

size_t documents_begin(const char *path, char *bytes, size_t room)
{
	struct first f = { .bytes = bytes, .room = room };
	struct err err = { 0 };

	if (text_ends_with(path, ".zst")) {
		zst_read(path, take_first, &f, &err);
		return f.count;
	}
	gzFile in = gzopen(path, "rbe"); /* reads what is not packed, too */
	int count = in ? gzread(in, bytes, (unsigned)room) : 0;
	if (in)
		gzclose(in);
	return count > 0 ? (size_t)count : 0;
}

static const char *field_of(const char *path, const struct documents_rules *rules)
{
	char *name = xstrdup(path);
	size_t len = strlen(name);

	if (rules->field || rules->separator) {
		free(name);
		return rules->field;
	}
	if (text_ends_with(name, ".gz"))
		name[len - 3] = '\0';
	else if (text_ends_with(name, ".zst"))
		name[len - 4] = '\0';
	bool is_json = text_ends_with(name, ".jsonl") || text_ends_with(name, ".ndjson");
	free(name);
	return is_json ? "text" : NULL;
}

int documents_read(const char *path, const struct documents_rules *rules, uint64_t from,
		   int (*each)(const struct document *document, void *arg), void *arg,
		   struct err *err)
{
	struct cutting c = { .path = path,
			     .field = field_of(path, rules),
			     .from = from,
			     .each = each,
			     .arg = arg,
			     .err = err };

	c.separator = c.field ? "\n" : rules->separator;
	c.separator_len = c.separator ? strlen(c.separator) : 0;
	buf_init(&c.rest, MAX_DOCUMENT + 1UL);
	if (!text_ends_with(path, ".zst"))
		read_plain(&c);
	else if (zst_read(path, take, &c, err) && c.rc == 0)
		c.rc = -1;
	finish(&c);
	buf_fini(&c.rest);
	return c.rc;
}

int document_text(const struct document *d, struct buf *room, const char **text, size_t *len,
		  struct err *err)
{
	*text = d->bytes;
	*len = d->len;
	if (!d->field)
		return 0;
	json_t *line = js_parse_data(d->bytes, d->len, err);
	const json_t *value = json_object_get(line, d->field);
	int rc = 0;

	room->len = 0;
	if (!line)
		rc = err_wrap(err, "%s:%" PRIu64, d->path, d->number + 1);
	else if (!json_is_string(value))
		rc = err_set(err, ERR_USAGE, "%s:%" PRIu64 ": %.40s: %s", d->path, d->number + 1,
			     d->field, value ? "is no text" : "there is no such field");
	else
		rc = buf_add(room, json_string_value(value), json_string_length(value));
	*text = room->data;
	*len = room->len;
	json_decref(line);
	return rc;
}
