/* SPDX-License-Identifier: MIT */
/* standin.c - NCCL's functions that kernels/nccl.h names, between processes of one machine that
 * share a file, for tests without GPUs. On an emulated GPU (LB_CUDA_LIBRARY) what it sends is
 * queued as kernels are; else it is done at once.
 *
 * As NCCL's, a communicator that does not block has a thread of the library's make each group, and
 * who asks for errors when that is through joins it: two that ask at once end the process. Destroy
 * and abort return when no recorded program is left.
 *
 * LB_NCCL_STANDIN, words with commas between them, where R is a rank and N counts its groups from
 * 1:
 *   version=CODE      what ncclGetVersion says; version=R:CODE of rank $LOCAL_RANK R only; 0: it
 *                     fails
 *   delay=US          each group waits up to that long before it begins, by a sequence of its own
 *   late=R:MS         that rank waits so long before its first group
 *   die=R:N, stop=R:N, stall=R:N, error=R:N
 *                     at its N-th group that rank is killed, stopped by a signal, waits until the
 *                     communicator is aborted, tells an error */
#include <errno.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kernels/nccl.h"

#define API __attribute__((visibility("default")))

enum {
	RING_BYTES = 1 << 16,
	OPERATIONS = 4096,
	RANKS = 16,
	VERSION = 22703,
	REDUCED_MAX = 1 << 22,
	JOIN_US = 300
};

struct ring {
	_Atomic uint64_t written, read;
	char bytes[RING_BYTES];
};

struct room {
	atomic_int attached, left;
	struct ring ring[RANKS][RANKS]; /* [from][to] */
};

struct ncclComm {
	struct room *room;
	int rank, size;
	unsigned groups;
	uint32_t chance;
	bool blocks;
	atomic_bool is_aborted, is_asked, has_thread;
	atomic_int error; /* asynchronous */
	char path[96];
};

enum kind { SEND, RECEIVE, REDUCE };

struct operation {
	enum kind kind;
	const char *from;
	char *to;
	size_t bytes;
	int peer;
};

/* What lies between group_start and group_end. */
struct group {
	nccl_comm comm;
	void *stream;
	size_t count;
	struct operation operation[];
};

static struct group *open_group;
static int depth;

/* --- injected faults -------------------------------------------------------------------------- */

/* The number behind "name=", or of "name=R:" for rank R; -1: not there. */
static long asked(const char *name, int rank)
{
	const char *at = getenv("LB_NCCL_STANDIN");
	size_t length = strlen(name);

	for (; at && *at; at += strcspn(at, ","), at += *at == ',') {
		if (strncmp(at, name, length) != 0 || at[length] != '=')
			continue;
		char *end;
		long number = strtol(at + length + 1, &end, 10);
		if (*end != ':')
			return number;
		if (number == rank)
			return strtol(end + 1, NULL, 10);
	}
	return -1;
}

static void pause_us(long us)
{
	const struct timespec pause = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&pause, NULL);
}

/* False: nothing of this group is done. */
static bool suffer(nccl_comm c)
{
	long now = (long)++c->groups, most_us = asked("delay", c->rank);

	c->chance = c->chance * 1664525 + 1013904223;
	if (most_us > 0)
		pause_us((long)(c->chance >> 8) % most_us);
	if (now == 1 && asked("late", c->rank) > 0)
		pause_us(asked("late", c->rank) * 1000);
	if (asked("die", c->rank) == now)
		kill(getpid(), SIGKILL);
	if (asked("stop", c->rank) == now)
		kill(getpid(), SIGSTOP);
	while (asked("stall", c->rank) == now && !atomic_load(&c->is_aborted))
		pause_us(1000);
	if (asked("error", c->rank) == now)
		atomic_store(&c->error, NCCL_REMOTE_ERROR);
	return atomic_load(&c->error) == NCCL_SUCCESS;
}

/* --- bytes ------------------------------------------------------------------------------------ */

