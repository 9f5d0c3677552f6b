/* SPDX-License-Identifier: MIT */
/* zip_check.c - walks a zip archive's directory, and holds each entry's bytes against its CRC-32.
 * Own code, because libzip would bring OpenSSL and three decompressors into every job; zlib does
 * the sums. */
#include "common/checkpoint/zip_check.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/text.h"

enum {
	END_BYTES = 22,
	END64_BYTES = 56,
	LOCATOR_BYTES = 20,
	ENTRY_BYTES = 46,
	LOCAL_BYTES = 30,
	COMMENT_MAX = 65535,
	CHUNK = 256 * 1024,
	NAME_SHOWN = 80,
	ARCHIVES_MAX = 1000000, /* behind each other in one file; more are not looked at */
	STORED = 0,
	DEFLATED = 8,
	IS_ENCRYPTED = 1,
	WIDE_ID = 1, /* of the extra field with 64-bit numbers */
};

#define SIGNATURE_END 0x06054b50u
#define SIGNATURE_END64 0x06064b50u
#define SIGNATURE_AT64 0x07064b50u
#define SIGNATURE_ENTRY 0x02014b50u
#define SIGNATURE_LOCAL 0x04034b50u

struct directory {
	int64_t begins; /* the archive; what it says of places is counted from here */
	int64_t at, bytes;
	uint64_t count;
};

struct entry {
	char name[NAME_SHOWN + 1]; /* its end, where it is longer */
	unsigned method, flags;
	uint32_t crc;
	uint64_t packed, unpacked, at;
	size_t record_bytes;
};

/* --- numbers ---------------------------------------------------------------------------------- */

static uint16_t u16(const unsigned char *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t u32(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static uint64_t u64(const unsigned char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static int read_at(int fd, void *out, size_t len, int64_t at, struct err *err)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (char *)out + done, len - done, at + (int64_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, "cannot be read");
		if (n == 0)
			return err_set(err, ERR_IO, "ends before its own directory says");
		done += (size_t)n;
	}
	return 0;
}

/* --- the directory ---------------------------------------------------------------------------- */

static int no_end(struct err *err)
{
	return err_set(err, ERR_IO, "a zip archive without its end: it was cut short");
}

/* The end record is the last thing in the file but for a comment. */
static int find_end(int fd, int64_t bytes, int64_t *at, unsigned char out[END_BYTES],
		    struct err *err)
{
	int64_t len = bytes < END_BYTES + COMMENT_MAX ? bytes : END_BYTES + COMMENT_MAX;
	unsigned char *tail;
	int rc = -1;

	if (bytes < END_BYTES)
		return no_end(err);
	if (read_at(fd, out, END_BYTES, bytes - END_BYTES, err) < 0)
		return -1;
	*at = bytes - END_BYTES;
	if (u32(out) == SIGNATURE_END && u16(out + 20) == 0)
		return 0;
	tail = xmalloc((size_t)len);
	if (read_at(fd, tail, (size_t)len, bytes - len, err) == 0) {
		for (int64_t i = len - END_BYTES; i >= 0 && rc < 0; i--) {
			if (u32(tail + i) != SIGNATURE_END ||
			    i + END_BYTES + u16(tail + i + 20) != len)
				continue;
			memcpy(out, tail + i, END_BYTES);
			*at = bytes - len + i;
			rc = 0;
		}
		if (rc < 0)
			no_end(err);
	}
	free(tail);
	return rc;
}

/* Archives of more than 4 GB or 65535 entries, and all of PyTorch's, have a second, wider end
 * record in front; *end_at becomes its place. */
static int widen(int fd, int64_t *end_at, struct directory *d, struct err *err)
{
	unsigned char locator[LOCATOR_BYTES] = { 0 }, end[END64_BYTES] = { 0 };
	int64_t at = *end_at - LOCATOR_BYTES - END64_BYTES;

	if (at < 0)
		return 0;
	if (read_at(fd, locator, sizeof(locator), at + END64_BYTES, err) < 0)
		return -1;
	if (u32(locator) != SIGNATURE_AT64)
		return 0;
	if (read_at(fd, end, sizeof(end), at, err) < 0 || u32(end) != SIGNATURE_END64 ||
	    u64(end + 48) > INT64_MAX || u64(end + 40) > INT64_MAX)
		return err_set(err, ERR_IO, "its zip directory is damaged");
	d->count = u64(end + 32);
	d->bytes = (int64_t)u64(end + 40);
	d->at = (int64_t)u64(end + 48);
	*end_at = at;
	return 0;
}

/* The last archive in these bytes: its directory stands right in front of its end, and so tells
 * where the archive begins. */
static int find_directory(int fd, int64_t bytes, struct directory *d, struct err *err)
{
	unsigned char end[END_BYTES] = { 0 };
	int64_t end_at = 0;

	if (find_end(fd, bytes, &end_at, end, err) < 0)
		return -1;
	*d = (struct directory){ .at = u32(end + 16),
				 .bytes = u32(end + 12),
				 .count = u16(end + 10) };
	if (widen(fd, &end_at, d, err) < 0)
		return -1;
	if (d->at > end_at || d->bytes > end_at - d->at ||
	    d->count > (uint64_t)d->bytes / ENTRY_BYTES)
		return err_set(err, ERR_IO, "its zip directory is damaged");
	d->begins = end_at - d->bytes - d->at;
	d->at += d->begins;
	return 0;
}

/* --- entries ---------------------------------------------------------------------------------- */

/* The 64-bit numbers stand in an extra field, in this order, each only where the 32 bits are all
 * set. */
static void widen_entry(const unsigned char *extra, size_t len, struct entry *e)
{
	uint64_t *const fields[] = { &e->unpacked, &e->packed, &e->at };
	size_t at = 4;

	while (len >= 4 && !(u16(extra) == WIDE_ID && (size_t)u16(extra + 2) + 4 <= len)) {
		size_t step = 4 + (size_t)u16(extra + 2);

		if (step > len)
			return;
		extra += step;
		len -= step;
	}
	if (len < 4)
		return;
	len = 4 + (size_t)u16(extra + 2);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (*fields[i] != UINT32_MAX || at + 8 > len)
			continue;
		*fields[i] = u64(extra + at);
		at += 8;
	}
}

