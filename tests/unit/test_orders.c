/* SPDX-License-Identifier: MIT */
/* test_orders.c - an order that could not be committed was never given: not in the ledger, not in
 * the engine's memory, and no file of it lies about. The engine and its ledger are the real
 * ones. */
#include "tests/unit/ledger_home.h"

#include <errno.h>
#include <sys/stat.h>

#include "common/base/failpoint.h"
#include "common/config/toml.h"
#include "common/run/request.h"
#include "daemon/base/lbd.h"
#include "daemon/runs/orders.h"
#include "daemon/runs/requests.h"

static int64_t now_ms = 1000 * 1000;
static bool is_disk_full;
static int specs_errno; /* why specs cannot be read; 0: they can */
static int submissions;

static int64_t clock_now(void *self)
{
	(void)self;
	return now_ms;
}

static int a_spec(void *self, const char *run_dir, struct run_spec *out, struct err *err)
{
	static const char text[] = "[run]\ncommand = [\"true\"]\nscheduler = \"local\"\n";
	struct toml toml = { 0 };
	int rc = -1;

	(void)self;
	(void)run_dir;
	errno = specs_errno;
	if (errno)
		return err_errno(err, "spec.toml");
	if (toml_parse(&toml, text, sizeof(text) - 1, "spec.toml", err) == 0)
		rc = run_spec_read(&toml, out, err);
	toml_clear(&toml);
	return rc;
}

static void no_switch(void *self, const struct run *run, struct switched *out)
{
	(void)self;
	(void)run;
	*out = (struct switched){ .is_known = true };
}

static int leave_the_end(void *self, const struct run *run, struct err *err)
{
	(void)self;
	(void)run;
	return is_disk_full ? err_set(err, ERR_IO, "no space left") : 0;
}

static bool never_claimed(void *self, const struct run *run)
{
	(void)self;
	(void)run;
	return false;
}

static void a_token(void *self, char out[TOKEN_HEX + 1])
{
	(void)self;
	snprintf(out, TOKEN_HEX + 1, "%0*d", TOKEN_HEX, 7);
}

static int note_submission(void *self, const struct run *run, const char *ledger_id,
			   scheduler_done done, void *arg, struct err *err)
{
	(void)self;
	(void)run;
	(void)ledger_id;
	(void)done;
	(void)arg;
	(void)err;
	submissions++;
	return 0;
}

static const struct world world = {
	.wall_ms = clock_now,
	.mono_ms = clock_now,
	.token = a_token,
	.spec = a_spec,
	.submit = note_submission,
	.switched = no_switch,
	.end_all = leave_the_end,
	.claimed = never_claimed,
};

/* The release that the scheduler was asked for last. */
static struct {
	int count;
	scheduler_done done;
	void *arg;
} release;

static void note_release(struct scheduler *s, const struct job_ref *job, scheduler_done done,
			 void *arg)
{
	(void)s;
	(void)job;
	release.count++;
	release.done = done;
	release.arg = arg;
}

static void answer_release(enum scheduler_result result, const char *body)
{
	struct scheduler_reply reply = { .result = result, .text = "" };
	json_t *object = json_loads(body, 0, NULL);

	reply.body = object;
	release.done(release.arg, &reply);
	json_decref(object);
}

static const struct scheduler_ops ops = { .name = "test", .release = note_release };
static struct scheduler scheduler = { .ops = &ops };
static const struct poll_times times = { .busy_ms = 1000, .idle_ms = 15000, .spool_ms = 500 };

static void open_lbd(struct lbd *lbd)
{
	struct err err = { 0 };

	*lbd = (struct lbd){ .ledger = open_ledger() };
	lbd->engine = engine_create(lbd->ledger, NULL, &scheduler, &world, &times);
	ok(engine_load(lbd->engine, &err), &err);
}

static void close_lbd(struct lbd *lbd)
{
	engine_destroy(lbd->engine);
	ledger_close(lbd->ledger);
}

/* The next time `point` is reached it fails, once. */
static void fail_at(const char *point)
{
	struct err err = { 0 };
	char text[64];

	snprintf(text, sizeof(text), "%s:error", point);
	setenv("LB_FAILPOINT", text, 1);
	ok(failpoint_init("lbd", &err), &err);
}

static json_t *give_as(struct lbd *lbd, enum verb verb, enum role role, struct err *err)
{
	struct request r = {
		.lbd = lbd,
		.verb = verb,
		.peer = { .uid = 1002, .user = "bob", .role = role },
		.args = json_pack("{s:s, s:s}", "run", "first", "reason", "it hangs"),
	};
	json_t *answer = verb == VERB_SAVE ? requests_ask(&r, err) : order_give(&r, err);

	json_decref(r.args);
	return answer;
}

static json_t *give(struct lbd *lbd, enum verb verb, struct err *err)
{
	return give_as(lbd, verb, ROLE_MEMBER, err);
}

