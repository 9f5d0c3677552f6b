/* SPDX-License-Identifier: MIT */
/* judge.c - why a launch ended, whether it got anywhere, and whose fault that is: its own, its
 * checkpoint's, the disk's or the node's. */
#include "worker/lbrun/decide/judge.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "common/base/paths.h"

enum stop_why stop_reason(const struct shepherd_facts *f)
{
	return f->stop.why == STOP_SIGNALLED && f->is_warned ? STOP_WARNED : f->stop.why;
}

/* --- why it ended ----------------------------------------------------------------------------- */

static void cannot_start(const struct shepherd_facts *f, struct ending *out)
{
	out->cause = f->launch.may_start_later ? CAUSE_CRASH : CAUSE_LAUNCH_FAIL;
	out->exit_code = -1;
	snprintf(out->text, sizeof(out->text), "%.190s", f->trouble);
}

bool launch_has_steps_left(const struct launch *l)
{
	return l->step_told + l->stride_told < l->target_told;
}

/* A script ends as its last command does, and so does a shell; script(1) always well. */
static bool may_be_anothers(const struct attempt_params *p)
{
	static const char *const names[] = { "sh", "bash", "dash", "zsh", "ksh", "script" };
	char **word = p->command;
	bool is = p->is_script;

	while (word && *word && (strcmp(path_base(*word), "env") == 0 || strchr(*word, '=')))
		word++;
	for (size_t i = 0; word && *word && i < sizeof(names) / sizeof(names[0]); i++)
		is |= strcmp(path_base(*word), names[i]) == 0;
	return is;
}

static void decide_ending(const struct shepherd_facts *f, const struct shepherd_policy *policy,
			  struct ending *out)
{
	const struct launch *l = &f->launch;
	struct launch_facts facts = {
		.wait_status = l->wait_status,
		.said_stopped = l->said_stopped,
		.oom = l->ooms_at_start >= 0 && l->ooms > l->ooms_at_start,
		.requeue_asked = l->is_requeue_asked,
		.submitted_itself = l->is_submitted,
		.preempted = l->is_preempted,
		.lasted_ms = l->ended_ms - l->begun_ms,
		.warned = f->is_warned,
		.peak_mb = l->peak_mb,
		.limit_mb = l->limit_mb,
		.stop = stop_reason(f),
		.goes_on = f->goes_on,
		.stop_text = f->stop_text,
		.rank_end = l->rank_end,
		.complaint = l->complaint,
		/* of a trainer that tells no steps a second start, which ended well, shows
		 * nothing */
		.end_is_last = l->end_is_last && !(l->is_caught && l->step_told < 0),
		.has_come_further = l->has_come_further,
		.has_steps_left = launch_has_steps_left(l),
	};

	facts.is_doubtful = l->hands_on ||
			    (!facts.has_steps_left && (l->has_background || l->target_told > 0));
	facts.has_raised = l->raised_last;
	facts.has_broken_off = may_be_anothers(policy->params) && facts.has_steps_left &&
			       (l->raised_last || facts.oom);
	facts.has_lost_node = l->lost_node_last && (l->target_told <= 0 || facts.has_steps_left);
	ending_decide(&facts, out);
	if (l->unreached_ms > 0 && f->stop.why == STOP_NOT && out->cause != CAUSE_COMPLETED)
		out->cause = CAUSE_NODE_FAIL;
	if (l->said_diverged && out->cause == CAUSE_ERROR)
		out->cause = CAUSE_DIVERGED;
}

/* --- did it get anywhere? --------------------------------------------------------------------- */

/* A trainer that finds its own checkpoints has shown it by going on where it was. */
static bool has_gone_on(const struct shepherd_facts *f, const struct shepherd_policy *policy)
{
	const struct launch *l = &f->launch;
	bool finds_own = policy->finds_own || !f->handed->has_had;

	return finds_own && !l->is_first && l->first_told > f->handed->first_told &&
	       l->step_told > f->handed->best_told;
}

/* What could not write, as we could not, is not to blame for its end. */
static bool may_be_disk(const struct shepherd_facts *f, int64_t now_ms)
{
	int64_t age_ms = now_ms - f->launch.begun_ms;
	int64_t span_ms = age_ms < FULL_DISK_MS ? age_ms : FULL_DISK_MS;

	return f->is_full || (f->full_ms != INT64_MIN && now_ms - f->full_ms <= span_ms);
}

