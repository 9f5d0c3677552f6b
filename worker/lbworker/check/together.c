/* SPDX-License-Identifier: MIT */
/* together.c - exchanges of growing length, timed; and a median. */
#include "worker/lbworker/check/together.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/mem.h"

enum { LINK_BYTES = 4 << 20, SUM_LEAST = 4 << 10, SUM_MOST = 16 << 20, TIMES = 3 };

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

/* --- pairs -------------------------------------------------------------------------------------- */

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

/* --- sums --------------------------------------------------------------------------------------- */

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

static void look_at_ones(const float *x, size_t count, int size, struct check_result *mine)
{
	for (size_t i = 0; i < count; i++)
		if (x[i] != (float)size && mine->fault[0] == '\0')
			snprintf(mine->fault, sizeof(mine->fault),
				 "all-reduce: the sum of %d ones came as %g (element %zu of %zu)",
				 size, (double)x[i], i, count);
}

static int one_size(struct ranks *r, size_t bytes, float *x, float *inbox,
		    struct check_result *mine, struct err *err)
{
	size_t count = bytes / sizeof(*x);
	double best_s = 1e9;
	int rc = 0;

	for (int t = 0; rc == 0 && t < TIMES; t++) {
		for (size_t i = 0; i < count; i++)
			x[i] = 1;
		rc = barrier(r, err);
		double start_us = clock_mono_us();
		if (rc == 0)
			rc = all_reduce(r, x, count, inbox, err);
		double seconds = (clock_mono_us() - start_us) * 1e-6;
		best_s = seconds < best_s ? seconds : best_s;
	}
	if (rc == 0)
		look_at_ones(x, count, r->size, mine);
	double algorithm = (double)bytes / best_s * 1e-9;
	if (rc == 0 && r->rank == 0)
		printf("%12zu %12.1f %12.3f %12.3f\n", bytes, best_s * 1e6, algorithm,
		       algorithm * bus_share(r->size));
	return rc;
}

int check_sums(struct ranks *r, struct check_result *mine, struct err *err)
{
	float *x = xmalloc(SUM_MOST), *inbox = xmalloc(SUM_MOST + (size_t)r->size * sizeof(*inbox));
	int rc = 0;

	if (r->rank == 0)
		printf("all-reduce of %d ranks over %s\n%12s %12s %12s %12s\n", r->size,
		       r->table ? r->table->name : "nothing", "bytes", "us", "GB/s", "bus GB/s");
	for (size_t bytes = SUM_LEAST; rc == 0 && bytes <= SUM_MOST; bytes *= 8)
		rc = one_size(r, bytes, x, inbox, mine, err);
	free(inbox);
	free(x);
	return rc;
}

/* --- who is slow -------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const struct check_result *all, int size, int which)
{
	double *sorted = xcalloc((size_t)size, sizeof(*sorted));

	for (int r = 0; r < size; r++)
		sorted[r] = all[r].speed[which];
	qsort(sorted, (size_t)size, sizeof(*sorted), by_size);
	double middle = sorted[size / 2];
	free(sorted);
	return middle;
}

static void judge(struct check_result *of, int which, double usual,
		  const struct check_limits *limits)
{
	/* a disk may be shared, and busy for others: only what is far off counts */
	static const struct {
		const char *name, *unit;
		double share;
	} words[CHECK_SPEEDS] = { { "product", "GFLOP/s", 1 },
				  { "memory", "GB/s", 1 },
				  { "disk", "GB/s", 0.1 },
				  { "link", "GB/s", 1 } };
	double least = usual * limits->slow_share * words[which].share;

	if (of->speed[which] <= 0 || of->speed[which] >= least || of->fault[0])
		return;
	snprintf(of->fault, sizeof(of->fault), "slow %s: %.3g %s, where others make %.3g",
		 words[which].name, of->speed[which], words[which].unit, usual);
}

int check_gather(struct ranks *r, const struct check_result *mine,
		 const struct check_limits *limits, struct check_result *all, struct err *err)
{
	if (ranks_gather(r, mine, sizeof(*mine), all, err))
		return -1;
	for (int k = 0; k < CHECK_SPEEDS; k++) {
		double usual = median(all, r->size, k);
		for (int i = 0; i < r->size; i++)
			judge(&all[i], k, usual, limits);
	}
	for (int i = 0; i < r->size; i++)
		if (fabs(all[i].clock_s) > limits->clock_s && all[i].fault[0] == '\0')
			snprintf(all[i].fault, sizeof(all[i].fault),
				 "clock: %+.1f s beside that of rank 0", all[i].clock_s);
	return 0;
}