static bool push(struct ring *ring, const char *from, size_t bytes, size_t *done)
{
	uint64_t written = atomic_load(&ring->written);
	size_t room = RING_BYTES - (size_t)(written - atomic_load(&ring->read)),
	       at = written % RING_BYTES;
	size_t count = bytes - *done;

	count = count < room ? count : room;
	count = count < RING_BYTES - at ? count : RING_BYTES - at;
	memcpy(ring->bytes + at, from + *done, count);
	atomic_store(&ring->written, written + count);
	*done += count;
	return count > 0;
}

static bool pull(struct ring *ring, char *to, size_t bytes, size_t *done)
{
	uint64_t read = atomic_load(&ring->read);
	size_t there = (size_t)(atomic_load(&ring->written) - read), at = read % RING_BYTES;
	size_t count = bytes - *done;

	count = count < there ? count : there;
	count = count < RING_BYTES - at ? count : RING_BYTES - at;
	memcpy(to + *done, ring->bytes + at, count);
	atomic_store(&ring->read, read + count);
	*done += count;
	return count > 0;
}

/* One look at all; *left: what is not through. Two with the same peer go one after the other. */
static bool turn(const struct group *g, size_t *done, size_t *left)
{
	bool moved = false, is_busy[2][RANKS] = { { false } };
	struct room *room = g->comm->room;
	int me = g->comm->rank;

	*left = 0;
	for (size_t i = 0; i < g->count; i++) {
		const struct operation *o = &g->operation[i];
		if (done[i] == o->bytes || is_busy[o->kind == SEND][o->peer]) {
			*left += done[i] < o->bytes;
			continue;
		}
		moved = (o->kind == SEND
				 ? push(&room->ring[me][o->peer], o->from, o->bytes, &done[i])
				 : pull(&room->ring[o->peer][me], o->to, o->bytes, &done[i])) ||
			moved;
		*left += done[i] < o->bytes;
		is_busy[o->kind == SEND][o->peer] = done[i] < o->bytes;
	}
	return moved;
}

static void run_group(void *arg)
{
	struct group *g = arg;
	size_t *done, left = 1;
	long nap_us = 0;

	if (!suffer(g->comm))
		return;
	done = calloc(g->count + 1, sizeof(*done));
	while (done && left > 0 && !atomic_load(&g->comm->is_aborted)) {
		bool moved = turn(g, done, &left);
		nap_us = moved ? 0 : nap_us < 200 ? nap_us + 10 : 200;
		if (!moved && left > 0)
			pause_us(nap_us);
	}
	free(done);
}

static void sum_up(float *to, const float *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] += from[i];
}

/* By exchanges: all to the root, which adds up in the order of ranks. */
static void run_reduce(void *arg)
{
	struct group *g = arg;
	nccl_comm c = g->comm;

	for (size_t i = 0; i < g->count; i++) {
		const struct operation *o = &g->operation[i];
		size_t size = (size_t)c->size;
		struct group *part = calloc(1, sizeof(*part) + size * sizeof(struct operation));
		char *all = malloc(size * o->bytes);
		if (!part || !all)
			abort();
		part->comm = c;
		for (int r = 0; r < c->size; r++)
			if (r != c->rank && (o->peer == c->rank || o->peer == r))
				part->operation[part->count++] = (struct operation){
					o->peer == c->rank ? RECEIVE : SEND, o->from,
					all + (size_t)r * o->bytes, o->bytes, r
				};
		memcpy(all + (size_t)c->rank * o->bytes, o->from, o->bytes);
		run_group(part);
		for (size_t r = 1; o->peer == c->rank && r < size; r++)
			sum_up((float *)(void *)all, (const float *)(void *)(all + r * o->bytes),
			       o->bytes / sizeof(float));
		if (o->peer == c->rank)
			memcpy(o->to, all, o->bytes);
		free(all);
		free(part);
	}
}

