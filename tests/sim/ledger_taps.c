/* SPDX-License-Identifier: MIT */
/* ledger_taps.c - watches what lbd writes to its ledger. */
#include "tests/sim/ledger_taps.h"

#include <string.h>
#include <stdlib.h>

#include "common/base/mem.h"
#include "tests/sim/sim.h"

/* The engine hands over no world of ours in these calls: one simulated world at a time. */
static struct {
	struct sim *sim;
	struct whose {
		int run;
		int64_t number;
		uint64_t avoids; /* prequeued: bits of nodes */
	} * attempts;            /* [id of the row] */
	int64_t cap;
	int run_of[RUNS + 2]; /* [id of the row] */
} taps;

void ledger_taps_open(struct sim *sim)
{
	taps.sim = sim;
}

void ledger_taps_close(void)
{
	free(taps.attempts);
	taps.attempts = NULL;
	taps.cap = 0;
	taps.sim = NULL;
}

static void note(enum fact_kind kind, int run, int64_t attempt, int64_t a, int64_t b)
{
	taps.sim->daemon.has_written = true;
	history_add(&taps.sim->daemon.pending, taps.sim->now_ms, kind, run, attempt, a, b);
}

static void note_attempt(enum fact_kind kind, int64_t id, int64_t a, int64_t b)
{
	note(kind, taps.attempts[id].run, taps.attempts[id].number, a, b);
}

static void know_attempt(int64_t id, int64_t run_id, int64_t number)
{
	if (id >= taps.cap) {
		taps.cap = 2 * id;
		taps.attempts = xrealloc(taps.attempts, (size_t)taps.cap * sizeof(*taps.attempts));
	}
	taps.attempts[id] = (struct whose){ .run = taps.run_of[run_id], .number = number };
}

/* --- writes ----------------------------------------------------------------------------------- */

#define TAP(type, name, ...) \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

TAP(int, ledger_run_insert, struct ledger *l, const struct ledger_run *run, int64_t *id,
    struct err *err)
{
	int rc = __real_ledger_run_insert(l, run, id, err);

	if (rc == 0)
		taps.run_of[*id] = run_index(run->name);
	taps.sim->daemon.has_written = true;
	return rc;
}

TAP(int, ledger_run_move, struct ledger *l, int64_t id, enum run_state from, enum run_state to,
    enum cause cause, const char *text, int64_t now_ms, struct err *err)
{
	int rc = __real_ledger_run_move(l, id, from, to, cause, text, now_ms, err);

	if (rc == 0)
		note(FACT_MOVED, taps.run_of[id], 0, to, cause);
	return rc;
}

TAP(int, ledger_run_set_wanted, struct ledger *l, int64_t id, enum run_order wanted, const char *by,
    const char *reason, int64_t now_ms, struct err *err)
{
	int rc = __real_ledger_run_set_wanted(l, id, wanted, by, reason, now_ms, err);

	if (rc == 0)
		note(FACT_WANTED, taps.run_of[id], 0, wanted, 0);
	return rc;
}

TAP(int, ledger_attempt_insert, struct ledger *l, int64_t run_id, int64_t number, const char *token,
    int64_t now_ms, int64_t *id, struct err *err)
{
	int rc = __real_ledger_attempt_insert(l, run_id, number, token, now_ms, id, err);

	if (rc < 0)
		return rc;
	know_attempt(*id, run_id, number);
	note_attempt(FACT_INTENT, *id, 0, 0);
	return 0;
}

/* Not meant to start before it is taken. */
TAP(int, ledger_prequeued_insert, struct ledger *l, int64_t run_id, int64_t number,
    const char *token, const char *excluded, int64_t now_ms, int64_t *id, struct err *err)
{
	int rc = __real_ledger_prequeued_insert(l, run_id, number, token, excluded, now_ms, id,
						err);

	if (rc == 0) {
		know_attempt(*id, run_id, number);
		taps.attempts[*id].avoids = node_bits(excluded);
	}
	taps.sim->daemon.has_written = true;
	return rc;
}

