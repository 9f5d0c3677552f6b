/* SPDX-License-Identifier: MIT */
/* state.c - what all parts of the control socket stand on: who is connected, who holds it, and its
 * next turn. It calls none of them: what a turn does was left in `struct control` when it was
 * opened. */
#include "daemon/control/state.h"

#include <stdlib.h>
#include <unistd.h>

void control_release(struct control *control)
{
	if (--control->holders > 0)
		return;
	close(control->fd);
	if (control->spare_fd >= 0)
		close(control->spare_fd);
	free(control->path);
	free(control);
}

/* --- users ------------------------------------------------------------------------------------ */

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

/* --- turns ------------------------------------------------------------------------------------ */

void control_wake(struct control *control)
{
	if (!uv_is_closing((uv_handle_t *)&control->serving))
		uv_idle_start(&control->serving, control->on_serving);
}

void control_watch(struct control *control)
{
	if (!uv_is_active((uv_handle_t *)&control->sweep))
		uv_timer_start(&control->sweep, control->on_sweep, SWEEP_MS, SWEEP_MS);
}

json_t *control_error(const struct err *err)
{
	return json_pack("{s:i, s:b, s:s, s:s}", "v", CONTROL_VERSION, "ok", 0, "error",
			 err_code_name(err->code), "text", err->text);
}
