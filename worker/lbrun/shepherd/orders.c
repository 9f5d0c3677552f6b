/* SPDX-License-Identifier: MIT */
/* orders.c - who may end this attempt, and how they say so: lbd by the file `order` and a signal,
 * the scheduler by a signal alone, a newer attempt by its claim. The files are looked at every 2 s,
 * too: an order must win even when lbd cannot signal us. */
#include <signal.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/run/request.h"
#include "worker/lbrun/shepherd/predecessor.h"
#include "worker/lbrun/shepherd/shepherd.h"
#include "worker/lbrun/trainer/requeue.h"

enum {
	LOOK_EVERY_MS = 2000,
	CHECKPOINT_LOOK_MS = 10 * 1000,
};

static void look_for_order(struct shepherd *s)
{
	struct attempt_order order;
	struct err why = { 0 };
	char text[320];

	if (attempt_order_read(s->orders_folder, &order, &why) < 0) {
		/* An order that cannot be read is an order. */
		if (why.code != ERR_USAGE)
			return;
		order = (struct attempt_order){ .order = ORDER_KILL };
	}
	snprintf(text, sizeof(text), "%s ordered%s%s%s%s",
		 order.order == ORDER_STOP ? "stop" : "kill", order.by[0] ? " by " : "", order.by,
		 order.text[0] ? ": " : "", order.text);
	stop_ordered(s, order.order, order.goes_on, text);
}

/* An lbrun that launched once needs nobody else to be over. */
static void look_at_claims(struct shepherd *s)
{
	struct shepherd_facts *f = &s->facts;

	f->newest_claim = attempt_newest_claim(s->params.run_dir);
	f->older_may_live = f->launch.number == 0 &&
			    predecessor_may_live(s->params.run_dir, s->params.number, saves_task(s),
						 &s->claim);
	f->older_left_ranks = f->launch.number == 0 && s->policy.lease_ms > 0 &&
			      predecessor_may_have_ranks(s->params.run_dir, s->params.number,
							 saves_task(s), &s->claim);
}

/* --- wishes: the trainer goes on -------------------------------------------------------------- */

void orders_want_save(struct shepherd *s, const char *by)
{
	s->facts.wants_save = true;
	s->is_own_wish = false;
	snprintf(s->save_by, sizeof(s->save_by), "%s", by);
}

/* checkpoint.save_every: not for people to read each time. */
static void save_in_turn(struct shepherd *s)
{
	if (!asking_asked(&s->asking, clock_mono_ms())) {
		journal_note(&s->journal, s->facts.launch.number, "save",
			     "the trainer saves nothing when it is asked: checkpoint.save_every "
			     "rests until the next launch");
		return;
	}
	trainer_server_order(&s->server, "save");
	if (!s->is_asking_told)
		journal_note(&s->journal, s->facts.launch.number, "save",
			     "asks the trainer for checkpoints, by checkpoint.save_every");
	s->is_asking_told = true;
}

void orders_save(struct shepherd *s)
{
	int count;

	if (s->is_own_wish) {
		save_in_turn(s);
		return;
	}
	count = trainer_server_order(&s->server, "save");
	journal_note(&s->journal, s->facts.launch.number, "save",
		     count > 0 ? "asked the trainer for a checkpoint%s%s"
			       : "the trainer reads no orders: no checkpoint was asked for%s%s",
		     s->save_by[0] ? ", by " : "", s->save_by);
}

/* Without a trainer they lie there until there is one. */
static void look_for_requests(struct shepherd *s)
{
	char by[65];

	if (!s->facts.launch.is_open || s->facts.launch.has_ended)
		return;
	s->facts.launch.is_requeue_asked |= s->params.is_script && requeue_was_asked(s->folder);
	if (trainer_request_take(s->folder, TRAINER_REQUEST_SAVE, by, sizeof(by)))
		orders_want_save(s, by);
	/* Stacks are written one at a time; the wish waits. */
	if (s->stacks.pid == 0 &&
	    trainer_request_take(s->folder, TRAINER_REQUEST_STACKS, by, sizeof(by)))
		s->facts.wants_stacks = true;
}

static void ask_in_turn(struct shepherd *s, int64_t now_ms)
{
	const struct launch *l = &s->facts.launch;

	if (!l->is_open || l->has_ended || !l->reports || s->facts.wants_save ||
	    s->facts.stop.why != STOP_NOT || now_ms < asking_due_ms(&s->asking))
		return;
	s->facts.wants_save = s->is_own_wish = true;
}

void orders_look(struct shepherd *s, int64_t now_ms)
{
	s->look_ms = clock_next_round(now_ms, LOOK_EVERY_MS);
	look_at_claims(s);
	look_for_order(s);
	look_for_requests(s);
	ask_in_turn(s, now_ms);
	if (hang_is_watched(s) && now_ms >= s->checkpoint_look_ms) {
		s->checkpoint_look_ms = now_ms + CHECKPOINT_LOOK_MS;
		saves_look(s, false);
	}
	trainer_server_resume(&s->server);
}

void orders_signal(struct shepherd *s, int signo)
{
	switch (signo) {
	case SIGUSR1:
	case SIGUSR2:
		/* what ends a script from now on is the limit */
		s->facts.is_warned = true;
		if (s->params.is_script)
			script_signal(s, signo);
		break;
	case SIGTERM:
	case SIGINT:
	case SIGQUIT:
		look_for_order(s);
		if (!s->facts.signalled)
			s->facts.signalled_ms = clock_mono_ms();
		if (s->facts.signalled != SIGQUIT)
			s->facts.signalled = signo;
		break;
	case SIGCONT:
		s->facts.continued_ms = clock_mono_ms();
		break;
	case SIGHUP: /* "there is an order", or a wish */
		look_for_order(s);
		look_for_requests(s);
		break;
	default:
		break;
	}
}
