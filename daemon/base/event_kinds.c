/* SPDX-License-Identifier: MIT */
/* event_kinds.c - the table of event_kinds.h. */
#include "daemon/base/event_kinds.h"

#include <string.h>

#include "common/config/keys.h"

/* clang-format off */
static const struct {
	const char *kind, *next; /* next: NULL = no news unless somebody asks for it */
} kinds[] = {
	{ "completed", "none: the run is done" },
	{ "failed", "look at lbctl logs, then lbctl restart" },
	{ "killed", "lbctl restart starts it again" },
	{ "held", "lbctl release lets it go on" },
	{ "backoff", "none: it is started again" },
	{ "checkpoint_bad", "none: an older one is used" },
	{ "checkpoint_suspect", "none: the one before is used" },
	{ "no_valid_checkpoint", "look at lbctl checkpoints, then lbctl restart --from" },
	{ "no_space", "make room before the next checkpoint, or let it keep fewer" },
	{ "stage_lost", "none: the run goes on from the newest that is shared; more time for the last save keeps it" },
	{ "node_suspect", "have the node looked at; lbctl nodes forgive trusts it again" },
	{ "node_again", "have the node looked at; slurm.exclude keeps the run away from it" },
	{ "fewer_nodes", "none: it trains on what there is, and grows back when the others are free" },
	{ "node_error", "have the node looked at" },
	{ "node_lost", "none: it goes on without the node" },
	{ "spare_node", "none: the node that left the job is avoided by the next one" },
	{ "preflight_skipped", "have the nodes looked at: the run trains on them without a check" },
	{ "gpu_idle", "look at lbctl stacks, or end it: sites cancel jobs that hold idle GPUs" },
	{ "eta_past_limit", "none: it goes on in another job; a longer slurm.time saves the wait" },
	{ "cron_problem", "mend what lbctl cron shows" },
	{ "cron_refused", "mend it, then lbctl cron run" },
	{ "cron_silent", "look at lbctl cron, and at lbctl logs of its last runs" },
	{ "not_running", "look at lbctl status; ask Slurm with scontrol show job, or its administrators" },
	{ KIND_TEST, "none: this was a test" },

	{ "no_seal", NULL }, { "rollback", NULL }, { "cache_off", NULL }, { "same_failure", NULL }, { "checkpoints_large", NULL },
	{ "checkpoints_removed", NULL }, { "checkpoints_stay", NULL }, { "ledger_damaged", NULL },
	{ "attempt_end", NULL }, { "bad_line", NULL }, { "code_changed", NULL }, { "checkpoint", NULL },
	{ "growing_back", NULL }, { "leaving", NULL }, { "created", NULL }, { "cron_disabled", NULL }, { "cron_enabled", NULL },
	{ "cron_missed", NULL }, { "hold", NULL }, { "kill", NULL }, { "launch", NULL },
	{ "launch_end", NULL }, { "lines_refused", NULL }, { "no_socket", NULL },
	{ "node_forgiven", NULL }, { "note", NULL }, { "notify_failed", NULL },
	{ KIND_TOLD, NULL }, { "preflight", NULL }, { "preflight_node", NULL }, { "preflight_unclear", NULL }, { "output_not_read", NULL }, { "prequeue_failed", NULL },
	{ "prequeued", NULL }, { "ranks_again", NULL }, { "recovered", NULL }, { "release", NULL }, { "removed", NULL }, { "restart", NULL },
	{ "restarted", NULL }, { "running", NULL }, { "save", NULL }, { "scratch", NULL },
	{ "slow_rank", NULL }, { "spool_bad", NULL }, { "spool_gap", NULL },
	{ "stacks", NULL }, { "stage_off", NULL }, { "stage_risk", NULL }, { "stage_stays", NULL }, { "steps_left", NULL }, { "stop", NULL }, { "submitted", NULL },
	{ "switch_refused", NULL }, { "switches_refused", NULL }, { "team_refused", NULL },
	{ "task_cancelled", NULL }, { "task_failed", NULL }, { "xid", NULL },
};
/* clang-format on */

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static int find(const char *kind)
{
	int i = 0;

	while (i < KINDS && strcmp(kinds[i].kind, kind) != 0)
		i++;
	return i;
}

bool event_is_usual(const char *kind)
{
	int i = find(kind);

	return i < KINDS && kinds[i].next;
}

const char *event_next(const char *kind)
{
	return event_is_usual(kind) ? kinds[find(kind)].next : "none";
}

int event_kind_check(const char *kind, struct err *err)
{
	const char *names[KINDS], *guess;

	if (find(kind) < KINDS)
		return 0;
	for (int i = 0; i < KINDS; i++)
		names[i] = kinds[i].kind;
	guess = nearest(kind, names, KINDS);
	return err_set(err, ERR_USAGE, "there is no kind \"%.60s\" of events%s%s%s", kind,
		       guess ? "; did you mean \"" : "; lbd.toml(5) lists them", guess ? guess : "",
		       guess ? "\"?" : "");
}