static int read_entry(int fd, int64_t at, int64_t end, struct entry *e, struct err *err)
{
	unsigned char head[ENTRY_BYTES], *rest;
	size_t name_len, extra_len, shown;

	if (end - at < ENTRY_BYTES || read_at(fd, head, sizeof(head), at, err) < 0 ||
	    u32(head) != SIGNATURE_ENTRY)
		return err_set(err, ERR_IO, "its zip directory is damaged");
	name_len = u16(head + 28);
	extra_len = u16(head + 30);
	*e = (struct entry){
		.flags = u16(head + 8),
		.method = u16(head + 10),
		.crc = u32(head + 16),
		.packed = u32(head + 20),
		.unpacked = u32(head + 24),
		.at = u32(head + 42),
		.record_bytes = ENTRY_BYTES + name_len + extra_len + u16(head + 32),
	};
	if ((int64_t)e->record_bytes > end - at)
		return err_set(err, ERR_IO, "its zip directory is damaged");
	rest = xmalloc(name_len + extra_len + 1);
	if (read_at(fd, rest, name_len + extra_len, at + ENTRY_BYTES, err) < 0) {
		free(rest);
		return -1;
	}
	shown = name_len < NAME_SHOWN ? name_len : NAME_SHOWN;
	memcpy(e->name, rest + name_len - shown, shown);
	widen_entry(rest + name_len, extra_len, e);
	free(rest);
	return 0;
}

/* Where the entry's bytes begin; -1 with err where they do not lie in front of the directory. */
static int64_t find_data(int fd, const struct directory *d, const struct entry *e, struct err *err)
{
	unsigned char head[LOCAL_BYTES];
	uint64_t at;

	if (e->at > (uint64_t)(d->at - d->begins))
		return err_set(err, ERR_IO, "%s is not where the zip directory says", e->name);
	at = e->at + (uint64_t)d->begins;
	if ((uint64_t)d->at - at < LOCAL_BYTES ||
	    read_at(fd, head, sizeof(head), (int64_t)at, err) < 0 || u32(head) != SIGNATURE_LOCAL)
		return err_set(err, ERR_IO, "%s is not where the zip directory says", e->name);
	at += LOCAL_BYTES + u16(head + 26) + u16(head + 28);
	if (at > (uint64_t)d->at || e->packed > (uint64_t)d->at - at)
		return err_set(err, ERR_IO, "%s is longer than the file", e->name);
	return (int64_t)at;
}

/* --- their bytes ------------------------------------------------------------------------------ */

static bool is_late(struct look *look)
{
	if (look->deadline_ms > 0 && clock_mono_ms() >= look->deadline_ms)
		look->is_cut_short = true;
	return look->is_cut_short;
}

struct sum {
	uint64_t bytes;
	uLong crc;
};

static void add(struct sum *sum, const unsigned char *data, size_t len)
{
	sum->crc = crc32(sum->crc, data, (uInt)len);
	sum->bytes += len;
}

/* Inflates what is at in->next_in; false once the stream is damaged or longer than it may be. */
static bool inflate_chunk(z_stream *in, unsigned char *out, uint64_t max, struct sum *sum,
			  bool *ended)
{
	do {
		int rc;

		in->next_out = out;
		in->avail_out = CHUNK;
		rc = inflate(in, Z_NO_FLUSH);
		if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
			return false;
		add(sum, out, CHUNK - in->avail_out);
		*ended = rc == Z_STREAM_END;
		if (sum->bytes > max)
			return false;
	} while (!*ended && in->avail_out == 0);
	return true;
}

