/* SPDX-License-Identifier: MIT */
/* listener.c - one socket, one loop: hear all that has come, then judge who was not heard. */
#include "worker/lbrun/heartbeat/listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "worker/lbrun/end/beside.h"
#include "worker/lbrun/heartbeat/beater.h"
#include "worker/lbrun/heartbeat/post.h"

enum { BURST = 4096, BUFFER_BYTES = 4 * 1024 * 1024, OVER_TIMES = 2 };

struct order {
	enum { ORDER_OPEN, ORDER_CLOSE, ORDER_TRUST } what;
	int64_t launch;
};

/* --- the process ------------------------------------------------------------------------------ */

struct ear {
	int udp, pair;
	struct beats beats;
	const unsigned char *secret;
};

static void answer(const struct ear *e, const struct beat *to, enum beat_kind kind,
		   const struct sockaddr_in *at)
{
	struct beat beat = *to;

	beat.kind = kind;
	if (kind != BEAT_NONE)
		beat_post(e->udp, &beat, e->secret, at);
}

static void hear_beats(struct ear *e)
{
	struct sockaddr_in from;
	struct beat beat;

	for (int i = 0; i < BURST && beat_fetch(e->udp, e->secret, &beat, &from); i++)
		if (beat.kind != BEAT_NONE)
			answer(e, &beat, beats_hear(&e->beats, &beat, &from, clock_mono_ms()),
			       &from);
}

/* At once, twice; who hears neither is told when it asks. */
static void tell_over(const struct ear *e)
{
	struct beat beat = { .launch = e->beats.launch, .node = "-" };

	for (size_t i = 0; i < OVER_TIMES * e->beats.count; i++) {
		const struct beats_rank *r = &e->beats.ranks[i % e->beats.count];

		beat.rank = (int64_t)(i % e->beats.count);
		if (r->node[0] && !r->has_ended)
			answer(e, &beat, BEAT_OVER, &r->from);
	}
}

static void heed(struct ear *e)
{
	struct order order;
	ssize_t n = recv(e->pair, &order, sizeof(order), MSG_DONTWAIT);

	if (n == 0)
		_exit(0); /* the shepherd has ended: leases end by themselves */
	if (n != (ssize_t)sizeof(order))
		return;
	if (order.what == ORDER_OPEN) {
		beats_open(&e->beats, order.launch);
	} else if (order.what == ORDER_TRUST) {
		beats_trust(&e->beats);
	} else {
		beats_close(&e->beats);
		tell_over(e);
	}
}

static void tell(const struct ear *e, enum listener_news_kind kind, const char *node)
{
	struct listener_news news = { .kind = kind, .launch = e->beats.launch };

	snprintf(news.node, sizeof(news.node), "%s", node);
	send(e->pair, &news, sizeof(news), MSG_NOSIGNAL);
}

static void judge(struct ear *e)
{
	int64_t now_ms = clock_mono_ms();
	const char *lost;

	beats_turn(&e->beats, now_ms);
	if (!e->beats.is_told_heard && beats_are_heard(&e->beats)) {
		e->beats.is_told_heard = true;
		tell(e, NEWS_HEARD, "");
	}
	while ((lost = beats_lost(&e->beats, now_ms)) != NULL)
		tell(e, NEWS_LOST, lost);
	if (e->beats.launch > 0 && !e->beats.is_told_over && beats_are_over(&e->beats, now_ms)) {
		e->beats.is_told_over = true;
		tell(e, NEWS_OVER, "");
		beats_clear(&e->beats);
	}
}