/* --- is the checkpoint to blame? -------------------------------------------------------------- */

static bool is_own_failure(enum cause cause)
{
	return cause == CAUSE_ERROR || cause == CAUSE_CRASH || cause == CAUSE_OOM ||
	       cause == CAUSE_HANG;
}

/* Of a trainer that tells no steps nobody knows how far it came: only a short life counts. */
static bool is_early(const struct shepherd_facts *f, int64_t now_ms)
{
	return f->handed->has_steps || now_ms - f->launch.begun_ms < SOON_MS;
}

static bool is_to_blame(const struct shepherd_facts *f, const struct next *end, int64_t now_ms)
{
	const struct launch *l = &f->launch;

	return l->has_checkpoint && !l->has_come_further && !end->made_progress && end->counts &&
	       !end->ending.is_early && is_own_failure(end->ending.cause) && is_early(f, now_ms);
}

/* --- another launch in place? ----------------------------------------------------------------- */

/* An srun that was killed may leave ranks on other nodes, and one that ended by itself on a node
 * that is lost, which only the end of the job clears, unless heartbeats tell that they have ended:
 * two live trainers must never be. */
bool launch_may_have_left_ranks(const struct shepherd_facts *f,
				const struct shepherd_policy *policy)
{
	bool may_leave = WIFSIGNALED(f->launch.wait_status) || f->lost_node[0];

	return f->launch.has_steps || (policy->is_srun && may_leave && !f->launch.is_quiet);
}

bool attempt_may_have_left_ranks(const struct attempt_exit *end)
{
	return !end || end->cause == CAUSE_LOST || end->left_ranks;
}

/* A node that broke the trainer, or ended two launches in a row, would do so again: another job can
 * keep away from it, a launch in place cannot. */
bool launch_has_sound_nodes(const struct shepherd_facts *f, const struct shepherd_policy *policy)
{
	const struct launch *l = &f->launch;
	bool is_again = l->node[0] && strcmp(l->node, f->node_before) == 0;

	return !policy->in_slurm || l->is_replaced || !(l->is_node_broken || is_again);
}

static bool may_go_on(const struct shepherd_facts *f, const struct shepherd_policy *policy,
		      const struct next *end)
{
	int64_t failures = end->made_progress ? 0 : f->failures + end->counts;
	/* a hang was the launch's, not the attempt's; so was a node, or a rank */
	bool is_wanted = f->stop.why <= STOP_NODE;

	/* of nodes that nobody hears Slurm knows more */
	return is_wanted && !f->cut_off && launch_has_sound_nodes(f, policy) &&
	       !launch_may_have_left_ranks(f, policy) &&
	       ending_may_relaunch(&end->ending, policy->params, failures,
				   f->has_progressed || end->made_progress);
}

struct next launch_judge(const struct shepherd_facts *f, const struct shepherd_policy *policy,
			 int64_t now_ms)
{
	struct next end = { .kind = NEXT_FINISH, .counts = true };
	bool may_roll_back;

	if (f->launch.cannot_start) {
		cannot_start(f, &end.ending);
		return end;
	}
	decide_ending(f, policy, &end.ending);
	end.made_progress = f->launch.has_saved || has_gone_on(f, policy);
	end.counts = !may_be_disk(f, now_ms) && !(f->launch.is_hardware && policy->in_slurm) &&
		     end.ending.cause != CAUSE_NODE_FAIL;
	end.blames = is_to_blame(f, &end, now_ms);
	may_roll_back = end.ending.cause == CAUSE_DIVERGED && policy->params->rollback > 0;
	end.rolls_back = may_roll_back && !f->handed->has_rolled_back;
	end.ending.is_final |= may_roll_back && !end.rolls_back;
	end.goes_on = may_go_on(f, policy, &end);
	return end;
}

bool launch_gets_nowhere(const struct shepherd_facts *f, const struct shepherd_policy *policy)
{
	const struct attempt_params *p = policy->params;
	int64_t of_run = f->failures + (f->has_progressed ? 0 : p->without_progress);

	return of_run >= 2 || (of_run == 1 && p->max_without_progress == 2);
}
