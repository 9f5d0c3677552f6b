/* SPDX-License-Identifier: MIT */
/* heartbeat/ - does each node of a launch still live? Known in seconds, and safe to act upon.
 *
 *   node of the batch script                          another node
 *   shepherd ◀─socketpair─▶ listener ◀────UDP────▶ beater ◀─socketpair─▶ lbrun --rank ─▶ rank
 *
 * Beside each rank's lbrun a beater says every few seconds that it lives, and the listener beside
 * the shepherd answers. Both are processes of their own that touch no file system: one that hangs,
 * or a pipe that nobody reads, silences nobody. The beater holds a lease: as long as some beat,
 * sent less than a lease ago, was answered, the rank may run. Then it stops all that descends from
 * its lbrun (SIGSTOP) and asks on; an answer lets it run on, a refusal, or silence to the end,
 * kills it.
 *
 * Why nobody writes twice: the listener calls a node lost when it has heard nothing for the whole
 * timeout. What it heard last was sent before it was heard, so that the leases of that node, which
 * are shorter, ended before. A node that was frozen with all its processes stops its ranks in the
 * first moment in which it runs again, and learns that the launch is over. So a job that Slurm
 * suspended and resumed goes on: everybody slept, nobody has judged anybody (beats_turn).
 *
 * The listener's own node may be the one that is lost. Then all other ranks end with their leases,
 * one lbrun of each node leaves a note in the attempt's folder (common/run/attempt.h), and lbd may
 * give the run to another attempt. So a listener that slept for a lease answers nobody before its
 * shepherd has looked whether the run is still its own (beats_wake).
 *
 * An attempt may also end, or its lbrun be killed, while some rank cannot be reached: that one
 * holds its lease. exit.json says so (left_ranks), or there is none, and the next attempt waits for
 * a lease before its first launch (predecessor_may_have_ranks).
 *
 * Why UDP between the nodes, and neither the run's folder nor srun's own pipes: what another node
 * wrote to NFS is seen after up to a minute, and a file server that hangs would end every run; srun
 * has no way back to its ranks but the stdin of one, and says nothing of a node before slurmctld
 * does. A datagram needs no connection that could block, and each carries a secret of the attempt,
 * which only ranks know. IPv4, as Slurm's own default.
 *
 * Where no answer ever comes (a firewall), no lease begins and nobody is judged: a node that dies
 * is then known by Slurm, in minutes.
 *
 * beat.h - a datagram; the lease of a rank; who is silent. Pure. */
#ifndef LBRUN_HEARTBEAT_BEAT_H
#define LBRUN_HEARTBEAT_BEAT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BEAT_BYTES = 108, BEAT_SECRET_BYTES = 16, BEAT_NODE_BYTES = 64 };

enum beat_kind {
	BEAT_NONE,
	BEAT_HELLO, /* no answer has come yet: no lease, and nobody is judged by it */
	BEAT_ALIVE,
	BEAT_ENDED,  /* nothing of the rank lives any more */
	BEAT_ANSWER, /* to each of these */
	BEAT_OVER,   /* the launch is: the rank must end */
	BEAT_KINDS
};

struct beat {
	enum beat_kind kind;
	int64_t launch, rank;
	int64_t ranks;   /* of the launch that have a beater; 0 = not known */
	int64_t sent_ms; /* by the clock of the rank's node; an answer has that of the question */
	char node[BEAT_NODE_BYTES + 1];
};

void beat_write(const struct beat *beat, const unsigned char secret[BEAT_SECRET_BYTES],
		unsigned char out[BEAT_BYTES]);
/* False: it is none of ours. */
bool beat_read(const unsigned char *data, size_t len, const unsigned char secret[BEAT_SECRET_BYTES],
	       struct beat *out);

/* From the one limit that people set, watch.node_timeout: how often a beat is sent, how long an
 * answer lets a rank run. */
int64_t beat_every_ms(int64_t timeout_ms);
int64_t beat_lease_ms(int64_t timeout_ms);

/* --- the lease of a rank; times by a clock that goes on while the machine sleeps -------------- */

struct lease {
	int64_t timeout_ms;
	/* when the newest beat that was answered had been sent; -1 = none was */
	int64_t answered_ms;
	int64_t stopped_ms; /* the rank stands still since; -1 = it does not */
	bool is_over;       /* the listener said so */
};

enum lease_step { LEASE_RUN, LEASE_STOP, LEASE_KILL };

/* What may become of the rank now. */
enum lease_step lease_step(const struct lease *lease, int64_t now_ms);
/* When that changes without news; INT64_MAX = never. */
int64_t lease_next_ms(const struct lease *lease);

/* --- who is silent; monotonic times ----------------------------------------------------------- */

struct beats_rank {
	char node[BEAT_NODE_BYTES + 1]; /* "" = never heard */
	struct sockaddr_in from;        /* where answers go */
	int64_t heard_ms;
	bool has_ended, is_told; /* told: its node was called lost */
};

struct beats {
	int64_t timeout_ms;
	int64_t launch;   /* the newest; 0 = none yet */
	const char *here; /* the listener's own node; borrowed, NULL = not known */
	bool is_open, is_told_heard, is_told_over;
	bool is_in_doubt;         /* another attempt may have the run: nobody is answered */
	int64_t expected;         /* ranks, as they say; 0 = not known */
	int64_t heard;            /* so many of them have, or had, a lease */
	int64_t turn_ms;          /* the last turn; 0 = none yet */
	struct beats_rank *ranks; /* by number; owned */
	size_t count;
};

void beats_open(struct beats *b, int64_t launch);
/* The launch is over: whoever asks is told to end. */
void beats_close(struct beats *b);
void beats_clear(struct beats *b);
/* First of all that is done in a turn. True: it slept so long that the run may be another's. From
 * then on no rank gets a lease, before beats_trust. */
bool beats_wake(struct beats *b, int64_t now_ms);
void beats_trust(struct beats *b);
/* The answer; BEAT_NONE: none. */
enum beat_kind beats_hear(struct beats *b, const struct beat *beat, const struct sockaddr_in *from,
			  int64_t now_ms);
/* Before anybody is judged, and after all that had come was heard. Who slept itself for a part of
 * the timeout heard nobody: all begin anew. */
void beats_turn(struct beats *b, int64_t now_ms);
/* A node of which no rank was heard for the timeout, once; NULL = none. "" = all but our own, two
 * at least, fell silent together: none of them is to blame. Only of a launch that is open. */
const char *beats_lost(struct beats *b, int64_t now_ms);
/* Every rank of it is, or was, bound by a lease. */
bool beats_are_heard(const struct beats *b);
/* A launch that is closed: every rank of it was heard, and has ended, or its lease has. Of a rank
 * that was never heard nobody knows: then never. */
bool beats_are_over(const struct beats *b, int64_t now_ms);
/* The next turn is due then at the latest. */
int64_t beats_next_ms(const struct beats *b);

#endif
