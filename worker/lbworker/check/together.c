/* SPDX-License-Identifier: MIT */
/* together.c - exchanges of growing length, timed. */
#include "worker/lbworker/check/together.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/mem.h"

enum { LINK_BYTES = 4 << 20, TIMES = 3 };

static int barrier(struct ranks *r, struct err *err)
{
	char word = 0, *all = xmalloc((size_t)r->size);
	int rc = ranks_gather(r, &word, 1, all, err);

	free(all);
	return rc;
}

static double wall_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* --- pairs ------------------------------------------------------------------------------------ */

/* One round: everybody with rank ^ bit, where there is one. */
static int one_round(struct ranks *r, int bit, char *bytes, struct check_result *mine,
		     struct err *err)
{
	struct comm_part *send = xcalloc(2 * (size_t)r->size, sizeof(*send));
	struct comm_part *receive = send + r->size;
	int partner = r->rank ^ bit, rc = 0;
	double best_s = 1e9;

	if (partner < r->size) {
		send[partner] = (struct comm_part){ bytes, LINK_BYTES };
		receive[partner] = (struct comm_part){ bytes + LINK_BYTES, LINK_BYTES };
	}
	for (int i = 0; rc == 0 && i < TIMES; i++) {
		rc = barrier(r, err);
		double start_us = clock_mono_us();
		if (rc == 0)
			rc = ranks_exchange(r, send, receive, err);
		double seconds = (clock_mono_us() - start_us) * 1e-6;
		best_s = seconds < best_s ? seconds : best_s;
	}
	double speed = partner < r->size ? LINK_BYTES / best_s * 1e-9 : 0;
	if (rc == 0 && speed > mine->speed[CHECK_LINK])
		mine->speed[CHECK_LINK] = speed;
	free(send);
	return rc;
}

/* Behind a barrier all look at their clocks at about the same moment. */
static int compare_clocks(struct ranks *r, struct check_result *mine, struct err *err)
{
	double *all = xcalloc((size_t)r->size, sizeof(*all));
	int rc = barrier(r, err);
	double now = wall_s();

	if (rc == 0)
		rc = ranks_gather(r, &now, sizeof(now), all, err);
	mine->clock_s = now - all[0];
	free(all);
	return rc;
}

int check_links(struct ranks *r, struct check_result *mine, struct err *err)
{
	char *bytes = xcalloc(2, LINK_BYTES);
	int rc = compare_clocks(r, mine, err);

	for (int bit = 1; rc == 0 && bit < r->size; bit *= 2)
		rc = one_round(r, bit, bytes, mine, err);
	free(bytes);
	return rc;
}

/* --- sums ------------------------------------------------------------------------------------- */

/* Ours of `count` elements cut into as many parts as there are ranks. */
static size_t cut(size_t count, int rank, int size)
{
	return count * (size_t)rank / (size_t)size;
}

/* Each gets a part from all, adds up, and gives the sum to all. */
static int all_reduce(struct ranks *r, float *x, size_t count, float *inbox, struct err *err)
{
	struct comm_part *send = xcalloc(2 * (size_t)r->size, sizeof(*send));
	struct comm_part *receive = send + r->size;
	size_t from = cut(count, r->rank, r->size), own = cut(count, r->rank + 1, r->size) - from;

	for (int i = 0; i < r->size; i++) {
		size_t at = cut(count, i, r->size);
		send[i] = (struct comm_part){ x + at,
					      (cut(count, i + 1, r->size) - at) * sizeof(*x) };
		receive[i] = (struct comm_part){ inbox + (size_t)i * own, own * sizeof(*x) };
	}
	int rc = ranks_exchange(r, send, receive, err);
	for (size_t k = 0; k < own; k++) {
		float sum = 0;
		for (int i = 0; i < r->size; i++)
			sum += inbox[(size_t)i * own + k];
		x[from + k] = sum;
	}
	for (int i = 0; i < r->size; i++) {
		size_t at = cut(count, i, r->size);
		send[i] = (struct comm_part){ x + from, own * sizeof(*x) };
		receive[i] = (struct comm_part){ x + at,
						 (cut(count, i + 1, r->size) - at) * sizeof(*x) };
	}
	if (rc == 0)
		rc = ranks_exchange(r, send, receive, err);
	free(send);
	return rc;
}

/* What each byte of the message takes of the slowest link: all-reduce sends 2 (n-1)/n of it. */
static double bus_share(int size)
{
	return 2.0 * (size - 1) / size;
}

static bool are_all(const float *x, size_t count, float value, size_t *where)
{
	for (*where = 0; *where < count; (*where)++)
		if (x[*where] != value)
			return false;
	return true;
}

int check_sum(struct ranks *r, size_t bytes, double *best_s, char *fault, size_t fault_bytes,
	      struct err *err)
{
	size_t count = bytes / sizeof(float), wrong;
	float *x = xmalloc(bytes), *inbox = xmalloc(bytes + (size_t)r->size * sizeof(*inbox));
	int rc = 0;

	*best_s = 1e9;
	for (int t = 0; rc == 0 && t < TIMES; t++) {
		for (size_t i = 0; i < count; i++)
			x[i] = 1;
		rc = barrier(r, err);
		double start_us = clock_mono_us();
		if (rc == 0)
			rc = all_reduce(r, x, count, inbox, err);
		double seconds = (clock_mono_us() - start_us) * 1e-6;
		*best_s = seconds < *best_s ? seconds : *best_s;
	}
	if (rc == 0 && !fault[0] && !are_all(x, count, (float)r->size, &wrong))
		snprintf(fault, fault_bytes,
			 "all-reduce: the sum of %d ones came as %g (element %zu of %zu)", r->size,
			 (double)x[wrong], wrong, count);
	free(inbox);
	free(x);
	return rc;
}

int check_sums(struct ranks *r, struct sum_row rows[SUM_ROWS], char *fault, size_t fault_bytes,
	       struct err *err)
{
	size_t bytes = SUM_LEAST_BYTES;
	int rc = 0;

	for (int i = 0; rc == 0 && i < SUM_ROWS; i++, bytes *= SUM_GROWTH) {
		double seconds;
		rc = check_sum(r, bytes, &seconds, fault, fault_bytes, err);
		rows[i] = (struct sum_row){
			.bytes = bytes,
			.seconds = seconds,
			.algorithm_gbs = (double)bytes / seconds * 1e-9,
			.bus_gbs = (double)bytes / seconds * 1e-9 * bus_share(r->size),
		};
	}
	return rc;
}
