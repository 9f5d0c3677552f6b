/* SPDX-License-Identifier: MIT */
/* test_unheard_host.c - nodes that say that nobody answers them are believed of the launch that
 * runs, not of one that lbrun has outlived. The engine, its ledger and how lines are taken in are
 * the real ones. */
#include "tests/unit/ledger_home.h"

#include <string.h>

#include "common/run/spool.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/state.h"

enum { NODE_MS = 30 * 1000 };

static int64_t now_ms;
static const char *lines[8]; /* the spool */
static int64_t noted;        /* the launch that the notes are of */

static int64_t clock_now(void *self)
{
	(void)self;
	return now_ms;
}

static int three_nodes(void *self, const char *run_dir, struct run_spec *out, struct err *err)
{
	(void)self;
	(void)run_dir;
	(void)err;
	run_spec_defaults(out);
	out->nodes = 3;
	out->watch.node_ms = NODE_MS;
	return 0;
}

static bool claimed(void *self, const struct run *run)
{
	(void)self;
	(void)run;
	return true;
}

static bool not_exited(void *self, const struct run *run, struct attempt_exit *out)
{
	(void)self;
	(void)run;
	(void)out;
	return false;
}

/* Both other nodes have left one. */
static void unheard(void *self, const struct run *run, const char *host, struct unheard *out)
{
	(void)self;
	assert_string_equal(host, "n1");
	if (noted >= run->attempt.launch)
		*out = (struct unheard){ .nodes = 2, .of = 2, .silent_ms = NODE_MS };
}

static int64_t spool(void *self, const struct run *run, int64_t *offset, int64_t max_bytes,
		     int (*on_line)(const struct spool_line *line, void *arg),
		     void (*on_bad)(int64_t at, const struct err *why, void *arg), void *arg,
		     struct err *err)
{
	int rc = 0;

	(void)self;
	(void)run;
	(void)max_bytes;
	(void)on_bad;
	(void)err;
	while (rc == 0 && lines[*offset]) {
		json_t *line = json_loads(lines[*offset], 0, NULL);
		struct spool_line of = { .seq = ++*offset, .time_ms = now_ms, .line = line };

		rc = on_line(&of, arg);
		json_decref(line);
	}
	return rc;
}

static const struct world world = {
	.wall_ms = clock_now,
	.mono_ms = clock_now,
	.spec = three_nodes,
	.claimed = claimed,
	.exited = not_exited,
	.unheard = unheard,
	.spool = spool,
};
static const struct poll_times times = { .busy_ms = 1000, .idle_ms = 15000, .spool_ms = 500 };

/* Is lbrun's node believed to be lost, once it was silent for longer than the limit? `restarted`:
 * lbd was, meanwhile. */
static bool is_lost(bool restarted)
{
	struct ledger *ledger = open_ledger();
	int64_t id = add_attempt(ledger, add_run(ledger, "r", RUN_RUNNING), 1);
	struct engine *e = engine_create(ledger, NULL, NULL, &world, &times);
	struct err err = { 0 };
	bool lost;

	now_ms = 1000 * 1000;
	ok(ledger_attempt_set_job(ledger, id, 7, 6, &err), &err);
	ok(ledger_attempt_released(ledger, id, 7, &err), &err);
	ok(ledger_attempt_started(ledger, id, "n1,n2,n3", 8, &err), &err);
	ok(engine_load(e, &err), &err);
	engine_look_at_files(e, e->runs, now_ms);
	if (restarted)
		ok(engine_load(e, &err), &err);
	now_ms += NODE_MS + 1;
	engine_look_at_files(e, e->runs, now_ms);
	lost = e->runs->attempt.unheard.since_ms > 0;
	assert_false(e->broken); /* whatever lines are missing, all other runs go on */
	commit(ledger);
	engine_destroy(e);
	ledger_close(ledger);
	unlink(file);
	return lost;
}

#define START(n) "{\"type\":\"launch_start\",\"number\":" #n ",\"pid\":1,\"resumed_from_step\":-1}"
#define END(n) \
	"{\"type\":\"launch_end\",\"number\":" #n ",\"cause\":\"node_fail\",\"progress\":true," \
	"\"text\":\"\",\"node\":\"\"}"

static void test_of_which_launch(void **state)
{
	static const struct {
		const char *lines[4];
		int64_t noted;
		bool lost;
	} cases[] = {
		{ { START(1) }, 1, true },
		{ { START(1), END(1) }, 1, false }, /* it wrote that: it searches, or stages */
		{ { START(1), END(1) }, 2, true },  /* its word of that one does not show yet */
		{ { START(1), END(1), START(2) }, 1, false },
		{ { START(1), END(1), START(2) }, 2, true },
		{ { END(1) }, 1, false },
		{ { NULL }, 1, false }, /* nothing was told of */
	};

	(void)state;
	for (size_t i = 0; i < 2 * COUNT(cases); i++) {
		memcpy(lines, cases[i / 2].lines, sizeof(cases[0].lines));
		noted = cases[i / 2].noted;
		if (is_lost(i % 2) != cases[i / 2].lost)
			fail_msg("case %zu%s", i / 2, i % 2 ? ", lbd restarted" : "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_of_which_launch) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