static enum run_state settled_state(struct lbd *lbd)
{
	struct ledger_run row;
	struct err err = { 0 };

	ok(engine_settle(lbd->engine, &err), &err);
	ok(ledger_run_find(lbd->ledger, "first", &row, &err), &err);
	return row.state;
}

static int one_more(const struct ledger_event *e, void *arg)
{
	(void)e;
	++*(int *)arg;
	return 0;
}

static int events(struct lbd *lbd)
{
	struct err err = { 0 };
	int count = 0;

	ok(ledger_event_each(lbd->ledger, 0, 0, 100, one_more, &count, &err), &err);
	return count;
}

static void add_held_run(struct lbd *lbd)
{
	struct ledger_run row = a_run("first");
	struct err err = { 0 };
	int64_t id;

	row.state = RUN_HELD;
	row.wanted = ORDER_HOLD;
	ok(ledger_run_insert(lbd->ledger, &row, &id, &err), &err);
	commit(lbd->ledger);
	ok(engine_load(lbd->engine, &err), &err);
}

/* A held run has nothing to stop: a kill is at its end in the same turn. */
static void kill_failing_at(const char *point)
{
	struct err err = { 0 };
	struct lbd lbd;
	json_t *answer;

	open_lbd(&lbd);
	add_held_run(&lbd);
	fail_at(point);
	assert_null(give(&lbd, VERB_KILL, &err));
	assert_int_equal(err.code, ERR_IO);
	assert_int_equal(settled_state(&lbd), RUN_HELD);
	assert_int_equal(events(&lbd), 0);
	answer = give(&lbd, VERB_KILL, &err); /* the disk is well again */
	assert_non_null(answer);
	json_decref(answer);
	assert_int_equal(settled_state(&lbd), RUN_KILLED);
	close_lbd(&lbd);
}

static void an_order_that_is_not_written_is_none(void **state)
{
	(void)state;
	kill_failing_at("order.written");
}

static void an_order_that_is_not_committed_is_none(void **state)
{
	(void)state;
	kill_failing_at("ledger.commit");
}

/* What lives on of an attempt that was given up would train unseen. */
static void no_run_is_over_before_its_survivors_know(void **state)
{
	struct ledger_run row = a_run("first");
	struct err err = { 0 };
	struct lbd lbd;
	json_t *answer;
	int64_t id, attempt;

	(void)state;
	open_lbd(&lbd);
	row.state = RUN_HELD;
	row.wanted = ORDER_HOLD;
	ok(ledger_run_insert(lbd.ledger, &row, &id, &err), &err);
	attempt = add_attempt(lbd.ledger, id, 1);
	ok(ledger_attempt_end(lbd.ledger, attempt, CAUSE_KILLED, -1, 0, "FAILED", 6, &err), &err);
	commit(lbd.ledger);
	ok(engine_load(lbd.engine, &err), &err);

	is_disk_full = true;
	answer = give(&lbd, VERB_KILL, &err);
	json_decref(answer);
	assert_int_equal(settled_state(&lbd), RUN_HELD);
	is_disk_full = false;
	now_ms += 1000;
	assert_int_equal(settled_state(&lbd), RUN_KILLED);
	close_lbd(&lbd);
}

static void a_request_that_is_not_committed_is_not_left(void **state)
{
	struct err err = { 0 };
	struct lbd lbd;
	struct ledger_run row = a_run("first");
	char attempts[96], attempt[112], request[128];
	int64_t id;
	json_t *answer;

	(void)state;
	open_lbd(&lbd);
	row.state = RUN_RUNNING;
	row.dir = folder;
	ok(ledger_run_insert(lbd.ledger, &row, &id, &err), &err);
	add_attempt(lbd.ledger, id, 1);
	commit(lbd.ledger);
	snprintf(attempts, sizeof(attempts), "%s/attempts", folder);
	assert_int_equal(mkdir(attempts, 0700), 0);
	snprintf(attempt, sizeof(attempt), "%s/1", attempts);
	assert_int_equal(mkdir(attempt, 0700), 0);
	snprintf(request, sizeof(request), "%s/save", attempt);

	fail_at("ledger.commit");
	assert_null(give(&lbd, VERB_SAVE, &err));
	assert_int_equal(err.code, ERR_IO);
	assert_int_equal(access(request, F_OK), -1);
	assert_int_equal(events(&lbd), 0);
	answer = give(&lbd, VERB_SAVE, &err);
	assert_non_null(answer);
	json_decref(answer);
	assert_int_equal(access(request, F_OK), 0);
	assert_int_equal(events(&lbd), 1);
	close_lbd(&lbd);
}

/* The file system of its folder is away for a while, and a commit fails meanwhile, upon which all
 * runs are loaded anew. */
