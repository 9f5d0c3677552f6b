/* SPDX-License-Identifier: MIT */
/* canceller.c - the proofs, one after the other. */
#include "daemon/engine/decide/canceller.h"

enum { ROOT = 0 };

bool canceller_is_user(const struct cancelled *c)
{
	bool ran_for_long = c->start_time > 0 && c->end_time - c->start_time >= LAUNCH_WINDOW_S;
	bool is_new = c->just_heard || c->end_time < c->controller_start + LAUNCH_WINDOW_S;
	bool may_be_forgotten = c->controller_start > c->submit_time && is_new;

	if ((!c->had_nodes && !may_be_forgotten) || (c->claimed && ran_for_long))
		return true;
	return c->has_uid && c->uid != ROOT && c->uid != c->node_uid;
}
