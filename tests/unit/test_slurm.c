/* SPDX-License-Identifier: MIT */
/* test_slurm.c - requests and answers between lbd and its Slurm helper; a script stands for the
 * helper. */
#include "tests/unit/unit.h"

#include <sys/stat.h>
#include <uv.h>

#include "common/base/files.h"
#include "slurm/backends.h"

/* Slurm is away when it is asked for a check, and back for what comes next. What it was asked for
 * is in the file `asked`. */
static const char helper[] =
	"#!/bin/sh\n"
	"while read -r line; do\n"
	"	printf '%s\\n' \"$line\" >>asked\n"
	"	id=${line#*\\\"id\\\":}\n"
	"	id=${id%%,*}\n"
	"	case $line in\n"
	"	*'\"check\"'*) more='\"result\":\"down\",\"text\":\"away\",\"unreachable\":true' ;;\n"
	"	*'\"submit\"'*) more='\"result\":\"ok\",\"job_id\":7,\"submit_time\":8' ;;\n"
	"	*'\"poll\"'*) more='\"result\":\"ok\",\"rows\":0,\"last\":1' ;;\n"
	"	*) more='\"result\":\"ok\"' ;;\n"
	"	esac\n"
	"	printf '{\"id\":%s,%s}\\n' \"$id\" \"$more\"\n"
	"done\n";

struct world {
	uv_loop_t loop;
	struct scheduler *slurm;
	json_t *fields;
	struct job_request job;
	int checks, submits, polls; /* how often each was answered */
	enum scheduler_result check, submit, poll;
	char text[200]; /* of the check's answer */
};

static void on_polled(void *arg, const struct scheduler_reply *reply)
{
	struct world *w = arg;

	w->polls++;
	w->poll = reply->result;
	uv_stop(&w->loop);
}

static void on_submitted(void *arg, const struct scheduler_reply *reply)
{
	struct world *w = arg;

	w->submits++;
	w->submit = reply->result;
	w->slurm->ops->poll(w->slurm, on_polled, w);
}

static void submit_on_answer(void *arg, const struct scheduler_reply *reply)
{
	struct world *w = arg;

	w->checks++;
	w->check = reply->result;
	snprintf(w->text, sizeof(w->text), "%s", reply->text);
	w->slurm->ops->submit(w->slurm, &w->job, on_submitted, w);
}

static void on_closed(void *arg)
{
	(void)arg;
}

/* "Not done" is said only of what the helper was never asked for. */
static void what_is_asked_for_while_slurm_is_away_is_not_done(void **state)
{
	struct world w = { .fields = json_object() };
	char *asked;

	(void)state;
	write_text("helper", helper);
	assert_int_equal(chmod("helper", 0700), 0);
	setenv("SLURM_JWT", "token", 1);
	w.job = (struct job_request){ .token = "00112233445566778899aabbccddeeff",
				      .ledger_id = "0123456789abcdef",
				      .run = "r",
				      .fields = w.fields,
				      .script = "true\n" };
	assert_int_equal(uv_loop_init(&w.loop), 0);
	w.slurm = scheduler_slurm_create(&w.loop, "./helper", 20000, false);
	w.slurm->ops->probe(w.slurm, &w.job, submit_on_answer, &w);
	uv_run(&w.loop, UV_RUN_DEFAULT);
	assert_int_equal(w.checks, 1);
	assert_int_equal(w.check, SCHEDULER_DOWN);
	assert_non_null(strstr(w.text, "SLURM_JWT")); /* which may be why */
	assert_int_equal(w.submits, 1);
	asked = file_read("asked", 1 << 20, NULL, NULL);
	assert_non_null(asked);
	assert_int_equal(w.submit, strstr(asked, "\"submit\"") ? SCHEDULER_OK : SCHEDULER_DOWN);
	free(asked);
	assert_int_equal(w.polls, 1);
	assert_int_equal(w.poll, SCHEDULER_OK); /* the helper lives, and is understood */
	w.slurm->ops->close(w.slurm, on_closed, NULL);
	uv_run(&w.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w.loop), 0);
	json_decref(w.fields);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked_for_while_slurm_is_away_is_not_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
