/* SPDX-License-Identifier: MIT */
/* post.h - datagrams (beat.h) on their way. */
#ifndef LBRUN_HEARTBEAT_POST_H
#define LBRUN_HEARTBEAT_POST_H

#include "worker/lbrun/heartbeat/beat.h"

/* What the network does not take now is lost, as on its way. */
void beat_post(int fd, const struct beat *beat, const unsigned char secret[BEAT_SECRET_BYTES],
	       const struct sockaddr_in *at);
/* The next that has come; BEAT_NONE: it was none of ours. False: there is none. */
bool beat_fetch(int fd, const unsigned char secret[BEAT_SECRET_BYTES], struct beat *out,
		struct sockaddr_in *from);

#endif
