/* SPDX-License-Identifier: MIT */
/* test_slurm_wire.c - a job's comment names it; nothing that merely looks like one of ours is taken
 * for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "slurm/wire.h"

#define LEDGER "00112233445566aa"
#define TOKEN "0123456789abcdef0123456789abcdef"

static void test_comments(void **state)
{
	/* clang-format off */
	static const struct { const char *text; bool is_ours; } cases[] = {
		{ "lbd1:" LEDGER ":" TOKEN, true },
		{ "lbd1:" LEDGER ":" TOKEN " thesis, chapter 3", true },
		{ "lbd1:" LEDGER ":" TOKEN ";project=7", true },
		{ "lbd1:" LEDGER ":" TOKEN "f", false },
		{ "lbd1:" LEDGER ":" TOKEN ":", false },
		{ "lbd1:" LEDGER ":" "0123456789abcdef0123456789abcdeF", false },
		{ "lbd1:" LEDGER ":" "0123", false },
		{ "lbd1:" LEDGER, false },
		{ "lbd1:" LEDGER ":", false },
		{ "lbd1::" TOKEN, false },
		{ "lbd1:", false },
		{ "lbd2:" LEDGER ":" TOKEN, false },
		{ " lbd1:" LEDGER ":" TOKEN, false },
		{ "", false },
		{ NULL, false },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char ledger_id[LEDGER_ID_HEX + 1] = "x", token[TOKEN_HEX + 1] = "x";
		bool is_ours = wire_comment_parse(cases[i].text, ledger_id, token);

		assert_int_equal(is_ours, cases[i].is_ours);
		assert_string_equal(ledger_id, is_ours ? LEDGER : "");
		assert_string_equal(token, is_ours ? TOKEN : "");
	}
}

static void test_names(void **state)
{
	struct job_request job = { .token = TOKEN, .ledger_id = LEDGER, .run = "brisk-otter-39" };
	char *name = wire_job_name(&job), *comment = wire_comment(&job);
	json_t *fields;

	(void)state;
	assert_string_equal(name, "lb-brisk-otter-39-0123456789ab");
	assert_string_equal(comment, "lbd1:" LEDGER ":" TOKEN);
	free(name);
	free(comment);
	job.fields = fields = json_pack("{s:s}", "comment", "mine");
	comment = wire_comment(&job);
	assert_string_equal(comment, "lbd1:" LEDGER ":" TOKEN " mine");
	free(comment);
	json_decref(fields);
}

/* As it stands in the line, without the newline; buf_fini is due. */
static void row_text(const struct wire_row *row, struct buf *out)
{
	buf_init(out, 1 << 16);
	wire_row_add(out, row);
	assert_int_equal(out->data[out->len - 1], '\n');
	assert_int_equal(strcspn(out->data, "\n"), out->len - 1);
	out->data[out->len - 1] = '\0';
}

static void test_rows(void **state)
{
	static const struct wire_row row = {
		.token = TOKEN,
		.ledger_id = LEDGER,
		.job_id = 7,
		.submit_time = 1000,
		.state = 5,
		.reason = 24,
		.exit_code = 0x300,
		.start_time = 1001,
		.end_time = 1002,
		.limit_time = 1003,
		.restarts = 4,
		.failed = "n2",
		.nodes = "n[1-2]",
	};
	struct job_status job;
	struct buf text;

	(void)state;
	row_text(&row, &text);
	assert_true(wire_row_parse(text.data, &job));
	assert_string_equal(job.ref.token, TOKEN);
	assert_string_equal(job.ledger_id, LEDGER);
	assert_int_equal(job.ref.job_id, 7);
	assert_int_equal(job.ref.submit_time, 1000);
	assert_int_equal(job.cause, CAUSE_ERROR);
	assert_int_equal(job.exit_code, 3);
	assert_int_equal(job.start_time, 1001);
	assert_int_equal(job.end_time, 1002);
	assert_int_equal(job.limit_time, 1003);
	assert_int_equal(job.restart_count, 4);
	assert_string_equal(job.nodes, "n[1-2]");
	assert_string_equal(job.failed_nodes, "n2");
	buf_fini(&text);
	row_text(&row, &text);
	for (char *end = strrchr(text.data, ' '); end;
	     end = strrchr(text.data, ' ')) { /* cut short */
		*end = '\0';
		assert_false(wire_row_parse(text.data, &job));
	}
	buf_fini(&text);
}

