/* SPDX-License-Identifier: MIT */
/* canceller.h - who cancelled a job that lbd did not cancel: a person, whose word is respected, or
 * Slurm itself? Pure.
 *
 * Slurm cancels what a node does not take and may not be requeued: after a prolog that failed, or
 * when a controller that died and forgot a job's start starts it a second time ("already running").
 * It does so within moments of that start, or, where the controller died before it had saved the
 * start, of its own: then the job has no nodes ("Could not confirm batch launch"). It may stand still
 * before it comes to that, and then lbd does not hear it. So there is proof of a person where
 *
 *   - accounting names another uid than that of Slurm's daemons, or
 *   - the job was cancelled before it had nodes, by a controller that cannot have forgotten them,
 *     or
 *   - its lbrun had begun, and the controller had seen it run for longer than any launch takes.
 *
 * In all other cases nobody is known to have wanted the end. */
#ifndef DAEMON_ENGINE_DECIDE_CANCELLER_H
#define DAEMON_ENGINE_DECIDE_CANCELLER_H

#include <stdbool.h>
#include <stdint.h>

enum {
	LAUNCH_WINDOW_S =
		180, /* from a start until a node has refused it, Slurm's own retries included */
};

struct cancelled {
	bool had_nodes;
	bool claimed; /* its lbrun had begun */
	/* seconds, by the controller's clock; 0: not known */
	int64_t submit_time, start_time, end_time, controller_start;
	bool just_heard; /* lbd saw the end within that window of a gap in which it heard nothing */
	bool has_uid;    /* accounting knows who it was: */
	uint32_t uid;
	uint32_t node_uid; /* of Slurm's daemons on the nodes */
};

/* Is it sure that a person did it? */
bool canceller_is_user(const struct cancelled *c);

#endif
