/* SPDX-License-Identifier: MIT */
/* arrays.c - meets the other ranks over NCCL by an id that goes the way of words, and finds the
 * first cause when arrays stand still. */
#include "worker/lbworker/ranks/arrays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/gpu/known_nccl.h"
#include "kernels/nccl.h"

/* Those that wait for words are still there when the watchdogs of the others look for whom to
 * blame. */
static const double share = 0.5;

/* What each rank tells of its library before the first meeting. */
struct facts {
	int version, capability;
	char host[64], place[128], why[COMM_TEXT_BYTES];
};

static struct ranks *world_of(struct ranks *r)
{
	return r->world ? r->world : r;
}

/* --- calls back ------------------------------------------------------------------------------- */

static bool is_told(void *arg, char *why)
{
	const struct ranks *w = arg;

	return w->table->is_told && w->table->is_told(w->comm, why);
}

/* NCCL may see that a rank is gone before we hear of its end. */
static bool hear(struct ranks *w, char *why)
{
	enum { TIMES = 20, EACH_MS = 20 };
	const struct timespec pause = { 0, EACH_MS * 1000000L };

	for (int i = 0; i < TIMES; i++) {
		if (is_told(w, why))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* Of several that found the same only one says it. */
static bool is_first_to_say(struct ranks *w, const char *why)
{
	char text[COMM_TEXT_BYTES], heard[COMM_TEXT_BYTES];

	snprintf(text, sizeof(text), "rank %d: %.220s", w->rank, why);
	if (is_told(w, heard))
		return false;
	w->table->fail(w->comm, text);
	return !is_told(w, heard) || strcmp(heard, text) == 0;
}

static void tell(void *arg, const char *why)
{
	struct ranks *w = arg;
	char heard[COMM_TEXT_BYTES];

	if (w->table->is_told && !hear(w, heard))
		(void)is_first_to_say(w, why);
}

static bool all_agree(void *arg, bool yes);

/* --- opening ---------------------------------------------------------------------------------- */

static void note_facts(struct facts *mine, const struct nccl *nccl, int capability)
{
	mine->version = nccl ? nccl->version : 0;
	mine->capability = capability;
	gethostname(mine->host, sizeof(mine->host) - 1);
	if (nccl)
		snprintf(mine->place, sizeof(mine->place), "%.127s", nccl->place);
}

/* One rank's library; a mixture hangs, or worse. */
static int check_one(const struct facts *f, const struct facts *first, int rank, struct err *err)
{
	const char *any = getenv("LB_NCCL_ANY");
	const struct nccl_fault *fault = nccl_known_fault(f->version, f->capability);
	char version[32], other[32];

	nccl_version_text(f->version, version, sizeof(version));
	nccl_version_text(first->version, other, sizeof(other));
	if (f->version == 0)
		return err_set(err, ERR_USAGE, "rank %d (%s): %s", rank, f->host, f->why);
	if (f->version != first->version)
		return err_set(err, ERR_USAGE,
			       "rank %d (%s) has NCCL %s (%s), rank 0 (%s) %s (%s): all must have "
			       "the same",
			       rank, f->host, version, f->place, first->host, other, first->place);
	if (!fault)
		return 0;
	if (any && strcmp(any, "1") == 0) {
		if (rank == 0)
			log_warn("NCCL %s (%s): %s; LB_NCCL_ANY=1 takes it", version, f->place,
				 fault->trouble);
		return 0;
	}
	return err_set(err, ERR_USAGE,
		       "rank %d (%s): NCCL %s (%s): %s; LB_NCCL_LIBRARY=FILE chooses another, "
		       "LB_NCCL_ANY=1 takes it all the same",
		       rank, f->host, version, f->place, fault->trouble);
}

/* All find the same; one says it. */
static int compare(struct ranks *w, const struct nccl *nccl, int capability, const char *why,
		   struct err *err)
{
	struct facts *all = xcalloc((size_t)w->size, sizeof(*all)), mine = { 0 };

	note_facts(&mine, nccl, capability);
	snprintf(mine.why, sizeof(mine.why), "%s", why);
	int rc = ranks_gather(w, &mine, sizeof(mine), all, err);
	for (int r = 0; rc == 0 && r < w->size; r++) {
		rc = check_one(&all[r], &all[0], r, err);
		w->is_told = rc != 0 && w->rank != 0;
	}
	free(all);
	return rc;
}

static int meet(struct ranks *w, const struct nccl *nccl, struct device *device, struct err *err)
{
	static struct nccl_id id; /* borrowed for as long as it is open */
	char why[COMM_TEXT_BYTES] = "";
	const struct arrays_options options = { .nccl = nccl,
						.id = &id,
						.rank = w->rank,
						.size = w->size,
						.begin_s = w->begin_s,
						.deadline_s = w->deadline_s * share,
						.is_told = is_told,
						.tell = tell,
						.all_agree = all_agree,
						.arg = w };

	if (w->rank == 0 && nccl->get_id(&id) != NCCL_SUCCESS)
		return err_set(err, ERR_IO, "NCCL: ncclGetUniqueId failed: NCCL_DEBUG=INFO tells");
	if (ranks_from_first(w, &id, sizeof(id), err))
		return -1;
	w->arrays = w->arrays_table->open(device, &options, why);
	return w->arrays ? 0 : err_set(err, ERR_IO, "%s", why);
}

int arrays_open(struct ranks *ranks, const struct backend *be, struct device *device,
		struct err *err)
{
	struct ranks *w = world_of(ranks);
	char why[COMM_TEXT_BYTES] = "";

	if (w->size == 1 || !be->arrays)
		return 0;
	w->arrays_table = be->arrays;
	const struct nccl *nccl = nccl_open(why);
	if (compare(w, nccl, be->arrays->capability(device), why, err))
		return -1;
	char version[32];
	nccl_version_text(nccl->version, version, sizeof(version));
	printf("arrays between ranks go by NCCL %s (%s)\n", version, nccl->place);
	return meet(w, nccl, device, err);
}

void arrays_have_begun(struct ranks *ranks)
{
	struct ranks *w = world_of(ranks);

	ranks_have_begun(w);
	if (w->arrays)
		w->arrays_table->set_deadline(w->arrays, w->deadline_s * share);
}

void arrays_close(struct ranks *ranks)
{
	struct ranks *w = world_of(ranks);

	if (w->arrays)
		w->arrays_table->close(w->arrays);
	w->arrays = NULL;
}

/* --- failures --------------------------------------------------------------------------------- */

/* Arrays stand still, and NCCL does not say for whom: every rank that can still speak says a word,
 * and who says none is the first cause. */
static enum comm_result call_roll(struct ranks *w, char *why)
{
	static const double least_s = 1, most_s = 10;
	double patience_s = w->deadline_s / 2;
	struct comm_part *send = xcalloc((size_t)w->size, sizeof(*send));
	struct comm_part *receive = xcalloc((size_t)w->size, sizeof(*receive));
	char *words = xcalloc((size_t)w->size, 1), word = 'h';

	patience_s = patience_s > most_s ? most_s : patience_s;
	w->table->set_deadline(w->comm, patience_s < least_s ? least_s : patience_s);
	for (int r = 0; r < w->size; r++) {
		send[r] = (struct comm_part){ &word, 1 };
		receive[r] = (struct comm_part){ words + r, 1 };
	}
	enum comm_result result = comm_lane_exchange(w->lane, send, receive, why);
	free(words);
	free(receive);
	free(send);
	return result;
}

static void keep_failure(struct ranks *w, enum comm_result result, const char *why)
{
	char heard[COMM_TEXT_BYTES], all_there[COMM_TEXT_BYTES + 32];

	w->is_told = result == COMM_TOLD;
	if (result == COMM_FAILED && hear(w, heard)) {
		const char *own = ranks_own_words(w, heard);
		w->is_told = !own;
		why = own ? own : heard;
	}
	if (result == COMM_LATE) {
		enum comm_result answered = call_roll(w, heard);
		snprintf(all_there, sizeof(all_there), "%s, though all ranks answer", why);
		why = answered == COMM_OK ? all_there : heard;
		w->is_told = answered == COMM_TOLD ||
			     (answered == COMM_OK && !is_first_to_say(w, all_there));
	}
	err_set(&w->failure, w->is_told ? ERR_REFUSED : ERR_TIMEOUT, "%s", why);
}

int arrays_check(struct ranks *ranks, struct err *err)
{
	struct ranks *w = world_of(ranks);
	char why[COMM_TEXT_BYTES];

	if (w->failure.code == ERR_NONE && w->arrays) {
		enum comm_result result = w->arrays_table->failed(w->arrays, why);
		if (result != COMM_OK)
			keep_failure(w, result, why);
	}
	if (w->failure.code == ERR_NONE)
		return 0;
	return err_set(err, w->failure.code, "%s", w->failure.text);
}

/* Behind a failure nobody waits for words: they are told why. */
static bool all_agree(void *arg, bool yes)
{
	struct ranks *w = arg;
	bool *all = xcalloc((size_t)w->size, sizeof(*all)), agreed = true;

	if (arrays_check(w, NULL) || ranks_gather(w, &yes, sizeof(yes), all, NULL))
		agreed = false; /* it sticks, and is told by the next word */
	for (int r = 0; r < w->size; r++)
		agreed = agreed && all[r];
	free(all);
	return agreed;
}

/* --- exchanges -------------------------------------------------------------------------------- */

/* By the numbers that they have in the world; those beside the group have no part in it. */
static const struct comm_part *in_world(const struct ranks *g, struct comm_part *of_world,
					const struct comm_part *part)
{
	if (!g->world)
		return part;
	memset(of_world, 0, (size_t)g->world->size * sizeof(*of_world));
	for (int r = 0; r < g->size; r++)
		of_world[g->first + g->stride * r] = part[r];
	return of_world;
}

static void count_sent(struct ranks *r, const struct comm_part *send)
{
	struct ranks *w = world_of(r);

	for (int i = 0; i < r->size; i++)
		w->sent_bytes += i != r->rank ? send[i].bytes : 0;
}

uint64_t arrays_begin(struct ranks *r, const struct comm_part *send,
		      const struct comm_part *receive, struct err *err)
{
	struct ranks *w = world_of(r);

	if (!w->arrays)
		return ranks_begin(r, send, receive, err);
	if (arrays_check(r, err))
		return 0;
	count_sent(r, send);
	return w->arrays_table->begin(w->arrays, in_world(r, r->world_send, send),
				      in_world(r, r->world_receive, receive));
}

int arrays_wait(struct ranks *r, uint64_t ticket, struct err *err)
{
	struct ranks *w = world_of(r);

	if (!w->arrays)
		return ranks_wait(r, ticket, err);
	w->arrays_table->wait(w->arrays, ticket);
	return arrays_check(r, err);
}

int arrays_exchange(struct ranks *r, const struct comm_part *send, const struct comm_part *receive,
		    struct err *err)
{
	if (!world_of(r)->arrays)
		return ranks_exchange(r, send, receive, err);
	return arrays_wait(r, arrays_begin(r, send, receive, err), err);
}

size_t arrays_note(struct ranks *r, struct arrays_span *span, size_t room)
{
	struct ranks *w = world_of(r);

	return w->arrays ? w->arrays_table->note(w->arrays, span, room) : 0;
}

bool arrays_can_reduce(const struct ranks *r)
{
	const struct ranks *w = r->world ? r->world : r;

	return w->arrays && w->size == r->size;
}

uint64_t arrays_begin_sum(struct ranks *r, const struct comm_part *part, struct err *err)
{
	struct ranks *w = world_of(r);

	if (arrays_check(r, err))
		return 0;
	count_sent(r, part);
	return w->arrays_table->begin_sum(w->arrays, part);
}
