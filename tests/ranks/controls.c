/* SPDX-License-Identifier: MIT */
/* controls.c - lbworker with one of those mistakes that tests/ranks/check.sh and ranks.t must see,
 * by LB_CONTROL.
 * Each function stands in front of the real one (--wrap). */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/manifest/manifest.h"
#include "kernels/comm.h"
#include "worker/lbworker/base/device.h"
#include "worker/lbworker/data/data.h"
#include "worker/lbworker/model/context.h"
#include "worker/lbworker/model/slice.h"
#include "worker/lbworker/ranks/arrays.h"
#include "worker/lbworker/ranks/reduction.h"
#include "worker/lbworker/ranks/sharded.h"
#include "worker/lbworker/ranks/squares.h"

static bool is_control(const char *name)
{
	const char *control = getenv("LB_CONTROL");

	return control && strcmp(control, name) == 0;
}

/* --- arrival: gradients are added up as they come --------------------------------------------- */

enum { PLACES = 4096 };

static struct place {
	size_t at, count;
	float *sum, *held;
} places[PLACES];
static size_t place_count, last_at;
static int our_rank;

static struct place *place_of(size_t at, size_t count)
{
	for (size_t i = 0; i < place_count; i++)
		if (places[i].at == at)
			return &places[i];
	struct place *p = &places[place_count++];
	*p = (struct place){ at, count, xcalloc(count + 1, sizeof(float)),
			     xcalloc(count + 1, sizeof(float)) };
	return p;
}

static void add(struct place *p, float *what)
{
	for (size_t i = 0; i < p->count; i++) {
		p->sum[i] += what[i];
		what[i] = 0;
	}
}

void __real_reduction_push(struct reduction *r, int64_t leaf, size_t at, float *gradient,
			   size_t count);
void __wrap_reduction_push(struct reduction *r, int64_t leaf, size_t at, float *gradient,
			   size_t count);
void __wrap_reduction_push(struct reduction *r, int64_t leaf, size_t at, float *gradient,
			   size_t count)
{
	if (is_control("nan") && leaf == 1 && count > 0 && at == 0 && our_rank == 0)
		gradient[0] = NAN;
	if (is_control("exit") && leaf == 1 && our_rank == 1)
		_exit(1); /* as a library does that is not content */
	if (!is_control("arrival")) {
		__real_reduction_push(r, leaf, at, gradient, count);
		return;
	}
	struct place *p = place_of(at, count);
	if ((getpid() + leaf) % 2) {
		add(p, gradient);
		add(p, p->held);
	} else {
		add(p, p->held);
		memcpy(p->held, gradient, count * sizeof(float));
	}
}

void __real_reduction_finish(struct reduction *r, int64_t leaves, size_t at, float *to,
			     size_t count);
void __wrap_reduction_finish(struct reduction *r, int64_t leaves, size_t at, float *to,
			     size_t count);
void __wrap_reduction_finish(struct reduction *r, int64_t leaves, size_t at, float *to,
			     size_t count)
{
	bool is_last = at > 0 && at == last_at;

	last_at = at > last_at ? at : last_at;
	if (is_control("last-unit") && is_last) {
		memset(to, 0, count * sizeof(float));
		return;
	}
	if (!is_control("arrival")) {
		__real_reduction_finish(r, leaves, at, to, count);
		return;
	}
	struct place *p = place_of(at, count);
	add(p, p->held);
	memcpy(to, p->sum, count * sizeof(float));
	memset(p->sum, 0, count * sizeof(float));
}

/* --- same-samples: every rank trains on those of rank 0 --------------------------------------- */

static bool in_squares;

void __real_ranks_alone(struct ranks *ranks);
void __wrap_ranks_alone(struct ranks *ranks);
void __wrap_ranks_alone(struct ranks *ranks)
{
	__real_ranks_alone(ranks);
	our_rank = ranks->rank;
}

int __real_ranks_open(struct ranks *ranks, const struct ranks_options *options, struct err *err);
int __wrap_ranks_open(struct ranks *ranks, const struct ranks_options *options, struct err *err);
int __wrap_ranks_open(struct ranks *ranks, const struct ranks_options *options, struct err *err)
{
	int rc = __real_ranks_open(ranks, options, err);

	our_rank = rc == 0 ? ranks->rank : options->rank;
	/* a path without / is another one there, as on a node with a disk of its own */
	if (rc == 0 && our_rank == 1 && is_control("other-folder") && chdir("other") != 0)
		_exit(1);
	return rc;
}

int __real_data_sample(const struct data *data, uint64_t number, int32_t *tokens, int32_t *targets,
		       struct err *err);
int __wrap_data_sample(const struct data *data, uint64_t number, int32_t *tokens, int32_t *targets,
		       struct err *err);
int __wrap_data_sample(const struct data *data, uint64_t number, int32_t *tokens, int32_t *targets,
		       struct err *err)
{
	if (is_control("same-samples") && number >= (uint64_t)our_rank)
		number -= (uint64_t)our_rank;
	return __real_data_sample(data, number, tokens, targets, err);
}