/* A function of the emulated GPU; NULL: there is none. */
static void *of_emulation(const char *name)
{
	const char *cuda = getenv("LB_CUDA_LIBRARY");
	void *library = cuda ? dlopen(cuda, RTLD_NOW | RTLD_NOLOAD) : NULL;

	return library ? dlsym(library, name) : NULL;
}

/* Groups are kept: one may be part of a recorded program, and run again. */
static void enqueue(struct group *g)
{
	static void (*emulated)(void *, void (*)(void *), void *);
	static bool has_looked;
	void (*work)(void *) = g->count > 0 && g->operation[0].kind == REDUCE ? run_reduce
									      : run_group;

	if (!has_looked)
		*(void **)&emulated = of_emulation("lb_emulated_enqueue");
	has_looked = true;
	if (emulated)
		emulated(g->stream, work, g);
	else
		work(g);
}

static void outlive_programs(void)
{
	int (*programs)(void);

	*(void **)&programs = of_emulation("lb_emulated_programs");
	while (programs && programs() > 0)
		pause_us(1000);
}

/* --- NCCL ------------------------------------------------------------------------------------- */

API enum nccl_result ncclGetVersion(int *version);
API enum nccl_result ncclGetVersion(int *version)
{
	const char *rank = getenv("LOCAL_RANK");
	long given = asked("version", rank ? (int)strtol(rank, NULL, 10) : 0);

	*version = given > 0 ? (int)given : VERSION;
	return given == 0 ? NCCL_REMOTE_ERROR : NCCL_SUCCESS;
}

API enum nccl_result ncclGetUniqueId(struct nccl_id *id);
API enum nccl_result ncclGetUniqueId(struct nccl_id *id)
{
	int fd;

	memset(id, 0, sizeof(*id));
	snprintf(id->bytes, sizeof(id->bytes), "/dev/shm/lb-nccl.XXXXXX");
	fd = mkstemp(id->bytes);
	if (fd < 0)
		return NCCL_SYSTEM_ERROR;
	int rc = ftruncate(fd, sizeof(struct room));
	close(fd);
	return rc ? NCCL_SYSTEM_ERROR : NCCL_SUCCESS;
}

API enum nccl_result ncclCommInitRankConfig(nccl_comm *comm, int size, struct nccl_id id, int rank,
					    struct nccl_config *config);
API enum nccl_result ncclCommInitRankConfig(nccl_comm *comm, int size, struct nccl_id id, int rank,
					    struct nccl_config *config)
{
	nccl_comm c = calloc(1, sizeof(*c));
	int fd = open(id.bytes, O_RDWR | O_CLOEXEC);

