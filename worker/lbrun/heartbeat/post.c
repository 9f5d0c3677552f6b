/* SPDX-License-Identifier: MIT */
/* post.c - one datagram at a time, and never a wait. */
#include "worker/lbrun/heartbeat/post.h"

#include <errno.h>
#include <sys/socket.h>

void beat_post(int fd, const struct beat *beat, const unsigned char secret[BEAT_SECRET_BYTES],
	       const struct sockaddr_in *at)
{
	unsigned char data[BEAT_BYTES];

	beat_write(beat, secret, data);
	sendto(fd, data, sizeof(data), MSG_DONTWAIT, (const struct sockaddr *)at, sizeof(*at));
}

bool beat_fetch(int fd, const unsigned char secret[BEAT_SECRET_BYTES], struct beat *out,
		struct sockaddr_in *from)
{
	unsigned char data[BEAT_BYTES + 1];
	socklen_t size = sizeof(*from);
	ssize_t n = recvfrom(fd, data, sizeof(data), MSG_DONTWAIT, (struct sockaddr *)from, &size);

	if (n < 0 && errno != EINTR && errno != ECONNREFUSED)
		return false;
	if (n < 0 || !beat_read(data, (size_t)n, secret, out))
		out->kind = BEAT_NONE;
	return true;
}
