/* SPDX-License-Identifier: MIT */
/* test_shepherd_walk.c - the order of all steps of an attempt, in a world as willing as can be. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "worker/lbrun/decide/decide.h"
#include "worker/lbrun/decide/judge.h"

enum { NOW = 10 * 1000 * 1000, GRACE_MS = 9000 };

#define EXITED(code) ((code) << 8)
#define KILLED_BY(signo) (signo)

static const struct attempt_params params = {
	.run = (char[]){ "r" },
	.number = 5,
	.in_place = 3,
	.max_without_progress = 3,
	.kill_grace_ms = GRACE_MS,
	.stop_grace_ms = 300000,
	.warn_ms = 240000,
};
static const struct shepherd_policy policy = { .params = &params,
					       .in_slurm = true,
					       .lease_ms = 18750 };

struct walk {
	struct shepherd_facts facts;
	struct handed handed;
	int64_t now_ms;
	char told[400];
};

/* The outside world, as willing as can be. */
static void take(struct walk *w, enum next_kind kind)
{
	struct shepherd_facts *f = &w->facts;

	if (kind == NEXT_CLAIM)
		f->claim = CLAIM_OURS;
	else if (kind == NEXT_SEARCH)
		f->looking = LOOKING_DONE, f->found = 0;
	else if (kind == NEXT_KILL)
		launch_ended(&f->launch, KILLED_BY(SIGKILL), w->now_ms);
	else if (kind == NEXT_STACKS)
		f->stacks = STACKS_DONE;
	else if (kind == NEXT_LAUNCH)
		f->hung_at_ms = INT64_MAX;
	else if (kind == NEXT_CLEAR)
		f->launch.left = f->launch.left < 0 ? 1 : 0;
	else if (kind == NEXT_RECORD)
		f->is_recorded = true;
}

/* Takes steps until there is nothing to do but to hear news; how they are called. */
static const char *go_on(struct walk *w)
{
	struct next next = { 0 };

	w->told[0] = '\0';
	for (int i = 0; i < 100 && next.kind != NEXT_LEAVE; i++) {
		size_t len = strlen(w->told);

		next = shepherd_decide(&w->facts, &policy, w->now_ms);
		shepherd_note(&w->facts, &policy, &next, w->now_ms);
		if (next.kind == NEXT_WAIT && next.at_ms == INT64_MAX)
			break;
		if (next.kind == NEXT_WAIT)
			w->now_ms = next.at_ms;
		else
			snprintf(w->told + len, sizeof(w->told) - len, "%s ", next_name(next.kind));
		take(w, next.kind);
	}
	return w->told;
}

static void begin(struct walk *w)
{
	*w = (struct walk){ .handed = { .is_first = true, .first_told = -1, .best_told = -1 },
			    .now_ms = NOW };
	shepherd_begin(&w->facts, &policy);
	w->facts.handed = &w->handed;
}

static const char start[] = "claim look search look hand_over launch ";

static void test_walk(void **state)
{
	struct walk w;

	(void)state;
	begin(&w);
	assert_string_equal(go_on(&w), start);
	assert_true(w.facts.launch.is_first);
	launch_saved(&w.facts.launch, 10, false);
	launch_ended(&w.facts.launch, KILLED_BY(SIGSEGV), w.now_ms);
	assert_string_equal(go_on(&w),
			    "clear clear drain look finish search look hand_over launch ");
	assert_int_equal(w.facts.launch.number, 2);
	launch_ended(&w.facts.launch, EXITED(0), w.now_ms);
	assert_string_equal(go_on(&w), "clear clear drain look finish close record leave ");
	assert_int_equal(w.facts.ending.cause, CAUSE_COMPLETED);
}

static void test_walk_ordered(void **state)
{
	struct walk w;

	(void)state;
	begin(&w);
	go_on(&w);
	w.facts.listens = true;
	w.facts.order = ORDER_KILL;
	assert_string_equal(go_on(&w),
			    "heed ask term kill clear clear drain look finish close record leave ");
	assert_int_equal(w.facts.ending.cause, CAUSE_KILLED);
	assert_int_equal(w.now_ms, NOW + GRACE_MS + CLEAR_EVERY_MS);
}

static void test_walk_hung(void **state)
{
	struct walk w;

	(void)state;
	begin(&w);
	go_on(&w);
	w.facts.hung_at_ms = NOW;
	assert_string_equal(go_on(&w),
			    "stacks heed ask term kill clear clear drain look finish search look "
			    "hand_over launch ");
	assert_int_equal(w.facts.ending.cause, CAUSE_HANG);
	assert_int_equal(w.facts.stop.why, STOP_NOT);
}

/* Once the search is over somebody wants the end: nothing is started. */
static void test_walk_too_late(void **state)
{
	struct walk w;

	(void)state;
	begin(&w);
	w.facts.order = ORDER_STOP;
	assert_string_equal(go_on(&w), "claim heed look give_up clear clear close record leave ");
	assert_int_equal(w.facts.launch.number, 0);
	assert_int_equal(w.facts.ending.cause, CAUSE_KILLED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_walk_ordered),
		cmocka_unit_test(test_walk_hung),
		cmocka_unit_test(test_walk_too_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
