/* SPDX-License-Identifier: MIT */
/* beat.c - datagrams as bytes, and what follows from when they came. */
#include "worker/lbrun/heartbeat/beat.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

enum {
	RANKS_MAX = 1 << 20,
	BEATS = 8,       /* in a timeout */
	TURNS = 4,       /* of the listener, in the time from beat to beat */
	LEASE_PARTS = 5, /* of these eight */
	LEAST_EVERY_MS = 20,
	/* layout of a datagram, big-endian */
	AT_KIND = 4,
	AT_SECRET = 8,
	AT_LAUNCH = AT_SECRET + BEAT_SECRET_BYTES,
	AT_RANK = AT_LAUNCH + 4,
	AT_RANKS = AT_RANK + 4,
	AT_SENT = AT_RANKS + 4,
	AT_NODE = AT_SENT + 8,
};

_Static_assert(AT_NODE + BEAT_NODE_BYTES == BEAT_BYTES, "a datagram");

static const char magic[4] = { 'L', 'B', 'H', '2' };

static void put_u32(unsigned char *to, int64_t n)
{
	uint32_t big = htobe32((uint32_t)n);

	memcpy(to, &big, sizeof(big));
}

static int64_t get_u32(const unsigned char *from)
{
	uint32_t big;

	memcpy(&big, from, sizeof(big));
	return be32toh(big);
}

void beat_write(const struct beat *beat, const unsigned char secret[BEAT_SECRET_BYTES],
		unsigned char out[BEAT_BYTES])
{
	uint64_t sent = htobe64((uint64_t)beat->sent_ms);

	memset(out, 0, BEAT_BYTES);
	memcpy(out, magic, sizeof(magic));
	out[AT_KIND] = (unsigned char)beat->kind;
	memcpy(out + AT_SECRET, secret, BEAT_SECRET_BYTES);
	put_u32(out + AT_LAUNCH, beat->launch);
	put_u32(out + AT_RANK, beat->rank);
	put_u32(out + AT_RANKS, beat->ranks);
	memcpy(out + AT_SENT, &sent, sizeof(sent));
	memcpy(out + AT_NODE, beat->node, strnlen(beat->node, BEAT_NODE_BYTES));
}

/* In the same time, whatever differs. */
static bool is_secret(const unsigned char *a, const unsigned char *b)
{
	unsigned char differ = 0;

	for (int i = 0; i < BEAT_SECRET_BYTES; i++)
		differ |= a[i] ^ b[i];
	return differ == 0;
}

bool beat_read(const unsigned char *data, size_t len, const unsigned char secret[BEAT_SECRET_BYTES],
	       struct beat *out)
{
	uint64_t sent;

	if (len != BEAT_BYTES || memcmp(data, magic, sizeof(magic)) != 0 ||
	    !is_secret(data + AT_SECRET, secret) || data[AT_KIND] < BEAT_HELLO ||
	    data[AT_KIND] >= BEAT_KINDS)
		return false;
	*out = (struct beat){ .kind = (enum beat_kind)data[AT_KIND],
			      .launch = get_u32(data + AT_LAUNCH),
			      .rank = get_u32(data + AT_RANK),
			      .ranks = get_u32(data + AT_RANKS) };
	memcpy(&sent, data + AT_SENT, sizeof(sent));
	out->sent_ms = (int64_t)be64toh(sent);
	memcpy(out->node, data + AT_NODE, BEAT_NODE_BYTES);
	return out->rank < RANKS_MAX && out->node[0];
}

int64_t beat_every_ms(int64_t timeout_ms)
{
	return timeout_ms / BEATS > LEAST_EVERY_MS ? timeout_ms / BEATS : LEAST_EVERY_MS;
}

int64_t beat_lease_ms(int64_t timeout_ms)
{
	return timeout_ms * LEASE_PARTS / BEATS;
}

/* --- the lease -------------------------------------------------------------------------------- */

/* When the listener has given it up, or would have, had it heard the last question. */
static int64_t kill_at_ms(const struct lease *l)
{
	int64_t lost_ms = l->answered_ms + l->timeout_ms;
	int64_t asked_ms = l->stopped_ms + l->timeout_ms - beat_lease_ms(l->timeout_ms);

	return lost_ms > asked_ms ? lost_ms : asked_ms;
}

enum lease_step lease_step(const struct lease *l, int64_t now_ms)
{
	if (l->is_over)
		return LEASE_KILL;
	if (l->answered_ms < 0 || now_ms < l->answered_ms + beat_lease_ms(l->timeout_ms))
		return LEASE_RUN;
	return l->stopped_ms >= 0 && now_ms >= kill_at_ms(l) ? LEASE_KILL : LEASE_STOP;
}

int64_t lease_next_ms(const struct lease *l)
{
	if (l->is_over || l->answered_ms < 0)
		return INT64_MAX;
	return l->stopped_ms >= 0 ? kill_at_ms(l) : l->answered_ms + beat_lease_ms(l->timeout_ms);
}

/* --- who is silent ---------------------------------------------------------------------------- */

void beats_clear(struct beats *b)
{
	free(b->ranks);
	b->ranks = NULL;
	b->count = 0;
	b->heard = b->expected = 0;
}

