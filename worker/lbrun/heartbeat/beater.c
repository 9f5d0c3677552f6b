/* SPDX-License-Identifier: MIT */
/* beater.c - a beat every few seconds, and the lease that its answers give. */
#include "worker/lbrun/heartbeat/beater.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/base/strv.h"
#include "worker/lbrun/end/beside.h"
#include "worker/lbrun/end/reap.h"
#include "worker/lbrun/heartbeat/post.h"

enum {
	TEXT_BYTES = 256,
	ADDRESSES = 4,
	KILL_EVERY_MS = 10,
	HANDS_OFF_MS = 2000, /* so long its lbrun may take to see that the rank is dead */
	FIRST_BEATS = 20,    /* unanswered, until that is told */
	LAST_BEAT_MS = 50,   /* between two words of the end … */
	LAST_BEATS = 6,      /* … of so many */
};

struct said {
	bool begins; /* the lease; no text */
	bool ends;
	int64_t unheard_ms; /* it ends because nobody answered for so long */
	char text[TEXT_BYTES];
};

struct heart {
	int udp, pair;
	pid_t lbrun; /* of the rank */
	unsigned char secret[BEAT_SECRET_BYTES];
	struct beat beat; /* as it is sent */
	char host[256];
	struct sockaddr_in at[ADDRESSES]; /* of the listener; the first, once it has answered */
	int count;
	struct lease lease;
	int64_t next_ms;
	int unanswered;
	bool tells; /* for all ranks of the node, that nobody answers */
};