static void __attribute__((noreturn)) listen_on(struct ear *e)
{
	struct pollfd fds[2] = { { .fd = e->udp, .events = POLLIN },
				 { .fd = e->pair, .events = POLLIN } };

	for (;;) {
		int64_t now_ms = clock_mono_ms(), next_ms = beats_next_ms(&e->beats);
		int wait_ms = next_ms == INT64_MAX ? -1
			      : next_ms > now_ms   ? (int)(next_ms - now_ms)
						   : 0;

		poll(fds, 2, wait_ms);
		if (beats_wake(&e->beats, clock_mono_ms()))
			tell(e, NEWS_SLEPT, "");
		hear_beats(e);
		if (fds[1].revents)
			heed(e);
		/* not at every datagram of thousands of ranks, unless one is waited for */
		if (!e->beats.is_open || fds[1].revents ||
		    clock_mono_ms() >= beats_next_ms(&e->beats))
			judge(e);
	}
}

/* --- beside the shepherd ---------------------------------------------------------------------- */

/* Where the name that others have for us is this machine itself, they are here, too. */
static in_addr_t address_of(const char *host)
{
	struct addrinfo hints = { .ai_family = AF_INET }, *found = NULL;
	in_addr_t at = INADDR_ANY;

	if (getaddrinfo(host, NULL, &hints, &found) == 0 && found) {
		const struct sockaddr_in *in =
			(const struct sockaddr_in *)(const void *)found->ai_addr;

		if (ntohl(in->sin_addr.s_addr) == INADDR_LOOPBACK)
			at = INADDR_LOOPBACK;
		freeaddrinfo(found);
	}
	return htonl(at);
}

static int open_udp(const char *host, int *port, struct err *err)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), room = BUFFER_BYTES;
	socklen_t size = sizeof(at);

	at.sin_addr.s_addr = address_of(host);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &size) < 0) {
		err_errno(err, "a socket for heartbeats");
		if (fd >= 0)
			close(fd);
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)); /* as much as is allowed */
	*port = ntohs(at.sin_port);
	return fd;
}

int listener_start(struct listener *l, const char *host, const char *node, int64_t timeout_ms,
		   struct err *err)
{
	struct ear ear = { .secret = l->secret };
	int pair[2], udp;

	*l = (struct listener){ .fd = -1, .timeout_ms = timeout_ms };
	if (getrandom(l->secret, sizeof(l->secret), 0) != (ssize_t)sizeof(l->secret))
		return err_errno(err, "getrandom");
	if ((udp = open_udp(host, &l->port, err)) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		close(udp);
		return err_errno(err, "socketpair");
	}
	if (beside_begin("lbrun-listener", (const int[]){ udp, pair[1] }, 2)) {
		ear.udp = udp;
		ear.pair = pair[1];
		ear.beats.timeout_ms = timeout_ms;
		ear.beats.here = node;
		listen_on(&ear);
	}
	close(udp);
	close(pair[1]);
	l->fd = pair[0];
	return 0;
}

static void tell_listener(struct listener *l, struct order order)
{
	if (l->fd >= 0)
		send(l->fd, &order, sizeof(order), MSG_NOSIGNAL);
}

void listener_open(struct listener *l, int64_t launch)
{
	tell_listener(l, (struct order){ ORDER_OPEN, launch });
}

void listener_close(struct listener *l)
{
	tell_listener(l, (struct order){ .what = ORDER_CLOSE });
}

void listener_trust(struct listener *l)
{
	tell_listener(l, (struct order){ .what = ORDER_TRUST });
}

bool listener_heard(struct listener *l, struct listener_news *out)
{
	ssize_t n = l->fd < 0 ? -1 : recv(l->fd, out, sizeof(*out), MSG_DONTWAIT);

	if (n == 0) { /* nobody hears the ranks any more: their leases end */
		close(l->fd);
		l->fd = -1;
	}
	return n == (ssize_t)sizeof(*out);
}

char *listener_for_ranks(const struct listener *l, const char *host, int64_t launch)
{
	char secret[2 * BEAT_SECRET_BYTES + 1];

	if (l->fd < 0)
		return NULL;
	for (int i = 0; i < BEAT_SECRET_BYTES; i++)
		snprintf(secret + 2 * i, 3, "%02x", l->secret[i]);
	return xasprintf(HEARTBEAT_VARIABLE "=" HEARTBEAT_FORMAT, l->port, (long long)l->timeout_ms,
			 (long long)launch, secret, host);
}
