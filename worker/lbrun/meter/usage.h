/* SPDX-License-Identifier: MIT */
/* usage.h - what the meters of an attempt have written, for the shepherd: each minute and each XID
 * once; and which GPUs are held and do nothing. */
#ifndef LBRUN_METER_USAGE_H
#define LBRUN_METER_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "common/gpu/xid.h"

enum {
	USAGE_GPUS = 64,        /* of a rank that are watched */
	USAGE_IDLE_PERCENT = 2, /* up to that it does nothing */
	USAGE_NAMED = 4,        /* idle GPUs that are named */
};

struct usage_rank {
	int64_t rank, seq, xid_count;
	int64_t idle_s[USAGE_GPUS];
	int gpus;
};

struct usage {
	char *folder;          /* NULL = nothing is measured */
	int64_t idle_after_ms; /* 0 = never told */
	struct usage_rank *ranks;
	size_t count;
	bool is_idle_told;
	/* a minute of a rank; `line` is borrowed */
	void (*on_minute)(void *arg, json_t *line);
	void (*on_xid)(void *arg, const char *node, int64_t gpu, int64_t xid);
	/* GPUs are idle for so long, in words; once until none is */
	void (*on_idle)(void *arg, const char *text);
	void *arg;
};

void usage_open(struct usage *u, const char *attempt_folder, int64_t idle_after_ms);
void usage_close(struct usage *u);
void usage_look(struct usage *u);

/* A file of a meter; pure but for what it calls. */
void usage_take(struct usage *u, json_t *file);
/* After all files. */
void usage_judge_idle(struct usage *u);

#endif