/* It goes on while the machine sleeps. */
static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void __attribute__((format(printf, 3, 4)))
say(const struct heart *h, bool ends, const char *format, ...)
{
	struct said said = { .ends = ends };
	va_list args;

	if (ends && !h->lease.is_over)
		said.unheard_ms = now() - h->lease.answered_ms;
	va_start(args, format);
	vsnprintf(said.text, sizeof(said.text), format, args);
	va_end(args);
	send(h->pair, &said, sizeof(said), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void say_begins(const struct heart *h)
{
	const struct said said = { .begins = true };

	send(h->pair, &said, sizeof(said), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_beat(struct heart *h, enum beat_kind kind)
{
	h->beat.kind = kind;
	h->beat.sent_ms = now();
	for (int i = 0; i < h->count; i++)
		beat_post(h->udp, &h->beat, h->secret, &h->at[i]);
}

/* --- the rank --------------------------------------------------------------------------------- */

static void signal_rank(const struct heart *h, int signo)
{
	pid_t *pids;
	size_t count = descendants_list(h->lbrun, &pids);

	for (size_t i = 0; i < count; i++)
		kill(pids[i], signo);
	free(pids);
}

/* Has its lbrun ended? It says before that nothing of the rank is left (beater_end). */
static bool is_left(const struct heart *h, int64_t wait_ms, bool *is_well)
{
	struct pollfd fd = { .fd = h->pair, .events = POLLIN };
	char word;
	ssize_t n;

	if (poll(&fd, 1, (int)wait_ms) <= 0)
		return false;
	n = recv(h->pair, &word, 1, MSG_DONTWAIT);
	*is_well = n > 0;
	return n >= 0 || errno != EAGAIN;
}

/* The listener waits for this word, but not for long: a lease ends by itself. */
static void __attribute__((noreturn)) leave(struct heart *h, bool is_well)
{
	struct pollfd fd = { .fd = h->udp, .events = POLLIN };
	struct sockaddr_in from;
	struct beat heard;

	for (int i = 0; is_well && h->lease.answered_ms >= 0 && i < LAST_BEATS; i++) {
		send_beat(h, BEAT_ENDED);
		while (poll(&fd, 1, LAST_BEAT_MS) > 0)
			if (beat_fetch(h->udp, h->secret, &heard, &from) &&
			    heard.kind == BEAT_ANSWER && heard.sent_ms == h->beat.sent_ms)
				_exit(0);
	}
	_exit(0);
}

static void __attribute__((noreturn)) end_rank(struct heart *h)
{
	int64_t until_ms = now() + HANDS_OFF_MS;
	bool is_well = false;

	while (!is_left(h, KILL_EVERY_MS, &is_well)) {
		signal_rank(h, SIGKILL);
		if (now() > until_ms)
			kill(h->lbrun, SIGKILL);
	}
	leave(h, is_well);
}

/* --- the loop --------------------------------------------------------------------------------- */

static void hear(struct heart *h)
{
	struct sockaddr_in from;
	struct beat beat;

	while (beat_fetch(h->udp, h->secret, &beat, &from)) {
		if (beat.kind == BEAT_NONE || beat.launch != h->beat.launch)
			continue;
		h->lease.is_over |= beat.kind == BEAT_OVER;
		if (beat.kind != BEAT_ANSWER)
			continue;
		if (h->lease.answered_ms < 0) {
			say_begins(h); /* before the listener hears of it */
			h->next_ms = 0;
		}
		if (beat.sent_ms > h->lease.answered_ms)
			h->lease.answered_ms = beat.sent_ms;
		h->at[0] = from;
		h->count = 1;
	}
}

/* Its own clock is what an answer tells; one lost beat in a row is nothing. */
static void beat(struct heart *h)
{
	bool has_lease = h->lease.answered_ms >= 0;

	if (now() < h->next_ms)
		return;
	h->next_ms = now() + beat_every_ms(h->lease.timeout_ms);
	send_beat(h, has_lease ? BEAT_ALIVE : BEAT_HELLO);
	if (!has_lease && ++h->unanswered == FIRST_BEATS && h->tells)
		say(h, false,
		    "no heartbeat reaches lbrun at %s (UDP, port %d): a node that is lost is "
		    "known only when Slurm knows",
		    h->host, ntohs(h->at[0].sin_port));
}

static void judge(struct heart *h)
{
	enum lease_step step = lease_step(&h->lease, now());
	double silent_s = (double)(now() - h->lease.answered_ms) / 1000;

	if (step == LEASE_KILL) {
		if (h->lease.is_over)
			say(h, true, "its launch is over: what is left of it ends");
		else
			say(h, true, "%s has not answered for %.0f s: the rank ends", h->host,
			    silent_s);
		end_rank(h);
	}
	if (step == LEASE_STOP) {
		if (h->lease.stopped_ms < 0) {
			signal_rank(h, SIGSTOP);
			h->lease.stopped_ms = now();
			h->next_ms = 0;
			say(h, false, "%s has not answered for %.0f s: the rank stands still",
			    h->host, silent_s);
		}
		signal_rank(h, SIGSTOP); /* what was forked meanwhile */
	} else if (h->lease.stopped_ms >= 0) {
		h->lease.stopped_ms = -1;
		signal_rank(h, SIGCONT);
		say(h, false, "%s answers again: the rank goes on", h->host);
	}
}

static void __attribute__((noreturn)) live(struct heart *h)
{
	struct pollfd fds[2] = { { .fd = h->udp, .events = POLLIN },
				 { .fd = h->pair, .events = POLLIN } };

	for (;;) {
		int64_t due_ms = lease_next_ms(&h->lease), now_ms;
		bool is_well = false;

		judge(h);
		beat(h);
		now_ms = now();
		due_ms = due_ms < h->next_ms ? due_ms : h->next_ms;
		poll(fds, 2, due_ms > now_ms ? (int)(due_ms - now_ms) : 0);
		if (fds[1].revents && is_left(h, 0, &is_well))
			leave(h, is_well);
		hear(h);
	}
}

/* --- beside a rank's lbrun -------------------------------------------------------------------- */

static bool read_secret(const char *hex, unsigned char out[BEAT_SECRET_BYTES])
{
	for (int i = 0; i < BEAT_SECRET_BYTES; i++) {
		char two[3] = { hex[2 * i], hex[2 * i] ? hex[2 * i + 1] : '\0', '\0' };
		char *end;

		out[i] = (unsigned char)strtoul(two, &end, 16);
		if (end != two + 2)
			return false;
	}
	return hex[2 * BEAT_SECRET_BYTES] == ':';
}

static void find_host(struct heart *h, int64_t port, struct err *err)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_DGRAM };
	struct addrinfo *found = NULL;

	int trouble = getaddrinfo(h->host, NULL, &hints, &found);

	if (trouble != 0) {
		err_set(err, ERR_IO, "%s: %s", h->host, gai_strerror(trouble));
		return;
	}
	for (const struct addrinfo *a = found; a && h->count < ADDRESSES; a = a->ai_next) {
		memcpy(&h->at[h->count], a->ai_addr, sizeof(h->at[0]));
		h->at[h->count++].sin_port = htons((uint16_t)port);
	}
	freeaddrinfo(found);
}

/* "PORT:TIMEOUT_MS:LAUNCH:SECRET:HOST" */
static int read_setting(struct heart *h, const char *text, struct err *err)
{
	char *rest;
	int64_t port = strtoll(text, &rest, 10);

	if (*rest == ':')
		h->lease.timeout_ms = strtoll(rest + 1, &rest, 10);
	if (*rest == ':')
		h->beat.launch = strtoll(rest + 1, &rest, 10);
	if (*rest != ':' || !read_secret(rest + 1, h->secret))
		return err_set(err, ERR_USAGE, HEARTBEAT_VARIABLE " is none of lbrun's");
	snprintf(h->host, sizeof(h->host), "%s", rest + 2 + 2 * BEAT_SECRET_BYTES);
	if (port > 0 && h->lease.timeout_ms > 0)
		find_host(h, port, err);
	return h->count > 0 ? 0 : -1;
}

int beater_start(struct beater *b, const char *node, int64_t rank, struct err *err)
{
	const char *text = getenv(HEARTBEAT_VARIABLE);
	struct heart h = { .lbrun = getpid(), .lease = { .answered_ms = -1, .stopped_ms = -1 } };
	bool is_asked = text != NULL, is_well = is_asked && read_setting(&h, text, err) == 0;
	int pair[2];

	*b = (struct beater){ .fd = -1 };
	unsetenv(HEARTBEAT_VARIABLE);
	if (!is_well)
		return is_asked ? -1 : 0;
	h.udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (h.udp < 0)
		return err_errno(err, "a socket for heartbeats");
	h.beat.rank = rank;
	h.beat.ranks = env_number("SLURM_STEP_NUM_TASKS");
	h.tells = env_number("SLURM_LOCALID") == 0;
	snprintf(h.beat.node, sizeof(h.beat.node), "%s", node);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
		if (beside_begin("lbrun-beater", (const int[]){ h.udp, pair[1] }, 2)) {
			h.pair = pair[1];
			live(&h);
		}
		close(pair[1]);
		b->fd = pair[0];
	}
	close(h.udp);
	return b->fd < 0 ? err_errno(err, "socketpair") : 0;
}

bool beater_heard(struct beater *b, char *text, size_t size, bool *ends)
{
	struct said said = { 0 };
	ssize_t n;

	do {
		n = b->fd < 0 ? -1 : recv(b->fd, &said, sizeof(said), MSG_DONTWAIT);
		b->has_lease |= n > 0 && said.begins;
	} while (n > 0 && said.begins);
	if (n ==
	    0) { /* it was killed, or never began: nobody would stop the rank at its lease's end */
		close(b->fd);
		b->fd = -1;
		snprintf(text, size, "the process for its heartbeats has ended%s",
			 b->has_lease ? ": the rank ends" : "");
		*ends = b->has_lease;
		return true;
	}
	if (n != (ssize_t)sizeof(said))
		return false;
	said.text[sizeof(said.text) - 1] = '\0';
	snprintf(text, size, "%s", said.text);
	*ends = said.ends;
	if (said.ends)
		b->unheard_ms = said.unheard_ms;
	return true;
}

void beater_end(struct beater *b)
{
	struct pollfd fd = { .fd = b->fd, .events = 0 };

	if (b->fd < 0)
		return;
	send(b->fd, "e", 1, MSG_NOSIGNAL);
	/* its end; what it may still have said is of no interest */
	poll(&fd, 1, LAST_BEATS * LAST_BEAT_MS);
	close(b->fd);
	b->fd = -1;
}
