/* SPDX-License-Identifier: MIT */
/* orders.c - who may end this attempt, and how they say so: lbd by the file `order` and a signal,
 * the scheduler by a signal alone, a newer attempt by its claim. The files are looked at every 2 s,
 * too: an order must win even when lbd cannot signal us. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/run/request.h"
#include "worker/lbrun/shepherd/shepherd.h"

enum {
	LOOK_EVERY_MS = 2000,
	CHECKPOINT_LOOK_MS = 10 * 1000,
};

static void look_for_order(struct shepherd *s, int64_t now_ms)
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
	orders_obey(s, order.order, now_ms, text);
}

static void look_for_newer(struct shepherd *s, int64_t now_ms)
{
	int64_t newest = attempt_newest_claim(s->params.run_dir);
	char text[80];

	if (newest <= s->params.number)
		return;
	snprintf(text, sizeof(text), "fenced: attempt %lld has the run now", (long long)newest);
	ask_to_stop(s, STOP_FENCED, true, now_ms, text);
}

/* --- requests: the trainer goes on ------------------------------------------------------------ */

void orders_save(struct shepherd *s, const char *by)
{
	int count = trainer_server_order(&s->server, "save");

	journal_note(&s->journal, s->launch.number, "save",
		     count > 0 ? "asked the trainer for a checkpoint%s%s"
			       : "the trainer reads no orders: no checkpoint was asked for%s%s",
		     by[0] ? ", by " : "", by);
}

static void look_for_requests(struct shepherd *s, int64_t now_ms)
{
	char by[65];

	if (s->phase != PHASE_RUN)
		return;
	if (trainer_request_take(s->orders_folder, TRAINER_REQUEST_SAVE, by, sizeof(by)))
		orders_save(s, by);
	/* Stacks are written one at a time; the request waits. */
	if (s->stacks.pid == 0 &&
	    trainer_request_take(s->orders_folder, TRAINER_REQUEST_STACKS, by, sizeof(by)))
		hang_write_stacks(s, now_ms);
}

void orders_look(struct shepherd *s, int64_t now_ms)
{
	s->look_ms = now_ms + LOOK_EVERY_MS;
	look_for_newer(s, now_ms);
	look_for_order(s, now_ms);
	look_for_requests(s, now_ms);
	if (s->phase == PHASE_RUN && now_ms >= s->checkpoint_look_ms) {
		s->checkpoint_look_ms = now_ms + CHECKPOINT_LOOK_MS;
		saves_look(s, false);
	}
	trainer_server_resume(&s->server);
}

void orders_signal(struct shepherd *s, int signo, int64_t now_ms)
{
	char text[80];

	switch (signo) {
	case SIGUSR1:
	case SIGUSR2:
		if (s->params.is_script) {
			script_signal(s, signo);
			break;
		}
		ask_to_stop(s, STOP_WARNED, false, now_ms, "the job's time limit is near");
		break;
	case SIGTERM:
	case SIGINT:
	case SIGQUIT:
		look_for_order(s, now_ms);
		snprintf(text, sizeof(text), "ended by SIG%s that lbd did not send",
			 signal_word(signo));
		ask_to_stop(s, STOP_SIGNALLED, signo == SIGQUIT, now_ms, text);
		break;
	case SIGHUP: /* "there is an order", or a request */
		look_for_order(s, now_ms);
		look_for_requests(s, now_ms);
		break;
	default:
		break;
	}
}