static int sum_entry(int fd, int64_t at, const struct entry *e, struct look *look, struct sum *sum,
		     struct err *err)
{
	unsigned char *in = xmalloc(2 * (size_t)CHUNK), *out = in + CHUNK;
	z_stream stream = { 0 };
	bool is_packed = e->method == DEFLATED, ended = false;
	int rc = is_packed && inflateInit2(&stream, -MAX_WBITS) != Z_OK ? -1 : 0;

	for (uint64_t left = e->packed; left > 0 && rc == 0 && !is_late(look);) {
		size_t len = left < CHUNK ? (size_t)left : CHUNK;

		rc = read_at(fd, in, len, at, err);
		stream.next_in = in;
		stream.avail_in = (uInt)len;
		if (rc == 0 && !is_packed)
			add(sum, in, len);
		else if (rc == 0 && !inflate_chunk(&stream, out, e->unpacked, sum, &ended))
			rc = err_set(err, ERR_IO, "%s is damaged", e->name);
		at += (int64_t)len;
		left -= len;
	}
	if (is_packed)
		inflateEnd(&stream);
	free(in);
	return rc;
}

/* PyTorch can be told to leave checksums out; it writes 0 then. */
static int check_bytes(int fd, int64_t at, const struct entry *e, struct look *look,
		       struct err *err)
{
	struct sum sum = { .crc = crc32(0, NULL, 0) };

	if ((e->method != STORED && e->method != DEFLATED) || (e->flags & IS_ENCRYPTED))
		return 0;
	if (sum_entry(fd, at, e, look, &sum, err) < 0)
		return -1;
	if (look->is_cut_short)
		return 0;
	if (sum.bytes != e->unpacked || (e->crc != 0 && sum.crc != e->crc))
		return err_set(err, ERR_IO, "%s differs from its checksum", e->name);
	return 0;
}

static int check_archive(int fd, const struct directory *d, struct look *look, struct err *err)
{
	uint64_t packed = 0;
	int64_t at = d->at;

	for (uint64_t i = 0; i < d->count && !is_late(look); i++) {
		struct entry e = { 0 };
		int64_t data;

		if (read_entry(fd, at, d->at + d->bytes, &e, err) < 0 ||
		    (data = find_data(fd, d, &e, err)) < 0)
			return -1;
		packed += e.packed;
		if (packed > (uint64_t)(d->at - d->begins)) /* entries that overlap: a bomb */
			return err_set(err, ERR_IO, "its zip entries overlap");
		if (look->is_deep && check_bytes(fd, data, &e, look, err) < 0)
			return -1;
		at += (int64_t)e.record_bytes;
	}
	return 0;
}

/* From the last archive to the first. */
int zip_check(int fd, int64_t bytes, struct look *look, struct err *err)
{
	struct directory d;

	for (int i = 0; bytes > 0 && i < ARCHIVES_MAX && !is_late(look); i++) {
		if (find_directory(fd, bytes, &d, err) < 0 || check_archive(fd, &d, look, err) < 0)
			return -1;
		bytes = d.begins;
	}
	return 0;
}

int64_t zip_head(int fd, int64_t bytes, const char *suffix, void *out, size_t size)
{
	struct directory d = { 0 };
	struct entry e = { 0 };
	int64_t at, data;

	if (find_directory(fd, bytes, &d, NULL) < 0)
		return -1;
	at = d.at;
	for (uint64_t i = 0; i < d.count; i++) {
		if (read_entry(fd, at, d.at + d.bytes, &e, NULL) < 0)
			return -1;
		at += (int64_t)e.record_bytes;
		if (e.method != STORED || !text_ends_with(e.name, suffix))
			continue;
		data = find_data(fd, &d, &e, NULL);
		if (data < 0)
			return -1;
		if (size > e.packed)
			size = (size_t)e.packed;
		return read_at(fd, out, size, data, NULL) == 0 ? (int64_t)size : -1;
	}
	return -1;
}

int zip_walk(int fd, int64_t bytes, int (*each)(const struct zip_entry *entry, void *arg),
	     void *arg, struct err *err)
{
	struct directory d = { 0 };
	struct entry e = { 0 };
	int rc = 0;

	if (find_directory(fd, bytes, &d, err) < 0)
		return -1;
	int64_t at = d.at;
	for (uint64_t i = 0; i < d.count && rc == 0; i++) {
		int64_t data;
		if (read_entry(fd, at, d.at + d.bytes, &e, err) < 0 ||
		    (data = find_data(fd, &d, &e, err)) < 0)
			return -1;
		const struct zip_entry found = { e.name,
						 e.method == STORED && !(e.flags & IS_ENCRYPTED),
						 (uint64_t)data, e.packed };
		rc = each(&found, arg);
		at += (int64_t)e.record_bytes;
	}
	return rc;
}