/* What a job of its place said before does not shine through. */
static void test_rows_take_old_places(void **state)
{
	static const struct wire_row row = {
		.token = TOKEN, .ledger_id = LEDGER, .job_id = 7, .failed = "", .nodes = ""
	};
	struct job_status job, fresh;
	struct buf text;

	(void)state;
	memset(&fresh, 0, sizeof(fresh));
	memset(&job, 0xff, sizeof(job));
	row_text(&row, &text);
	assert_true(wire_row_parse(text.data, &fresh));
	buf_fini(&text);
	row_text(&row, &text);
	assert_true(wire_row_parse(text.data, &job));
	assert_int_equal(job.phase, fresh.phase);
	assert_int_equal(job.cause, fresh.cause);
	assert_int_equal(job.exit_code, fresh.exit_code);
	assert_int_equal(job.signal, fresh.signal);
	assert_int_equal(job.start_time, 0);
	assert_int_equal(job.end_time, 0);
	assert_int_equal(job.limit_time, 0);
	assert_int_equal(job.restart_count, 0);
	assert_int_equal(job.idle_excluded, 0);
	assert_int_equal(job.controller_start, 0);
	assert_string_equal(job.state, fresh.state);
	assert_string_equal(job.reason, fresh.reason);
	assert_string_equal(job.nodes, "");
	assert_string_equal(job.failed_nodes, "");
	assert_false(job.has_canceller);
	assert_int_equal(job.canceller, 0);
	buf_fini(&text);
}

/* The largest and smallest numbers; names of a large job's nodes, all of them. */
static void test_large_rows(void **state)
{
	char names[8192];
	struct wire_row row = {
		.token = TOKEN,
		.ledger_id = LEDGER,
		.job_id = UINT32_MAX,
		.submit_time = 999999999999999999,
		.end_time = -999999999999999999,
		.failed = names,
		.nodes = names,
	};
	struct job_status job;
	struct buf text;

	(void)state;
	memset(names, 'n', sizeof(names) - 1);
	names[sizeof(names) - 1] = '\0';
	row_text(&row, &text);
	assert_true(wire_row_parse(text.data, &job));
	assert_int_equal(job.ref.job_id, UINT32_MAX);
	assert_int_equal(job.ref.submit_time, row.submit_time);
	assert_int_equal(job.end_time, row.end_time);
	assert_string_equal(job.nodes, names);
	assert_string_equal(job.failed_nodes, names);
	buf_fini(&text);
	row.submit_time = INT64_MAX; /* no time is so large: refused, not another one */
	row_text(&row, &text);
	assert_false(wire_row_parse(text.data, &job));
	buf_fini(&text);
}

/* Each number in turn is none. */
static void test_bad_rows(void **state)
{
	enum { NUMBERS = 12 };
	char row[512];
	struct job_status job;

	(void)state;
	for (int i = 0; i <= NUMBERS; i++) {
		int at = snprintf(row, sizeof(row), "%s %s", TOKEN, LEDGER);

		for (int n = 0; n < NUMBERS; n++)
			at += snprintf(row + at, sizeof(row) - (size_t)at, n == i ? " x" : " 1");
		snprintf(row + at, sizeof(row) - (size_t)at, " - n1");
		assert_int_equal(wire_row_parse(row, &job), i == NUMBERS);
	}
	row[0] = '\0';
	assert_false(wire_row_parse(row, &job));
}

static void test_results(void **state)
{
	(void)state;
	for (int i = 0; i < SCHEDULER_RESULT_COUNT; i++)
		assert_int_equal(wire_result_from_name(wire_result_name((enum scheduler_result)i)),
				 i);
	assert_int_equal(wire_result_from_name("fine"), SCHEDULER_UNCLEAR);
	assert_int_equal(wire_result_from_name(NULL), SCHEDULER_UNCLEAR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comments),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_bad_rows),
		cmocka_unit_test(test_results),
		cmocka_unit_test(test_large_rows),
		cmocka_unit_test(test_rows_take_old_places),
	};

	return cmocka_run_group_tests_name("slurm wire", tests, NULL, NULL);
}
