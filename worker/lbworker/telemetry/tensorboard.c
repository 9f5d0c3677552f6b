/* SPDX-License-Identifier: MIT */
/* tensorboard.c - the protobuf wire format by hand: a key is number << 3 | type, where type 0 is a
 * varint, 1 eight bytes, 2 a length and bytes, 5 four bytes. */
#include "worker/lbworker/telemetry/tensorboard.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/telemetry/crc32c.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };
enum {
	EVENT_WALL_TIME = 1,
	EVENT_STEP = 2,
	EVENT_FILE_VERSION = 3,
	EVENT_SUMMARY = 5,
	EVENT_SESSION_LOG = 7
};
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_HISTO = 5 };
enum { LOG_STATUS = 1, STATUS_START = 1 };
enum { HISTO_MIN = 1, HISTO_MAX, HISTO_NUM, HISTO_SUM, HISTO_SQUARES, HISTO_LIMITS, HISTO_COUNTS };
enum { FOLDER_MODE = 0755, EVENT_BYTES_MAX = 1 << 20 };

struct tensorboard {
	FILE *out; /* NULL: failed before */
	char *path;
};

/* --- wire format ---------------------------------------------------------------------------- */

static void put_varint(struct buf *b, uint64_t value)
{
	do {
		unsigned char byte = value & 0x7f;
		value >>= 7;
		byte |= value ? 0x80 : 0;
		(void)buf_add(b, &byte, 1);
	} while (value);
}

static void put_key(struct buf *b, unsigned number, unsigned wire)
{
	put_varint(b, number << 3 | wire);
}

static void put_bytes(struct buf *b, unsigned number, const void *bytes, size_t count)
{
	put_key(b, number, WIRE_BYTES);
	put_varint(b, count);
	(void)buf_add(b, bytes, count);
}

static void put_double(struct buf *b, unsigned number, double value)
{
	put_key(b, number, WIRE_FIXED64);
	(void)buf_add(b, &value, sizeof(value));
}

static void put_float(struct buf *b, unsigned number, float value)
{
	put_key(b, number, WIRE_FIXED32);
	(void)buf_add(b, &value, sizeof(value));
}

static void start_event(struct buf *b, int64_t step)
{
	buf_init(b, EVENT_BYTES_MAX);
	put_double(b, EVENT_WALL_TIME, (double)clock_wall_ms() * 1e-3);
	put_key(b, EVENT_STEP, WIRE_VARINT);
	put_varint(b, (uint64_t)step);
}

static void put_scalar(struct buf *summary, const struct tb_scalar *scalar)
{
	struct buf value;

	buf_init(&value, EVENT_BYTES_MAX);
	put_bytes(&value, VALUE_TAG, scalar->tag, strlen(scalar->tag));
	put_float(&value, VALUE_SIMPLE, (float)scalar->value);
	put_bytes(summary, SUMMARY_VALUE, value.data, value.len);
	buf_fini(&value);
}

/* --- records -------------------------------------------------------------------------------- */

