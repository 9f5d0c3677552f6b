/* SPDX-License-Identifier: MIT */
/* listener.h - the process beside the shepherd that hears the ranks' beats (beat.h). */
#ifndef LBRUN_HEARTBEAT_LISTENER_H
#define LBRUN_HEARTBEAT_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "worker/lbrun/heartbeat/beat.h"

struct listener {
	int fd; /* to be polled for reading; -1 = there is none */
	int port;
	int64_t timeout_ms;
	unsigned char secret[BEAT_SECRET_BYTES];
};

enum listener_news_kind { NEWS_HEARD, NEWS_LOST, NEWS_OVER, NEWS_SLEPT };

struct listener_news {
	/* every rank has a lease; a node is lost; nothing of the closed launch runs any more; it
	 * slept, and answers nobody before listener_trust */
	enum listener_news_kind kind;
	int64_t launch;
	char node[BEAT_NODE_BYTES + 1]; /* NEWS_LOST; "" = all others at once */
};

/* Before this process becomes a subreaper. `host`: by which ranks know this node; where that is
 * this machine alone, nobody else can reach it. `node`: its name in beats; it must live on. -1 with
 * err: then nobody is judged. */
int listener_start(struct listener *l, const char *host, const char *node, int64_t timeout_ms,
		   struct err *err);
/* From now on ranks of that launch, and of no other, are answered. */
void listener_open(struct listener *l, int64_t launch);
/* The run is still this attempt's. */
void listener_trust(struct listener *l);
/* Ends all ranks of the launch, on whatever node; NEWS_OVER follows if all were heard, at the
 * latest when the last lease is over. */
void listener_close(struct listener *l);
/* False: there are none; l->fd is -1 if its process has ended, and nobody is judged any more. */
bool listener_heard(struct listener *l, struct listener_news *out);
/* "NAME=value" for the environment of ranks; owned by the caller, NULL = there is no listener. */
char *listener_for_ranks(const struct listener *l, const char *host, int64_t launch);

#endif
