/* SPDX-License-Identifier: MIT */
/* comm/ - who carries the bytes between ranks (kernels/comm.h).
 *
 * shared.c - ranks on one machine: a ring of bytes in shared memory for each ordered pair.
 *
 * The memory is anonymous and older than the ranks, so that there is no name to agree on, nothing
 * to be left behind, and nobody else to come in. Who waits sleeps a little longer each time. */
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/comm.h"
#include "kernels/machine/seconds.h"

enum { RING_BYTES = 1 << 18, YIELDS = 20, NAP_LEAST_NS = 20000, NAP_MOST_NS = 500000 };

/* One writes, one reads; counters only grow. */
struct ring {
	_Atomic uint64_t written, read;
	char padding[48]; /* another cache line for the bytes */
	char bytes[RING_BYTES];
};

enum { NOT_FAILED, BEING_TOLD, FAILED };

struct room {
	atomic_int failed;
	int size;
	char text[COMM_TEXT_BYTES];
	_Atomic int64_t alive_ms[COMM_RANKS_MAX]; /* when each was last seen waiting; 0: never */
	atomic_bool has_left[COMM_RANKS_MAX];     /* by comm_table.close */
	struct ring ring[];                       /* [from * size + to] */
};

struct shared {
	struct comm comm;
	struct room *room;
	_Atomic double deadline_s; /* may be set while another thread waits */
	size_t *sent, *got;        /* bytes of the present exchange, by rank */
};

static size_t room_bytes(int size)
{
	return sizeof(struct room) + (size_t)size * (size_t)size * sizeof(struct ring);
}

