/* SPDX-License-Identifier: MIT */
/* Whose turn it is. Each turn of the loop answers at most one request of each user, who waited longest
 * first; who is too slow to ask or to listen is closed. */
#include "daemon/control_internal.h"

#include <stdlib.h>

#include "common/clock.h"

/* --- users ------------------------------------------------------------------------------------------ */

struct user *user_find(struct control *control, uid_t uid)
{
	struct user *user = control->users;

	while (user && user->uid != uid)
		user = user->next;
	return user;
}

struct user *user_enter(struct control *control, uid_t uid)
{
	struct user *user = user_find(control, uid);

	if (user == NULL) {
		user = xcalloc(1, sizeof(*user));
		user->uid = uid;
		user->next = control->users;
		control->users = user;
	}
	user->conns++;
	return user;
}

void user_leave(struct control *control, struct user *user)
{
	struct user **at = &control->users;

	if (--user->conns > 0)
		return;
	while (*at != user)
		at = &(*at)->next;
	*at = user->next;
	free(user);
}

/* --- turns ------------------------------------------------------------------------------------------ */

static size_t unread_of_user(const struct control *control, const struct user *user)
{
	size_t bytes = 0;

	for (const struct conn *c = control->conns; c; c = c->next)
		bytes += c->user == user ? conn_unread(c) : 0;
	return bytes;
}

/* Answers come in order, one at a time, and only to who reads them. */
static bool is_ready(const struct conn *c)
{
	return c->has_frame && c->requests == NULL && conn_unread(c) == 0 &&
	       unread_of_user(c->control, c->user) <= MAX_UNREAD_BYTES;
}

/* One request of each user; on_written or an answer wakes us again for those that were not ready. */
static void on_serving(uv_idle_t *idle)
{
	struct control *control = idle->data;
	int count = control->conn_count;
	bool more = false;

	control->turn++;
	for (struct conn *c = control->conns, *next; c && count-- > 0; c = next) {
		next = c->next;
		if (c->at_end && !c->has_frame && c->requests == NULL && conn_unread(c) == 0)
			conn_close(c);
		else if (c->user->turn != control->turn && is_ready(c))
			conn_serve(c);
	}
	for (const struct conn *c = control->conns; c && !more; c = c->next)
		more = is_ready(c);
	if (!more)
		uv_idle_stop(idle);
}

void control_wake(struct control *control)
{
	if (!uv_is_closing((uv_handle_t *)&control->serving))
		uv_idle_start(&control->serving, on_serving);
}

/* --- deadlines -------------------------------------------------------------------------------------- */

static bool is_overdue(struct conn *c, int64_t now_ms)
{
	size_t unread = conn_unread(c);

	if (unread == 0 || unread != c->unread_bytes)
		c->unread_since_ms = unread > 0 ? now_ms : 0;
	c->unread_bytes = unread;
	return (c->unread_since_ms > 0 && now_ms - c->unread_since_ms > DEADLINE_MS) ||
	       (c->frame_since_ms > 0 && now_ms - c->frame_since_ms > DEADLINE_MS);
}

static void on_sweep(uv_timer_t *timer)
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
		control_wake(control);	/* for those who waited for its user's share */
	if (control->conns == NULL)
		uv_timer_stop(timer);
}

void control_watch(struct control *control)
{
	if (!uv_is_active((uv_handle_t *)&control->sweep))
		uv_timer_start(&control->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
}