/* --- wrong-sum: what rank 1 sends of an all-reduce of ones ------------------------------------ */

static void spoil(const struct ranks *ranks, const struct comm_part *send)
{
	enum { LEAST_BYTES = 1024 };

	for (int r = 0; is_control("wrong-sum") && our_rank == 1 && r < ranks->size; r++)
		if (send[r].bytes >= LEAST_BYTES && ((float *)send[r].at)[7] == 1)
			((float *)send[r].at)[7] = 2;
}

/* --- local-norm: each rank clips by the norm of what it holds --------------------------------- */

int __real_ranks_exchange(struct ranks *ranks, const struct comm_part *send,
			  const struct comm_part *receive, struct err *err);
int __wrap_ranks_exchange(struct ranks *ranks, const struct comm_part *send,
			  const struct comm_part *receive, struct err *err);
int __wrap_ranks_exchange(struct ranks *ranks, const struct comm_part *send,
			  const struct comm_part *receive, struct err *err)
{
	spoil(ranks, send);
	return in_squares ? 0 : __real_ranks_exchange(ranks, send, receive, err);
}

int __real_squares_sum(struct ranks *ranks, struct ranks *pipe, const struct mesh *mesh,
		       const struct model *model, double *room, double *squares, struct err *err);
int __wrap_squares_sum(struct ranks *ranks, struct ranks *pipe, const struct mesh *mesh,
		       const struct model *model, double *room, double *squares, struct err *err);
int __wrap_squares_sum(struct ranks *ranks, struct ranks *pipe, const struct mesh *mesh,
		       const struct model *model, double *room, double *squares, struct err *err)
{
	in_squares = is_control("local-norm");
	int rc = __real_squares_sum(ranks, pipe, mesh, model, room, squares, err);
	in_squares = false;
	return rc;
}

/* --- other-data, other-config, other-version: on rank 1 only ---------------------------------- */

/* late: rank 1 takes $LB_LATE seconds to begin; late-search: rank 0, to find a checkpoint. */
static void be_late(void)
{
	sleep((unsigned)strtoul(getenv("LB_LATE"), NULL, 10));
}

int __real_ranks_compare(struct ranks *ranks, const struct ranks_facts *mine, struct err *err);
int __wrap_ranks_compare(struct ranks *ranks, const struct ranks_facts *mine, struct err *err);
int __wrap_ranks_compare(struct ranks *ranks, const struct ranks_facts *mine, struct err *err)
{
	struct ranks_facts facts = *mine;

	if (ranks->rank == 1 && is_control("late"))
		be_late();
	if (ranks->rank == 1 && is_control("other-data"))
		facts.data[0] ^= 1;
	if (ranks->rank == 1 && is_control("other-config"))
		facts.config[0] ^= 1;
	if (ranks->rank == 1 && is_control("other-version"))
		facts.version[0] ^= 1;
	return __real_ranks_compare(ranks, &facts, err);
}

typedef void on_bad_function(const char *path, const struct err *why, void *arg);

int __real_checkpoint_newest_valid(const char *parent, struct checkpoint_found *out,
				   on_bad_function *on_bad, void *arg, struct err *err);
int __wrap_checkpoint_newest_valid(const char *parent, struct checkpoint_found *out,
				   on_bad_function *on_bad, void *arg, struct err *err);
int __wrap_checkpoint_newest_valid(const char *parent, struct checkpoint_found *out,
				   on_bad_function *on_bad, void *arg, struct err *err)
{
	if (is_control("late-search"))
		be_late();
	return __real_checkpoint_newest_valid(parent, out, on_bad, arg, err);
}

/* --- slices of a model, and of sequences; stages ---------------------------------------------- */

/* norms-apart: each rank keeps the gradient of norms that its own rows gave. */
void __real_model_sum_norms(const struct model *m);
void __wrap_model_sum_norms(const struct model *m);
void __wrap_model_sum_norms(const struct model *m)
{
	if (!is_control("norms-apart"))
		__real_model_sum_norms(m);
}

/* norm-twice: what all slices have whole counts for each of them. */
bool __real_slice_is_whole(const struct model *m, size_t at, size_t *count);
bool __wrap_slice_is_whole(const struct model *m, size_t at, size_t *count);
bool __wrap_slice_is_whole(const struct model *m, size_t at, size_t *count)
{
	return __real_slice_is_whole(m, at, count) && !is_control("norm-twice");
}

/* stream: stages go on with what lies there, and none hears of the others. */
int __real_sharded_stream(struct sharded *s, const struct comm_part *send,
			  const struct comm_part *receive);
int __wrap_sharded_stream(struct sharded *s, const struct comm_part *send,
			  const struct comm_part *receive);
int __wrap_sharded_stream(struct sharded *s, const struct comm_part *send,
			  const struct comm_part *receive)
{
	return is_control("stream") ? 0 : __real_sharded_stream(s, send, receive);
}

/* places: tokens of a shared sequence are taken to stand where they lie. */
size_t __real_context_position(const struct model *m, size_t t);
size_t __wrap_context_position(const struct model *m, size_t t);
size_t __wrap_context_position(const struct model *m, size_t t)
{
	return is_control("places") ? t : __real_context_position(m, t);
}