TAP(int, ledger_prequeued_take, struct ledger *l, int64_t id, int64_t now_ms, struct err *err)
{
	int rc = __real_ledger_prequeued_take(l, id, now_ms, err);

	if (rc == 0) {
		note_attempt(FACT_INTENT, id, 1, 0);
		note_attempt(FACT_EXCLUDED, id, (int64_t)taps.attempts[id].avoids, 0);
	}
	return rc;
}

TAP(int, ledger_attempt_set_job, struct ledger *l, int64_t id, int64_t job_id, int64_t submit_time,
    struct err *err)
{
	int rc = __real_ledger_attempt_set_job(l, id, job_id, submit_time, err);

	if (rc == 0)
		note_attempt(FACT_ADOPTED, id, job_id, submit_time);
	return rc;
}

TAP(int, ledger_attempt_set_excluded, struct ledger *l, int64_t id, const char *excluded,
    struct err *err)
{
	int rc = __real_ledger_attempt_set_excluded(l, id, excluded, err);

	if (rc == 0)
		note_attempt(FACT_EXCLUDED, id, (int64_t)node_bits(excluded), 0);
	return rc;
}

TAP(int, ledger_attempt_started, struct ledger *l, int64_t id, const char *nodes, int64_t now_ms,
    struct err *err)
{
	int rc = __real_ledger_attempt_started(l, id, nodes, now_ms, err);

	if (rc == 0)
		note_attempt(FACT_STARTED, id,
			     nodes[0] == 'n' ? strtol(nodes + 1 + strspn(nodes + 1, "["), NULL, 10)
					     : -1,
			     0);
	return rc;
}

TAP(int, ledger_attempt_released, struct ledger *l, int64_t id, int64_t now_ms, struct err *err)
{
	int rc = __real_ledger_attempt_released(l, id, now_ms, err);

	if (rc == 0)
		note_attempt(FACT_RELEASED, id, 0, 0);
	return rc;
}

TAP(int, ledger_attempt_end, struct ledger *l, int64_t id, enum cause cause, int exit_code,
    int signal, const char *text, int64_t now_ms, struct err *err)
{
	int rc = __real_ledger_attempt_end(l, id, cause, exit_code, signal, text, now_ms, err);

	if (rc == 0)
		note_attempt(FACT_ENDED, id, cause, 0);
	return rc;
}

TAP(int, ledger_attempt_set_spool, struct ledger *l, int64_t id, int64_t offset, int64_t seq,
    struct err *err)
{
	taps.sim->daemon.has_written = true;
	return __real_ledger_attempt_set_spool(l, id, offset, seq, err);
}

/* --- the commit ------------------------------------------------------------------------------- */

static int die(struct ledger *l, struct err *err)
{
	ledger_rollback(l);
	return err_set(err, ERR_IO, "lbd died before the commit");
}

static int tapped_commit(struct ledger *l, int (*real)(struct ledger *l, struct err *err),
			 struct err *err)
{
	struct daemon_model *d = &taps.sim->daemon;
	bool has_written = d->has_written;

	if (d->is_dead || (has_written && daemon_dies_here(taps.sim)))
		return die(l, err);
	if (real(l, err) < 0)
		return -1;
	for (size_t i = 0; i < d->pending.count; i++) {
		const struct fact *f = &d->pending.facts[i];

		sim_fact(taps.sim, (enum fact_kind)f->kind, f->run, f->attempt, f->a, f->b);
	}
	d->pending.count = 0;
	d->has_written = false;
	if (has_written)
		daemon_dies_here(taps.sim);
	return 0;
}

TAP(int, ledger_commit, struct ledger *l, struct err *err)
{
	return tapped_commit(l, __real_ledger_commit, err);
}

TAP(int, ledger_commit_first, struct ledger *l, struct err *err)
{
	return tapped_commit(l, __real_ledger_commit_first, err);
}
