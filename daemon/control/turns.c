/* SPDX-License-Identifier: MIT */
/* turns.c - whose turn it is: the owner's, then one request of each other user, who waited longest
 * first; who is too slow to ask or to listen is closed. */
#include "daemon/control/state.h"

#include "common/base/clock.h"

/* --- turns ------------------------------------------------------------------------------------ */

static void count_unread(struct control *control)
{
	for (struct user *user = control->users; user; user = user->next)
		user->unread_bytes = 0;
	for (const struct conn *c = control->conns; c; c = c->next)
		c->user->unread_bytes += conn_unread(c);
}

/* Answers come in order, one at a time, and only to who reads them. */
static bool is_ready(const struct conn *c)
{
	return c->has_frame && c->requests == NULL && conn_unread(c) == 0 &&
	       c->user->unread_bytes <= MAX_UNREAD_BYTES;
}

static bool is_gone(const struct conn *c)
{
	return c->at_end && !c->has_frame && c->requests == NULL && conn_unread(c) == 0;
}

/* The owner's come first, one of each connection. */
static void serve_owner(struct control *control)
{
	int count = control->conn_count;

	for (struct conn *c = control->conns, *next; c && count-- > 0; c = next) {
		next = c->next;
		if (c->peer.role == ROLE_OWNER && is_ready(c))
			conn_serve(c);
	}
}

/* One request of each other user, who waited longest first, until the time is over. */
static void serve_others(struct control *control)
{
	int64_t until_ms = clock_mono_ms() + TURN_MS;
	int count = control->conn_count;

	if (!control->is_cut)
		control->turn++;
	control->is_cut = false;
	for (struct conn *c = control->conns, *next; c && count-- > 0; c = next) {
		next = c->next;
		if (c->peer.role == ROLE_OWNER || c->user->turn == control->turn || !is_ready(c))
			continue;
		if (clock_mono_ms() >= until_ms) {
			control->is_cut = true;
			return;
		}
		conn_serve(c);
	}
}

static bool has_more(const struct control *control)
{
	for (const struct conn *c = control->conns; c; c = c->next)
		if (is_ready(c))
			return true;
	return false;
}

/* on_written, on_read or an answer wakes us again for those that were not ready. */
void control_on_serving(uv_idle_t *idle)
{
	struct control *control = idle->data;

	for (struct conn *c = control->conns, *next; c; c = next) {
		next = c->next;
		if (is_gone(c))
			conn_close(c);
		else
			conn_read_on(c);
	}
	count_unread(control);
	serve_owner(control);
	serve_others(control);
	if (!has_more(control))
		uv_idle_stop(idle);
}

/* --- deadlines -------------------------------------------------------------------------------- */

static bool is_overdue(struct conn *c, int64_t now_ms)
{
	size_t unread = conn_unread(c);

	if (unread == 0 || unread != c->unread_bytes)
		c->unread_since_ms = unread > 0 ? now_ms : 0;
	c->unread_bytes = unread;
	return (c->unread_since_ms > 0 && now_ms - c->unread_since_ms > DEADLINE_MS) ||
	       (c->frame_since_ms > 0 && now_ms - c->frame_since_ms > DEADLINE_MS);
}

void control_on_sweep(uv_timer_t *timer)
{
	struct control *control = timer->data;
	int64_t now_ms = clock_mono_ms();
	bool closed = false;

	for (struct conn *c = control->conns, *next; c; c = next) {
		next = c->next;
		if (!is_overdue(c, now_ms))
			continue;
		conn_close(c);
		closed = true;
	}
	if (closed)
		control_wake(control); /* for those who waited for its user's share */
	if (control->conns == NULL)
		uv_timer_stop(timer);
}
