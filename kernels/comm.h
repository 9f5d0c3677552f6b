/* SPDX-License-Identifier: MIT */
/* comm.h - what the ranks of one training say to each other, as one table of functions.
 *
 * There is one operation, exchange: everybody gives each other rank a piece and gets one of each.
 * Gathers, broadcasts and reductions are exchanges (worker/lbworker/ranks/). Nothing is summed on
 * the way, so that the order of all sums is ours, whoever carries the bytes.
 *
 * kernels/comm/lane.c: exchanges beside what their caller computes;
 * kernels/comm/shared.c: ranks on one machine, over shared memory; kernels/comm/mpi.c: over MPI, a
 * library of its own, liblbmpi.so, which is opened when it is needed. */
#ifndef KERNELS_COMM_H
#define KERNELS_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COMM_ABI = 4, COMM_TEXT_BYTES = 256, COMM_RANKS_MAX = 4096, COMM_NODE_BYTES = 64 };

enum comm_result {
	COMM_OK = 0,
	COMM_FAILED = -1, /* why says it, and nobody else knows yet */
	COMM_TOLD = -2,   /* another rank has failed; why is what it said */
	/* of arrays: nothing has moved for too long, and who is to blame is not known */
	COMM_LATE = -3,
};

/* Borrowed for the call. No bytes: nothing to or from that rank. */
struct comm_part {
	void *at;
	size_t bytes;
};

struct comm_options {
	void *room; /* shared.c: comm_room_make(); else NULL */
	int rank;   /* shared.c: which of them we are */
	/* longer than this nobody stays without a byte from those it waits for */
	double deadline_s;
	const char *node; /* mpi.c: where we run, to name us by */
};

/* Implementations have a larger one that begins so. */
struct comm {
	int rank, size;
	bool one_thread; /* only the thread that opened it may call */
};

struct comm_table {
	uint32_t abi_version;  /* COMM_ABI */
	uint32_t struct_bytes; /* sizeof(struct comm_table) */
	const char *name;

	/* NULL with a line in why[COMM_TEXT_BYTES]. */
	struct comm *(*open)(const struct comm_options *options, char *why);
	/* send and receive: [size]. Of any two ranks: the calls in which something passes between
	 * them come in the same order on both, and what one sends is as long as what the other
	 * expects. So a gather is a call of all ranks, while stages of a pipeline call for their
	 * neighbours alone, each in an order of its own. The own piece is copied, unless receive
	 * has no place for it. Returns when all is sent and received; after a failure nothing but
	 * fail and close may be called. */
	enum comm_result (*exchange)(struct comm *comm, const struct comm_part *send,
				     const struct comm_part *receive, char *why);
	/* Ends the training of all ranks, as far as they can be reached; text: why. */
	void (*fail)(struct comm *comm, const char *text);
	void (*close)(struct comm *comm); /* NULL is fine */
	/* Any thread: has another rank told that the training ends? why[COMM_TEXT_BYTES] is what it
	 * said. NULL: nobody can, other processes are ended by the launcher. */
	bool (*is_told)(struct comm *comm, char *why);
	void (*set_deadline)(struct comm *comm, double deadline_s);
};

/* --- exchanges that go on while their caller computes: lane.c ---
 *
 * One thread of each rank makes those of a lane, one after the other in the order in which they
 * were begun; so the ranks make the same calls in the same order. One caller at a time, and nobody
 * beside the lane exchanges anything over its comm. */

struct comm_lane;

/* The comm and its table are borrowed until close. NULL without memory. */
struct comm_lane *comm_lane_open(const struct comm_table *table, struct comm *comm);
/* Of the comm's exchanges those that were begun are ended first. NULL is fine. */
void comm_lane_close(struct comm_lane *lane);
/* exchange() of the table, begun: a ticket for comm_lane_wait, never 0. The bytes are borrowed
 * until then, send and receive only for the call. Waits when very many are under way. */
uint64_t comm_lane_begin(struct comm_lane *lane, const struct comm_part *send,
			 const struct comm_part *receive);
/* Until that one and all before it are over (UINT64_MAX: all): how they ended. The first failure
 * sticks. */