void beats_open(struct beats *b, int64_t launch)
{
	beats_clear(b);
	b->launch = launch;
	b->is_open = true;
	b->is_told_heard = b->is_told_over = b->is_in_doubt = false;
}

void beats_close(struct beats *b)
{
	b->is_open = false;
}

static struct beats_rank *rank_of(struct beats *b, size_t number)
{
	if (number >= b->count) {
		b->ranks = xrealloc(b->ranks, (number + 1) * sizeof(b->ranks[0]));
		memset(b->ranks + b->count, 0, (number + 1 - b->count) * sizeof(b->ranks[0]));
		b->count = number + 1;
	}
	return &b->ranks[number];
}

/* Without a rank that it has heard it takes no turns. */
bool beats_wake(struct beats *b, int64_t now_ms)
{
	bool slept = b->is_open && b->count > 0 && b->turn_ms > 0 &&
		     now_ms - b->turn_ms >= beat_lease_ms(b->timeout_ms);

	b->is_in_doubt |= slept;
	return slept;
}

void beats_trust(struct beats *b)
{
	b->is_in_doubt = false;
}

enum beat_kind beats_hear(struct beats *b, const struct beat *beat, const struct sockaddr_in *from,
			  int64_t now_ms)
{
	struct beats_rank *r;

	if (beat->launch == b->launch && beat->kind != BEAT_HELLO) {
		r = rank_of(b, (size_t)beat->rank);
		b->heard += !r->node[0];
		b->expected = beat->ranks;
		memcpy(r->node, beat->node, sizeof(r->node));
		r->from = *from;
		r->heard_ms = now_ms;
		r->has_ended |= beat->kind == BEAT_ENDED;
	}
	if (beat->kind == BEAT_ENDED)
		return BEAT_ANSWER;
	if (!b->is_open || beat->launch != b->launch)
		return BEAT_OVER;
	return b->is_in_doubt ? BEAT_NONE : BEAT_ANSWER;
}

void beats_turn(struct beats *b, int64_t now_ms)
{
	int64_t slept_ms = now_ms - b->turn_ms;

	if (b->turn_ms > 0 && slept_ms > 2 * beat_every_ms(b->timeout_ms))
		for (size_t i = 0; i < b->count; i++)
			b->ranks[i].heard_ms = now_ms;
	b->turn_ms = now_ms;
}

static bool is_silent(const struct beats *b, const struct beats_rank *r, int64_t now_ms)
{
	return now_ms - r->heard_ms >= b->timeout_ms;
}

/* A rank that is heard, or has ended well, is a sign of its node's life. */
static bool is_node_silent(const struct beats *b, const char *node, int64_t now_ms)
{
	for (size_t i = 0; i < b->count; i++)
		if (strcmp(b->ranks[i].node, node) == 0 && !is_silent(b, &b->ranks[i], now_ms))
			return false;
	return true;
}

static bool is_awaited(const struct beats_rank *r)
{
	return r->node[0] && !r->has_ended;
}

static bool is_own(const struct beats *b, const char *node)
{
	return b->here && strcmp(node, b->here) == 0;
}

/* The last words of all other nodes came within two beats: so it looks where our own network
 * failed. */
static bool is_cut_off(const struct beats *b, const char *lost, int64_t now_ms)
{
	int64_t since_ms = now_ms - b->timeout_ms + 2 * beat_every_ms(b->timeout_ms);
	bool are_several = false;

	for (size_t i = 0; i < b->count; i++) {
		const struct beats_rank *r = &b->ranks[i];

		if (!is_awaited(r) || is_own(b, r->node) || strcmp(r->node, lost) == 0)
			continue;
		if (r->heard_ms > since_ms)
			return false;
		are_several = true;
	}
	return are_several && !is_own(b, lost);
}

const char *beats_lost(struct beats *b, int64_t now_ms)
{
	for (size_t i = 0; b->is_open && i < b->count; i++) {
		struct beats_rank *r = &b->ranks[i];

		if (!is_awaited(r) || r->is_told || !is_silent(b, r, now_ms) ||
		    !is_node_silent(b, r->node, now_ms))
			continue;
		bool is_ours = is_cut_off(b, r->node, now_ms);
		for (size_t k = is_ours ? 0 : i; k < b->count; k++)
			b->ranks[k].is_told |= is_ours || strcmp(b->ranks[k].node, r->node) == 0;
		return is_ours ? "" : r->node;
	}
	return NULL;
}

bool beats_are_heard(const struct beats *b)
{
	return b->expected > 0 && b->heard >= b->expected;
}

bool beats_are_over(const struct beats *b, int64_t now_ms)
{
	if (b->is_open || !beats_are_heard(b))
		return false;
	for (size_t i = 0; i < b->count; i++)
		if (is_awaited(&b->ranks[i]) && !is_silent(b, &b->ranks[i], now_ms))
			return false;
	return true;
}

int64_t beats_next_ms(const struct beats *b)
{
	return b->count > 0 ? b->turn_ms + beat_every_ms(b->timeout_ms) / TURNS : INT64_MAX;
}
