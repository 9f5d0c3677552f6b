/* SPDX-License-Identifier: MIT */
/* acts.c - what each step of decide/decide.h does, a row each; what that finds out goes into the
 * facts. */
#include <signal.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "worker/lbrun/decide/judge.h"
#include "worker/lbrun/end/reap.h"
#include "worker/lbrun/shepherd/shepherd.h"

typedef void act_fn(struct shepherd *s, const struct next *next, int64_t now_ms);

static void act_turn_away(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	const struct shepherd_facts *f = &s->facts;

	(void)next;
	(void)now_ms;
	if (f->claim == CLAIM_TAKEN)
		log_warn("attempt %lld of %s is claimed already; nothing was started",
			 (long long)s->params.number, s->params.run);
	else if (f->claim == CLAIM_NONE)
		log_warn("fenced: attempt %lld of %s has the run; nothing was started",
			 (long long)f->newest_claim, s->params.run);
	s->is_left = true;
}

static void act_claim(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)next;
	(void)now_ms;
	opening_claim(s);
}

static void act_look(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	orders_look(s, now_ms);
	if (next->is_last)
		switch_watch_look_at_all(s, now_ms);
}

static void act_check(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)next;
	starting_enter(&s->starting, STARTING_CHECK, now_ms);
	preflight_begin(s);
}

static void act_check_skip(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)next;
	(void)now_ms;
	preflight_skip(s);
}

static void act_check_kill(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)next;
	(void)now_ms;
	preflight_kill(s);
}

/* --- from the search to the launch ------------------------------------------------------------ */

/* What a person chose holds for the first launch only: what that one saves is newer. */
static const char *chosen(const struct shepherd *s)
{
	return s->facts.launch.number == 0 ? s->params.resume : "latest";
}

static void act_search(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	struct search_request request = {
		.folder = s->params.checkpoint_dir,
		.stage = stage_has_parts(&s->stage) ? NULL : s->stage.folder,
		.choice = chosen(s),
		.rules = s->rules,
		.handed = &s->handed,
		.seals = s->seals,
		.check_ms = s->params.check_ms,
	};
	struct err why = { 0 };

	(void)next;
	starting_enter(&s->starting, STARTING_SEARCH, now_ms);
	if (search_start(&s->search, &request, &why) == 0)
		return;
	s->facts.looking = LOOKING_FAILED;
	snprintf(s->trouble, sizeof(s->trouble), "%s", why.text);
}

static void act_search_lost(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)next;
	(void)now_ms;
	output_say(&s->output, "%s", s->search.text);
}

static void act_hand_over(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)next;
	(void)now_ms;
	torn_set_aside(s);
	staging_before_launch(s);
	saves_begin(s);
}

static void act_launch(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)next;
	(void)now_ms;
	launch_begin(s);
}

/* There are checkpoints, and none may be used. */
static void tell_refusal(struct shepherd *s)
{
	struct ending *e = &s->facts.ending;

	if (chosen(s)[0] == '/')
		snprintf(e->text, sizeof(e->text),
			 "the checkpoint %.90s is not valid: choose another (lbctl restart --from)",
			 chosen(s));
	else
		snprintf(e->text, sizeof(e->text),
			 "no valid checkpoint in %.90s: lbctl checkpoints %s --deep says why",
			 s->params.checkpoint_dir, s->params.run);
	output_say(&s->output, "%s", e->text);
	output_say(&s->output, "%s", s->search.text);
	journal_note(
		&s->journal, s->facts.launch.number, "no_valid_checkpoint",
		"%s; lbctl checkpoints %s --deep shows each, lbctl restart %s --from STEP takes one, "
		"--from scratch none",
		s->search.text, s->params.run, s->params.run);
}

static void act_give_up(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)now_ms;
	if (next->ending.is_final)
		tell_refusal(s);
	search_stop(&s->search);
	preflight_kill(s);
}

/* --- the trainer ------------------------------------------------------------------------------ */

static void act_trust(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)next;
	(void)now_ms;
	saves_trust(s);
}

static void act_save(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)next;
	(void)now_ms;
	orders_save(s);
}

static void act_stacks(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	hang_write_stacks(s, next->is_hang, now_ms);
}