enum comm_result comm_lane_wait(struct comm_lane *lane, uint64_t ticket, char *why);
/* exchange() of the table behind all that was begun, by the calling thread. */
enum comm_result comm_lane_exchange(struct comm_lane *lane, const struct comm_part *send,
				    const struct comm_part *receive, char *why);

/* An exchange, for a trace; microseconds of CLOCK_MONOTONIC. */
struct comm_span {
	double start_us, end_us;
	size_t bytes; /* sent */
};
/* Notes exchanges from now on in span[room], while there is room; NULL: none. How many it noted
 * since the call before. */
size_t comm_lane_note(struct comm_lane *lane, struct comm_span *span, size_t room);

/* --- arrays in the memory of a device that the host does not look into ---
 *
 * The words of the ranks go by the table above; what is in device memory, and large, goes by the
 * device's own (struct backend, arrays): over NCCL. */

struct arrays;
struct device;
struct nccl;
struct nccl_id;

/* Borrowed until close. */
struct arrays_options {
	const struct nccl *nccl;  /* kernels/nccl.h */
	const struct nccl_id *id; /* the same on all ranks */
	int rank, size;
	double begin_s, deadline_s; /* to meet all others; without any progress */
	/* Any thread: another rank has said that it ends (comm_table.is_told). */
	bool (*is_told)(void *arg, char *why);
	/* Any thread: this rank's library has failed, others may wait for it. */
	void (*tell)(void *arg, const char *why);
	/* Has every rank said yes? A recorded program sends what its recording sent: all ranks
	 * record, and replay, or none. */
	bool (*all_agree)(void *arg, bool yes);
	void *arg;
};

/* An exchange as a device made it: marks before and behind it (struct backend, mark_us). */
struct arrays_span {
	double start_us; /* of the host, when it was queued */
	uint32_t from_mark, to_mark;
	size_t bytes; /* sent */
};

struct arrays_table {
	/* NULL with a line in why[COMM_TEXT_BYTES]. */
	struct arrays *(*open)(struct device *dev, const struct arrays_options *options, char *why);
	/* As exchange of struct comm_table, but begun: behind what is queued on the device so far
	 * and beside what is queued next, in the order of these calls. A ticket for wait; 0: there
	 * is nothing to wait for. While a program is recorded it becomes a part of it, with its
	 * wait. What fails is told by failed(). */
	uint64_t (*begin)(struct arrays *a, const struct comm_part *send,
			  const struct comm_part *receive);
	/* The same: rank r gets the sums over all ranks of what each has at part[r], fp32, in its
	 * own place, part[own]; in whatever order the library adds up. */
	uint64_t (*begin_sum)(struct arrays *a, const struct comm_part *part);
	/* What is queued from here on comes behind that one and all before it. */
	void (*wait)(struct arrays *a, uint64_t ticket);
	/* Notes exchanges from now on in span[room], while there is room; NULL: none. How many it
	 * noted since the call before. */
	size_t (*note)(struct arrays *a, struct arrays_span *span, size_t room);
	/* The GPU's compute capability: 90 is 9.0. */
	int (*capability)(const struct device *dev);
	/* So long nothing may stand still from now on. */
	void (*set_deadline)(struct arrays *a, double deadline_s);
	/* COMM_OK, or the first failure: then all that was queued has ended or will. */
	enum comm_result (*failed)(struct arrays *a, char *why);
	void (*close)(struct arrays *a); /* NULL is fine */
};

/* --- ranks that one process starts on its machine: shared.c --- */

extern const struct comm_table comm_shared;

/* The memory of `size` ranks, made before they are forked; NULL without memory. */
void *comm_room_make(int size);
void comm_room_free(void *room, int size);
/* For the process that started them: the first cause, later ones change nothing. */
void comm_room_fail(void *room, const char *text);
/* The first cause; NULL: none. Borrowed from the room. */
const char *comm_room_failure(const void *room);

/* Has that rank closed its end? One that ends without was ended by something else. */
bool comm_room_has_left(const void *room, int rank);

/* --- load.c --- */

/* The table of liblbmpi.so, or NULL with a line in why[COMM_TEXT_BYTES]. */
const struct comm_table *comm_load_mpi(char *why);

#endif
