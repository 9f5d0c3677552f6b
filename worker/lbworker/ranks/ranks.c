/* SPDX-License-Identifier: MIT */
/* ranks.c - finds the others, and makes gathers and broadcasts of exchanges. */
#include "worker/lbworker/ranks/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/strv.h"
#include "common/base/text.h"
#include "kernels/machine/cpus.h"
#include "worker/lbworker/ranks/meeting.h"

int ranks_launched(void)
{
	int size = env_number("PMI_SIZE");

	if (size <= 1)
		size = env_number("OMPI_COMM_WORLD_SIZE");
	if (size <= 1 && getenv("LB_RANK"))
		size = env_number("SLURM_STEP_NUM_TASKS");
	return size > 1 ? size : 1;
}

/* A launcher starts many, and each would train alone into the same folder. */
static int check_alone(struct err *err)
{
	if (ranks_launched() == 1)
		return 0;
	if (env_number("OMPI_COMM_WORLD_SIZE") > 1)
		return err_set(
			err, ERR_USAGE,
			"Open MPI started %s of us, and ranks speak MPICH: mpiexec.mpich, srun "
			"with slurm.mpi = \"pmi2\", or on one machine --ranks %s",
			getenv("OMPI_COMM_WORLD_SIZE"), getenv("OMPI_COMM_WORLD_SIZE"));
	return err_set(err, ERR_USAGE,
		       "srun started %s of us without MPI, so that none knows of the others: "
		       "slurm.mpi must be \"pmi2\"",
		       getenv("SLURM_STEP_NUM_TASKS"));
}

static void count_neighbours(struct ranks *r, int size)
{
	int beside = env_number("MPI_LOCALNRANKS");

	if (beside == 0)
		beside = env_number("SLURM_STEP_TASKS_PER_NODE");
	r->beside = r->sharing = beside > 0 && beside <= size ? beside : 1;
}

/* Our number among those on this machine. */
static int place_beside(const struct ranks *r)
{
	const char *slurm = getenv("SLURM_LOCALID");

	if (getenv("MPI_LOCALRANKID"))
		return env_number("MPI_LOCALRANKID");
	return slurm ? env_number("SLURM_LOCALID") : r->rank % r->beside;
}

void ranks_count_places(struct ranks *r, const struct ranks_place *all)
{
	const struct ranks_place *own = &all[r->rank];
	cpu_set_t both;

	r->beside = r->sharing = 0;
	for (int i = 0; i < r->size; i++) {
		if (strcmp(all[i].node, own->node) != 0)
			continue;
		CPU_AND(&both, &all[i].cpus, &own->cpus);
		r->beside++;
		r->sharing += i == r->rank || CPU_COUNT(&both) > 0;
	}
}

static int learn_places(struct ranks *r, const char *node, struct err *err)
{
	struct ranks_place *all = xcalloc((size_t)r->size, sizeof(*all)), mine = { 0 };

	snprintf(mine.node, sizeof(mine.node), "%s", node);
	if (sched_getaffinity(0, sizeof(mine.cpus), &mine.cpus) != 0)
		memset(&mine.cpus, 0xff, sizeof(mine.cpus));
	int rc = ranks_gather(r, &mine, sizeof(mine), all, err);
	if (rc == 0)
		ranks_count_places(r, all);
	free(all);
	return rc;
}

/* For the device, which takes the GPU of that number where it sees several. What a launcher's
 * wrapper says of this rank holds; of those that one process has forked nobody says anything, and
 * what that process found is left of another program. */
static void name_place(int place, bool is_forked)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", place);
	setenv("LOCAL_RANK", text, is_forked);
}

/* One reads data, or weights, for longer than others. */
static double deadline_to_begin(const struct ranks_options *o)
{
	return o->begin_s > o->deadline_s ? o->begin_s : o->deadline_s;
}