static void open_lbd_without_specs(struct lbd *lbd)
{
	struct ledger_run row = a_run("first");
	struct err err = { 0 };
	int64_t id;

	open_lbd(lbd);
	row.state = RUN_CREATED;
	row.wanted = ORDER_RUN;
	row.scheduler = "local";
	ok(ledger_run_insert(lbd->ledger, &row, &id, &err), &err);
	commit(lbd->ledger);
	specs_errno = ESTALE;
	ok(engine_load(lbd->engine, &err), &err);
	fail_at("ledger.commit");
	assert_null(give(lbd, VERB_HOLD, &err));
	assert_int_equal(settled_state(lbd), RUN_CREATED);
}

static void a_run_whose_spec_is_away_waits(void **state)
{
	struct lbd lbd;

	(void)state;
	open_lbd_without_specs(&lbd);
	now_ms += 1000;
	assert_int_equal(settled_state(&lbd), RUN_CREATED);
	specs_errno = 0;
	now_ms += 1000;
	assert_int_equal(settled_state(&lbd), RUN_SUBMITTING);
	assert_int_equal(submissions, 1);
	close_lbd(&lbd);
}

static void a_run_whose_spec_is_away_can_be_killed(void **state)
{
	struct err err = { 0 };
	struct lbd lbd;

	(void)state;
	open_lbd_without_specs(&lbd);
	json_decref(give(&lbd, VERB_KILL, &err));
	assert_int_equal(settled_state(&lbd), RUN_KILLED);
	specs_errno = 0;
	close_lbd(&lbd);
}

/* While the ledger cannot be written nothing of a refused request may wait for a better day. */
static void what_was_not_settled_is_undone(void **state)
{
	static const struct ledger_event event = { .kind = "k", .actor = "lbd", .text = "" };
	struct ledger_run row = a_run("first");
	struct err err = { 0 };
	struct lbd lbd;
	int64_t id;

	(void)state;
	open_lbd(&lbd);
	ok(ledger_event_put(lbd.ledger, &event, &err), &err);
	fail_at("ledger.commit");
	engine_turn(lbd.engine);
	ok(ledger_run_insert(lbd.ledger, &row, &id, &err), &err);
	assert_int_equal(engine_settle(lbd.engine, &err), -1);
	assert_int_equal(err.code, ERR_IO);
	commit(lbd.ledger);
	assert_int_equal(ledger_run_find(lbd.ledger, "first", &row, NULL), -1);
	assert_int_equal(events(&lbd), 0);
	close_lbd(&lbd);
}

/* Who holds a job behind our back since the last poll the scheduler knows; it is told of a release
 * that was one, and asked until it has answered. */
static void what_somebody_may_hold_is_released(void **state)
{
	struct ledger_run row = a_run("first");
	struct err err = { 0 };
	struct lbd lbd;
	int64_t id, attempt;

	(void)state;
	open_lbd(&lbd);
	row.state = RUN_QUEUED;
	row.wanted = ORDER_RUN;
	row.scheduler = "local";
	ok(ledger_run_insert(lbd.ledger, &row, &id, &err), &err);
	attempt = add_attempt(lbd.ledger, id, 1);
	ok(ledger_attempt_set_job(lbd.ledger, attempt, 7, 6, &err), &err);
	ok(ledger_attempt_released(lbd.ledger, attempt, 7, &err), &err);
	commit(lbd.ledger);
	ok(engine_load(lbd.engine, &err), &err);

	json_decref(give(&lbd, VERB_RELEASE, &err)); /* to a colleague it is not held */
	settled_state(&lbd);
	assert_int_equal(release.count, 0);
	json_decref(give_as(&lbd, VERB_RELEASE, ROLE_OWNER, &err));
	settled_state(&lbd);
	assert_int_equal(release.count, 1);
	answer_release(SCHEDULER_DOWN, "{}");
	now_ms += 10 * 1000;
	settled_state(&lbd);
	assert_int_equal(release.count, 2);
	assert_int_equal(events(&lbd), 0);
	answer_release(SCHEDULER_OK, "{\"held\":true}");
	now_ms += 10 * 1000;
	assert_int_equal(settled_state(&lbd), RUN_QUEUED);
	assert_int_equal(release.count, 2);
	assert_int_equal(events(&lbd), 1);

	json_decref(give_as(&lbd, VERB_RELEASE, ROLE_OWNER, &err));
	settled_state(&lbd);
	answer_release(SCHEDULER_OK, "{}");
	settled_state(&lbd);
	assert_int_equal(release.count, 3);
	assert_int_equal(events(&lbd), 1);
	close_lbd(&lbd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_run_whose_spec_is_away_waits),
		TEST(a_run_whose_spec_is_away_can_be_killed),
		TEST(an_order_that_is_not_written_is_none),
		TEST(an_order_that_is_not_committed_is_none),
		TEST(no_run_is_over_before_its_survivors_know),
		TEST(a_request_that_is_not_committed_is_not_left),
		TEST(what_was_not_settled_is_undone),
		TEST(what_somebody_may_hold_is_released),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
