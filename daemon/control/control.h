/* SPDX-License-Identifier: MIT */
/* control/ - the socket: who is let in, whose turn it is, requests and answers.
 *
 * control.h - the control socket: connections, frames, who may ask, answers.
 *
 * Every limit a stranger could press against is here: connections in all and per user, bytes of a
 * frame, bytes of unread answers, time for a frame to become complete. */
#ifndef DAEMON_CONTROL_CONTROL_H
#define DAEMON_CONTROL_CONTROL_H

#include <jansson.h>

#include "common/base/err.h"
#include "daemon/base/lbd.h"
#include "daemon/control/peer.h"
#include "sql/ledger.h"

/* A request being answered. Made by control.c; a handler that cannot answer at once keeps it and
 * calls one of the two functions below later, exactly once, even if the peer has gone by then. */
struct request {
	struct lbd *lbd;
	enum verb verb;
	json_t *args; /* an object; owned by the request */
	struct peer peer;
	struct conn *conn;    /* NULL once the peer is gone */
	struct request *next; /* of the same connection */
};

/* `data` is taken (NULL = null). */
void request_answer(struct request *request, json_t *data);
void request_refuse(struct request *request, const struct err *err);
/* One of the two, for those who answer later: `arg` is the request; `why` NULL: it went well. */
void request_end(void *arg, json_t *answer, const struct err *why);

/* The run that args.run names. */
int request_run(struct request *request, struct ledger_run *out, struct err *err);

/* Opens HOME/lbd.sock: 0660 and of the team's group when there is one, else 0600. Each request
 * whose peer has the role for it goes to `handle`. */
struct control *control_open(struct lbd *lbd, void (*handle)(struct request *), struct err *err);
/* Listens anew where somebody, or a cleaner of old files, has removed the socket. */
void control_look(struct control *control);
/* Asked before anything is opened: -1 when so few descriptors would leave none for a visitor. */
int control_check_room(struct err *err);
/* Closes everything; the memory goes when the loop has run the close callbacks. */
void control_close(struct control *control);

#endif