static void act_ask(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)next;
	(void)now_ms;
	trainer_server_order(&s->server, "stop");
}

static void act_term(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)next;
	(void)now_ms;
	launch_term(s);
}

static void act_kill(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)next;
	(void)now_ms;
	launch_kill(s);
}

static void act_clear(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)now_ms;
	/* What copies a checkpoint ends with all others, and is begun again: that is no failure of
	 * it. */
	if (next->signo)
		stage_break_off(&s->stage);
	s->facts.launch.left = descendants_signal(next->signo);
}

static void act_drain(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)next;
	(void)now_ms;
	launch_drain(s);
	heartbeats_replace(s);
}

static void act_finish(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)now_ms;
	launch_finish(s, next);
}

/* --- the end of the attempt ------------------------------------------------------------------- */

static void act_sync(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)next;
	(void)now_ms;
	s->facts.is_unwritten = !journal_sync(&s->journal);
}

static void act_close(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	staging_tell_lost(s);
	output_finish(&s->output, now_ms);
	if (s->has_errors)
		output_finish(&s->errors, now_ms);
	trainer_server_close(&s->server);
	record_attempt_end(s);
	act_sync(s, next, now_ms);
}

/* exit.json is the last thing that happens: who sees it may take it that all else is done. */
static void act_record(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	const struct ending *end = &s->facts.ending;
	struct attempt_exit e = {
		.cause = end->cause,
		.exit_code = end->exit_code,
		.signal = end->signal,
		.is_final = end->is_final,
		.is_node = end->is_node,
		.left_ranks = launch_may_have_left_ranks(&s->facts, &s->policy),
		.launches = s->facts.launch.number,
		.switched = s->switch_order,
		.last_seq = s->journal.spool.seq,
		.time_ms = clock_wall_ms(),
	};
	struct err why = { 0 };

	(void)next;
	(void)now_ms;
	snprintf(e.token, sizeof(e.token), "%s", s->params.token);
	snprintf(e.text, sizeof(e.text), "%s", end->text);
	s->facts.is_recorded = script_task_end(s, &why) == 0 &&
			       failpoint(FP_EXIT_BEFORE, &why) == 0 &&
			       attempt_exit_write(s->folder, &e, &why) == 0;
	if (s->facts.is_recorded)
		failpoint(FP_EXIT_WRITTEN, NULL);
	snprintf(s->trouble, sizeof(s->trouble), "%s", why.text);
}

static void act_leave(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	(void)next;
	(void)now_ms;
	if (!s->facts.is_recorded)
		output_say(&s->output, "cannot write the exit record: %s", s->trouble);
	s->status = ending_exit_status(&s->facts.ending);
	s->is_left = true;
}

static act_fn *const acts[NEXT_COUNT] = {
	[NEXT_TURN_AWAY] = act_turn_away,
	[NEXT_CLAIM] = act_claim,
	[NEXT_LOOK] = act_look,
	[NEXT_HEED] = stop_heed,
	[NEXT_CHECK] = act_check,
	[NEXT_CHECK_SKIP] = act_check_skip,
	[NEXT_CHECK_KILL] = act_check_kill,
	[NEXT_SEARCH] = act_search,
	[NEXT_SEARCH_LOST] = act_search_lost,
	[NEXT_HAND_OVER] = act_hand_over,
	[NEXT_LAUNCH] = act_launch,
	[NEXT_TRUST] = act_trust,
	[NEXT_SAVE] = act_save,
	[NEXT_STACKS] = act_stacks,
	[NEXT_ASK] = act_ask,
	[NEXT_TERM] = act_term,
	[NEXT_KILL] = act_kill,
	[NEXT_CLEAR] = act_clear,
	[NEXT_DRAIN] = act_drain,
	[NEXT_FINISH] = act_finish,
	[NEXT_GIVE_UP] = act_give_up,
	[NEXT_CLOSE] = act_close,
	[NEXT_SYNC] = act_sync,
	[NEXT_RECORD] = act_record,
	[NEXT_LEAVE] = act_leave,
};

void act(struct shepherd *s, const struct next *next, int64_t now_ms)
{
	acts[next->kind](s, next, now_ms);
}