void *comm_room_make(int size)
{
	/* of most rings a part is used only, and none of some */
	struct room *room = mmap(NULL, room_bytes(size), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (room == MAP_FAILED)
		return NULL;
	room->size = size;
	return room;
}

void comm_room_free(void *room, int size)
{
	munmap(room, room_bytes(size));
}

/* True for the first one. */
static bool claim(struct room *room, const char *text)
{
	int before = NOT_FAILED;

	if (!atomic_compare_exchange_strong(&room->failed, &before, BEING_TOLD))
		return false;
	snprintf(room->text, sizeof(room->text), "%s", text);
	atomic_store(&room->failed, FAILED);
	return true;
}

void comm_room_fail(void *room, const char *text)
{
	(void)claim(room, text);
}

const char *comm_room_failure(const void *memory)
{
	const struct room *room = memory;

	return atomic_load(&room->failed) == FAILED ? room->text : NULL;
}

bool comm_room_has_left(const void *memory, int rank)
{
	const struct room *room = memory;

	return atomic_load(&room->has_left[rank]);
}

static void shared_close(struct comm *comm)
{
	struct shared *s = (struct shared *)comm;

	if (!s)
		return;
	atomic_store(&s->room->has_left[s->comm.rank], true);
	free(s->sent);
	free(s->got);
	free(s);
}

static struct comm *shared_open(const struct comm_options *options, char *why)
{
	struct shared *s = calloc(1, sizeof(*s));
	struct room *room = options->room;

	if (s) {
		*s = (struct shared){ .comm = { .rank = options->rank, .size = room->size },
				      .room = room,
				      .deadline_s = options->deadline_s };
		s->sent = calloc((size_t)room->size, sizeof(*s->sent));
		s->got = calloc((size_t)room->size, sizeof(*s->got));
	}
	if (s && s->sent && s->got)
		return &s->comm;
	snprintf(why, COMM_TEXT_BYTES, "out of memory");
	shared_close(s ? &s->comm : NULL);
	return NULL;
}

static struct ring *ring_of(const struct shared *s, int from, int to)
{
	return &s->room->ring[(size_t)from * (size_t)s->comm.size + (size_t)to];
}

/* As many bytes as there is room for; false: none. */
static bool push(struct ring *ring, const struct comm_part *part, size_t *sent)
{
	uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
	size_t used = written - atomic_load_explicit(&ring->read, memory_order_acquire);
	size_t count = part->bytes - *sent, at = written % RING_BYTES;

	count = count < RING_BYTES - used ? count : RING_BYTES - used;
	count = count < RING_BYTES - at ? count : RING_BYTES - at;
	if (count == 0)
		return false;
	memcpy(ring->bytes + at, (const char *)part->at + *sent, count);
	atomic_store_explicit(&ring->written, written + count, memory_order_release);
	*sent += count;
	return true;
}

static bool pull(struct ring *ring, const struct comm_part *part, size_t *got)
{
	uint64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
	size_t there = atomic_load_explicit(&ring->written, memory_order_acquire) - read;
	size_t count = part->bytes - *got, at = read % RING_BYTES;

	count = count < there ? count : there;
	count = count < RING_BYTES - at ? count : RING_BYTES - at;
	if (count == 0)
		return false;
	memcpy((char *)part->at + *got, ring->bytes + at, count);
	atomic_store_explicit(&ring->read, read + count, memory_order_release);
	*got += count;
	return true;
}

static void nap(unsigned turn)
{
	long ns = (long)NAP_LEAST_NS * (1 + (long)(turn / 4));
	struct timespec pause = { 0, ns < NAP_MOST_NS ? ns : NAP_MOST_NS };

	if (turn < YIELDS)
		sched_yield();
	else
		nanosleep(&pause, NULL);
}

/* One look at everybody. *missing: one of those that owe us bytes or room, or -1 when all is
 * done. */
static bool turn(struct shared *s, const struct comm_part *send, const struct comm_part *receive,
		 int *missing)
{
	int me = s->comm.rank;
	bool moved = false;

	*missing = -1;
	for (int r = 0; r < s->comm.size; r++) {
		if (r == me)
			continue;
		if (s->sent[r] < send[r].bytes)
			moved = push(ring_of(s, me, r), &send[r], &s->sent[r]) || moved;
		if (s->got[r] < receive[r].bytes)
			moved = pull(ring_of(s, r, me), &receive[r], &s->got[r]) || moved;
		if (s->sent[r] < send[r].bytes || s->got[r] < receive[r].bytes)
			*missing = r;
	}
	return moved;
}

/* Most wait for one that waits itself: named are those that do not even wait. */
static void say_missing(const struct shared *s, const struct comm_part *send,
			const struct comm_part *receive, char *why)
{
	int length = snprintf(why, COMM_TEXT_BYTES, "rank"), count = 0;
	int64_t least_ms = (int64_t)((seconds() - s->deadline_s / 2) * 1e3);
	bool is_named = false;

	for (int r = 0; r < s->comm.size; r++)
		is_named = is_named ||
			   (r != s->comm.rank && atomic_load(&s->room->alive_ms[r]) < least_ms);
	for (int r = 0; r < s->comm.size && length < COMM_TEXT_BYTES / 2; r++)
		if (r != s->comm.rank &&
		    (is_named ? atomic_load(&s->room->alive_ms[r]) < least_ms
			      : s->got[r] < receive[r].bytes || s->sent[r] < send[r].bytes))
			length += snprintf(why + length, (size_t)(COMM_TEXT_BYTES - length),
					   "%s %d", count++ ? "," : "", r);
	snprintf(why + length, (size_t)(COMM_TEXT_BYTES - length), " did not answer for %.0f s",
		 s->deadline_s);
}

static enum comm_result shared_exchange(struct comm *comm, const struct comm_part *send,
					const struct comm_part *receive, char *why)
{
	struct shared *s = (struct shared *)comm;
	size_t all = (size_t)comm->size;
	double since = 0;
	unsigned idle = 0;
	int missing, me = comm->rank;

	memset(s->sent, 0, all * sizeof(*s->sent));
	memset(s->got, 0, all * sizeof(*s->got));
	if (receive[me].bytes > 0 && receive[me].at != send[me].at)
		memcpy(receive[me].at, send[me].at, receive[me].bytes);
	for (;;) {
		bool moved = turn(s, send, receive, &missing);
		if (missing < 0)
			return COMM_OK;
		if (comm_room_failure(s->room)) {
			snprintf(why, COMM_TEXT_BYTES, "%s", s->room->text);
			return COMM_TOLD;
		}
		if (moved || idle == 0)
			since = seconds();
		else if (seconds() - since > s->deadline_s) {
			say_missing(s, send, receive, why);
			return claim(s->room, why) ? COMM_FAILED : COMM_TOLD;
		}
		idle = moved ? 0 : idle + 1;
		if (idle > YIELDS)
			atomic_store(&s->room->alive_ms[me], (int64_t)(seconds() * 1e3));
		if (!moved)
			nap(idle);
	}
}

static void shared_fail(struct comm *comm, const char *text)
{
	comm_room_fail(((struct shared *)comm)->room, text);
}

static bool shared_is_told(struct comm *comm, char *why)
{
	const char *text = comm_room_failure(((struct shared *)comm)->room);

	if (text)
		snprintf(why, COMM_TEXT_BYTES, "%s", text);
	return text != NULL;
}

static void shared_set_deadline(struct comm *comm, double deadline_s)
{
	((struct shared *)comm)->deadline_s = deadline_s;
}

const struct comm_table comm_shared = {
	.abi_version = COMM_ABI,
	.struct_bytes = sizeof(struct comm_table),
	.name = "shared memory",
	.open = shared_open,
	.exchange = shared_exchange,
	.fail = shared_fail,
	.close = shared_close,
	.is_told = shared_is_told,
	.set_deadline = shared_set_deadline,
};
