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
	SERVER_MAX_CONNECTIONS = 64,
	SERVER_POLL_MAX = SERVER_MAX_CONNECTIONS + 1,
	SERVER_ANSWERS_BYTES = 4096, /* waiting for a slow reader */
	SERVER_RESERVED_BYTES = 256, /* of them, for orders */
};

struct trainer_conn {
	int fd;          /* -1 = free */
	bool is_trainer; /* said something sensible */
	int64_t rank;    /* from its hello; else 0 */
	struct buf in;
	size_t out_len;
	char out[SERVER_ANSWERS_BYTES];
};

struct trainer_server {
	int fd;               /* listening; -1 = no socket could be made */
	bool is_paused;       /* no descriptors left: nobody is let in for now */
	char *path;           /* what trainers connect to */
	char *private_folder; /* made for the socket, removed with it; NULL = none */
	struct trainer_conn conns[SERVER_MAX_CONNECTIONS];
	/* Called for each complete line. */
	void (*on_line)(void *arg, struct trainer_conn *conn, const char *line, size_t len);
	/* A peer was dropped, or one too many came. */
	void (*on_trouble)(void *arg, const char *text);
	void *arg;
};

/* Listens in `folder` where the path is short enough for an address, else in a private folder
 * below $TMPDIR. */
int trainer_server_open(struct trainer_server *server, const char *folder, struct err *err);
void trainer_server_close(struct trainer_server *server);
/* Does it listen, where trainers look for it? Who cleans /tmp, or scratch, may have removed it. */
bool trainer_server_is_there(const struct trainer_server *server);
/* Reads all that has been sent so far: the last words of a trainer that is dead. */
void trainer_server_drain(struct trainer_server *server);
/* Takes new connections again after a shortage. */
void trainer_server_resume(struct trainer_server *server);
/* Ends the connections, for the next launch. */
void trainer_server_drop_all(struct trainer_server *server);

/* Adds what to wait for; returns how many. */
int trainer_server_poll(const struct trainer_server *server, struct pollfd *fds);
void trainer_server_turn(struct trainer_server *server, const struct pollfd *fds, int count);

/* printf of one answer line, with its newline. */
void trainer_server_answer(struct trainer_conn *conn, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* To every trainer; returns how many there are. */
int trainer_server_order(struct trainer_server *server, const char *type);
bool trainer_server_has_trainer(const struct trainer_server *server);

#endif
