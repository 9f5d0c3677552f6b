/* SPDX-License-Identifier: MIT */
/* daemon/ - lbctl daemon: lbd started and stopped, here or as a job of Slurm.
 *
 * place.h - where lbd is: from its socket, else from its lease, which tells of one on another
 * machine, and of one that is no more. */
#ifndef CTL_DAEMON_PLACE_H
#define CTL_DAEMON_PLACE_H

#include <jansson.h>
#include <stdbool.h>

#include "common/run/lease.h"
#include "ctl/base/command.h"

enum place {
	NOWHERE, /* never started here, or no trace is left */
	ENDED,   /* in peace */
	DIED,    /* on this machine, without a word */
	SILENT,  /* elsewhere, and has not renewed its lease */
	ELSEWHERE,
	HERE, /* alive, but does not answer */
	SERVES,
};

struct found {
	enum place place;
	struct lease lease; /* zeros when NOWHERE */
	struct err unseen;  /* NOWHERE: what kept us from looking; ERR_NONE: nothing did */
	json_t *version;    /* SERVES: its own words; owned */
	int64_t pid;        /* SERVES: as this process sees it; 0: it cannot see it */
};

/* `ask`: its socket, too; out->version is the caller's then. */
void lbd_find(struct ctl *ctl, bool ask, struct found *out);

/* It runs nowhere. */
bool lbd_is_over(enum place place);

/* The lock that somebody holds tells of an older lbd without a lease, too. */
bool lbd_is_locked(const char *home);

#endif
