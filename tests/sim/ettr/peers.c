/* SPDX-License-Identifier: MIT */
/* peers.c - the same month under a requeueing script and under a person. */
#include "tests/sim/ettr/peers.h"

const struct peer peer_requeue = { "sbatch --requeue", 120 * SECOND };
const struct peer peer_chain = { "--array=1-N%1", 0 };

static const int64_t notice_ms[TROUBLE_COUNT] = {
	[TROUBLE_HANG] = NCCL_WATCHDOG_MS,
	[TROUBLE_NODE] = SLURMD_TIMEOUT_MS,
};

struct life {
	const struct month *m;
	struct account *a;
	int64_t now_ms;
	int64_t jobs;     /* so far */
	enum trouble why; /* it does not train */
	bool is_torn;     /* the newest checkpoint */
	bool held[NODE_COUNT];
};

static void spend(struct life *l, enum where where, int64_t ms)
{
	account_span(l->a, where, l->why, l->now_ms, l->now_ms + ms);
	l->now_ms += ms;
}

static const struct trouble_at *next_hit(const struct life *l)
{
	for (size_t i = 0; i < l->m->count; i++) {
		const struct trouble_at *t = &l->m->troubles[i];

		if (t->at_ms > l->now_ms && trouble_hits(t, l->held))
			return t;
	}
	return NULL;
}

static void suffer(struct life *l, enum trouble why)
{
	l->why = why;
	if (l->now_ms < MONTH_MS)
		l->a->count[why]++;
	spend(l, WHERE_NOTICE, notice_ms[why]);
}

/* From the first process to what ends the job. */
static void run(struct life *l)
{
	const struct circumstances *c = &l->m->c;
	const struct trouble_at *hit = next_hit(l);
	int64_t end_ms = hit ? hit->at_ms : MONTH_MS;
	int64_t up_ms = l->now_ms + c->start_ms;

	if (end_ms <= up_ms) {
		spend(l, WHERE_START, end_ms - l->now_ms);
	} else {
		spend(l, WHERE_START, c->start_ms);
		l->is_torn = account_train(l->a, c, hit ? hit->kind : TROUBLE_NONE, up_ms, end_ms);
		l->now_ms = end_ms;
	}
	if (hit)
		suffer(l, hit->kind);
}

void peer_live(const struct peer *peer, const struct month *m, struct account *a)
{
	struct life l = { .m = m, .a = a };

	while (l.now_ms < MONTH_MS) {
		spend(&l, WHERE_WAIT, month_queue_ms(m, l.jobs));
		while (l.now_ms < MONTH_MS && !month_place(m, l.now_ms, JOB_NODES, NULL, l.held))
			spend(&l, WHERE_WAIT, MINUTE);
		if (month_launch_fails(m, l.jobs++)) {
			spend(&l, WHERE_START, LAUNCH_FAILS_MS);
			suffer(&l, TROUBLE_LAUNCH);
		} else if (l.is_torn) {
			l.is_torn = false;
			suffer(&l, TROUBLE_TORN);
			spend(&l, WHERE_NOTICE, m->c.person_ms);
		} else {
			run(&l);
		}
		spend(&l, WHERE_WAIT, peer->again_ms);
	}
}