	if (!c || size > RANKS || config->magic != (unsigned)NCCL_CONFIG_MAGIC || fd < 0)
		return NCCL_SYSTEM_ERROR;
	c->room = mmap(NULL, sizeof(*c->room), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	c->rank = rank;
	c->size = size;
	c->chance = (uint32_t)rank * 7919 + 1;
	c->blocks = config->blocking != 0;
	c->has_thread = !c->blocks;
	*comm = c;
	if (atomic_fetch_add(&c->room->attached, 1) + 1 == size)
		unlink(id.bytes);
	return c->blocks ? NCCL_SUCCESS : NCCL_IN_PROGRESS;
}

API enum nccl_result ncclCommGetAsyncError(nccl_comm c, enum nccl_result *result);
API enum nccl_result ncclCommGetAsyncError(nccl_comm c, enum nccl_result *result)
{
	int error = atomic_load(&c->error);

	if (atomic_exchange(&c->is_asked, true)) {
		fprintf(stderr, "standin of NCCL: two threads ask a communicator at once\n");
		abort();
	}
	*result = error != NCCL_SUCCESS                       ? (enum nccl_result)error
		  : atomic_load(&c->room->attached) < c->size ? NCCL_IN_PROGRESS
							      : NCCL_SUCCESS;
	if (*result != NCCL_IN_PROGRESS && atomic_exchange(&c->has_thread, false))
		pause_us(JOIN_US);
	atomic_store(&c->is_asked, false);
	return NCCL_SUCCESS;
}

static enum nccl_result leave(nccl_comm c)
{
	munmap(c->room, sizeof(*c->room));
	free(c);
	return NCCL_SUCCESS;
}

API enum nccl_result ncclCommDestroy(nccl_comm c);
API enum nccl_result ncclCommDestroy(nccl_comm c)
{
	outlive_programs();
	return leave(c);
}

/* What runs sees it, and ends; it may be in another thread, so that nothing is freed. */
API enum nccl_result ncclCommAbort(nccl_comm c);
API enum nccl_result ncclCommAbort(nccl_comm c)
{
	atomic_store(&c->is_aborted, true);
	outlive_programs();
	return NCCL_SUCCESS;
}

API const char *ncclGetErrorString(enum nccl_result result);
API const char *ncclGetErrorString(enum nccl_result result)
{
	return result == NCCL_REMOTE_ERROR ? "remote process exited or there was a network error"
					   : "internal error";
}

API enum nccl_result ncclGroupStart(void);
API enum nccl_result ncclGroupStart(void)
{
	if (depth++ > 0)
		return NCCL_SUCCESS;
	open_group = calloc(1, sizeof(*open_group) + OPERATIONS * sizeof(struct operation));
	return open_group ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR;
}

static enum nccl_result add(struct operation o, nccl_comm c, void *stream)
{
	if (!open_group || open_group->count == OPERATIONS || o.peer < 0 || o.peer >= c->size)
		return NCCL_INTERNAL_ERROR;
	open_group->comm = c;
	open_group->stream = stream;
	open_group->operation[open_group->count++] = o;
	return NCCL_SUCCESS;
}

API enum nccl_result ncclSend(const void *from, size_t count, enum nccl_type type, int peer,
			      nccl_comm c, void *stream);
API enum nccl_result ncclSend(const void *from, size_t count, enum nccl_type type, int peer,
			      nccl_comm c, void *stream)
{
	return add((struct operation){ SEND, from, NULL, count * (type == NCCL_FLOAT32 ? 4 : 1),
				       peer },
		   c, stream);
}

API enum nccl_result ncclRecv(void *to, size_t count, enum nccl_type type, int peer, nccl_comm c,
			      void *stream);
API enum nccl_result ncclRecv(void *to, size_t count, enum nccl_type type, int peer, nccl_comm c,
			      void *stream)
{
	return add((struct operation){ RECEIVE, NULL, to, count * (type == NCCL_FLOAT32 ? 4 : 1),
				       peer },
		   c, stream);
}

API enum nccl_result ncclReduce(const void *from, void *to, size_t count, enum nccl_type type,
				enum nccl_operation operation, int root, nccl_comm c, void *stream);
API enum nccl_result ncclReduce(const void *from, void *to, size_t count, enum nccl_type type,
				enum nccl_operation operation, int root, nccl_comm c, void *stream)
{
	if (type != NCCL_FLOAT32 || operation != NCCL_SUM)
		return NCCL_INTERNAL_ERROR;
	return add((struct operation){ REDUCE, from, to, count * sizeof(float), root }, c, stream);
}

API enum nccl_result ncclGroupEnd(void);
API enum nccl_result ncclGroupEnd(void)
{
	struct group *g = open_group;

	if (--depth > 0)
		return NCCL_SUCCESS;
	open_group = NULL;
	if (!g || g->count == 0) {
		free(g);
		return NCCL_SUCCESS;
	}
	g = realloc(g, sizeof(*g) + g->count * sizeof(struct operation));
	nccl_comm c = g->comm;
	atomic_store(&c->has_thread, !c->blocks);
	enqueue(g);
	return c->blocks ? NCCL_SUCCESS : NCCL_IN_PROGRESS;
}
