/* SPDX-License-Identifier: MIT */
/* trainer_server.h - the socket that trainers report to (LB_SOCKET): connections, lines in, answers
 * out.
 *
 * What a line means is the owner's business. Bounded in every direction: connections, bytes of a
 * line, answers that nobody reads (they are left out; the connection stays, because closing it
 * could kill a trainer that only writes). */
#ifndef LBRUN_TRAINER_TRAINER_SERVER_H
#define LBRUN_TRAINER_TRAINER_SERVER_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/mem.h"

enum {
	HUB_MAX_CONNECTIONS = 64,
	HUB_POLL_MAX = HUB_MAX_CONNECTIONS + 1,
	HUB_ANSWERS_BYTES = 4096, /* waiting for a slow reader */
	HUB_RESERVED_BYTES = 256, /* of them, for orders */
};

struct hub_conn {
	int fd;          /* -1 = free */
	bool is_trainer; /* said something sensible */
	int64_t rank;    /* from its hello; else 0 */
	struct buf in;
	size_t out_len;
	char out[HUB_ANSWERS_BYTES];
};

struct hub {
	int fd;               /* listening; -1 = no socket could be made */
	bool is_paused;       /* no descriptors left: nobody is let in for now */
	char *path;           /* what trainers connect to */
	char *private_folder; /* made for the socket, removed with it; NULL = none */
	struct hub_conn conns[HUB_MAX_CONNECTIONS];
	/* Called for each complete line. */
	void (*on_line)(void *arg, struct hub_conn *conn, const char *line, size_t len);
	/* A peer was dropped, or one too many came. */
	void (*on_trouble)(void *arg, const char *text);
	void *arg;
};

/* Listens in `folder` where the path is short enough for an address, else in a private folder
 * below $TMPDIR. */
int hub_open(struct hub *hub, const char *folder, struct err *err);
void hub_close(struct hub *hub);
/* Reads all that has been sent so far: the last words of a trainer that is dead. */
void hub_drain(struct hub *hub);
/* Takes new connections again after a shortage. */
void hub_resume(struct hub *hub);
/* Ends the connections, for the next launch. */
void hub_drop_all(struct hub *hub);

/* Adds what to wait for; returns how many. */
int hub_poll(const struct hub *hub, struct pollfd *fds);
void hub_turn(struct hub *hub, const struct pollfd *fds, int count);

/* printf of one answer line, with its newline. */
void hub_answer(struct hub_conn *conn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* To every trainer; returns how many there are. */
int hub_order(struct hub *hub, const char *type);
bool hub_has_trainer(const struct hub *hub);

#endif