static void find_node(char node[COMM_NODE_BYTES])
{
	const char *name = getenv("SLURMD_NODENAME");

	memset(node, 0, COMM_NODE_BYTES);
	if (name)
		snprintf(node, COMM_NODE_BYTES, "%s", name);
	else
		(void)gethostname(node, COMM_NODE_BYTES - 1);
}

/* By a launcher, all at once; who never comes is named. */
static struct comm *open_launched(const struct comm_table *table, const struct ranks_options *o,
				  const char *node, char *why)
{
	struct comm_options options = { .deadline_s = deadline_to_begin(o), .node = node };

	struct meeting *meeting = meeting_begin(env_number("PMI_RANK"), env_number("PMI_SIZE"),
						o->begin_s);
	struct comm *comm = table->open(&options, why);
	meeting_end(meeting);
	/* cppcheck-suppress returnDanglingLifetime ; open() copies what it keeps */
	return comm;
}

void ranks_alone(struct ranks *r)
{
	bool is_mpi = getenv("PMI_RANK") != NULL;

	*r = (struct ranks){ .rank = env_number(is_mpi ? "PMI_RANK" : "SLURM_PROCID"), .size = 1 };
	count_neighbours(r, env_number(is_mpi ? "PMI_SIZE" : "SLURM_STEP_NUM_TASKS"));
	if (r->beside > 1)
		name_place(place_beside(r), false);
}

void ranks_have_begun(struct ranks *r)
{
	if (!r->comm || r->deadline_s == r->train_s)
		return;
	r->deadline_s = r->train_s;
	r->table->set_deadline(r->comm, r->train_s);
}

int ranks_open(struct ranks *r, const struct ranks_options *o, struct err *err)
{
	const struct comm_options forked = { o->room, o->rank, deadline_to_begin(o), NULL };
	char why[COMM_TEXT_BYTES] = "", node[COMM_NODE_BYTES];

	*r = (struct ranks){ .size = 1, .beside = 1, .sharing = 1 };
	if (!o->room && env_number("PMI_SIZE") <= 1)
		return check_alone(err);
	find_node(node);
	r->table = o->room ? &comm_shared : comm_load_mpi(why);
	if (r->table)
		r->comm = o->room ? r->table->open(&forked, why)
				  : open_launched(r->table, o, node, why);
	if (!r->table || !r->comm)
		return err_set(err, ERR_IO, "ranks: %s", why);
	r->lane = comm_lane_open(r->table, r->comm);
	if (!r->lane) {
		r->table->close(r->comm);
		return err_set(err, ERR_IO, "ranks: out of memory");
	}
	r->rank = r->comm->rank;
	r->size = r->comm->size;
	r->beside = r->sharing = r->size;
	r->begin_s = o->begin_s;
	r->deadline_s = deadline_to_begin(o);
	r->train_s = o->deadline_s;
	r->send = xcalloc((size_t)r->size, sizeof(*r->send));
	r->receive = xcalloc((size_t)r->size, sizeof(*r->receive));
	if (!o->room && learn_places(r, node, err)) {
		ranks_fail(r, err);
		ranks_close(r);
		return -1;
	}
	name_place(o->room ? r->rank : place_beside(r), o->room != NULL);
	return 0;
}

void ranks_close(struct ranks *r)
{
	comm_lane_close(r->lane);
	if (r->comm)
		r->table->close(r->comm);
	free(r->send);
	free(r->receive);
	free(r->world_send);
	free(r->world_receive);
	*r = (struct ranks){ .size = 1, .beside = 1, .sharing = 1 };
}

void ranks_group(struct ranks *g, struct ranks *world, int first, int stride, int size)
{
	*g = (struct ranks){ .rank = (world->rank - first) / stride,
			     .size = size,
			     .beside = world->beside,
			     .sharing = world->sharing,
			     .world = world,
			     .first = first,
			     .stride = stride };
	g->send = xcalloc((size_t)size, sizeof(*g->send));
	g->receive = xcalloc((size_t)size, sizeof(*g->receive));
	g->world_send = xcalloc((size_t)world->size, sizeof(*g->world_send));
	g->world_receive = xcalloc((size_t)world->size, sizeof(*g->world_receive));
}