static uint32_t masked_crc(const void *bytes, size_t count)
{
	uint32_t crc = crc32c(bytes, count);
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* Takes the event. */
static void write_record(struct tensorboard *tb, struct buf *event)
{
	uint64_t length = event->len;
	uint32_t length_crc = masked_crc(&length, sizeof(length));
	uint32_t data_crc = masked_crc(event->data, event->len);
	bool good = tb->out && fwrite(&length, sizeof(length), 1, tb->out) == 1 &&
		    fwrite(&length_crc, sizeof(length_crc), 1, tb->out) == 1 &&
		    fwrite(event->data, event->len, 1, tb->out) == 1 &&
		    fwrite(&data_crc, sizeof(data_crc), 1, tb->out) == 1 && fflush(tb->out) == 0;

	buf_fini(event);
	if (good || !tb->out)
		return;
	log_warn("%s: %s; nothing more goes there", tb->path, strerror(errno));
	(void)fclose(tb->out);
	tb->out = NULL;
}

static void write_head(struct tensorboard *tb, int64_t first_step)
{
	static const char version[] = "brain.Event:2";
	struct buf event, log;

	start_event(&event, 0);
	put_bytes(&event, EVENT_FILE_VERSION, version, sizeof(version) - 1);
	write_record(tb, &event);

	start_event(&event, first_step);
	buf_init(&log, EVENT_BYTES_MAX);
	put_key(&log, LOG_STATUS, WIRE_VARINT);
	put_varint(&log, STATUS_START);
	put_bytes(&event, EVENT_SESSION_LOG, log.data, log.len);
	buf_fini(&log);
	write_record(tb, &event);
}

struct tensorboard *tensorboard_open(const char *folder, int64_t first_step, struct err *err)
{
	struct tensorboard *tb;
	char host[64];

	if (folder_make(folder, FOLDER_MODE, err))
		return NULL;
	if (gethostname(host, sizeof(host)) != 0)
		host[0] = '\0';
	host[sizeof(host) - 1] = '\0';
	tb = xcalloc(1, sizeof(*tb));
	tb->path = path_join("%s/events.out.tfevents.%010" PRId64 ".%s.%ld", folder,
			     clock_wall_ms() / 1000, host, (long)getpid());
	tb->out = fopen(tb->path, "wbe");
	if (!tb->out) {
		err_errno(err, "%s", tb->path);
		tensorboard_close(tb);
		return NULL;
	}
	write_head(tb, first_step);
	return tb;
}

void tensorboard_close(struct tensorboard *tb)
{
	if (!tb)
		return;
	if (tb->out && fclose(tb->out) != 0)
		log_warn("%s: %s", tb->path, strerror(errno));
	free(tb->path);
	free(tb);
}

void tensorboard_add(struct tensorboard *tb, int64_t step, const struct tb_scalar *scalars,
		     size_t count)
{
	struct buf event, summary;

	start_event(&event, step);
	buf_init(&summary, EVENT_BYTES_MAX);
	for (size_t i = 0; i < count; i++)
		if (isfinite(scalars[i].value))
			put_scalar(&summary, &scalars[i]);
	put_bytes(&event, EVENT_SUMMARY, summary.len ? summary.data : "", summary.len);
	buf_fini(&summary);
	write_record(tb, &event);
}

/* --- histograms ------------------------------------------------------------------------------ */

/* The middle of a bin stands for what is in it. */
static void put_sums(struct buf *histo, const struct tb_histogram *h, size_t from, size_t to)
{
	double number = 0, sum = 0, squares = 0;

	for (size_t i = from; i < to; i++) {
		double middle = h->first + (double)i + 0.5, count = (double)h->count[i];
		number += count;
		sum += count * middle;
		squares += count * middle * middle;
	}
	put_double(histo, HISTO_MIN, h->first + (double)from);
	put_double(histo, HISTO_MAX, h->first + (double)to);
	put_double(histo, HISTO_NUM, number);
	put_double(histo, HISTO_SUM, sum);
	put_double(histo, HISTO_SQUARES, squares);
}

static void put_bins(struct buf *histo, const struct tb_histogram *h, size_t from, size_t to)
{
	struct buf limits, counts;

	buf_init(&limits, EVENT_BYTES_MAX);
	buf_init(&counts, EVENT_BYTES_MAX);
	for (size_t i = from; i < to; i++) {
		double limit = h->first + (double)i + 1, count = (double)h->count[i];
		(void)buf_add(&limits, &limit, sizeof(limit));
		(void)buf_add(&counts, &count, sizeof(count));
	}
	put_bytes(histo, HISTO_LIMITS, limits.data, limits.len);
	put_bytes(histo, HISTO_COUNTS, counts.data, counts.len);
	buf_fini(&limits);
	buf_fini(&counts);
}

void tensorboard_add_histogram(struct tensorboard *tb, int64_t step, const struct tb_histogram *h)
{
	struct buf event, summary, value, histo;
	size_t from = 0, to = h->bins;

	while (from < to && h->count[from] == 0)
		from++;
	while (to > from && h->count[to - 1] == 0)
		to--;
	if (from == to)
		return;
	buf_init(&histo, EVENT_BYTES_MAX);
	put_sums(&histo, h, from, to);
	put_bins(&histo, h, from, to);
	buf_init(&value, EVENT_BYTES_MAX);
	put_bytes(&value, VALUE_TAG, h->tag, strlen(h->tag));
	put_bytes(&value, VALUE_HISTO, histo.data, histo.len);
	buf_init(&summary, EVENT_BYTES_MAX);
	put_bytes(&summary, SUMMARY_VALUE, value.data, value.len);
	start_event(&event, step);
	put_bytes(&event, EVENT_SUMMARY, summary.data, summary.len);
	buf_fini(&summary);
	buf_fini(&value);
	buf_fini(&histo);
	write_record(tb, &event);
}
