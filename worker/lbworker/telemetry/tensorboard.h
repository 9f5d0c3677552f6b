/* SPDX-License-Identifier: MIT */
/* tensorboard.h - scalars and histograms in an event file that TensorBoard reads.
 *
 * A file is a row of records: u64 length, masked CRC-32C of the length, data, masked CRC-32C of the
 * data, little-endian (tensorflow/core/lib/io/record_writer.cc; mask = rotate right by 15, plus
 * 0xa282ead8). The data is a protobuf Event (tensorflow/core/util/event.proto):
 *   1 wall_time double   2 step int64   3 file_version string
 *   5 summary { 1 value { 1 tag string, 2 simple_value float, 5 histo } }   7 session_log { 1
 *   status enum }
 * histo (summary.proto, HistogramProto): 1 min, 2 max, 3 num, 4 sum, 5 sum_squares double; 6
 * bucket_limit, 7 bucket packed doubles
 *
 * Every launch writes a file of its own; a session_log START tells TensorBoard to forget what an
 * earlier launch wrote from that step on. */
#ifndef LBWORKER_TENSORBOARD_H
#define LBWORKER_TENSORBOARD_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct tb_scalar {
	const char *tag;
	double value; /* not finite: left out */
};

struct tensorboard;

/* Makes the folder, and in it events.out.tfevents.TIME.HOST.PID; `first_step` is what comes next.
 * NULL with err. */
struct tensorboard *tensorboard_open(const char *folder, int64_t first_step, struct err *err);
void tensorboard_close(struct tensorboard *tb); /* NULL is fine */

/* One event with all scalars, on disk for readers when it returns. The first failure is a warning
 * and ends the file: no training dies of its charts. */
void tensorboard_add(struct tensorboard *tb, int64_t step, const struct tb_scalar *scalars,
		     size_t count);

/* count[i] values in [first + i, first + i + 1). All 0: nothing is written. */
struct tb_histogram {
	const char *tag;
	int first;
	const uint64_t *count;
	size_t bins;
};
void tensorboard_add_histogram(struct tensorboard *tb, int64_t step, const struct tb_histogram *h);

#endif