int ranks_threads(const struct ranks *r)
{
	int cores = (int)cpus_granted();

	if (r->sharing <= 1)
		return 0;
	return cores > r->sharing ? cores / r->sharing : 1;
}

const char *ranks_own_words(const struct ranks *r, const char *text)
{
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "rank %d: ", r->rank);
	return text_begins_with(text, prefix) ? text + strlen(prefix) : NULL;
}

/* --- exchanges -------------------------------------------------------------------------------- */

/* By the numbers that they have in the world. */
static void in_world(struct ranks *g, const struct comm_part *send, const struct comm_part *receive)
{
	for (int r = 0; r < g->size; r++) {
		g->world_send[g->first + g->stride * r] = send[r];
		g->world_receive[g->first + g->stride * r] = receive[r];
	}
}

static struct ranks *world_of(struct ranks *r)
{
	return r->world ? r->world : r;
}

/* Nobody else is among them, or nothing goes any more: *rc is what to say. */
static bool is_idle(struct ranks *r, int *rc, struct err *err)
{
	const struct err *failure = &world_of(r)->failure;

	*rc = failure->code == ERR_NONE ? 0 : err_set(err, failure->code, "%s", failure->text);
	return *rc != 0 || r->size == 1;
}

/* How an exchange of the world ended; a failure is kept. */
static int note_end(struct ranks *r, enum comm_result result, const char *why, double start_us,
		    struct err *err)
{
	r->waited_s += (clock_mono_us() - start_us) * 1e-6;
	if (result == COMM_OK)
		return 0;
	const char *own = result == COMM_TOLD ? ranks_own_words(r, why) : NULL;
	r->is_told = result == COMM_TOLD && !own;
	err_set(&r->failure, result == COMM_TOLD ? ERR_REFUSED : ERR_TIMEOUT, "%s",
		own ? own : why);
	return err_set(err, r->failure.code, "%s", r->failure.text);
}

static void count_sent(struct ranks *r, const struct comm_part *send)
{
	for (int i = 0; i < r->size; i++)
		r->sent_bytes += i != r->rank ? send[i].bytes : 0;
}

int ranks_exchange(struct ranks *r, const struct comm_part *send, const struct comm_part *receive,
		   struct err *err)
{
	char why[COMM_TEXT_BYTES] = "";
	double start_us = clock_mono_us();
	int rc;

	if (is_idle(r, &rc, err))
		return rc;
	if (r->world) {
		in_world(r, send, receive);
		return ranks_exchange(r->world, r->world_send, r->world_receive, err);
	}
	count_sent(r, send);
	enum comm_result result = comm_lane_exchange(r->lane, send, receive, why);
	return note_end(r, result, why, start_us, err);
}

uint64_t ranks_begin(struct ranks *r, const struct comm_part *send, const struct comm_part *receive,
		     struct err *err)
{
	int rc;

	if (is_idle(r, &rc, err))
		return 0;
	if (r->world) {
		in_world(r, send, receive);
		return ranks_begin(r->world, r->world_send, r->world_receive, err);
	}
	count_sent(r, send);
	return comm_lane_begin(r->lane, send, receive);
}

int ranks_wait(struct ranks *r, uint64_t ticket, struct err *err)
{
	struct ranks *w = world_of(r);
	char why[COMM_TEXT_BYTES] = "";
	double start_us = clock_mono_us();
	int rc;

	if (is_idle(w, &rc, err) || ticket == 0)
		return rc;
	enum comm_result result = comm_lane_wait(w->lane, ticket, why);
	return note_end(w, result, why, start_us, err);
}