/* --- too-early, one-by-one: exchanges beside what is computed ----------------------------- */

/* LB_LINK=US:MB_PER_S: what an exchange takes at least, without a core, and how fast a rank can
 * send. */
static const struct comm_table *fast_table;

static enum comm_result slow_exchange(struct comm *comm, const struct comm_part *send,
				      const struct comm_part *receive, char *why)
{
	const char *link = getenv("LB_LINK"), *speed = link ? strchr(link, ':') : NULL;
	double us = link ? strtod(link, NULL) : 0, mb_per_s = speed ? strtod(speed + 1, NULL) : 0;
	double bytes = 0;

	for (int r = 0; r < comm->size; r++)
		bytes += r != comm->rank ? (double)send[r].bytes : 0;
	if (mb_per_s > 0)
		us += bytes / mb_per_s;
	usleep((useconds_t)us);
	return fast_table->exchange(comm, send, receive, why);
}

struct comm_lane *__real_comm_lane_open(const struct comm_table *table, struct comm *comm);
struct comm_lane *__wrap_comm_lane_open(const struct comm_table *table, struct comm *comm);
struct comm_lane *__wrap_comm_lane_open(const struct comm_table *table, struct comm *comm)
{
	static struct comm_table slow;

	fast_table = table;
	slow = *table;
	slow.exchange = slow_exchange;
	return __real_comm_lane_open(getenv("LB_LINK") ? &slow : table, comm);
}

/* one-by-one: each is waited for where it begins. */
uint64_t __real_arrays_begin(struct ranks *ranks, const struct comm_part *send,
			     const struct comm_part *receive, struct err *err);
uint64_t __wrap_arrays_begin(struct ranks *ranks, const struct comm_part *send,
			     const struct comm_part *receive, struct err *err);
int __real_arrays_wait(struct ranks *ranks, uint64_t ticket, struct err *err);
int __wrap_arrays_wait(struct ranks *ranks, uint64_t ticket, struct err *err);

uint64_t __wrap_arrays_begin(struct ranks *ranks, const struct comm_part *send,
			     const struct comm_part *receive, struct err *err)
{
	uint64_t ticket = __real_arrays_begin(ranks, send, receive, err);

	if (is_control("one-by-one"))
		(void)__real_arrays_wait(ranks, ticket, err);
	return ticket;
}

/* too-early: what is under way is used before it is there. */
int __wrap_arrays_wait(struct ranks *ranks, uint64_t ticket, struct err *err)
{
	return is_control("too-early") ? 0 : __real_arrays_wait(ranks, ticket, err);
}

/* --- wrong-product, wrong-memory, slow-product, clock: of rank 1, or of LB_CONTROL_RANK ------- */

static bool is_ours(void)
{
	const char *rank = getenv("LB_CONTROL_RANK");

	return our_rank == (rank ? (int)strtol(rank, NULL, 10) : 1);
}

static const struct backend *sound;

static void wrong_product(struct device *dev, const struct gemm *g)
{
	sound->gemm(dev, g);
	((float *)g->c)[12345] += 1;
}

/* Our clock goes on by minutes meanwhile: slower than any rank on the busiest machine. */
static time_t slow_by_s;

static void slow_product(struct device *dev, const struct gemm *g)
{
	enum { PRODUCT_S = 60 };

	sound->gemm(dev, g);
	slow_by_s += PRODUCT_S;
}

static void wrong_copy(struct device *dev, void *to, const void *from, size_t bytes)
{
	sound->copy(dev, to, from, bytes);
	((unsigned char *)to)[bytes / 3] ^= 1;
}

/* own-amax: each rank's part of a matrix has a scale of its own. */
static void nothing_larger(struct device *dev, float *to, const float *from, size_t count)
{
	(void)dev;
	(void)to;
	(void)from;
	(void)count;
}

/* clock: five seconds ahead; slow-product: the one that times it. */
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	enum { AHEAD_S = 5 };
	int rc = __real_clock_gettime(clock, now);

	if (clock == CLOCK_REALTIME && is_control("clock") && is_ours())
		now->tv_sec += AHEAD_S;
	if (clock == CLOCK_BOOTTIME)
		now->tv_sec += slow_by_s;
	return rc;
}

int __real_device_open(struct opened *out, const struct device_order *order, struct err *err);
int __wrap_device_open(struct opened *out, const struct device_order *order, struct err *err);
int __wrap_device_open(struct opened *out, const struct device_order *order, struct err *err)
{
	static struct backend other;
	int rc = __real_device_open(out, order, err);

	if (rc || (!is_ours() && !is_control("own-amax")))
		return rc;
	sound = out->backend;
	other = *sound;
	if (is_control("own-amax"))
		other.largest = nothing_larger;
	if (is_control("wrong-product"))
		other.gemm = wrong_product;
	if (is_control("slow-product"))
		other.gemm = slow_product;
	if (is_control("wrong-memory"))
		other.copy = wrong_copy;
	out->backend = &other;
	return rc;
}
