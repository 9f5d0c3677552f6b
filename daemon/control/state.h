/* SPDX-License-Identifier: MIT */
/* state.h - what the parts of the control socket share, from the top down: control.c opens and
 * closes it, door.c lets people in, turns.c says whose turn it is, connection.c reads requests and
 * writes answers, state.c has the state that all of them stand on. */
#ifndef DAEMON_CONTROL_STATE_H
#define DAEMON_CONTROL_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/base/mem.h"
#include "daemon/control/control.h"

enum {
	MAX_CONNS = 512,
	MAX_CONNS_PER_USER = 64,
	MAX_UNHEARD_BYTES = 16 * 1024 * 1024, /* of one user: requests that are not complete yet */
	MAX_UNREAD_BYTES = 4 * 1024 * 1024,   /* of one user: with more nothing new is answered */
	DEADLINE_MS = 10 * 1000, /* for a frame to become complete, for an answer to be read on */
	SWEEP_MS = 1000,
	ACCEPTS = 32,     /* in one turn of the loop */
	TURN_MS = 20,     /* then whoever is to come next waits for the next turn of the loop */
	OWN_FILES = 24,   /* descriptors that no connection gets */
	LEAST_FILES = 48, /* with fewer nobody would be served */
};

/* Whoever asks gets an equal turn: limits are per user, and a turn answers at most one request of
 * each. One turn of the loop reads a chunk of each connection, whatever it holds, answers the
 * owner, and then others for TURN_MS: what one turn leaves over goes on in the next, behind the
 * owner's requests. */
/* made by the first connection, freed with the last */
struct user {
	uid_t uid;
	int conns;
	size_t unheard_bytes;
	size_t unread_bytes; /* of answers; as this turn of the loop began */
	uint64_t turn;       /* of the loop, in which a request of theirs was served last */
	struct user *next;
};

/* made in conn_create, freed in on_conn_closed and nowhere else */
struct conn {
	uv_pipe_t pipe;
	struct control *control;
	struct user *user;
	struct conn *next, **at;
	struct buf in;
	struct peer peer;
	struct request *requests; /* not answered yet */
	size_t searched;          /* so many bytes of `in` hold no end of a frame */
	bool has_frame;           /* a complete one: nothing more is read until it is served */
	bool at_end;              /* the peer says no more: it goes when all is answered */
	int64_t frame_since_ms;   /* monotonic; 0 = no frame has begun */
	int64_t unread_since_ms;  /* since when nothing of its answers was read; 0 = all is */
	size_t unread_bytes;      /* as of then */
};

/* made by control_open; freed when nobody holds it */
struct control {
	struct lbd *lbd;
	uv_poll_t listener;
	uv_idle_t serving; /* active while a request waits for its turn, or a peer to be read on */
	uv_timer_t sweep;
	void (*handle)(struct request *request); /* what lbd does for each verb */
	void (*on_serving)(uv_idle_t *idle);     /* a turn */
	void (*on_sweep)(uv_timer_t *timer);     /* who is too slow is closed */
	int holders;
	int fd, spare_fd; /* the spare one is given up to refuse what comes when none is left */
	char *path;
	struct conn *conns, **last; /* who waited longest is first */
	struct user *users;
	int conn_count;
	uint64_t turn;
	bool is_cut;           /* its time was over: users that it has not served are next */
	char chunk[16 * 1024]; /* what was just read */
};

/* --- state.c ---------------------------------------------------------------------------------- */

/* Each handle of ours and each connection holds the control: callbacks of its writes come last. */
void control_release(struct control *control);

/* NULL while they have no connection. */
struct user *user_find(struct control *control, uid_t uid);
struct user *user_enter(struct control *control, uid_t uid);
void user_leave(struct control *control, struct user *user);
/* A request waits, or a peer may be done: the next turn looks. */
void control_wake(struct control *control);
/* Until the last connection has gone, who is too slow is closed. */
void control_watch(struct control *control);
/* {"ok":false,…}; owned by the caller. */
json_t *control_error(const struct err *err);

/* --- door.c ----------------------------------------------------------------------------------- */

void control_on_listener(uv_poll_t *listener, int status, int events);

/* --- connection.c ----------------------------------------------------------------------------- */

/* Takes the descriptor. */
void conn_create(struct control *control, int fd, const struct peer *peer);
void conn_close(struct conn *c); /* idempotent: any path may call it */
/* What it says next is heard, unless a request of its waits. */
void conn_read_on(struct conn *c);
/* Takes the first request of its buffer, which has_frame says is complete. */
void conn_serve(struct conn *c);
/* Bytes of answers that the peer has not read yet. */
size_t conn_unread(const struct conn *c);

/* --- turns.c ---------------------------------------------------------------------------------- */

/* One turn: what each connection has sent is read, and those who may be served are. */
void control_on_serving(uv_idle_t *idle);
void control_on_sweep(uv_timer_t *timer);

#endif
