/* SPDX-License-Identifier: MIT */
/* stop.c - that this attempt shall end: why, how soon, and with what words. Whoever wants it, it
 * goes through here. */
#include <stdio.h>

#include "common/base/failpoint.h"
#include "worker/lbrun/shepherd/shepherd.h"

/* Writing a checkpoint may take longer than a killed trainer is given. */
static int64_t grace_ms(const struct shepherd *s)
{
	return s->ordered == ORDER_STOP ? s->params.stop_grace_ms : s->params.kill_grace_ms;
}

void ask_to_stop(struct shepherd *s, enum stop_why why, bool now, int64_t now_ms, const char *text)
{
	bool is_announced = why == STOP_SIGNALLED && s->stop.warned;

	if (why > s->stop.why && !is_announced) {
		failpoint(FP_STOP_SEEN, NULL);
		snprintf(s->stop_text, sizeof(s->stop_text), "%s", text);
		output_say(&s->output, "ending the trainer: %s", text);
	}
	/* Half of what is left is for the last checkpoint, the rest for a trainer that obeys
	 * SIGTERM alone. What hangs does not listen. */
	stopping_request(&s->stop, why, now_ms,
			 why == STOP_WARNED ? s->params.warn_ms / 2 : grace_ms(s),
			 why != STOP_HUNG && trainer_server_has_trainer(&s->server));
	if (now)
		stopping_request_now(&s->stop, why, now_ms);
}

/* The words of a stronger order replace those of a weaker one. */
void orders_obey(struct shepherd *s, enum run_order order, int64_t now_ms, const char *text)
{
	if (order <= s->ordered)
		return;
	if (s->stop.why == STOP_ORDERED) {
		snprintf(s->stop_text, sizeof(s->stop_text), "%s", text);
		output_say(&s->output, "ending the trainer: %s", text);
	}
	s->ordered = order;
	ask_to_stop(s, STOP_ORDERED, order == ORDER_KILL_NOW, now_ms, text);
}