void ranks_drain(struct ranks *r)
{
	struct ranks *w = world_of(r);
	char why[COMM_TEXT_BYTES];

	if (w->lane)
		(void)comm_lane_wait(w->lane, UINT64_MAX, why);
}

size_t ranks_note(struct ranks *r, struct comm_span *span, size_t room)
{
	return r->lane ? comm_lane_note(r->lane, span, room) : 0;
}

int ranks_gather(struct ranks *r, const void *mine, size_t bytes, void *all, struct err *err)
{
	char *place = all, *own = xmalloc(bytes + 1);

	memcpy(own, mine, bytes);
	if (r->size == 1)
		memcpy(all, own, bytes);
	for (int i = 0; i < r->size && r->size > 1; i++) {
		r->send[i] = (struct comm_part){ own, bytes };
		r->receive[i] = (struct comm_part){ place + (size_t)i * bytes, bytes };
	}
	int rc = ranks_exchange(r, r->send, r->receive, err);
	free(own);
	return rc;
}

int ranks_from_first(struct ranks *r, void *at, size_t bytes, struct err *err)
{
	const struct comm_part nothing = { NULL, 0 }, all = { at, bytes };

	for (int i = 0; i < r->size && r->size > 1; i++) {
		r->send[i] = r->rank == 0 && i != 0 ? all : nothing;
		r->receive[i] = r->rank != 0 && i == 0 ? all : nothing;
	}
	return ranks_exchange(r, r->send, r->receive, err);
}

static bool wait_for_flag(const atomic_bool *flag, double seconds)
{
	enum { LOOK_MS = 2 };
	const struct timespec pause = { 0, LOOK_MS * 1000000L };
	double until_us = clock_mono_us() + seconds * 1e6;

	while (!atomic_load(flag) && clock_mono_us() < until_us)
		nanosleep(&pause, NULL);
	return atomic_load(flag);
}

int ranks_wait_for_first(struct ranks *r, const atomic_bool *is_done, struct err *err)
{
	const double share = 0.25, most_s = 1;
	double seconds = r->size > 1 && r->deadline_s * share < most_s ? r->deadline_s * share
								       : most_s;
	bool done = false;

	while (!done) {
		if (r->rank == 0)
			done = wait_for_flag(is_done, seconds);
		if (ranks_from_first(r, &done, sizeof(done), err))
			return -1;
	}
	return 0;
}

void ranks_fail(struct ranks *r, const struct err *err)
{
	char *text;

	if (!r->comm || r->is_told || r->all_know)
		return;
	text = xasprintf("rank %d: %s", r->rank, err->text);
	r->table->fail(r->comm, text);
	free(text);
}

int ranks_compare(struct ranks *r, const struct ranks_facts *mine, struct err *err)
{
	static const char *const what[] = { "another version of lbworker", "another config",
					    "other data", "another kind of device",
					    "other weights" };
	struct ranks_facts *all = xcalloc((size_t)r->size, sizeof(*all));
	int rc = ranks_gather(r, mine, sizeof(*mine), all, err);

	for (int i = 1; rc == 0 && i < r->size; i++) {
		const char *const here[] = { all[i].version, all[i].config, all[i].data,
					     all[i].device, all[i].weights };
		const char *const first[] = { all[0].version, all[0].config, all[0].data,
					      all[0].device, all[0].weights };
		for (size_t k = 0; rc == 0 && k < sizeof(what) / sizeof(what[0]); k++)
			if (strcmp(here[k], first[k]) != 0)
				rc = err_set(err, ERR_USAGE,
					     "rank %d (%s) has %s than rank 0 (%s): %s, not %s", i,
					     all[i].host, what[k], all[0].host, here[k], first[k]);
	}
	free(all);
	r->all_know = rc != 0 && err && err->code == ERR_USAGE;
	if (r->all_know)
		r->is_told = r->rank != 0; /* one says it */
	return rc;
}
