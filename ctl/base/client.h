/* SPDX-License-Identifier: MIT */
/* client.h - asking lbd: one request, one answer, and patience while lbd restarts. */
#ifndef CTL_BASE_CLIENT_H
#define CTL_BASE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/run/verbs.h"

enum { CLIENT_PATIENCE_MS = 60 * 1000 };

struct client {
	char *home;            /* $LB_HOME, absolute; owned */
	int fd;                /* -1: not connected */
	struct buf in;         /* what arrived of the answer */
	bool sent;             /* the last question reached lbd's socket whole */
	bool away;             /* client_ask_patient is waiting for lbd */
	int64_t away_since_ms; /* monotonic */
	int64_t deadline_ms;   /* for one answer, connecting included */
	int64_t patience_ms;   /* how long to wait then; a minute unless set */
	/* Tells a person, once each, that lbd went away and that it came back. NULL: say
	 * nothing. */
	void (*tell)(void *arg, const char *text);
	void *tell_arg;
};

/* Nothing is connected before the first question. `home` NULL: $LB_HOME or its default. */
int client_init(struct client *client, const char *home, struct err *err);
void client_fini(struct client *client);

/* What is waited for ends in `left_ms`: no answer takes longer, but for the second that is fair. */
void client_hurry(struct client *client, int64_t left_ms);

/* The `data` of the answer; the caller decrefs. NULL with err: lbd's own error, or ERR_DAEMON when
 * it cannot be reached, or ERR_TIMEOUT when it does not answer. `args` (NULL = none) is taken. */
json_t *client_ask(struct client *client, enum verb verb, json_t *args, struct err *err);

/* The same, but when lbd went away it tries again for patience_ms. For questions that may be asked
 * twice. NULL without err: a signal asked us to stop (interrupted() is true). */
json_t *client_ask_patient(struct client *client, enum verb verb, json_t *args, struct err *err);

/* The process that listens, as this one sees it: in a container lbd has another number for itself.
 * 0: it cannot be seen from here, or nothing is connected. */
int64_t client_peer_pid(const struct client *client);

/* Adds "did you mean …" to an ERR_NOT_FOUND about a run. */
void client_suggest(struct client *client, const char *run, struct err *err);

/* SIGINT and SIGTERM set a flag from here on, and cut sleeps short; a second one ends us. */
void interrupt_catch(void);
bool interrupted(void);
/* Returns early when a signal came. */
void nap(int64_t ms);

#endif
