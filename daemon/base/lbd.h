/* SPDX-License-Identifier: MIT */
/* base/ - what most rooms of the daemon need: its parts, its configuration, its kinds of events.
 *
 * lbd.h - the daemon's parts, as main.c puts them together and the handlers use them. */
#ifndef DAEMON_BASE_LBD_H
#define DAEMON_BASE_LBD_H

#include <uv.h>

#include "common/checkpoint/interval.h"
#include "daemon/base/config.h"
#include "daemon/engine/engine.h"

struct alerts;
struct control;
struct cron;
struct exporter;
struct log_keeper;
struct remover;
struct backup;
struct heartbeat;
struct sync;
struct lock;
struct probe;
struct checking;
struct switchboard;

struct lbd {
	uv_loop_t *loop;
	struct config config;
	struct lock *lock; /* of the folder: it is ours */
	struct ledger *ledger;
	struct scheduler *slurm, *local; /* slurm: NULL where there is none */
	char *slurm_helper;              /* the program that speaks to it; owned */
	char *slurm_note; /* why it is not the one that fits best; owned, NULL: it is */
	struct world world;
	struct engine *engine;
	struct control *control;
	struct cron *cron;
	struct log_keeper *log_keeper;
	struct remover *remover;
	struct probe *probes;    /* questions to the scheduler that are open: runs/probe.h */
	struct checking *checks; /* to lbworker: runs/trainer_check.h */
	struct switchboard *switchboard; /* NULL: not yet open */
	struct exporter *exporter;       /* NULL: the team is not told */
	struct alerts *alerts;           /* NULL: nobody is to be told */
	struct heartbeat *heartbeat;     /* NULL: nobody watches */
	struct sync *sync;               /* NULL: no trackers */
	struct backup *backup;
	int64_t started_ms;       /* wall clock */
	struct troubles troubles; /* of rate.h, as of … */
	int64_t troubles_ms;      /* 0 = not known yet */
	int64_t troubles_took_ms; /* to read */
};

#endif
